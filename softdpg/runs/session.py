"""One go at a training run: from its newest checkpoint, or from the beginning, to the end or the next interruption."""

import io
import os
import pickle
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from softdpg.algorithms.buffers import DiskReplayBuffer
from softdpg.algorithms.flat_buffers import FlatDiskReplayBuffer
from softdpg.algorithms.her_buffer import HerDiskReplayBuffer
from softdpg.errors import UserError
from softdpg.runs import checkpoint, files, signals, snapshot
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RESTART, RunDirectory
from softdpg.runs.display import RunDisplay
from softdpg.runs.environments import SeededEpisodes
from softdpg.runs.learner import buffer_in_memory, make_learner, save_weights
from softdpg.runs.logs import EvaluationLog, make_logger
from softdpg.runs.normalization import normalized
from softdpg.runs.supervision import Crossed, Interrupted, Supervisor
from softdpg.runs.terminal import say, say_error, warn
from softdpg.runs.timing import TimingLog


class Session:
    """A claimed run directory at work.

    :param extended: whether the run was finished and now goes on to more steps
    """

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        envs: Sequence[SeededEpisodes],
        *,
        keep_buffer: bool = False,
        extended: bool = False,
    ) -> None:
        self.config, self.directory, self.envs = config, directory, envs
        self.keep_buffer, self.extended = keep_buffer, extended
        self.supervisor: Supervisor | None = None

    def run(self) -> int:
        """Train to the end. Returns the exit code of the command."""
        config, directory = self.config, self.directory
        title = " ".join([config.env, config.algorithm.name, f"seed {config.seed}"])
        try:
            model = self._make_model()
            state = self._resume(model)
            with (
                self._quiet_threads(),
                RunDisplay(title, config.steps) as display,
                signals.Signals(self._overdue) as received,
            ):
                self.supervisor = Supervisor(config, directory, self.envs, display, received, state)
                if model.num_timesteps:
                    display.say(f"going on from the checkpoint at step {model.num_timesteps:,}")
                model.set_logger(make_logger(directory.path, model.num_timesteps))
                left = config.steps - model.num_timesteps
                with suppress(Crossed):
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
        except (Exception, SystemExit) as error:  # of an environment, above all
            return self._failed(error)
        outcome = f"  {self.supervisor.outcome}" if self.supervisor.outcome else ""
        say(f"finished: {directory.path}  evaluation {directory.last_evaluation()}{outcome}")
        return 0

    def _make_model(self) -> Any:
        config, vec_env = self.config, self._vec_env()
        goals = {name: getattr(config, name) for name in ("n_sampled_goal", "goal_selection_strategy")}
        if not config.algorithm.exact_resume:
            her = {"replay_buffer_class": HerReplayBuffer, "replay_buffer_kwargs": goals} if config.her else {}
            return make_learner(config, vec_env, **her)
        buffer_class: type[DiskReplayBuffer] = DiskReplayBuffer
        if isinstance(vec_env.observation_space, spaces.Dict):
            buffer_class = HerDiskReplayBuffer if config.her else FlatDiskReplayBuffer
        # Four times what is added between two checkpoints: the older of the two that are kept stays usable.
        slack = 4 * (config.checkpoint_every // len(self.envs) + config.train_freq)
        return make_learner(
            config,
            vec_env,
            replay_buffer_class=buffer_class,
            replay_buffer_kwargs={
                **(goals | {"env": vec_env} if config.her else {}),
                "path": self.directory.replay_buffer,
                "slack": max(slack, 4096),
                "run": self.directory.read_config()["run"],
            },
        )

    def _vec_env(self) -> VecEnv:
        vec_env = DummyVecEnv([partial(Monitor, env) for env in self.envs])
        return normalized(vec_env) if self.config.normalize else vec_env

    def _resume(self, model: Any) -> dict[str, Any]:
        """Restore the newest checkpoint that is whole, or begin. Returns the supervisor's state."""
        if not self.config.algorithm.exact_resume:
            if self.extended:
                raise UserError(
                    f"{self.directory.path} cannot go on: {self.config.algorithm.label} does not; {RESTART}"
                )
            if self.directory.read_status():
                warn(f"{self.config.algorithm.label} cannot go on from where it was: starting over")
            self._begin()
            return {}
        damage = []
        for found in checkpoint.newest_first(self.directory.checkpoints):
            try:
                if isinstance(found, checkpoint.DamagedCheckpointError):
                    raise found
                state = Supervisor.checked(found.state["supervisor"])
                same = snapshot.restore(model, self.envs, found, may_refill=self.extended)
            except (checkpoint.DamagedCheckpointError, ValueError, KeyError, TypeError, OverflowError) as error:
                damage.append(str(error))
                warn(f"checkpoint not usable, falling back to what was before: {error}")
                continue
            if not same:
                warn(f"{self.config.env} does not start the same from the same seed; going on, but not bit for bit")
            if not model.replay_buffer.size():
                warn(
                    "the run was finished, its replay buffer is gone and is filled anew with "
                    f"{self.config.learning_starts:,} random steps; a run with --keep-buffer goes on exactly"
                )
            for name, contents in found.files.items():
                files.replace_file(self.directory.path / name, contents)
            if self.directory.timings.name not in found.files:  # earlier versions had none
                TimingLog.create(self.directory.timings)
            return state
        if damage:
            raise UserError(f"{self.directory.path}: no usable checkpoint is left ({damage[0]}); {RESTART}")
        assert isinstance(model.replay_buffer, DiskReplayBuffer)
        model.replay_buffer.reset()
        self._begin()
        return {}

    def _begin(self) -> None:
        self.directory.progress.unlink(missing_ok=True)
        EvaluationLog.create(self.directory.evaluations, self.config.evaluation_episodes)
        TimingLog.create(self.directory.timings)
        idle = self.config.learning_starts or 0  # a peer has its own
        if self.config.steps <= idle:
            warn(f"nothing will be learned: the first {idle:,} steps are random (--learning-starts)")

    def _finish(self, model: Any, supervisor: Supervisor) -> None:
        save_weights(model, self.directory.model)
        # The model is to load anywhere: without the buffer's file.
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
        say_error(f"softdpg: {reason}; go on from {where} with:\n  {self.config.command(self.directory.path)}")
        return exit_code

    def _failed(self, error: BaseException) -> int:
        """One line for the terminal, the traceback for ``train.log``."""
        self._log("".join(traceback.format_exception(error)))
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        message = " ".join(f"{kind}{error}".split())
        step = self.supervisor.num_timesteps if self.supervisor else 0
        return self._stopped("failed", f"error after step {step:,}: {message} (more in {self.directory.log})", 1)

    def _overdue(self, number: int) -> None:
        """End a run that does not come to the end of its step."""
        self._stopped("interrupted", f"interrupted within a step that lasts longer than {signals.GRACE:g} s", 0)
        os._exit(128 + number)

    @contextmanager
    def _quiet_threads(self) -> Iterator[None]:
        """Tracebacks of threads, as of TensorBoard's when the disk is full, go to ``train.log``.

        The exception itself comes up where the main thread next needs what the thread should have done.
        """
        previous = threading.excepthook
        threading.excepthook = lambda args: self._log("".join(traceback.format_exception(args.exc_value)))
        try:
            yield
        finally:
            threading.excepthook = previous

    def _log(self, text: str) -> None:
        with suppress(OSError, ValueError):  # a full disk; the message goes to the terminal all the same
            files.append(self.directory.log, text.encode(errors="backslashreplace"))

    def _record(self, state: str, message: str) -> None:
        with suppress(OSError):
            if self.supervisor is not None:
                self.supervisor.write_status(state, message)
            elif not self.directory.status.exists():  # that of a run which could not go on stays
                self.directory.write_status(state, 0, self.config.steps, 0.0, message)
