"""``softdpg train --config`` and ``--write-config``."""

import sys
from pathlib import Path

import pytest
from commands import softdpg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inline_runs import command

from softdpg.algorithms.settings import HYPERPARAMETERS
from softdpg.errors import UserError
from softdpg.runs.config import SETTINGS, RunConfig, flag
from softdpg.runs.directory import RunDirectory
from softdpg.runs.flags import read_config_file, write_config_file


@pytest.mark.parametrize("suffix", [".yaml", ".toml"])
def test_flags_go_above_the_file(tmp_path, suffix):
    between = " = " if suffix == ".toml" else ": "
    values = {"env": '"Pendulum-v1"', "algo": '"soft-ddpg"', "steps": "30", "samples": "4", "net-arch": "[8, 8]"}
    values |= {"evaluation_episodes": "1", "sigma": "0.3", "checkpoint-every": "20"}
    file = tmp_path / f"run{suffix}"
    file.write_text("".join(f"{name}{between}{value}\n" for name, value in values.items()))
    done = softdpg("train", "--config", file, "--sigma", "0.4", "--write-config", tmp_path / "all.yaml")
    assert done.returncode == 0, done.stderr
    config = RunConfig(**read_config_file(tmp_path / "all.yaml"))
    assert (config.env, config.algo, config.steps) == ("Pendulum-v1", "soft-ddpg", 30)
    assert (config.sigma, config.n_samples, config.net_arch) == (0.4, 4, (8, 8))


@pytest.mark.parametrize("suffix", [".yaml", ".toml"])
@settings(max_examples=30)
@given(
    sigma=st.floats(1e-3, 2),
    batch_size=st.integers(1, 10_000),
    net_arch=st.lists(st.integers(1, 500), min_size=2, max_size=4).map(tuple),
    env=st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=20),
)
def test_what_is_written_is_read(tmp_path_factory, suffix, sigma, batch_size, net_arch, env):
    config = RunConfig(env, "soft-ddpg", sigma=sigma, batch_size=batch_size, net_arch=net_arch).resolved()
    file = tmp_path_factory.mktemp("config") / f"run{suffix}"
    write_config_file(config, file)
    assert RunConfig(**read_config_file(file)).resolved() == config


def test_write_config_does_not_train(tmp_path):
    done = softdpg("train", "--env", "Pendulum-v1", "--algo", "ddpg", "--write-config", "run.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run.yaml"]
    assert "gamma: 0.99\n" in (tmp_path / "run.yaml").read_text()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("run.yaml", "simga: 0.2", "no setting 'simga'; did you mean sigma?"),
        ("run.yaml", "- 1", "must be a list of names and values"),
        ("run.yaml", "a: [", "cannot read"),
        ("run.toml", "a = ", "cannot read"),
        ("run.json", "{}", "must end in"),
        ("run.yaml", "env: " + "[" * 100_000, "nested too deep"),
        ("run.toml", "env = " + "[" * 100_000, "cannot read"),
        ("run.yaml", "learning-rate: {a: 1}", "--learning-rate must be a number, got {'a': 1}"),
        ("run.yaml", "env-kwargs: {a: &a [1, 1], b: [*a, *a]}", "aliases (*name) are not supported"),
        ("run.yaml", "seed: 1\nseed: 2", "seed is given twice"),
        ("run.yaml", "net-arch: [8]\nnet_arch: [9]", "net-arch is given twice"),
        ("run.toml", "net-arch = [8]\nnet_arch = [9]", "net-arch is given twice"),
        ("run.yaml", "env-kwargs: {g: .nan}", "--env-kwargs g is invalid: NaN is not a finite number"),
        ("run.yaml", "gamma: .nan", "--gamma must be between 0 and 1, got nan"),
        ("run.yaml", "gamma: 2026-01-01", "--gamma must be a number, got datetime.date(2026, 1, 1)"),
        ("run.yaml", "<<: {seed: 1}\nseed: 2", "merge keys (<<) are not supported"),
        ("run.yaml", 'env-kwargs: {g: "\\ud800"}', "--env-kwargs g holds text that is not Unicode"),
        ("run.yaml", "env-kwargs: {g: 2026-01-01}", "--env-kwargs g must be finite numbers, strings"),
    ],
)
def test_an_invalid_file(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as error:
        read_config_file(tmp_path / name)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("env: Pendulum-v1\nsteps: many", "--steps must be an integer, got 'many'"),
        ("env: Pendulum-v1\nsigma: wide", "--sigma must be"),
        ("env: Pendulum-v1\nalgo: ddgp", "ddgp"),
    ],
)
def test_wrong_values_are_one_line(tmp_path, text, message):
    (tmp_path / "run.yaml").write_text(text)
    done = softdpg("train", "--config", tmp_path / "run.yaml", "--out", tmp_path / "run")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


