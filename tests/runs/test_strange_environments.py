"""Environments that misbehave, 42 kinds: one line and a failed run that can be resumed, or a run as if nothing was."""

import os
from dataclasses import replace

import numpy as np
import pytest
import strange_envs
from processes import SHORT, assert_same_results

from softdpg.errors import UserError
from softdpg.runs.directory import RunDirectory
from softdpg.runs.training import train

EARLY = replace(SHORT, steps=40)  # it ends before an update
TOO_EARLY = "softdpg: warning: nothing will be learned: the first 100 steps are random (--learning-starts)\n"
STEP_30 = "error after step 30: the {} of step 30 is NaN or infinite"
# What goes wrong at step 30, or at the first reset.
FAILURES = {
    "raise": "error after step 29: RuntimeError: the motor is on fire",
    "exit": "error after step 29: SystemExit: 0",
    "recursion": "error after step 29: RecursionError: maximum recursion depth exceeded",
    "no memory": "error after step 29: MemoryError:",
    "stop iteration": "error after step 29: StopIteration:",
    "cancelled": "error after step 29: CancelledError:",
    "generator exit": "error after step 29: GeneratorExit:",
    "long message": f"error after step 29: RuntimeError: {'x' * 1_000} (more in",
    "lone surrogate": "error after step 29: RuntimeError: \\ud800",
    "unspeakable": "error after step 29: UnspeakableError: its message cannot be shown",
    "reward": STEP_30.format("reward"),
    "infinite reward": STEP_30.format("reward"),
    "no reward": "error after step 29: TypeError: float() argument must be",
    "text reward": "error after step 29: could not convert string to float: 'high'",
    "two rewards": "error after step 29: TypeError: only 0-dimensional arrays",
    "complex reward": "error after step 29: TypeError: float() argument must be",
    "observation": STEP_30.format("observation"),
    "shape": "error after step 29: the observation must have shape (2,), got (1,)",
    "no observation": "error after step 29: the observation must have shape (2,), got ()",
    "text observation": "error after step 29: could not convert string to float",
    "no info": "error after step 29: TypeError: 'NoneType' object does not support item assignment",
    "odd info": "error after step 40: TypeError: object of type 'int' has no len()",
    "four values": "error after step 29: not enough values to unpack (expected 5, got 4)",
    "nothing": "error after step 29: TypeError: cannot unpack non-iterable NoneType object",
    "reset raises": "error after step 0: RuntimeError: no start",
    "reset without info": "error after step 0: ",
    "reset to nothing": "error after step 0: ",
    "reset to NaN": "error after step 0: the observation after reset, at step 0, is NaN or infinite",
    "reset to another shape": "error after step 0: the observation must have shape (2,), got (1,)",
}
HARMLESS = ["other numbers", "a list", "odd end"]


def test_every_kind_is_here():
    assert {*FAILURES, *HARMLESS} == strange_envs.STEPS.keys() | strange_envs.RESETS.keys()


@pytest.mark.filterwarnings("ignore::UserWarning")  # of Gymnasium's checker
@pytest.mark.parametrize("kind", FAILURES)
def test_a_fault_of_the_environment(tmp_path, capsys, kind):
    out, message = tmp_path / "run", FAILURES[kind]
    strange_envs.set_fault(kind, 1 if kind in strange_envs.RESETS else 30)
    assert train(EARLY, out) == 1
    printed = capsys.readouterr().err.removeprefix(TOO_EARLY)
    assert message in printed
    assert "resume from the beginning" in printed
    assert len(printed.splitlines()) == 2  # the second is the command
    assert "Traceback (most recent call last)" in (out / "train.log").read_text()
    status = RunDirectory(out).read_status()
    assert (status["state"], status["message"].startswith(message[:40])) == ("failed", True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    assert train(EARLY, out) == 0
    return out


@pytest.mark.parametrize("kind", HARMLESS)
def test_a_fault_without_consequences(tmp_path, undisturbed, kind):
    """Numbers of another type are the same numbers; the end of an episode is true or false."""
    strange_envs.set_fault(kind, 30)
    assert train(EARLY, tmp_path / "run") == 0
    if kind != "odd end":
        assert_same_results(undisturbed, tmp_path / "run")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_environment_that_changes_what_it_can_reach(tmp_path, monkeypatch, capsys):
    """The buffer has copies, the paths are absolute, and an environment that cannot be closed costs no results."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    settings = {"env": "strange_envs:Meddling-v0", "env_kwargs": {"where": str(tmp_path / "elsewhere")}}
    assert train(replace(SHORT, steps=200, **settings), "run") == 0
    assert os.getcwd() == str(tmp_path / "elsewhere")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert RunDirectory(tmp_path / "run").read_status()["state"] == "finished"
    assert np.isfinite(RunDirectory(tmp_path / "run").read_evaluations().means).all()
    assert "strange_envs:Meddling-v0 cannot be closed: stuck" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_environment_whose_spaces_change(tmp_path, capsys):
    assert train(replace(EARLY, env="strange_envs:Swapping-v0"), tmp_path / "run") == 1
    assert "error after step" in capsys.readouterr().err
    assert RunDirectory(tmp_path / "run").read_status()["state"] == "failed"


def test_episodes_of_a_single_step(tmp_path):
    assert train(replace(EARLY, env="strange_envs:Momentary-v0"), tmp_path / "run") == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Spaceless", "must specify an action space"),
        ("Nothing", "must inherit from the gymnasium.Env class"),
        ("Unmade", "no licence"),
        ("Unspeakable", "its message cannot be shown"),
    ],
)
def test_what_is_no_environment(tmp_path, name, message):
    with pytest.raises(UserError, match=f"cannot make environment 'strange_envs:{name}-v0': .*{message}"):
        train(replace(EARLY, env=f"strange_envs:{name}-v0"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
