"""A training run at work, from its newest checkpoint or from the beginning to its end or the next interruption."""

import io
import os
import pickle
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import jax
from stable_baselines3.common.callbacks import BaseCallback

from softdpg.errors import UserError, one_line
from softdpg.runs import checkpoint, files, process
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import ACTIVITIES, RESTART, RunDirectory, parse_evaluations, parse_timings
from softdpg.runs.display import RunDisplay, say, say_error, warn
from softdpg.runs.environments import EVALUATION, DivergedError, Evaluator, SeededEpisodes, episode_seed
from softdpg.runs.learner import buffer_in_memory, make_logger, make_training_learner, policy_of, save_weights
from softdpg.runs.tracking import Service, Tracker, make_tracker

LOG_EVERY = 1_000  # steps
STATUS_EVERY = 1.0  # seconds


class Interrupted(Exception):  # noqa: N818 (not an error)
    """Raised between two steps to end a run on request."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"signal {signal_number}")
        self.exit_code = 128 + signal_number


class ScoreReached(Exception):  # noqa: N818 (not an error)
    """Raised between two steps to end a run that has reached its target score."""


class Session:
    """A claimed run directory at work.

    :param config: resolved settings of the run
    :param directory: its directory, which this process holds
    :param envs: its environments
    :param keep_buffer: whether to keep the file of the replay buffer after the run is finished
    :param extended: whether the run was finished and now continues to more steps
    :param track: the service that also gets the log and the evaluations
    """

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        envs: Sequence[SeededEpisodes],
        *,
        keep_buffer: bool = False,
        extended: bool = False,
        track: Service | None = None,
    ) -> None:
        self.track = track
        self.config, self.directory, self.envs = config, directory, envs
        self.keep_buffer, self.extended = keep_buffer, extended
        self.supervisor: Supervisor | None = None

    def run(self) -> int:
        """Train to the end. Return the exit code of the command."""
        config, directory = self.config, self.directory
        title = " ".join([config.env, config.algorithm.name, f"seed {config.seed}"])
        try:
            model = make_training_learner(config, directory, self.envs)
            state = self.resume(model)
            with (
                self._quiet_threads(),
                RunDisplay(title, config.steps) as display,
                process.Signals(self._overdue) as signals,
            ):
                self.supervisor = Supervisor(config, directory, self.envs, display, signals, state)
                if model.num_timesteps:
                    display.say(f"resuming from the checkpoint at step {model.num_timesteps:,}")
                logger = make_logger(directory.path, model.num_timesteps)
                if self.track is not None:
                    run = directory.read_config()["run"]
                    self.supervisor.tracker = make_tracker(self.track, config, run, directory.path)
                    logger.output_formats.append(self.supervisor.tracker)
                model.set_logger(logger)
                left = config.steps - model.num_timesteps
                with suppress(ScoreReached):
                    model.learn(left, callback=self.supervisor, log_interval=None, reset_num_timesteps=False)
                self.supervisor.close()
            self._finish(model, self.supervisor)
        except (Interrupted, KeyboardInterrupt) as interruption:
            code = interruption.exit_code if isinstance(interruption, Interrupted) else 130
            return self._stopped("interrupted", "interrupted", code)
        except UserError:
            raise
        except OSError as error:
            if files.is_full(error):
                return self._stopped("failed", f"the disk is full ({directory.path})", 1)
            return self._failed(error)
        except BaseException as error:  # most often from the environment
            return self._failed(error)
        outcome = f"  {self.supervisor.outcome}" if self.supervisor.outcome else ""
        say(f"finished: {directory.path}  evaluation {directory.last_evaluation()}{outcome}")
        return 0

    def resume(self, model: Any) -> dict[str, Any]:
        """Restore the newest valid checkpoint, or begin. Return the state of the supervisor.

        :param model: the new learner of the run
        """
        label = self.config.algorithm.label
        if not self.config.algorithm.exact_resume:
            if self.extended:
                raise UserError(f"{self.directory.path} cannot be resumed: {label} has no checkpoints; {RESTART}")
            if self.directory.read_status():
                warn(f"{label} has no checkpoints: starting over")
            self._begin()
            return {}
        damage = []
        for found in checkpoint.newest_first(self.directory.checkpoints):
            try:
                if isinstance(found, checkpoint.DamagedCheckpointError):
                    raise found
                state = Supervisor.checked(found, self.config)
                same = checkpoint.restore(model, self.envs, found, may_refill=self.extended)
            except checkpoint.DamagedCheckpointError as error:
                damage.append(str(error))
                warn(f"checkpoint not usable, falling back to the one before: {error}")
                continue
            if not same:
                warn(f"{self.config.env} does not start the same from the same seed; resuming, but not bit for bit")
            if not model.replay_buffer.size():
                warn(
                    "the run was finished and its replay buffer is gone; it is filled with "
                    f"{self.config.learning_starts:,} random steps (with --keep-buffer a run resumes exactly)"
                )
            for name, contents in found.files.items():
                files.replace_file(self.directory.path / name, contents)
            return state
        if damage:
            raise UserError(f"{self.directory.path}: no usable checkpoint is left ({damage[0]}); {RESTART}")
        model.replay_buffer.reset()
        self._begin()
        return {}

    def _begin(self) -> None:
        self.directory.progress.unlink(missing_ok=True)
        self.directory.create_tables(self.config.evaluation_episodes)
        random_steps = self.config.learning_starts or 0  # a peer has its own
        if self.config.steps <= random_steps:
            warn(f"nothing will be learned: the first {random_steps:,} steps are random (--learning-starts)")

    def _finish(self, model: Any, supervisor: "Supervisor") -> None:
        save_weights(model, self.directory.model)
        # The model must load anywhere, without the file of the buffer.
        model.replay_buffer_class = buffer_in_memory(self.config, model.observation_space)
        model.replay_buffer_kwargs = {}
        saved = io.BytesIO()
        model.save(saved)
        files.replace_file(self.directory.model_zip, saved.getvalue(), durable=True)
        if self.config.normalize:
            files.replace_file(self.directory.normalization, pickle.dumps(model.get_vec_normalize_env()), durable=True)
        supervisor.write_status("finished", supervisor.outcome)
        if not self.keep_buffer:  # only now: a run killed before it is finished needs the buffer
            self.directory.replay_buffer.unlink(missing_ok=True)

    def _stopped(self, state: str, reason: str, exit_code: int) -> int:
        self._record(state, reason)
        saved = checkpoint.newest_step(self.directory.checkpoints)
        where = f"the checkpoint at step {saved:,}" if saved else "the beginning (no checkpoint yet)"
        say_error(f"softdpg: {reason}; resume from {where} with:\n  {self.config.command(self.directory.path)}")
        return exit_code

    def _failed(self, error: BaseException) -> int:
        """Print one line, and write the traceback to ``train.log``."""
        self._log("".join(traceback.format_exception(error)))
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        step = self.supervisor.num_timesteps if self.supervisor else 0
        reason = f"error after step {step:,}: {kind}{one_line(error)} (more in {self.directory.log})"
        return self._stopped("failed", reason, 1)

    def _overdue(self, number: int) -> None:
        """End a run whose current step does not end."""
        self._stopped("interrupted", f"interrupted within a step that lasts longer than {process.GRACE:g} s", 0)
        os._exit(128 + number)

    @contextmanager
    def _quiet_threads(self) -> Iterator[None]:
        """Send tracebacks of threads to ``train.log``, for instance those of TensorBoard when the disk is full.

        The main thread raises its own exception when it next needs the work of the thread.
        """
        previous = threading.excepthook
        threading.excepthook = lambda args: self._log("".join(traceback.format_exception(args.exc_value)))
        try:
            yield
        finally:
            threading.excepthook = previous

    def _log(self, text: str) -> None:
        with suppress(OSError, ValueError):  # if the disk is full, the message still goes to the terminal
            files.append(self.directory.log, text.encode(errors="backslashreplace"))

    def _record(self, state: str, message: str) -> None:
        with suppress(OSError):
            if self.supervisor is not None:
                self.supervisor.write_status(state, message)
            elif not self.directory.status.exists():  # a run that could not be resumed keeps its status
                self.directory.write_status(state, 0, self.config.steps, 0.0, message)


class Supervisor(BaseCallback):
    """Evaluate, log, write checkpoints and status, and end the run.

    It works between two steps, after the update of step ``n`` and before step ``n + 1``, when the state of the run is
    consistent.

    :param config: resolved settings of the run
    :param directory: its directory
    :param envs: its environments
    :param display: shows the progress
    :param signals: tells whether the run is to be interrupted
    :param state: what :meth:`_checkpoint` stored under ``supervisor``, or empty for a new run
    """

    @staticmethod
    def checked(found: checkpoint.Checkpoint, config: RunConfig) -> dict[str, Any]:
        """Return the state in a checkpoint; raise ``DamagedCheckpointError`` if it or a table is invalid."""
        try:
            stored = found.state["supervisor"]
            state: dict[str, Any] = {name: float(stored[name]) for name in ("step", "next_checkpoint", "seconds")}
            if not found.step == state["step"] < state["next_checkpoint"] <= found.step + config.checkpoint_every:
                raise ValueError("its steps contradict each other")
            tables = {name: found.files[name].decode() for name in checkpoint.TABLES}
            parse_evaluations(tables["evaluations.csv"])
            parse_timings(tables["timings.csv"])
            return state | {"cpu": {activity: float(stored["cpu"][activity]) for activity in ACTIVITIES}}
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise checkpoint.DamagedCheckpointError(f"the checkpoint of step {found.step}: {error!r}") from None

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        envs: Sequence[SeededEpisodes],
        display: RunDisplay,
        signals: process.Signals,
        state: Mapping[str, Any],
    ) -> None:
        super().__init__()
        self.config, self.directory, self.envs, self.display, self.signals = config, directory, envs, display, signals
        self.evaluator = Evaluator(config, config.evaluation_episodes)
        self.next_checkpoint = int(state.get("next_checkpoint", config.checkpoint_every))
        self.seconds_before = float(state.get("seconds", 0.0))
        self.done_until = int(state.get("step", 0))  # the last step whose work between steps is done
        self.reached_at = None if config.stop_at_score is None else directory.reached_at(config.stop_at_score)
        self.started = time.monotonic()
        self.clock = CpuClock(state.get("cpu", {}))
        self.next_status = 0.0
        self.tracker: Tracker | None = None

    @property
    def seconds(self) -> float:
        """Wall time of the run so far, over all its sessions."""
        return self.seconds_before + time.monotonic() - self.started

    @property
    def last_step(self) -> int:
        """Where the run ends, as far as is known now."""
        after = self.config.steps_after_score
        return self.config.steps if self.reached_at is None else min(self.config.steps, self.reached_at + after)

    @property
    def outcome(self) -> str:
        """When the run reached its target score; empty if it has none."""
        if self.config.stop_at_score is None:
            return ""
        if self.reached_at is None:
            return f"{self.config.stop_at_score:g} not reached"
        seconds = self.directory.training_seconds(self.reached_at)
        return f"reached {self.config.stop_at_score:g} at step {self.reached_at:,} after {seconds:,.1f} CPU seconds"

    def _on_training_start(self) -> None:
        model: Any = self.model
        if model.num_timesteps and not model.replay_buffer.count:  # the buffer of a finished run is gone:
            self._checkpoint(model.num_timesteps)  # earlier checkpoints need it, this one does not

    def _on_step(self) -> bool:
        self.clock.lap()
        if time.monotonic() >= self.next_status:
            self.next_status = time.monotonic() + STATUS_EVERY
            self.write_status("running")
            self.display.update(self.num_timesteps)
        # An on-policy peer would complete its rollout, beyond the last step.
        return self.num_timesteps < self.config.steps or hasattr(self.model, "replay_buffer")

    def _on_rollout_start(self) -> None:
        self._between_steps()

    def _on_training_end(self) -> None:
        self._between_steps()

    def close(self) -> None:
        """Show the end and close the environments of the evaluation."""
        self.display.update(self.num_timesteps)
        try:
            self.evaluator.close()
        except Exception as error:  # the run itself is complete
            warn(f"{self.config.env} cannot be closed: {one_line(error)}")
        if self.tracker is not None:
            self.tracker.close()

    def _between_steps(self) -> None:
        self.clock.lap()
        step = self.model.num_timesteps
        if step > self.done_until:
            last = step >= self.last_step
            if last or self._passed(step, LOG_EVERY):
                self.model.dump_logs()
            if last or self._passed(step, self.config.evaluate_every):
                self._evaluate(step)
            last = step >= self.last_step  # the evaluation may have reached the target score
            self.done_until = step
            if last or step >= self.next_checkpoint or self.signals.received is not None:
                self._checkpoint(step)
        if self.config.steps > step >= self.last_step:
            raise ScoreReached
        if self.signals.received is not None and step < self.config.steps:
            raise Interrupted(self.signals.received)

    def _passed(self, step: int, every: int) -> bool:
        """Whether a multiple of ``every`` lies in the steps since the last time; an update may follow several."""
        return step // every > self.done_until // every

    def _evaluate(self, step: int) -> None:
        seeds = [episode_seed(self.config.seed, EVALUATION, step, i) for i in range(self.config.evaluation_episodes)]
        try:
            with self.clock.evaluation():
                returns = self.evaluator.returns(policy_of(self.model), seeds)
        except DivergedError as error:
            raise ValueError(f"{error}, at update {self.model._n_updates:,}") from None
        self.directory.append_evaluation(step, returns, self.clock.seconds)
        if self.config.stop_at_score is not None and self.reached_at is None:
            self.reached_at = self.directory.reached_at(self.config.stop_at_score)
        if self.tracker is not None:
            self.tracker.write({"eval/mean_reward": returns.mean(), "eval/std_reward": returns.std()}, {}, step)
        self.display.evaluated(step, returns.mean(), returns.std())

    def _checkpoint(self, step: int) -> None:
        while self.next_checkpoint <= step:
            self.next_checkpoint += self.config.checkpoint_every
        model: Any = self.model
        if self.config.algorithm.exact_resume:
            model.replay_buffer.flush()
            arrays, state = checkpoint.capture(model, self.envs)
            self.clock.lap()
            state["supervisor"] = {
                "step": step,
                "next_checkpoint": self.next_checkpoint,
                "seconds": self.seconds,
                "cpu": self.clock.seconds,
            }
            tables = {name: files.read_bytes(self.directory.path / name, files.TABLE) for name in checkpoint.TABLES}
            checkpoint.write(self.directory.checkpoints, checkpoint.Checkpoint(step, arrays, state, tables))
        save_weights(model, self.directory.model)

    def write_status(self, state: str, message: str = "") -> None:
        """Replace ``status.json``.

        :param state: of the run
        :param message: why the run stopped, or how it ended
        """
        self.directory.write_status(state, self.num_timesteps, self.config.steps, self.seconds, message)


_compilations = 0


def _count_compilations(event: str, *_: object, **__: Any) -> None:
    global _compilations
    _compilations += event.startswith("/jax/core/compile/")


jax.monitoring.register_event_duration_secs_listener(_count_compilations)


class CpuClock:
    """Measure CPU seconds, user and system time of all threads, of training, evaluation and compilation.

    JAX reports compilation in wall time, which says little about CPU time on a busy machine. So its reports only tell
    *that* it compiled: the CPU time between two calls of :meth:`lap`, half a step, then counts as compilation. An
    evaluation counts as evaluation as a whole.

    :param before: CPU seconds by activity of earlier sessions of the run
    """

    def __init__(self, before: Mapping[str, float]) -> None:
        self.seconds = {activity: float(before.get(activity, 0.0)) for activity in ACTIVITIES}
        self._mark, self._compilations = time.process_time(), _compilations

    def lap(self) -> None:
        """Count the time since the last lap as training, or as compilation if JAX compiled in it."""
        self._count("train" if _compilations == self._compilations else "compile")

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """Count the time of the ``with`` block as evaluation."""
        self.lap()
        try:
            yield
        finally:
            self._count("evaluate")

    def _count(self, activity: str) -> None:
        now = time.process_time()
        self.seconds[activity] += now - self._mark
        self._mark, self._compilations = now, _compilations
