"""``softdpg train``: one run that can be killed at any moment and goes on exactly where its last checkpoint was."""

from pathlib import Path

from softdpg.runs import files
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.environments import SeededEpisodes, check_goals, check_normalizable, make_env
from softdpg.runs.provenance import provenance
from softdpg.runs.terminal import say, say_error, warn


def train(config: RunConfig, out: Path, *, keep_buffer: bool = False, restart: bool = False) -> int:
    """Train in the run directory ``out``, or go on with what is there. Returns the exit code of the command.

    :param keep_buffer: keep the replay buffer's file after the run is finished
    :param restart: start over; what is there is set aside
    """
    config = config.resolved()
    directory = RunDirectory(out)
    # Before anything is written: there may be no such thing.
    envs = [
        SeededEpisodes(make_env(config.env, config.env_kwargs), config.seed, index) for index in range(config.n_envs)
    ]
    if config.normalize:
        check_normalizable(envs[0], config.env)
    if config.her:
        check_goals(envs[0], config.env)
    try:
        with directory.claimed(config, provenance()) as changes:
            if restart:
                directory.set_aside()
            status = directory.check_resumable(config)
            # A finished run that is not at its steps has crossed its goal: more steps change nothing.
            finished = status.get("state") == "finished"
            if finished and (max(status["step"], status["steps"]) >= config.steps or status["step"] < status["steps"]):
                say(f"already finished: {directory.path}")
                return 0
            for change in changes:
                warn(f"this run was started elsewhere, so its results may differ in the last digits ({change})")
            # Only now, so that bad input is reported without waiting for JAX.
            from softdpg.runs.session import Session

            return Session(config, directory, envs, keep_buffer=keep_buffer, extended=finished).run()
    except OSError as error:
        if not files.is_full(error):
            raise
        say_error(f"softdpg: the disk is full ({directory.path})")
        return 1
