"""A run that is killed, interrupted and damaged on its way ends in the same bytes as one left alone.

The environment itself kills or blocks the run, at a step that the test chooses.
"""

import json
import multiprocessing.connection
import os
import signal
from dataclasses import replace
from functools import partial

import pytest
import strange_envs
from processes import SHORT, assert_same_results, blocked, checkpoints, killed, run, start, tiny_config

from softdpg.errors import UserError
from softdpg.runs.directory import RunDirectory
from softdpg.runs.process import Signals
from softdpg.runs.training import train


def kill_at_sync(number):
    """Kill this process when it has called ``os.fsync`` so many times: a checkpoint calls it six times."""
    left, original = [number], os.fsync

    def counting(fd):
        left[0] -= 1
        if not left[0]:
            strange_envs.kill()
        original(fd)

    os.fsync = counting


def test_killed_within_a_step_and_within_a_checkpoint(tmp_path, finished):
    """The buffer of 150 is full, so that checkpoints need records which are about to be overwritten."""
    out = tmp_path / "run"
    killed(SHORT, out, 290)
    assert checkpoints(out) == ["000000000100", "000000000200"]
    # The resumed run writes its next checkpoint at step 300: the buffer's file, then the files of the checkpoint.
    assert run(SHORT, out, partial(kill_at_sync, 4)) == -signal.SIGKILL
    assert checkpoints(out) == ["000000000100", "000000000200"]
    assert [path.name for path in (out / "checkpoints").glob("*.tmp")] == ["000000000300.tmp"]
    assert train(SHORT, out) == 0
    assert out.with_suffix(".log").read_text().count("resuming from the checkpoint at step 200") == 1
    assert_same_results(finished, out)


