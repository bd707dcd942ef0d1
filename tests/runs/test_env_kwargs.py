"""``--env-kwargs``: arguments of the environment, from the command line to evaluation, export, search and report."""

import json
import sys

import pytest
from commands import softdpg
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import TINY
from runs_on_disk import make_foreign

from softdpg.cli import main
from softdpg.errors import UserError
from softdpg.report.reading import read_runs, write_results
from softdpg.runs.config import RunConfig, parse_env_kwargs
from softdpg.runs.directory import RunDirectory
from softdpg.runs.environments import make_env
from softdpg.runs.flags import read_config_file, write_config_file
from softdpg.runs.trained import evaluate_run, export_run, open_run
from softdpg.runs.training import train

MODULE = """
import gymnasium as gym
import numpy as np


class Pays(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, pay=1.0, places=(0.0, 0.0), currency="euro"):
        self.pay, self.places = pay, np.array(places, np.float32)
        if currency not in ("euro", "yen"):
            raise ValueError(f"no currency {currency}")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.places.copy(), {}

    def step(self, action):
        return self.places.copy(), self.pay, False, False, {}


gym.register("Pays-v0", Pays, max_episode_steps=10)
"""

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(lambda name: name not in ("id", "render_mode"))
KWARGS = st.dictionaries(NAMES, VALUES, max_size=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("folder")
    (path / "pays_env.py").write_text(MODULE)
    return path


def config_of(folder, **kwargs):
    return RunConfig(f"{folder}/pays_env.py:Pays-v0", "ddpg", steps=60, env_kwargs=kwargs, **TINY)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a:1", 1), ("a=1", 1), ("a:-0.5", -0.5), ("a:1e3", 1000.0), ("a:True", True), ("a:None", None),
        ("a:fast", "fast"), ("a:'1'", "1"), ("a:./x.xml", "./x.xml"), ("a:x:y=z", "x:y=z"), ("a:", ""),
        ("a:(1, 2)", [1, 2]), ("a:[1, [2.5, 'x']]", [1, [2.5, "x"]]), ("a:{'b': 1}", {"b": 1}),
        ("a:__import__('os')", "__import__('os')"),
    ],
)  # fmt: skip
def test_values_are_literals_or_bare_strings(text, value):
    found = parse_env_kwargs([text])["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("strings", "message"),
    [
        (["width"], "takes KEY:VALUE, got 'width'"),
        (["1a:2"], "takes KEY:VALUE"),
        (["a:1", "a:2"], "has a twice"),
        (["a:(1, 2"], "is not a Python literal"),
        (["a:[open('x')]"], "is not a Python literal"),
        (["a:1e999"], "a is invalid: Infinity is not a finite number"),
        (["a:'\\ud800'"], "a holds text that is not Unicode"),
        (["a:0x" + "f" * 4000], "must be finite numbers"),  # beyond the digits that Python reads
        (["a:" + "x" * 60_000, "b:" + "x" * 60_000], "must have at most 100,000 characters, got 120,"),
        (["a:{1, 2}"], "must be finite numbers"),
        (["a:{1: 2}"], "must be finite numbers"),
        (["render_mode:human"], "cannot have render_mode: softdpg watch sets it"),
        (["a:" + "[" * 60 + "]" * 60], "a is nested too deep"),
    ],
)
def test_invalid_arguments_are_one_line(strings, message):
    with pytest.raises(UserError) as error:
        parse_env_kwargs(strings)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@settings(max_examples=25)
@given(kwargs=KWARGS)
def test_strings_json_and_files_give_the_same_arguments_back(tmp_path_factory, kwargs):
    config = RunConfig("Pays-v0", env_kwargs=kwargs)
    assert parse_env_kwargs(config.env_kwargs.strings()) == kwargs
    stored = json.loads(json.dumps(config.to_json()))
    assert RunConfig.from_json(stored) == config
    assert hash(RunConfig.from_json(stored)) == hash(config)
    file = tmp_path_factory.mktemp("config") / "run.yaml"
    write_config_file(config, file)
    assert read_config_file(file)["env_kwargs"] == kwargs


def test_what_no_file_can_hold_is_refused_before_anything_is_written(tmp_path, monkeypatch, capsys):
    for arguments in (["--env-kwargs", "g:'\\ud800'"], ["--env", "x" * 1001], ["--env", "\udcff"]):
        line = ["softdpg", "train", "--env", "Pendulum-v1", *arguments, "--out", str(tmp_path / "run")]
        monkeypatch.setattr(sys, "argv", line)
        with pytest.raises(SystemExit) as end:
            main()
        assert (end.value.code, len(capsys.readouterr().err.splitlines())) == (2, 1)
    assert list(tmp_path.iterdir()) == []


