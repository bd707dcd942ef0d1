"""``softdpg tune``: a search that is interrupted and resumed, trials that are stopped early, and what it writes."""

import contextlib
import json
import sqlite3
import sys
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import strange_envs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inline_runs import InlineRun
from inline_runs import command as inline_command

from softdpg.algorithms.registry import ALGORITHMS
from softdpg.algorithms.settings import HYPERPARAMETERS, Range
from softdpg.cli import main
from softdpg.errors import UserError
from softdpg.experiments import tune
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory, parse_evaluations
from softdpg.runs.flags import read_config_file

optuna = pytest.importorskip("optuna")

TINY = {
    **{"env": "Pendulum-v1", "algo": "soft-ddpg", "steps": 60, "seed": 3, "evaluate_every": 20},
    **{"evaluation_episodes": 1, "net_arch": (16, 16), "n_samples": 4, "buffer_size": 1000, "learning_starts": 50},
}
NAMES = ["learning_rate", "sigma"]


@pytest.fixture
def inline(monkeypatch):
    """The trials are made in this process."""
    monkeypatch.setattr(tune, "start_run", InlineRun)
    monkeypatch.setattr(tune, "POLL_SECONDS", 0)


def test_every_range_has_valid_values():
    for hyperparameter in HYPERPARAMETERS.values():
        space = hyperparameter.search
        values = (space.low, space.high) if isinstance(space, Range) else space or ()
        assert [hyperparameter.wrong(value) for value in values] == [""] * len(values)


@pytest.mark.parametrize("algo", list(ALGORITHMS))
def test_every_algorithm_has_something_to_search(algo):
    assert "learning_rate" in tune.searched(RunConfig("Pendulum-v1", algo), None)


def test_parameters_by_their_flags():
    base = RunConfig("Pendulum-v1", "soft-ddpg")
    assert tune.searched(base, ["samples", "--learning-rate", "n_samples"]) == ["n_samples", "learning_rate"]
    with pytest.raises(UserError, match=r"no 'simga' with a range; did you mean sigma\?"):
        tune.searched(base, ["simga"])


def test_parameters_without_an_effect_are_not_searched():
    box, discrete = gym.spaces.Box(-1, 1), gym.spaces.Tuple([gym.spaces.Discrete(3), gym.spaces.MultiBinary(2)])
    plain, exact = RunConfig("Pendulum-v1"), RunConfig("Pendulum-v1", smooth_target=False)
    all_names = set(tune.searched(plain, None, box))
    assert {"sigma", "n_samples", "tau", "exploration_noise"} <= all_names
    assert all_names - set(tune.searched(exact, None, box)) == {"sigma", "n_samples"}
    assert all_names - set(tune.searched(RunConfig("Pendulum-v1", batch_norm=True), None, box)) == {"tau"}
    assert all_names - set(tune.searched(plain, None, discrete)) == {"sigma", "exploration_noise"}
    assert set(tune.searched(exact, None, gym.spaces.Tuple([box, discrete]))) == all_names
    with pytest.raises(UserError, match="--params: samples has no effect with --smooth-target False and the exact"):
        tune.searched(exact, ["samples"], box)


def test_trial_0_has_the_defaults_and_equal_scores_say_that_nothing_was_learned(inline, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tune, "final_score", lambda *_: -7.0)
    names = ["learning_rate", "net_arch", "noise_color", "random_episodes", "sigma"]
    small = TINY | {"algo": "soft-td3", "sigma": 0.7, "batch_size": 16, "buffer_size": 500}
    assert tune.run(small, tmp_path / "search", trials=4, params=names, workers=1) == 0
    base = RunConfig(**small).resolved()
    runs = [
        RunConfig.from_json(RunDirectory(path).read_config()) for path in sorted((tmp_path / "search/trials").iterdir())
    ]
    assert {name: getattr(runs[0], name) for name in names} == {
        **{"learning_rate": 1e-3, "net_arch": (16, 16), "noise_color": 1.0, "random_episodes": 0.05, "sigma": 0.7}
    }
    assert runs[0] == base
    assert all(run.random_episodes == 0 for run in runs if run.noise_color == 0)
    assert len({run.sigma for run in runs}) == 4
    printed = capsys.readouterr().out
    assert "Nothing was learned: all 4 trials score -7.00, so no value is better" in printed


def test_a_budget_of_random_steps_is_refused(tmp_path):
    with pytest.raises(
        UserError, match=r"--budget must be more than 5,000, got 5,000: the first 5,000 steps of a trial"
    ):
        tune.run({"env": "Pendulum-v1", "steps": 5_000}, tmp_path / "s", trials=1, params=None, workers=1)
    assert not (tmp_path / "s").exists()


