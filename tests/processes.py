"""Real training processes for the tests, forked from a server that has the imports done, so that each starts fast."""

import contextlib
import multiprocessing
import os
import sys
import time
from pathlib import Path

from softdpg.runs.config import RunConfig
from softdpg.runs.threads import use_one_thread
from softdpg.runs.training import train

use_one_thread()
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["softdpg.runs.session"])

TINY = {
    "net_arch": (16, 16),
    "batch_size": 16,
    "buffer_size": 500,
    "learning_starts": 100,
    "evaluate_every": 250,
    "evaluation_episodes": 2,
    "checkpoint_every": 150,
}


def tiny_config(env="softdpg/InvertedPendulumDiscrete-v0", algo="soft-ddpg", steps=1200, **settings):
    soft = {"n_samples": 4} if algo == "soft-ddpg" else {}
    return RunConfig(env, algo, steps=steps, **(TINY | soft | settings))


def _train(config, out, log, before):
    if before:
        before()
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        code = train(config, out)
        sys.stdout.flush()
    sys.exit(code)


def start(config, out: Path, log: Path | None = None, before=None):
    """Start ``softdpg train`` as a process of its own; what it prints goes to ``log``, or ``out`` + ``.log``.

    ``before`` is called in it first.
    """
    process = context.Process(target=_train, args=(config, out, log or out.with_suffix(".log"), before))
    process.start()
    return process


def wait_for(condition, process, timeout=120):
    """Wait until ``condition()`` or the end of the process."""
    deadline = time.monotonic() + timeout
    while process.is_alive() and not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def checkpoints(out: Path):
    with contextlib.suppress(FileNotFoundError):
        return sorted(path.name for path in (out / "checkpoints").iterdir() if path.name.isdigit())
    return []