LINES = st.tuples(
    st.sampled_from([flag(name).removeprefix("--") for name in (*SETTINGS, *HYPERPARAMETERS)])
    | st.sampled_from(["env_kwargs", "simga", "<<", "? [1]", "1", "'", "- a", "%YAML 9.9", "--- ", "env-kwargs"]),
    st.integers().map(str)
    | st.floats().map(repr)
    | st.text(max_size=5)
    | st.sampled_from(
        [".nan", ".inf", "1e400", "9" * 5000, "yes", "~", "2026-01-01", "0o7", "1_000", "!!binary UGVu", "!!set {a}"]
        + ["!!python/object/apply:os.mkdir [evil]", "!!python/module:evil_module", "!!python/name:evil_module.x"]
        + ["&a [1]", "*a", "[", "{", "]", '"\\ud800"', '"\\0"', "|\n  text", "@x", "\t", "[8, 8]", "[1, [2]]", "a: b"]
        + ["{a: 1}", "{a: {b: [1, .nan]}}", "{a: evil_module}", "evil_module:Id-v0", "auto", "linear:0.5:0.1", "ddpg"]
        + ["a" * 5000, "[" * 200, "{a: " * 200, "True", "[]", "{}", "./evil_module.py:Id-v0", "50", "0.5", "sigma"]
    ),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINES, max_size=4), between=st.sampled_from([": ", ": ", ": ", "=", ":"]))
def test_any_config_file(tmp_path_factory, monkeypatch, lines, between):
    """Exit code 0, 1 or 2. Reading a file imports nothing that it names; the flag replaces its environment."""
    pytest.importorskip("optuna")
    from softdpg.experiments import tune

    class Failing:
        def __init__(self, config, out):
            out.mkdir(parents=True)

        def poll(self):
            return 1

    monkeypatch.setattr(tune, "start_run", Failing)
    monkeypatch.setattr(tune, "POLL_SECONDS", 0)
    place = tmp_path_factory.mktemp("config")
    (place / "evil_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(place)
    (place / "any.yaml").write_text("".join(f"{name}{between}{value}\n" for name, value in lines), "utf-8")
    written = command("train", "--config", "any.yaml", "--write-config", "all.yaml")[0]
    assert written in (0, 2)
    if written == 0:
        assert command("train", "--config", "all.yaml", "--write-config", "again.yaml")[0] == 0
        assert (place / "all.yaml").read_bytes() == (place / "again.yaml").read_bytes()
    line = ["--config", "any.yaml", "--env", "Pendulum-v1", "--trials", 1, "--budget", 20, "--out", "search"]
    assert command("tune", *line)[0] in (1, 2)
    assert "evil_module" not in sys.modules
    assert not (place / "evil").exists()


def test_missing_file(tmp_path):
    done = softdpg("train", "--config", "none.yaml", "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "softdpg: error: cannot read --config none.yaml: No such file or directory\n"


def test_without_out_the_run_directory_follows_from_the_settings(tmp_path):
    command = ["train", "--env", "softdpg/PendulumDiscrete-v0", "--algo", "ddpg", "--evaluation-episodes", "1"]
    place = "runs/PendulumDiscrete-v0/ddpg/seed-3"
    for steps, outcome in ((40, "finished: "), (40, "already finished: "), (50, "finished: ")):
        done = softdpg(*command, "--seed", "3", "--steps", str(steps), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"run directory: {place}\n")
        assert f"\n{outcome}{tmp_path / place}" in done.stdout
    assert RunDirectory(tmp_path / place).read_status()["step"] == 50
    done = softdpg(*command, "--seed", "3", "--steps", "50", "--tau", "0.1", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("other settings: --tau is 0.1, not 0.005. Choose another --out\n")


def test_names_of_run_directories_have_no_module_and_no_separators():
    names = {"shimmy:dm_control/cartpole-swingup-v0": "dm_control-cartpole-swingup-v0", "./tank.py:Tank-v0": "Tank-v0"}
    for env, name in {**names, "softdpg/AntDiscrete-v0": "AntDiscrete-v0", "../..": "env"}.items():
        assert RunConfig(env).default_out() == Path("runs", name, "soft-td3", "seed-0")
