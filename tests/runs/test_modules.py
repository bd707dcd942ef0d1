"""Environments of one's own on the command line: from a file or a module of the current directory, never from a run."""

import subprocess
import sys

import pytest
from commands import softdpg

from softdpg.errors import UserError
from softdpg.runs.environments import make_env

ENV = """
from pathlib import Path
import gymnasium as gym
import numpy as np
import helper

Path("imported").touch()

class Push(gym.Env):
    observation_space = gym.spaces.Box(-2, 2, (2,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = np.zeros(2, np.float32)
        return self.state, {}

    def step(self, action):
        self.state = np.clip(self.state + helper.SPEED * float(action[0]), -2, 2).astype(np.float32)
        return self.state, float(self.state[0]), False, False, {}

gym.register("Push-v0", entry_point="{module}:Push", max_episode_steps=20)
"""
TINY = ["--algo", "ddpg", "--steps", "40", "--evaluation-episodes", "1", "--net-arch", "8", "8"]
IDS = ["./my_env.py:Push-v0", "mypackage.envs:Push-v0"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory with a module and a package, and a run of each."""
    path = tmp_path_factory.mktemp("home")
    (path / "helper.py").write_text("SPEED = 0.1\n")
    (path / "my_env.py").write_text(ENV.replace("{module}", "my_env"))
    (path / "mypackage").mkdir()
    (path / "mypackage" / "envs.py").write_text(ENV.replace("{module}", "mypackage.envs"))
    for i, env in enumerate(IDS):
        done = softdpg("train", "--env", env, *TINY, "--out", f"run{i}", cwd=path)
        assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("i", [0, 1])
def test_eval_with_trust_or_with_the_id(home, i):
    refused = softdpg("eval", f"run{i}", "--episodes", "1", cwd=home)
    assert refused.returncode == 2
    assert "imported only with --trust" in refused.stderr
    trusted = softdpg("eval", f"run{i}", "--episodes", "2", "--trust", cwd=home)
    assert trusted.returncode == 0, trusted.stderr
    named = softdpg("eval", f"run{i}", "--episodes", "2", "--env", IDS[i], cwd=home)
    assert named.stdout == trusted.stdout


def test_a_run_directory_never_imports_a_module(home):
    (home / "imported").unlink(missing_ok=True)
    for arguments in (["eval", "run0"], ["watch", "run0"], ["export", "run0"], ["report", "run0", "--out", "report"]):
        assert "Traceback" not in softdpg(*arguments, cwd=home).stderr
    assert not (home / "imported").exists()


def test_export(home):
    # A new interpreter: neither the current directory nor PYTHONPATH's leads to the module.
    command = [sys.executable, "-P", "-m", "softdpg", "export", "run0", "--to", "numpy", "--env", IDS[0]]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (home / "run0" / "policy.py").is_file()


def test_unknown_id_says_how():
    with pytest.raises(UserError, match=r"no environment 'Pusj-v0'.*\./my_env\.py:MyEnv-v0"):
        make_env("Pusj-v0")


def test_what_cannot_be_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="there is no file"):
        make_env("./none.py:Push-v0")
    (tmp_path / "broken_env.py").write_text("1 / 0\n")
    with pytest.raises(UserError, match=r"broken_env\.py:Push-v0: ZeroDivisionError: division by zero"):
        make_env("./broken_env.py:Push-v0")
    assert "broken_env" not in sys.modules
    with pytest.raises(UserError, match="ModuleNotFoundError"):
        make_env("no_such_package.envs:Push-v0")
    (tmp_path / "json.py").write_text("")
    with pytest.raises(UserError, match="is taken by the module 'json'"):
        make_env("./json.py:Push-v0")
