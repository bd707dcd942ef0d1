"""Real training processes for the tests, forked from a server that has the imports done, so that each starts fast."""

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import strange_envs

from softdpg.errors import UserError
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.process import use_one_thread
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


# 400 steps of episodes of 70, with checkpoints every 100 and a buffer that is full after 150.
SHORT = tiny_config(
    "strange_envs:Timed-v0", "ddpg", steps=400, evaluate_every=200, checkpoint_every=100, buffer_size=150
)


def _train(config, out, log, before):
    if before:
        before()
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            code = train(config, out)
        except UserError as error:
            print(f"softdpg: error: {error}")
            code = 2
        sys.stdout.flush()
    sys.exit(code)


def start(config, out: Path, log: Path | None = None, before=None):
    """Start ``softdpg train`` as a process of its own; what it prints goes to ``log``, or ``out`` + ``.log``.

    ``before`` is called in it first.
    """
    process = context.Process(target=_train, args=(config, out, log or out.with_suffix(".log"), before))
    process.start()
    return process


def run(config, out: Path, before=None):
    """Run ``softdpg train`` as a process of its own to its end; its exit code."""
    process = start(config, out, before=before)
    process.join()
    return process.exitcode


def killed(config, out: Path, step: int, before=None):
    """Start or resume a run in ``strange_envs`` that is killed within the given step of an environment's life."""
    assert run(config, out, partial(_prepare, strange_envs.kill, step, before)) == -signal.SIGKILL


@contextlib.contextmanager
def blocked(config, out: Path, step: int, before=None):
    """Start a run in ``strange_envs`` that waits within the given step; gives the process and what releases it."""
    place = Path(tempfile.mkdtemp(dir=out.parent))
    process = start(config, out, before=partial(_prepare, partial(strange_envs.block, place), step, before))
    try:
        wait_for((place / "waiting").exists, process)
        assert process.is_alive()
        yield process, (place / "released").touch
    finally:
        process.kill()
        process.join()


def _prepare(fault, step, before):
    strange_envs.set_fault(fault, step)
    if before:
        before()


def wait_for(condition, process, timeout=240):
    """Wait until ``condition()`` or the end of the process."""
    deadline = time.monotonic() + timeout
    while process.is_alive() and not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def checkpoints(out: Path):
    with contextlib.suppress(FileNotFoundError):
        return sorted(path.name for path in (out / "checkpoints").iterdir() if path.name.isdigit())
    return []


def contents(directory: Path):
    """The contents of all files below a directory."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def assert_same_results(left: Path, right: Path):
    """Two finished runs with the same evaluations and the same weights, to the last bit."""
    for name in ("evaluations.csv", "model.safetensors"):
        assert (left / name).read_bytes() == (right / name).read_bytes(), name
    assert RunDirectory(right).read_status()["state"] == "finished"
