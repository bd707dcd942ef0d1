"""What happens between the steps of a run: evaluations, log lines, checkpoints, status, and the way out."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from softdpg.runs import checkpoint, files, snapshot
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.display import RunDisplay
from softdpg.runs.environments import EVALUATION, SeededEpisodes, episode_seed
from softdpg.runs.evaluation import DivergedError, Evaluator
from softdpg.runs.learner import save_weights
from softdpg.runs.logs import EvaluationLog
from softdpg.runs.normalization import player
from softdpg.runs.signals import Signals
from softdpg.runs.timing import KINDS, CpuClock, TimingLog

LOG_EVERY = 1_000  # steps
STATUS_EVERY = 1.0  # seconds


class Interrupted(Exception):  # noqa: N818 (not an error)
    """Raised between two steps to end a run on request."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"signal {signal_number}")
        self.exit_code = 128 + signal_number


class Crossed(Exception):  # noqa: N818 (not an error)
    """Raised between two steps to end a run that has reached its goal."""


class Supervisor(BaseCallback):
    """Does its work between two steps, when the state of the run is consistent: after the update of step ``n`` and
    before step ``n + 1``.

    :param state: what :meth:`_checkpoint` stored under ``supervisor``, or empty for a new run
    """

    @staticmethod
    def checked(stored: Mapping[str, Any]) -> dict[str, Any]:
        """The state in a checkpoint, with numbers in their places; ``KeyError``, ``TypeError``, ``ValueError`` if not.

        Earlier versions did not take the CPU seconds.
        """
        state: dict[str, Any] = {name: float(stored[name]) for name in ("step", "next_checkpoint", "seconds")}
        return state | {"cpu": {kind: float(stored.get("cpu", {}).get(kind, 0.0)) for kind in KINDS}}

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        envs: Sequence[SeededEpisodes],
        display: RunDisplay,
        signals: Signals,
        state: Mapping[str, Any],
    ) -> None:
        super().__init__()
        self.config, self.directory, self.envs, self.display, self.signals = config, directory, envs, display, signals
        self.evaluator = Evaluator(config.env, config.evaluation_episodes, config.env_kwargs)
        self.evaluations, self.timings = EvaluationLog(directory.evaluations), TimingLog(directory.timings)
        self.exact_resume = config.algorithm.exact_resume
        self.last_checkpoint = int(state.get("step", 0))
        self.next_checkpoint = int(state.get("next_checkpoint", config.checkpoint_every))
        self.seconds_before = float(state.get("seconds", 0.0))
        self.done_until = self.last_checkpoint  # the last step whose work between steps is done
        self.crossed_at = None if config.goal is None else directory.crossing(config.goal)
        self.started = time.monotonic()
        self.clock = CpuClock(state.get("cpu", {}))
        self.next_status = 0.0

    @property
    def seconds(self) -> float:
        """Wall time of the run so far, over all its parts."""
        return self.seconds_before + time.monotonic() - self.started

    @property
    def last_step(self) -> int:
        """Where the run ends, as far as is known now."""
        after = self.config.after_crossing
        return self.config.steps if self.crossed_at is None else min(self.config.steps, self.crossed_at + after)

    @property
    def outcome(self) -> str:
        """When the run crossed its goal; empty if it has none."""
        if self.config.goal is None:
            return ""
        if self.crossed_at is None:
            return f"{self.config.goal:g} not crossed"
        seconds = self.directory.training_seconds(self.crossed_at)
        return f"crossed {self.config.goal:g} at step {self.crossed_at:,} after {seconds:,.1f} CPU seconds"

    def _on_training_start(self) -> None:
        model: Any = self.model
        if model.num_timesteps and not model.replay_buffer.count:  # of a run whose buffer is gone: the one checkpoint
            self._checkpoint(model.num_timesteps)  # that a kill can go back to from now on

    def _on_step(self) -> bool:
        self.clock.lap()
        if time.monotonic() >= self.next_status:
            self.next_status = time.monotonic() + STATUS_EVERY
            self.write_status("running")
            self.display.update(self.num_timesteps)
        return True

    def _on_rollout_start(self) -> None:
        self._between_steps()

    def _on_training_end(self) -> None:
        self._between_steps()

    def close(self) -> None:
        """Show the end, and let go of the environments of the evaluation."""
        self.display.update(self.num_timesteps)
        self.evaluator.close()

    def _between_steps(self) -> None:
        self.clock.lap()
        step = self.model.num_timesteps
        if step > self.done_until:
            last = step >= self.last_step
            if last or self._passed(step, LOG_EVERY):
                self.model.dump_logs()
            if last or self._passed(step, self.config.evaluate_every):
                self._evaluate(step)
            last = step >= self.last_step  # it may have crossed
            self.done_until = step
            if last or step >= self.next_checkpoint or self.signals.received is not None:
                self._checkpoint(step)
        if self.config.steps > step >= self.last_step:
            raise Crossed
        if self.signals.received is not None and step < self.config.steps:
            raise Interrupted(self.signals.received)

    def _passed(self, step: int, every: int) -> bool:
        """Whether a multiple of ``every`` lies in the steps since the last time; an update may follow several."""
        return step // every > self.done_until // every

    def _evaluate(self, step: int) -> None:
        seeds = [episode_seed(self.config.seed, EVALUATION, step, i) for i in range(self.config.evaluation_episodes)]
        try:
            with self.clock.evaluation():
                returns = self.evaluator.returns(player(self.model), seeds)
        except DivergedError as error:
            raise ValueError(f"{error}, at update {self.model._n_updates:,}") from None
        self.evaluations.append(step, returns)
        self.timings.append(step, self.clock.seconds)
        if self.config.goal is not None and self.crossed_at is None:
            self.crossed_at = self.directory.crossing(self.config.goal)
        self.display.evaluated(step, returns.mean(), returns.std())

    def _checkpoint(self, step: int) -> None:
        while self.next_checkpoint <= step:
            self.next_checkpoint += self.config.checkpoint_every
        model: Any = self.model
        if not self.exact_resume:
            save_weights(model, self.directory.model)
            return
        model.replay_buffer.flush()
        arrays, state = snapshot.capture(model, self.envs)
        self.clock.lap()
        state["supervisor"] = {
            "step": step,
            "next_checkpoint": self.next_checkpoint,
            "seconds": self.seconds,
            "cpu": self.clock.seconds,
        }
        outputs = {name: files.read_bytes(self.directory.path / name, files.TABLE) for name in checkpoint.OUTPUTS}
        checkpoint.write(self.directory.checkpoints, checkpoint.Checkpoint(step, arrays, state, outputs))
        save_weights(model, self.directory.model)
        self.last_checkpoint = step

    def write_status(self, state: str, message: str = "") -> None:
        """Replace ``status.json``."""
        self.directory.write_status(state, self.num_timesteps, self.config.steps, self.seconds, message)
