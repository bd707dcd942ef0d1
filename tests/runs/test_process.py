"""What is compiled once is there for the next run, which then does the same, to the last bit."""

import os
import subprocess
import sys
from pathlib import Path

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


UNSAFE = {
    "is a link": lambda path: (path.with_name("other").mkdir(), path.symlink_to(path.with_name("other"))),
    "belongs to another user": lambda path: path.mkdir(),
    "can be written by other users": lambda path: (path.mkdir(), path.chmod(0o777)),
    "can be written by other users (group)": lambda path: (path.mkdir(), path.chmod(0o770)),
}


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("what", UNSAFE)
def test_a_cache_that_others_can_write_to_is_not_used(tmp_path, monkeypatch, capsys, what, depth):
    """It holds compiled code, so the directory and the one above it must belong to this user alone."""
    environ = {"XDG_CACHE_HOME": str(tmp_path / "probe")}
    keep_compiled(environ)
    directory = tmp_path / "shared" / Path(environ.pop("JAX_COMPILATION_CACHE_DIR")).relative_to(tmp_path / "probe")
    place = directory if depth == 2 else directory.parent
    place.parent.mkdir(parents=True, mode=0o700)
    UNSAFE[what](place)
    if "belongs" in what:
        stranger = (place.stat().st_dev, place.stat().st_ino)
        original = Path.lstat

        def lstat(path):
            about = original(path)
            values = list(about)
            values[4] += (about.st_dev, about.st_ino) == stranger  # st_uid
            return os.stat_result(values)

        monkeypatch.setattr(Path, "lstat", lstat)
    for _ in range(2):
        environ = {"XDG_CACHE_HOME": str(tmp_path / "shared")}
        keep_compiled(environ)
        assert list(environ) == ["XDG_CACHE_HOME"]
    printed = capsys.readouterr().err
    assert printed.count("softdpg: warning: compiling without a cache: ") == 1
    assert f"{place} {what.partition(' (')[0]}" in printed


def test_the_directories_of_the_cache_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        environ = {"XDG_CACHE_HOME": str(tmp_path / "new")}
        keep_compiled(environ)
    finally:
        os.umask(before)
    directory = Path(environ["JAX_COMPILATION_CACHE_DIR"])
    assert [path.stat().st_mode & 0o777 for path in (directory, *directory.parents[:2])] == [0o700] * 3


MODEL = """
import jax
from softdpg import DDPG
if {own!r}:
    jax.config.update("jax_compilation_cache_dir", {own!r})
model = DDPG("MlpPolicy", "Pendulum-v1", learning_starts=10, policy_kwargs=dict(net_arch=[8]), batch_size=8)
model.learn(20)
print(jax.config.jax_compilation_cache_dir)
"""


@pytest.mark.extended
def test_a_model_in_python_has_the_cache_too_unless_the_user_says_otherwise(tmp_path):
    def directory_of(name, own="", **variables):
        environment = {key: value for key, value in os.environ.items() if "CACHE" not in key}
        environment |= {"XDG_CACHE_HOME": str(tmp_path / name), **variables}
        command = [sys.executable, "-c", MODEL.format(own=own)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    place = Path(directory_of("default"))
    assert place.parent == tmp_path / "default" / "softdpg"
    kept = {file.name for file in place.iterdir()}
    assert any(name.startswith("jit_updates-") for name in kept)
    directory_of("default")
    assert {file.name for file in place.iterdir()} == kept  # the second process compiled nothing
    for number, (own, variables) in enumerate(
        [
            (str(tmp_path / "mine"), {}),
            ("", {"JAX_ENABLE_COMPILATION_CACHE": "false"}),
            ("", {"JAX_COMPILATION_CACHE_DIR": ""}),
        ]
    ):
        assert directory_of(f"off{number}", own, **variables) in (own or "None", own)
        assert not (tmp_path / f"off{number}").exists()


COMPILE = """
import os
from pathlib import Path
from softdpg.runs.process import keep_compiled
keep_compiled()
import jax
directory = Path(os.environ["JAX_COMPILATION_CACHE_DIR"])
for n in range(6):
    jax.jit(lambda x: x * n + 1)(2.0)
    kept = sum(path.stat().st_size for path in directory.iterdir() if path.name.endswith("-cache"))
    print(kept, len(list(directory.glob("*-cache"))))
"""


@pytest.mark.extended
def test_the_cache_stays_within_its_limit(tmp_path):
    """The files that were not used for longest go first; without a limit all six functions stay."""
    environment = {key: value for key, value in os.environ.items() if "CACHE" not in key}

    def compile_all(limit):
        environment["XDG_CACHE_HOME"] = str(tmp_path / str(limit))
        environment["JAX_COMPILATION_CACHE_MAX_SIZE"] = str(limit)
        done = subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [list(map(int, line.split())) for line in done.stdout.splitlines()]

    total, files = compile_all(10**9)[-1]
    assert files >= 6
    limited = compile_all(total // 2)
    assert all(size <= total // 2 for size, _ in limited)
    assert 1 <= limited[-1][1] <= files // 2


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