def test_toml_has_arguments_but_no_none(tmp_path):
    kwargs = {"a": [1, 2.5, {"b c": "x"}], "d": False}
    write_config_file(RunConfig("Pays-v0", env_kwargs=kwargs), tmp_path / "run.toml")
    assert read_config_file(tmp_path / "run.toml")["env_kwargs"] == kwargs
    with pytest.raises(UserError, match="TOML has no None"):
        write_config_file(RunConfig("Pays-v0", env_kwargs={"a": [None]}), tmp_path / "none.toml")
    (tmp_path / "wrong.toml").write_text("env-kwargs = 3")
    with pytest.raises(UserError, match="env-kwargs must be names and values"):
        read_config_file(tmp_path / "wrong.toml")


def test_arguments_reach_every_environment_of_a_run(folder, tmp_path, capsys):
    """The return is ten times the pay: in training's evaluations, of ``eval``, and with other arguments."""
    config, run = config_of(folder, pay=2.5), tmp_path / "run"
    assert train(config, run) == 0
    assert RunDirectory(run).read_evaluations().means.tolist() == [25.0]
    assert evaluate_run(run, episodes=2, trust=True).tolist() == [25.0, 25.0]
    assert evaluate_run(run, episodes=2, env_id=config.env, env_kwargs={"pay": -1}).tolist() == [-10.0, -10.0]
    assert export_run(run, to="numpy", trust=True).exists()
    other = RunConfig(**(config.flat() | {"env_kwargs": {"pay": 3}}))
    with pytest.raises(UserError, match=r"other settings: --env-kwargs is pay:3, not pay:2\.5"):
        train(other, run)
    assert train(config, run) == 0
    assert "already finished" in capsys.readouterr().out
    assert "--env-kwargs pay:2.5" in config.resolved().command(run)


def test_strings_of_an_untrusted_run_need_trust(folder, tmp_path):
    config, run = config_of(folder, currency="yen"), tmp_path / "run"
    assert train(config, run) == 0
    assert open_run(run)[0].env_kwargs == {"currency": "yen"}  # made here
    make_foreign(run)
    with pytest.raises(UserError, match=r"strings among the arguments of its environment .*--trust"):
        open_run(run, env_id=config.env)
    assert open_run(run, trust=True)[0].env_kwargs == {"currency": "yen"}
    assert open_run(run, env_id=config.env, env_kwargs={})[0].env_kwargs == {}


def test_damaged_arguments_are_one_line(tmp_path):
    stored = RunConfig("Pendulum-v1").to_json()
    for wrong, message in (
        ([1], "env_kwargs must be an object"),
        ({"a b": 1}, "must have Python identifiers"),
    ):
        with pytest.raises(UserError, match=message):
            RunConfig.from_json(stored | {"env_kwargs": wrong})


def test_an_argument_that_the_environment_does_not_take(folder):
    with pytest.raises(UserError, match=r"cannot make environment .* unexpected keyword argument 'pray'"):
        make_env(f"{folder}/pays_env.py:Pays-v0", {"pray": 1})
    with pytest.raises(UserError, match="no currency gold"):
        make_env(f"{folder}/pays_env.py:Pays-v0", {"currency": "gold"})


@pytest.mark.extended
def test_other_arguments_are_another_environment_in_the_report(folder, tmp_path):
    for pay in (1, 2):
        assert train(config_of(folder, pay=pay), tmp_path / "runs" / str(pay)) == 0
    runs, _, warnings = read_runs(tmp_path / "runs")
    assert not warnings
    assert [run.env.rpartition("/")[2] for run in runs] == [
        "pays_env.py:Pays-v0 (pay:1)",
        "pays_env.py:Pays-v0 (pay:2)",
    ]
    (tmp_path / "results.csv").write_text(write_results(runs))
    assert [run.settings.env_kwargs for run in read_runs(tmp_path / "results.csv")[0]] == [{"pay": 1}, {"pay": 2}]


def test_on_the_command_line(folder, tmp_path):
    env = ("--env", f"{folder}/pays_env.py:Pays-v0")
    done = softdpg(
        "train", *env, "--env-kwargs", "pay:4", "places:(0.5, 0.25)", "--write-config", "a.yaml", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    stored = read_config_file(tmp_path / "a.yaml")
    assert stored["env_kwargs"] == {"pay": 4, "places": [0.5, 0.25]}
    done = softdpg("train", "--config", "a.yaml", "--env-kwargs", "pay:5", "--write-config", "b.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read_config_file(tmp_path / "b.toml")["env_kwargs"] == {"pay": 5}
    done = softdpg("train", *env, "--env-kwargs", "pay", "--out", "run", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "softdpg: error: --env-kwargs takes KEY:VALUE, got 'pay'\n")
    done = softdpg("train", *env, "--env-kwargs", "pray:1", "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.extended
def test_a_search_has_the_arguments(folder, tmp_path):
    from softdpg.experiments.tune import run

    base = config_of(folder, pay=2).flat() | {"learning_starts": 20}
    assert run(base, tmp_path / "search", trials=1, params=["tau"], workers=1) == 0
    assert read_config_file(tmp_path / "search" / "best.yaml")["env_kwargs"] == {"pay": 2}
    trial = RunDirectory(tmp_path / "search" / "trials" / "0000")
    assert trial.read_evaluations().means.tolist() == [20.0]
