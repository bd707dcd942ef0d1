"""A run that is killed, interrupted and damaged on its way ends in the same bytes as one left alone."""

import os
import random
import signal

import pytest
from processes import checkpoints, start, tiny_config, wait_for

from softdpg.errors import UserError
from softdpg.runs.directory import RunDirectory
from softdpg.runs.training import train


def run_whole(config, out):
    process = start(config, out)
    process.join()
    assert process.exitcode == 0


def kill_after_next_checkpoint(config, out, delay, number=signal.SIGKILL):
    """Start or resume the run, send a signal ``delay`` seconds after its next checkpoint; whether it was alive then."""
    before = set(checkpoints(out))
    process = start(config, out)
    wait_for(lambda: set(checkpoints(out)) - before, process)
    process.join(delay)
    alive = process.is_alive()
    if alive:
        os.kill(process.pid, number)
    process.join()
    return alive, process.exitcode


def assert_same_results(left, right):
    for name in ("evaluations.csv", "model.safetensors"):
        assert (left / name).read_bytes() == (right / name).read_bytes(), name
    assert RunDirectory(right).read_status()["state"] == "finished"


def test_killed_again_and_again(tmp_path):
    """The buffer of 500 wraps twice on the way, so checkpoints need records that were about to be overwritten."""
    config = tiny_config(steps=1500)
    run_whole(config, tmp_path / "whole")
    kills, generator = 0, random.Random(5)
    for _ in range(4):
        alive, code = kill_after_next_checkpoint(config, tmp_path / "killed", generator.uniform(0, 0.4))
        kills += alive
        assert not alive or code == -signal.SIGKILL
    run_whole(config, tmp_path / "killed")
    assert kills >= 2
    assert "going on from the checkpoint at step" in (tmp_path / "killed.log").read_text()
    assert_same_results(tmp_path / "whole", tmp_path / "killed")


def test_interrupted_damaged_and_in_use(tmp_path):
    config = tiny_config("softdpg/PendulumDiscrete-v0", "ddpg", steps=2200)
    whole, out = tmp_path / "whole", tmp_path / "interrupted"
    run_whole(config, whole)

    # SIGTERM: a checkpoint at the end of the episode, the exit code of the signal, and how to go on.
    process = start(config, out)
    wait_for(lambda: len(checkpoints(out)) == 2, process)
    with pytest.raises(UserError, match="another process is working on"):
        train(config, out)
    os.kill(process.pid, signal.SIGTERM)
    process.join()
    assert process.exitcode == 128 + signal.SIGTERM
    status = RunDirectory(out).read_status()
    assert (status["state"], status["step"]) == ("interrupted", int(checkpoints(out)[-1]))
    log = (tmp_path / "interrupted.log").read_text()
    assert f"go on from the checkpoint at step {status['step']:,} with:" in log
    assert config.resolved().command(out) in log

    # The newest checkpoint is damaged: the one before it serves.
    newest = out / "checkpoints" / checkpoints(out)[-1] / "arrays.safetensors"
    contents = bytearray(newest.read_bytes())
    contents[len(contents) // 2] ^= 1
    newest.write_bytes(contents)
    run_whole(config, out)
    log = (tmp_path / "interrupted.log").read_text()
    assert "checkpoint not usable, falling back to what was before" in log
    assert_same_results(whole, out)
