"""What is compiled once is there for the next run, which then does the same, to the last bit."""

import os
import subprocess
import sys

import pytest

from softdpg.experiments import local
from softdpg.runs.process import keep_compiled

SETTINGS = ["--env", "Pendulum-v1", "--algo", "ddpg", "--net-arch", "8", "8", "--batch-size", "8", "--steps", "120"]
SETTINGS += ["--learning-starts", "100", "--evaluate-every", "60", "--evaluation-episodes", "1"]


@pytest.mark.extended
def test_the_second_run_finds_what_the_first_compiled(tmp_path):
    environment = {key: value for key, value in os.environ.items() if "CACHE" not in key}
    environment["XDG_CACHE_HOME"] = str(tmp_path)
    kept, weights = [], []
    for name in ("first", "second"):
        run = tmp_path / name
        command = [sys.executable, "-P", "-m", "softdpg", "train", *SETTINGS, "--out", str(run)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        (directory,) = (tmp_path / "softdpg").iterdir()
        kept.append({file.name for file in directory.iterdir()})
        weights.append((run / "model.safetensors").read_bytes())
    assert any(name.startswith("jit_updates-") for name in kept[0])
    assert kept[1] == kept[0]  # what is not found is compiled and added
    assert weights[1] == weights[0]


def test_a_cache_of_the_users_own_and_none_at_all_stay(tmp_path):
    for directory in (str(tmp_path / "mine"), ""):
        environ = {"JAX_COMPILATION_CACHE_DIR": directory, "XDG_CACHE_HOME": str(tmp_path)}
        before = dict(environ)
        keep_compiled(environ)
        assert environ == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("home", ["/proc/nowhere", "/dev/null"])
def test_where_nothing_can_be_written_nothing_is_kept(home):
    environ = {"XDG_CACHE_HOME": home}
    keep_compiled(environ)
    assert environ == {"XDG_CACHE_HOME": home}


def test_runs_of_an_engine_keep_it_too(tmp_path, monkeypatch):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    given = {}
    monkeypatch.setattr(local.subprocess, "Popen", lambda command, env, **_: given.update(env))

    class Config:
        def to_json(self):
            return {}

    local.start_run(Config(), tmp_path / "run")
    assert given["JAX_COMPILATION_CACHE_DIR"].startswith(str(tmp_path / "softdpg" / "compiled-"))
    assert given["JAX_COMPILATION_CACHE_MAX_SIZE"] == str(2**30)
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ
