"""A run that is killed, interrupted and damaged on its way ends in the same bytes as one left alone."""

import json
import os
import random
import signal

import pytest
from processes import checkpoints, start, tiny_config, wait_for

from softdpg.errors import UserError
from softdpg.runs.directory import RunDirectory
from softdpg.runs.training import train


def run_whole(config, out, before=None):
    process = start(config, out, before=before)
    process.join()
    assert process.exitcode == 0


def kill_after_next_checkpoint(config, out, delay, number=signal.SIGKILL, before=None):
    """Start or resume the run, send a signal ``delay`` seconds after its next checkpoint; whether it was alive then."""
    old = set(checkpoints(out))
    process = start(config, out, before=before)
    wait_for(lambda: set(checkpoints(out)) - old, process)
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


def short_evaluations():
    from softdpg.runs import evaluation

    evaluation.LONGEST = 30


@pytest.mark.parametrize(
    ("env", "n_envs"), [("strange_envs:Timed-v0", 1), ("strange_envs:Endless-v0", 1), ("strange_envs:Timed-v0", 4)]
)
def test_killed_in_the_middle_of_episodes(tmp_path, env, n_envs):
    """Episodes are played again from their seeds and actions; they may have begun with the run and never end."""
    config = tiny_config(env, "ddpg", steps=1200, n_envs=n_envs)
    run_whole(config, tmp_path / "whole", short_evaluations)
    for delay in (0.0, 0.1):
        _, code = kill_after_next_checkpoint(config, tmp_path / "killed", delay, before=short_evaluations)
        assert code in (0, -signal.SIGKILL)
    newest = tmp_path / "killed" / "checkpoints" / checkpoints(tmp_path / "killed")[-1]
    episodes = json.loads((newest / "state.json").read_text())["episodes"]
    assert len(episodes) == n_envs
    assert (episodes == [0]) == ("Endless" in env)
    run_whole(config, tmp_path / "killed", short_evaluations)
    log = (tmp_path / "killed.log").read_text()
    assert "going on from the checkpoint at step" in log
    assert "not bit for bit" not in log
    assert_same_results(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.parametrize(
    ("algo", "settings"),
    [
        ("td3", {"n_steps": 3}),
        ("soft-td3", {"sigma": "auto", "n_samples": 4, "actor_gradient": "smoothed", "noise_color": 1.0, "n_steps": 3})
    ],
)  # fmt: skip
def test_the_family_resumes_exactly(tmp_path, algo, settings):
    """Ensembles and delayed actors; a learned sigma, coloured noise and returns of several steps."""
    config = tiny_config(algo=algo, steps=1200, n_envs=2, train_freq=2, gradient_steps=4, **settings)
    run_whole(config, tmp_path / "whole", short_evaluations)
    _, code = kill_after_next_checkpoint(config, tmp_path / "killed", 0.1, before=short_evaluations)
    assert code in (0, -signal.SIGKILL)
    run_whole(config, tmp_path / "killed", short_evaluations)
    assert "going on from the checkpoint at step" in (tmp_path / "killed.log").read_text()
    assert_same_results(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.parametrize(
    ("env", "algo", "settings"),
    [
        ("strange_envs:Timed-v0", "ddpg", {"normalize": True, "n_envs": 2}),
        ("examples.point_mass:PointMassGoal-v0", "soft-td3", {"her": True, "normalize": True, "n_envs": 4}),
    ],
)
def test_statistics_and_goals_resume_exactly(tmp_path, env, algo, settings):
    """What observations are normalised by, and where the episodes in the buffer begin, are as they were."""
    if algo == "soft-td3":
        settings = settings | {"n_samples": 2, "train_freq": 2, "gradient_steps": 4, "learning_starts": 250}
    config = tiny_config(env, algo, steps=1200, **settings)
    run_whole(config, tmp_path / "whole")
    _, code = kill_after_next_checkpoint(config, tmp_path / "killed", 0.1)
    assert code in (0, -signal.SIGKILL)
    run_whole(config, tmp_path / "killed")
    log = (tmp_path / "killed.log").read_text()
    assert "going on from the checkpoint at step" in log
    assert "not bit for bit" not in log
    assert_same_results(tmp_path / "whole", tmp_path / "killed")
