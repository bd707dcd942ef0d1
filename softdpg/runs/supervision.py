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
from softdpg.runs.signals import Signals

LOG_EVERY = 1_000  # steps
STATUS_EVERY = 1.0  # seconds


class Interrupted(Exception):  # noqa: N818 (not an error)
    """Raised between two steps to end a run on request."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"signal {signal_number}")
        self.exit_code = 128 + signal_number


class Supervisor(BaseCallback):
    """Does its work between two steps, when the state of the run is consistent: after the update of step ``n`` and
    before step ``n + 1``.

    :param state: what :meth:`_checkpoint` stored under ``supervisor``, or empty for a new run
    """

    STATE = ("step", "next_checkpoint", "seconds")

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        envs: Sequence[SeededEpisodes],
        display: RunDisplay,
        signals: Signals,
        state: Mapping[str, float],
    ) -> None:
        super().__init__()
        self.config, self.directory, self.envs, self.display, self.signals = config, directory, envs, display, signals
        self.evaluator = Evaluator(config.env, config.evaluation_episodes)
        self.evaluations = EvaluationLog(directory.evaluations)
        self.exact_resume = config.algorithm.exact_resume
        self.last_checkpoint = int(state.get("step", 0))
        self.next_checkpoint = int(state.get("next_checkpoint", config.checkpoint_every))
        self.seconds_before = float(state.get("seconds", 0.0))
        self.done_until = self.last_checkpoint  # the last step whose work between steps is done
        self.started = time.monotonic()
        self.next_status = 0.0

    @property
    def seconds(self) -> float:
        """Wall time of the run so far, over all its parts."""
        return self.seconds_before + time.monotonic() - self.started

    def _on_training_start(self) -> None:
        model: Any = self.model
        if model.num_timesteps and not model.replay_buffer.count:  # of a run whose buffer is gone: the one checkpoint
            self._checkpoint(model.num_timesteps)  # that a kill can go back to from now on

    def _on_step(self) -> bool:
        if time.monotonic() >= self.next_status:
            self.next_status = time.monotonic() + STATUS_EVERY
            self.write_status("running")
            self.display.update(self.num_timesteps)
        return True

    def _on_rollout_start(self) -> None:
        self._between_steps()

    def _on_training_end(self) -> None:
        self._between_steps()
        self.display.update(self.num_timesteps)
        self.evaluator.close()

    def _between_steps(self) -> None:
        step = self.model.num_timesteps
        if step > self.done_until:
            last = step >= self.config.steps
            if last or self._passed(step, LOG_EVERY):
                self.model.dump_logs()
            if last or self._passed(step, self.config.evaluate_every):
                self._evaluate(step)
            self.done_until = step
            if last or step >= self.next_checkpoint or self.signals.received is not None:
                self._checkpoint(step)
        if self.signals.received is not None and step < self.config.steps:
            raise Interrupted(self.signals.received)

    def _passed(self, step: int, every: int) -> bool:
        """Whether a multiple of ``every`` lies in the steps since the last time; an update may follow several."""
        return step // every > self.done_until // every

    def _evaluate(self, step: int) -> None:
        seeds = [episode_seed(self.config.seed, EVALUATION, step, i) for i in range(self.config.evaluation_episodes)]
        try:
            returns = self.evaluator.returns(self.model, seeds)
        except DivergedError as error:
            raise ValueError(f"{error}, at update {self.model._n_updates:,}") from None
        self.evaluations.append(step, returns)
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
        state["supervisor"] = {"step": step, "next_checkpoint": self.next_checkpoint, "seconds": self.seconds}
        outputs = {name: files.read_bytes(self.directory.path / name, files.TABLE) for name in checkpoint.OUTPUTS}
        checkpoint.write(self.directory.checkpoints, checkpoint.Checkpoint(step, arrays, state, outputs))
        save_weights(model, self.directory.model)
        self.last_checkpoint = step

    def write_status(self, state: str, message: str = "") -> None:
        """Replace ``status.json``."""
        self.directory.write_status(state, self.num_timesteps, self.config.steps, self.seconds, message)
