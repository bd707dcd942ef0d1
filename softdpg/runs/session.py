"""One go at a training run: from its newest checkpoint, or from the beginning, to the end or the next interruption."""

import errno
import shutil
import sys

from stable_baselines3.common.monitor import Monitor

from softdpg import DDPG
from softdpg.algorithms.buffers import DiskReplayBuffer
from softdpg.runs import checkpoint, snapshot
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.display import RunDisplay
from softdpg.runs.environments import SeededEpisodes
from softdpg.runs.learner import make_learner, save_weights
from softdpg.runs.logs import EvaluationLog, make_logger
from softdpg.runs.signals import Signals
from softdpg.runs.supervision import Interrupted, Supervisor
from softdpg.runs.training import warn


class Session:
    """A claimed run directory at work."""

    def __init__(self, config: RunConfig, directory: RunDirectory, env: SeededEpisodes, keep_buffer: bool) -> None:
        self.config, self.directory, self.env, self.keep_buffer = config, directory, env, keep_buffer

    def run(self) -> int:
        """Train to the end. Returns the exit code of the command."""
        config, directory = self.config, self.directory
        title = " ".join(filter(None, [config.env, config.algo, config.estimator, f"seed {config.seed}"]))
        supervisor: Supervisor | None = None
        try:
            model = self._make_model()
            state = self._resume(model)
            with RunDisplay(title, config.steps) as display, Signals() as signals:
                supervisor = Supervisor(config, directory, self.env, display, signals, state)
                if model.num_timesteps:
                    display.say(f"going on from the checkpoint at step {model.num_timesteps:,}")
                model.set_logger(make_logger(directory.path, model.num_timesteps))
                left = config.steps - model.num_timesteps
                model.learn(left, callback=supervisor, log_interval=None, reset_num_timesteps=False)  # type: ignore[arg-type]
            self._finish(model, supervisor)
        except (Interrupted, KeyboardInterrupt) as interruption:
            return self._stopped(supervisor, "interrupted", "interrupted", _exit_code(interruption))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                self._record(supervisor, "failed", str(error))
                raise
            return self._stopped(supervisor, "failed", f"the disk is full ({directory.path})", 1)
        except Exception as error:
            self._record(supervisor, "failed", f"{type(error).__name__}: {error}")
            raise
        print(f"finished: {directory.path}  evaluation {directory.last_evaluation()}")
        return 0

    def _make_model(self) -> DDPG:
        # Three times what may be added between two checkpoints: the older of the two that are kept stays usable.
        limit = self.env.spec.max_episode_steps if self.env.spec is not None else None
        slack = 3 * (self.config.checkpoint_every + (limit or self.config.checkpoint_every))
        return make_learner(
            self.config,
            Monitor(self.env),
            replay_buffer_class=DiskReplayBuffer,
            replay_buffer_kwargs={"path": self.directory.replay_buffer, "slack": slack},
        )

    def _resume(self, model: DDPG) -> dict[str, float]:
        """Restore the newest checkpoint that is whole; without one, start over. Returns the supervisor's state."""
        assert isinstance(model.replay_buffer, DiskReplayBuffer)
        found: checkpoint.Checkpoint | checkpoint.DamagedCheckpointError | None = None
        for found in checkpoint.newest_first(self.directory.checkpoints):
            try:
                if isinstance(found, checkpoint.DamagedCheckpointError):
                    raise found
                same = snapshot.restore(model, self.env, found)
            except (checkpoint.DamagedCheckpointError, ValueError, KeyError) as error:
                warn(f"checkpoint not usable, falling back to what was before: {error}")
                continue
            if not same:
                warn(f"{self.config.env} does not start the same from the same seed; going on, but not bit for bit")
            for name, contents in found.files.items():
                (self.directory.path / name).write_bytes(contents)
            return dict(found.state["supervisor"])
        if found is not None:
            warn("no usable checkpoint is left; starting over")
        shutil.rmtree(self.directory.checkpoints, ignore_errors=True)
        model.replay_buffer.reset()
        self.directory.progress.unlink(missing_ok=True)
        EvaluationLog.create(self.directory.evaluations, self.config.evaluation_episodes)
        return {}

    def _finish(self, model: DDPG, supervisor: Supervisor) -> None:
        save_weights(model, self.directory.model)
        model.save(self.directory.model_zip)
        supervisor.write_status("finished")
        if not self.keep_buffer:  # only now: a run killed before it is finished needs the buffer
            self.directory.replay_buffer.unlink()

    def _stopped(self, supervisor: Supervisor | None, state: str, reason: str, exit_code: int) -> int:
        self._record(supervisor, state, reason)
        saved = supervisor.last_checkpoint if supervisor else 0
        where = f"the checkpoint at step {saved:,}" if saved else "the beginning (no checkpoint yet)"
        print(
            f"softdpg: {reason}; go on from {where} with:\n  {self.config.command(self.directory.path)}",
            file=sys.stderr,
        )
        return exit_code

    def _record(self, supervisor: Supervisor | None, state: str, message: str) -> None:
        try:
            if supervisor is not None:
                supervisor.write_status(state, message)
            else:
                self.directory.write_status(state, 0, self.config.steps, 0.0, message)
        except OSError:  # a full disk; the message goes to the terminal all the same
            pass


def _exit_code(interruption: BaseException) -> int:
    return interruption.exit_code if isinstance(interruption, Interrupted) else 130
