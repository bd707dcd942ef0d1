"""``softdpg train``: one run that can be killed at any moment and goes on exactly where its last checkpoint was."""

import sys
from pathlib import Path

from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.environments import SeededEpisodes, make_env
from softdpg.runs.provenance import provenance


def train(config: RunConfig, out: Path, *, keep_buffer: bool = False) -> int:
    """Train in the run directory ``out``, or go on with what is there. Returns the exit code of the command."""
    config = config.resolved()
    directory = RunDirectory(out)
    env = SeededEpisodes(make_env(config.env), config.seed)  # before anything is written: there may be no such thing
    with directory.claimed(config, provenance()) as changes:
        if directory.read_status().get("state") == "finished":
            print(f"already finished: {directory.path}")
            return 0
        for change in changes:
            warn(f"this run was started elsewhere, so its results may differ in the last digits ({change})")
        # Only now, so that bad input is reported without waiting for JAX.
        from softdpg.runs.session import Session

        return Session(config, directory, env, keep_buffer).run()


def warn(message: str) -> None:
    """Print a warning."""
    print(f"softdpg: warning: {message}", file=sys.stderr)
