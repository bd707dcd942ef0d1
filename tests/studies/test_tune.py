"""``softdpg tune``: a search with real runs, stopped and gone on with, and what comes out of it."""

import numpy as np
import pytest
from commands import softdpg

from softdpg.algorithms.hyperparameters import HYPERPARAMETERS, Range
from softdpg.algorithms.registry import ALGORITHMS
from softdpg.errors import UserError
from softdpg.runs.config import RunConfig
from softdpg.runs.config_file import read_config_file
from softdpg.runs.directory import RunDirectory
from softdpg.runs.evaluations import parse_evaluations
from softdpg.studies import tune

optuna = pytest.importorskip("optuna")

TINY = {
    **{"env": "Pendulum-v1", "algo": "soft-ddpg", "steps": 60, "seed": 3, "evaluate_every": 20},
    **{"evaluation_episodes": 1, "net_arch": (8, 8), "n_samples": 4, "buffer_size": 1000},
}
NAMES = ["learning_rate", "sigma"]


def test_every_range_is_one_of_values_that_can_be():
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


def test_final_score_is_over_the_last_tenth():
    evaluations = parse_evaluations("step,mean,std,return_1\n80,1.0,0.0,1.0\n95,3.0,0.0,3.0\n100,6.0,0.0,6.0\n")
    assert tune.final_score(evaluations, 100) == 4.5


def test_a_search_goes_on_where_it_was(tmp_path, capsys):
    out = tmp_path / "search"
    base = RunConfig(**TINY)
    out.mkdir()
    study = tune._study(base, NAMES, out)
    left = study.ask()  # as a command leaves it that was killed during its first trial
    left.suggest_float("learning_rate", 1e-5, 3e-3, log=True)
    left.suggest_float("sigma", 0.05, 0.5, log=True)

    assert tune.run(TINY, out, trials=3, params=NAMES, workers=2) == 0
    trials = tune._study(base, NAMES, out).get_trials()
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * 3
    assert trials[0].params == left.params
    assert len({trial.params["sigma"] for trial in trials}) == 3
    for trial in trials:
        evaluations = RunDirectory(out / "trials" / f"{trial.number:04d}").read_evaluations()
        assert evaluations.steps.tolist() == [20, 40, 60]
        assert trial.value == evaluations.means[-1]
        assert trial.intermediate_values == dict(zip(evaluations.steps, evaluations.means, strict=True))

    best = max(trials, key=lambda trial: trial.value)
    settings = RunConfig(**read_config_file(out / "best.yaml"))
    assert (settings.sigma, settings.learning_rate) == (best.params["sigma"], best.params["learning_rate"])
    assert (settings.net_arch, settings.env, settings.steps) == ((8, 8), "Pendulum-v1", 60)
    assert "3 of 3 trials" in capsys.readouterr().out

    assert tune.run(TINY, out, trials=3, params=NAMES, workers=2) == 0  # nothing is left to do
    assert len(list((out / "trials").iterdir())) == 3
    with pytest.raises(UserError, match="other settings"):
        tune.run(TINY | {"seed": 4}, out, trials=4, params=NAMES, workers=1)


def test_a_trial_worse_than_most_is_stopped_early(tmp_path, monkeypatch):
    out = tmp_path / "search"
    out.mkdir()
    settings = TINY | {"steps": 100_000}
    study = tune._study(RunConfig(**settings), ["sigma"], out)
    space = {"sigma": optuna.distributions.FloatDistribution(0.05, 0.5, log=True)}
    steps = range(20, 2_001, 20)
    for sigma in np.linspace(0.1, 0.2, 5):  # better than Pendulum ever is
        values = dict.fromkeys(steps, 1.0)
        trial = optuna.trial.create_trial(
            params={"sigma": sigma}, distributions=space, value=1.0, intermediate_values=values
        )
        study.add_trial(trial)
    monkeypatch.setattr(tune, "WARMUP", 100_000)
    assert tune.run(settings, out, trials=6, params=["sigma"], workers=1) == 0
    last = tune._study(RunConfig(**settings), ["sigma"], out).get_trials()[-1]
    assert last.state.name == "PRUNED"
    assert max(last.intermediate_values) < 100_000


def test_importance_names_what_mattered(tmp_path):
    from softdpg.studies.tune_figure import draw_importance

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: -((t.suggest_float("sigma", 0, 1) - 0.3) ** 2) + 0 * t.suggest_float("tau", 0, 1), 60)
    assert draw_importance(study, tmp_path / "importance.png").stat().st_size > 5_000


def test_what_cannot_be(tmp_path):
    with pytest.raises(UserError, match="needs --env"):
        tune.run({"steps": 10}, tmp_path / "a", trials=1, params=None, workers=1)
    with pytest.raises(UserError, match="--trials must be at least 1"):
        tune.run(TINY, tmp_path / "a", trials=0, params=None, workers=1)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="not empty and not a directory of softdpg tune"):
        tune.run(TINY, tmp_path, trials=1, params=None, workers=1)


def test_normalised_observations_and_hindsight_by_their_flags(tmp_path):
    """Every trial has what the flag says; an environment without goals has no hindsight."""
    tiny = ["--env", "Pendulum-v1", "--algo", "ddpg", "--trials", 1, "--budget", 20, "--workers", 1, "--params", "tau"]
    done = softdpg("tune", *tiny, "--normalize", "--out", tmp_path / "search")
    assert done.returncode == 0, done.stderr
    assert read_config_file(tmp_path / "search" / "best.yaml")["normalize"] is True
    assert RunDirectory(tmp_path / "search" / "trials" / "0000").read_config()["normalize"] is True
    refused = softdpg("tune", *tiny, "--her", "--out", tmp_path / "other")
    assert refused.returncode == 2
    assert "--her needs an environment with goals" in refused.stderr