def test_final_score_is_over_the_last_tenth():
    evaluations = parse_evaluations("step,mean,std,return_1\n80,1.0,0.0,1.0\n95,3.0,0.0,3.0\n100,6.0,0.0,6.0\n")
    assert tune.final_score(evaluations, 100) == 4.5


def interrupted_search(out):
    """Leave a search as a command leaves it that was killed during its first trial; return this trial's values."""
    out.mkdir()
    trial = tune._study(RunConfig(**TINY), NAMES, out).ask()
    trial.suggest_float("learning_rate", 1e-5, 3e-3, log=True)
    trial.suggest_float("sigma", 0.05, 0.5, log=True)
    return trial.params


def check_search(out, first):
    trials = tune._study(RunConfig(**TINY), NAMES, out).get_trials()
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * 3
    assert trials[0].params == first
    assert len({trial.params["sigma"] for trial in trials}) == 3
    for trial in trials:
        evaluations = RunDirectory(out / "trials" / f"{trial.number:04d}").read_evaluations()
        assert evaluations.steps.tolist() == [20, 40, 60]
        assert trial.value == evaluations.means[-1]
        assert trial.intermediate_values == dict(zip(evaluations.steps, evaluations.means, strict=True))
    best = max(trials, key=lambda trial: trial.value)
    settings = RunConfig(**read_config_file(out / "best.yaml"))
    assert (settings.sigma, settings.learning_rate) == (best.params["sigma"], best.params["learning_rate"])
    assert (settings.net_arch, settings.env, settings.steps) == ((16, 16), "Pendulum-v1", 60)


def test_a_search_resumes_where_it_was(inline, tmp_path, capsys):
    out = tmp_path / "search"
    first = interrupted_search(out)
    assert tune.run(TINY, out, trials=3, params=NAMES, workers=2) == 0
    check_search(out, first)
    assert "3 of 3 trials" in capsys.readouterr().out

    assert tune.run(TINY, out, trials=3, params=NAMES, workers=2) == 0  # nothing is left to do
    assert len(list((out / "trials").iterdir())) == 3
    with pytest.raises(UserError, match="other settings"):
        tune.run(TINY | {"seed": 4}, out, trials=4, params=NAMES, workers=1)


@pytest.mark.extended
def test_a_search_with_mixed_actions(inline, tmp_path):
    settings = TINY | {
        "env": "strange_envs:StrangeMixed-v0",
        "algo": "soft-td3",
        "learning_starts": 20,
        "train_freq": 1,
    }
    assert tune.run(settings, tmp_path / "search", trials=1, params=["learning_rate"], workers=1) == 0
    evaluations = RunDirectory(tmp_path / "search" / "trials" / "0000").read_evaluations()
    assert evaluations.steps.tolist() == [20, 40, 60]


@pytest.mark.extended
def test_a_search_with_processes(tmp_path):
    first = interrupted_search(tmp_path / "search")
    assert tune.run(TINY, tmp_path / "search", trials=3, params=NAMES, workers=2) == 0
    check_search(tmp_path / "search", first)


def better_trials(settings, out):
    """Begin a search with five trials that are better than Pendulum ever is, at every evaluation."""
    out.mkdir()
    study = tune._study(RunConfig(**settings), ["sigma"], out)
    space = {"sigma": optuna.distributions.FloatDistribution(0.05, 0.5, log=True)}
    values = dict.fromkeys(range(settings["evaluate_every"], settings["steps"] + 1, settings["evaluate_every"]), 1.0)
    for sigma in np.linspace(0.1, 0.2, 5):
        study.add_trial(
            optuna.trial.create_trial(
                params={"sigma": sigma}, distributions=space, value=1.0, intermediate_values=values
            )
        )


class EndlessRun:
    """Stands for the process of a run that has been evaluated once and goes on until it is told to end."""

    def __init__(self, config, out):
        self.ended = False
        out.mkdir(parents=True)
        RunDirectory(out).evaluations.write_text(f"step,mean,std,return_1\n{config.evaluate_every},-900.0,0.0,-900.0\n")

    def poll(self):
        return 143 if self.ended else None

    def terminate(self):
        self.ended = True

    def wait(self):
        assert self.ended
        return 143


@pytest.mark.parametrize("process", [EndlessRun, pytest.param(None, marks=pytest.mark.extended)])
def test_a_trial_worse_than_most_is_stopped_early(tmp_path, monkeypatch, process):
    """Each evaluation of the trial is worse than those of the others, so that the first one seen ends it."""
    if process:
        monkeypatch.setattr(tune, "start_run", process)
        monkeypatch.setattr(tune, "POLL_SECONDS", 0)
    settings = TINY | {"steps": 300_000, "evaluate_every": 6_000}
    monkeypatch.setattr(tune, "WARMUP", 300_000)
    better_trials(settings, tmp_path / "search")
    assert tune.run(settings, tmp_path / "search", trials=6, params=["sigma"], workers=1) == 0
    last = tune._study(RunConfig(**settings), ["sigma"], tmp_path / "search").get_trials()[0]  # waited from the start
    assert last.state.name == "PRUNED"
    assert 6_000 <= max(last.intermediate_values) < 300_000


