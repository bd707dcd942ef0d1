"""``softdpg train``: one run that can be killed at any moment and resumes exactly from its last checkpoint."""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from softdpg.errors import MissingExtraError
from softdpg.runs import files
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.display import say, say_error, warn
from softdpg.runs.environments import SeededEpisodes, check_goals, check_normalizable, make_run_env
from softdpg.runs.process import provenance


def train(
    config: RunConfig,
    out: Path,
    *,
    keep_buffer: bool = False,
    restart: bool = False,
    track: Literal["wandb", "mlflow"] | None = None,
) -> int:
    """Train in a run directory, or resume the run that is there. Return the exit code of the command.

    :param config: settings of the run
    :param out: the run directory
    :param keep_buffer: whether to keep the file of the replay buffer after the run is finished
    :param restart: whether to start over; the old files are set aside
    :param track: the service that also gets the log and the evaluations
    """
    config = config.resolved()
    if track is not None and find_spec(track) is None:
        raise MissingExtraError("track", f"--track {track}")
    directory = RunDirectory(out)
    # Make the environments before writing anything: there may be none of that name.
    envs = [SeededEpisodes(make_run_env(config), config.seed, index) for index in range(config.n_envs)]
    if config.normalize:
        check_normalizable(envs[0], config.env)
    if config.her:
        check_goals(envs[0], config.env)
    try:
        with directory.claimed(config, provenance()) as changes:
            if restart:
                directory.set_aside()
            status = directory.check_resumable(config)
            # A run that finished before its last step has reached its target score: more steps change nothing.
            finished = status.get("state") == "finished"
            if finished and (max(status["step"], status["steps"]) >= config.steps or status["step"] < status["steps"]):
                say(f"already finished: {directory.path}")
                return 0
            for change in changes:
                warn(f"this run was started elsewhere, so its results may differ in the last digits ({change})")
            # Imported only now, so that invalid input is reported without waiting for JAX.
            from softdpg.runs.session import Session

            return Session(config, directory, envs, keep_buffer=keep_buffer, extended=finished, track=track).run()
    except OSError as error:
        if not files.is_full(error):
            raise
        say_error(f"softdpg: the disk is full ({directory.path})")
        return 1