def test_interrupted_damaged_and_in_use(tmp_path, finished, capsys):
    # SIGTERM: a checkpoint at the end of the step, the exit code of the signal, and how to resume.
    out = tmp_path / "run"
    with blocked(SHORT, out, 250) as (process, release):
        with pytest.raises(UserError, match="another process is working on"):
            train(SHORT, out)
        os.kill(process.pid, signal.SIGTERM)
        release()
        process.join()
    assert process.exitcode == 128 + signal.SIGTERM
    status = RunDirectory(out).read_status()
    assert (status["state"], status["step"]) == ("interrupted", 250)
    assert checkpoints(out) == ["000000000200", "000000000250"]
    log = out.with_suffix(".log").read_text()
    assert "resume from the checkpoint at step 250 with:" in log
    assert SHORT.resolved().command(out) in log

    # The newest checkpoint is damaged: the one before it serves.
    newest = out / "checkpoints" / checkpoints(out)[-1] / "arrays.safetensors"
    contents = bytearray(newest.read_bytes())
    contents[len(contents) // 2] ^= 1
    newest.write_bytes(contents)
    assert train(SHORT, out) == 0
    assert "checkpoint not usable, falling back to the one before" in capsys.readouterr().err
    assert_same_results(finished, out)


@pytest.fixture
def hangup(request):
    """How the process was started to treat SIGHUP; nohup starts it with SIG_IGN, and so may whatever runs the tests."""
    previous = signal.signal(signal.SIGHUP, request.param)
    yield
    signal.signal(signal.SIGHUP, previous)


@pytest.mark.parametrize("hangup", [signal.SIG_DFL], indirect=True)
@pytest.mark.usefixtures("hangup")
def test_a_closed_terminal_is_an_interrupt(tmp_path, finished):
    out = tmp_path / "run"
    strange_envs.set_fault(partial(strange_envs.raise_signals, signal.SIGHUP), 250)
    assert train(SHORT, out) == 128 + signal.SIGHUP
    assert checkpoints(out) == ["000000000200", "000000000250"]
    assert RunDirectory(out).read_status()["state"] == "interrupted"
    strange_envs.FAULT = None
    assert train(SHORT, out) == 0
    assert_same_results(finished, out)


@pytest.mark.parametrize("hangup", [signal.SIG_IGN], indirect=True)
@pytest.mark.usefixtures("hangup")
def test_a_closed_terminal_is_nothing_under_nohup():
    with Signals() as signals:
        strange_envs.raise_signals(signal.SIGHUP, signal.SIGHUP)
        assert signals.received is None


def test_two_interrupts_in_a_row_end_the_run_within_the_step(tmp_path, finished, capsys):
    """There is no time for a checkpoint, so the run resumes from the one before."""
    out = tmp_path / "run"
    strange_envs.set_fault(partial(strange_envs.raise_signals, signal.SIGINT, signal.SIGINT), 250)
    assert train(SHORT, out) == 130
    assert "interrupted; resume from the checkpoint at step 200 with:" in capsys.readouterr().err
    assert checkpoints(out) == ["000000000100", "000000000200"]
    strange_envs.FAULT = None
    assert train(SHORT, out) == 0
    assert_same_results(finished, out)


def test_three_commands_in_one_directory_at_once(tmp_path, finished):
    """One of them trains, and waits until the two others have been refused."""
    out, place = tmp_path / "run", tmp_path / "place"
    place.mkdir()
    wait = partial(strange_envs.set_fault, partial(strange_envs.block, place), 30)
    three = [start(SHORT, out, log=tmp_path / f"{i}.log", before=wait) for i in range(3)]
    sentinels = {process.sentinel: process for process in three}
    try:
        while len(sentinels) > 1:
            for ended in multiprocessing.connection.wait(list(sentinels), timeout=240):
                assert sentinels.pop(ended).exitcode == 2
        (place / "released").touch()
        (winner,) = sentinels.values()
        winner.join()
        assert winner.exitcode == 0
    finally:
        for process in three:
            process.kill()
            process.join()
    refused = f"softdpg: error: another process is working on {out}\n"
    assert [(tmp_path / f"{i}.log").read_text() == refused for i in range(3)].count(True) == 2
    assert_same_results(finished, out)


@pytest.mark.parametrize(
    ("every", "steps", "kill"), [(2, 50, 45), pytest.param(7, 4_700, 4_600, marks=pytest.mark.extended)]
)
def test_very_short_intervals_with_a_wrapped_buffer(tmp_path, every, steps, kill):
    """The window of 20 is full; the file, with room for 4,096 more, wraps in the longer run."""
    settings = {"steps": steps, "checkpoint_every": every, "buffer_size": 20, "learning_starts": 16}
    config = tiny_config(SHORT.env, "ddpg", **settings, evaluate_every=steps)
    assert train(replace(config, checkpoint_every=10_000), tmp_path / "whole") == 0
    killed(config, tmp_path / "run", kill)
    assert int(checkpoints(tmp_path / "run")[-1]) == (kill - 1) // every * every
    assert train(config, tmp_path / "run") == 0
    assert_same_results(tmp_path / "whole", tmp_path / "run")


def short_evaluations():
    from softdpg.runs import environments

    environments._LONGEST = 30


SOFT_TD3 = {"n_samples": 2, "train_freq": 2, "gradient_steps": 4}


@pytest.mark.extended
@pytest.mark.parametrize(
    ("env", "algo", "settings"),
    [
        ("Timed-v0", "ddpg", {}),
        ("Timed-v0", "ddpg", {"n_envs": 4}),
        ("Endless-v0", "ddpg", {}),
        ("Timed-v0", "td3", {"n_envs": 2, "train_freq": 2, "gradient_steps": 4, "n_steps": 3}),
        ("Timed-v0", "soft-ddpg", {"n_samples": 4}),
        (
            "Timed-v0",
            "soft-td3",
            {**SOFT_TD3, "n_envs": 2, "sigma": "auto", "actor_gradient": "smoothed", "n_samples": 4},
        ),
        ("Timed-v0", "ddpg", {"normalize": True, "n_envs": 2}),
        ("Timed-v0", "soft-td3", {**SOFT_TD3, "batch_norm": True}),
        (
            "StrangeGoal-v0",
            "soft-td3",
            {**SOFT_TD3, "her": True, "normalize": True, "n_envs": 4, "learning_starts": 250},
        ),
    ],
)
def test_the_family_resumes_exactly(tmp_path, env, algo, settings):
    """Episodes are played again from their seeds and actions; statistics, goals and noise are as they were.

    The buffer of 500 wraps twice on the way. With four environments each lives for 375 steps.
    """
    config = tiny_config(f"strange_envs:{env}", algo, steps=1500, **settings)
    assert run(config, tmp_path / "whole", short_evaluations) == 0
    n_envs = settings.get("n_envs", 1)
    out = tmp_path / "run"
    for total in (580, 1240):
        old = int(max(checkpoints(out), default="0"))
        # The life of a resumed environment begins with the steps of its episode that are played again.
        killed(config, out, (total - old) // n_envs, short_evaluations)
        assert int(checkpoints(out)[-1]) > old
    newest = out / "checkpoints" / checkpoints(out)[-1]
    episodes = json.loads((newest / "state.json").read_text())["episodes"]
    assert len(episodes) == n_envs
    assert (episodes == [0]) == ("Endless" in env)
    assert run(config, out, short_evaluations) == 0
    log = out.with_suffix(".log").read_text()
    assert log.count("resuming from the checkpoint at step") == 2
    assert "not bit for bit" not in log
    assert_same_results(tmp_path / "whole", out)


@pytest.mark.extended
def test_a_full_buffer_with_short_intervals_keeps_its_checkpoints(tmp_path, capsys):
    config = tiny_config(SHORT.env, "ddpg", steps=2500, checkpoint_every=100, buffer_size=500, evaluate_every=5000)
    killed(config, tmp_path / "run", 1550)
    assert train(config, tmp_path / "run") == 0
    printed = capsys.readouterr()
    assert "resuming from the checkpoint at step 1,500" in printed.out
    assert "not usable" not in printed.err


@pytest.mark.extended
def test_mixed_actions_resume_exactly(tmp_path):
    config = tiny_config(env="strange_envs:StrangeMixed-v0", algo="soft-td3", n_samples=2, checkpoint_every=50)
    finished, out = tmp_path / "finished", tmp_path / "run"
    assert train(config, finished) == 0
    killed(config, out, config.steps - 20)
    assert train(config, out) == 0
    assert_same_results(finished, out)