class FailingRun:
    """Stands for the process of a run that fails at once."""

    def __init__(self, config, out):
        out.mkdir(parents=True, exist_ok=True)
        (out / "train.log").write_text(f"softdpg: the motor of {out.name} is on fire; resume from here with:\n")

    def poll(self):
        return 1


def test_a_search_whose_trials_all_fail_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tune, "start_run", FailingRun)
    monkeypatch.setattr(tune, "POLL_SECONDS", 0)
    for _ in range(2):  # the second time nothing is left to do
        assert tune.run(TINY, tmp_path / "search", trials=2, params=["sigma"], workers=1) == 1
        printed = capsys.readouterr().err
        assert printed == "softdpg: no trial of 2 is complete; trial 0 failed: the motor of 0000 is on fire\n"


def test_a_full_disk_is_one_line_and_the_search_resumes(inline, small_tmpfs, monkeypatch, capsys):
    settings = TINY | {"env": "strange_envs:Timed-v0"}
    monkeypatch.setattr(strange_envs, "FAULT", (partial(strange_envs.fill, small_tmpfs), 30))
    assert tune.run(settings, small_tmpfs / "search", trials=2, params=["sigma"], workers=1) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"softdpg: {small_tmpfs}/search/study.db cannot be written: ")
    assert printed.endswith("; run the command again to resume\n")
    strange_envs.FAULT = None
    (small_tmpfs / "filler").unlink()
    assert tune.run(settings, small_tmpfs / "search", trials=2, params=["sigma"], workers=1) == 0
    assert "2 of 2 trials" in capsys.readouterr().out


class VanishingRun(FailingRun):
    """Stands for a process that ends with exit code 0 before the run is finished."""

    def poll(self):
        return 0


def test_a_process_that_vanishes_is_a_failure(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tune, "start_run", VanishingRun)
    monkeypatch.setattr(tune, "POLL_SECONDS", 0)
    assert tune.run(TINY, tmp_path / "search", trials=1, params=["sigma"], workers=1) == 1
    assert "trial 0 failed: the process ended before the run was finished" in capsys.readouterr().err


