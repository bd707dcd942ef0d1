"""Own runs import their modules without ``--trust``; whatever could be somebody else's does not."""

import json
import os
import shutil
import sys

import pytest
from processes import tiny_config

from softdpg.errors import UserError
from softdpg.runs import ownership
from softdpg.runs.directory import RunDirectory
from softdpg.runs.trained import open_run
from softdpg.runs.training import train

ENV = """
import gymnasium as gym
from gymnasium.envs.classic_control import PendulumEnv
gym.register("Own-v0", PendulumEnv, max_episode_steps=10)
"""
CONFIG = {"env": "a", "sigma": 0.1, "machine": {"cores": 2}}


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "softdpg"


@pytest.fixture
def made(state, tmp_path, monkeypatch):
    """A run of this user with an environment in a file of its own."""
    monkeypatch.delitem(sys.modules, "owned_env", raising=False)  # of another test
    home = tmp_path / "home"
    home.mkdir()
    (home / "owned_env.py").write_text(ENV)
    monkeypatch.chdir(home)
    assert train(tiny_config("./owned_env.py:Own-v0", "ddpg", steps=20), home / "run") == 0
    return home / "run"


def refused(run):
    with pytest.raises(UserError, match="imported only with --trust: this user did not make the run here"):
        open_run(run)
    return True


def test_an_own_run_needs_no_trust_and_keeps_its_signature_when_it_continues(made, state):
    assert open_run(made)[0].env == "./owned_env.py:Own-v0"
    assert train(tiny_config("./owned_env.py:Own-v0", "ddpg", steps=30), made) == 0
    assert open_run(made)[0].steps == 30
    assert (state / "key").stat().st_mode & 0o777 == 0o600
    assert state.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in state.iterdir()] == ["key"]


def test_copies_changed_settings_and_other_keys_need_trust(made, state, monkeypatch):
    config, key = json.loads((made / "config.json").read_text()), (state / "key").read_bytes()
    for changes in ({"env": "./owned_env.py:Other-v0"}, {"seed": 1}, {"signature": "0" * 64}, {"signature": 5}):
        (made / "config.json").write_text(json.dumps(config | changes))
        assert refused(made)
    (made / "config.json").write_text(json.dumps(config))
    assert open_run(made)
    shutil.copytree(made, made.parent / "copy")  # as from an archive that holds a run of this user
    assert refused(made.parent / "copy")
    (state / "key").write_bytes(key[::-1])
    assert refused(made)
    (state / "key").unlink()
    assert refused(made)
    assert not (state / "key").exists()  # only a new run makes a key
    (state / "key").write_bytes(key)
    (state / "key").chmod(0o644)  # others may know it
    assert refused(made)
    (state / "key").chmod(0o600)
    assert open_run(made)
    state.chmod(0o770)
    assert refused(made)
    state.chmod(0o700)
    (made.parents[1] / "elsewhere").mkdir()
    (made.parents[1] / "elsewhere" / "owned_env.py").write_text("raise SystemExit")
    monkeypatch.chdir(made.parents[1] / "elsewhere")  # where ./owned_env.py is another file
    assert refused(made)


def test_a_foreign_run_stays_foreign_when_it_continues(made):
    config = json.loads((made / "config.json").read_text())
    del config["signature"]
    (made / "config.json").write_text(json.dumps(config))
    assert train(tiny_config("./owned_env.py:Own-v0", "ddpg", steps=30), made) == 0
    assert "signature" not in json.loads((made / "config.json").read_text())
    assert refused(made)


def test_the_signature_covers_settings_directory_and_module(state, tmp_path, monkeypatch):
    signed = ownership.signed(CONFIG, tmp_path / "run", ["json.decoder", "./env.py"])
    assert ownership.is_own(signed, tmp_path / "run", ["json.decoder", "./env.py"])
    assert ownership.is_own(json.loads(json.dumps(signed)), tmp_path / "run", ["json.tool", "./env.py"])  # same package
    for modules in (["json.decoder"], ["csv", "./env.py"], ["json.decoder", "env2.py"]):
        assert not ownership.is_own(signed, tmp_path / "run", modules)
    assert not ownership.is_own(signed, tmp_path / "run2", ["json.decoder", "./env.py"])
    assert ownership.signed(signed, tmp_path / "run", ["json.decoder", "./env.py"]) == signed  # not a part of itself


@pytest.mark.parametrize("damage", ["link", "short", "directory", "pipe"])
def test_an_unusable_key_signs_nothing(state, tmp_path, damage):
    state.mkdir(parents=True, mode=0o700)
    path = state / "key"
    if damage == "link":
        (tmp_path / "theirs").write_bytes(bytes(32))
        (tmp_path / "theirs").chmod(0o600)
        path.symlink_to(tmp_path / "theirs")
    elif damage == "short":
        path.write_bytes(b"short")
        path.chmod(0o600)
    elif damage == "directory":
        path.mkdir(mode=0o700)
    else:
        os.mkfifo(path, 0o600)
    assert ownership.signed(CONFIG, tmp_path, []) == CONFIG


def test_without_a_place_for_the_key_runs_are_unsigned(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    assert ownership.signed(CONFIG, tmp_path, []) == CONFIG
    assert not ownership.is_own(CONFIG | {"signature": ""}, tmp_path, [])


def test_a_run_of_a_registered_environment_is_signed_too(state, tmp_path):
    assert train(tiny_config(steps=20), tmp_path / "run") == 0
    directory = RunDirectory(tmp_path / "run")
    assert directory.is_own(directory.read_config(), tiny_config(steps=20))