def _sql(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(*statement if isinstance(statement, tuple) else (statement,))


def _link(path):
    path.rename(path.with_name("other.db"))
    path.symlink_to("other.db")


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "a directory": lambda path: (path.unlink(), path.mkdir()),
    "a link": _link,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:20_000]),
    "random bytes": lambda path: path.write_bytes(bytes(range(256)) * 40),
    "wrong JSON of a distribution": lambda path: _sql(path, "UPDATE trial_params SET distribution_json = '{'"),
    "wrong JSON of the settings": lambda path: _sql(path, "UPDATE study_user_attributes SET value_json = '{'"),
    "another distribution": lambda path: _sql(
        path, "UPDATE trial_params SET distribution_json = replace(distribution_json, '0.5', '7.5')"
    ),
    "an unknown state": lambda path: _sql(path, "UPDATE trials SET state = 'DONE'"),
    "no direction": lambda path: _sql(path, "UPDATE study_directions SET study_id = -1"),
    "another direction": lambda path: _sql(path, "UPDATE study_directions SET direction = 'MINIMIZE'"),
    "a missing trial": lambda path: _sql(path, "UPDATE trials SET number = 3 WHERE number = 0"),
    "an infinite score": lambda path: _sql(path, "UPDATE trial_values SET value_type = 'INF_POS', value = NULL"),
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The database of a search with five complete trials."""
    out = tmp_path_factory.mktemp("tune") / "search"
    better_trials(TINY, out)
    return (out / "study.db").read_bytes()


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_database_is_one_line(ended, tmp_path, damage):
    (tmp_path / "study.db").write_bytes(ended)
    DAMAGE[damage](tmp_path / "study.db")
    with pytest.raises(UserError, match=r"study\.db (is damaged|cannot be read): .*; choose another --out$") as error:
        tune.run(TINY, tmp_path, trials=5, params=["sigma"], workers=1)
    assert "\n" not in str(error.value)


def test_a_locked_database_is_one_line(ended, tmp_path, monkeypatch):
    monkeypatch.setattr(tune, "LOCK_SECONDS", 0.01)
    (tmp_path / "study.db").write_bytes(ended)
    with contextlib.closing(sqlite3.connect(tmp_path / "study.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UserError, match=r"study\.db cannot be read: database is locked"):
            tune.run(TINY, tmp_path, trials=5, params=["sigma"], workers=1)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_row_of_the_database(ended, tmp_path_factory, monkeypatch, data):
    """Exit code 0, 1 or 2, and no import."""
    monkeypatch.setattr(tune, "start_run", FailingRun)
    monkeypatch.setattr(tune, "POLL_SECONDS", 0)
    monkeypatch.setattr(tune, "draw_importance", lambda *_: None)
    out = tmp_path_factory.mktemp("search")
    (out / "study.db").write_bytes(ended)
    odd = [None, -1, 0, 10**12, 1e308, "", "x", "{", "[]", '{"a": 1}', b"\xff", "RUNNING", "FAIL", "INF_NEG", "sigma"]
    odd += ['"evil_module:Id-v0"', "evil_module", '{"name": "evil_module", "attributes": {}}']
    tables = ["studies", "study_directions", "study_user_attributes", "trials", "trial_params", "trial_values"]
    for _ in range(data.draw(st.integers(1, 2))):
        table = data.draw(st.sampled_from([*tables, "trial_intermediate_values"]))
        with contextlib.closing(sqlite3.connect(out / "study.db")) as database:
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        change = f"UPDATE {table} SET {data.draw(st.sampled_from(columns))} = ?"
        where = data.draw(st.sampled_from(["", " WHERE rowid = 1"]))
        with contextlib.suppress(sqlite3.Error):
            _sql(out / "study.db", (change + where, (data.draw(st.sampled_from(odd)),)))
    (out / "tune.yaml").write_text(json.dumps(TINY))  # JSON is YAML
    line = ["--config", out / "tune.yaml", "--budget", TINY["steps"], "--seed", TINY["seed"], "--params", "sigma"]
    assert inline_command("tune", *line, "--trials", 5, "--workers", 1, "--out", out)[0] in (0, 1, 2)
    assert "evil_module" not in sys.modules


def test_importance_names_what_mattered(tmp_path):
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: -((t.suggest_float("sigma", 0, 1) - 0.3) ** 2) + 0 * t.suggest_float("tau", 0, 1), 60)
    assert tune.draw_importance(study, tmp_path / "importance.png").stat().st_size > 5_000


def test_bad_input(tmp_path):
    with pytest.raises(UserError, match="needs --env"):
        tune.run({"steps": 10}, tmp_path / "a", trials=1, params=None, workers=1)
    with pytest.raises(UserError, match="--trials must be at least 1"):
        tune.run(TINY, tmp_path / "a", trials=0, params=None, workers=1)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="not empty and not a directory of softdpg tune"):
        tune.run(TINY, tmp_path, trials=1, params=None, workers=1)


def command(monkeypatch, *arguments):
    """Run ``softdpg tune`` in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["softdpg", "tune", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("normalize: 'yes'", "--normalize must be True or False, got 'yes'"),
        ("env: 5", "--env must be a string, got 5"),
        ("env: !!binary UGVuZHVsdW0tdjE=", "--env must be a string, got b'Pendulum-v1'"),
        ("algo: [ddpg]", "--algo must be a string, got ('ddpg',)"),
        ("env-kwargs: {g: .nan}", "--env-kwargs g is invalid: NaN is not a finite number"),
    ],
)
def test_wrong_values_in_a_config_file_are_one_line(tmp_path, monkeypatch, capsys, line, message):
    (tmp_path / "tune.yaml").write_text(f"{line}\n")
    settings = ["--config", tmp_path / "tune.yaml", "--trials", 1, "--budget", 20, "--out", tmp_path / "search"]
    assert command(monkeypatch, *settings) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("softdpg: error: ")
    assert message in printed
    assert not (tmp_path / "search").exists()


def test_normalized_observations_and_hindsight_by_their_flags(inline, tmp_path, monkeypatch, capsys):
    """Every trial has the settings of the flags; an environment without goals has no hindsight."""
    (tmp_path / "base.yaml").write_text("learning-starts: 10\n")
    tiny = ["--env", "Pendulum-v1", "--algo", "ddpg", "--trials", "1", "--budget", "20", "--workers", "1"]
    tiny += ["--config", tmp_path / "base.yaml"]
    tiny += ["--evaluate-every", "20", "--params", "tau"]
    assert command(monkeypatch, *tiny, "--normalize", "--out", tmp_path / "search") == 0
    assert read_config_file(tmp_path / "search" / "best.yaml")["normalize"] is True
    assert RunDirectory(tmp_path / "search" / "trials" / "0000").read_config()["normalize"] is True
    assert command(monkeypatch, *tiny, "--her", "--out", tmp_path / "other") == 2
    assert "--her needs an environment with goals" in capsys.readouterr().err
