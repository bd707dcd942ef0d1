"""``softdpg toy``: measures by hand, the table and the figure, stored runs."""

import re
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from softdpg import paper
from softdpg.errors import UserError
from softdpg.experiments import toy, toy_report
from softdpg.experiments.toy import ACTIONS, ToyRun, ToySettings, measures
from softdpg.experiments.toy_report import draw, print_table
from softdpg.theory.toy import Toy

SETTINGS = ToySettings(seeds=2, epsilon=0.1, gamma=0.9, sigma=0.2)
ALGORITHMS = SETTINGS.algos


def run_with(algorithm="ddpg", action=0.5, change=0.0):
    sigma = 0.0 if algorithm == "ddpg" else SETTINGS.sigma
    critic = Toy(0.1, 0.9).critic(ACTIONS, action, sigma) + change
    return ToyRun(algorithm, 0, critic, np.zeros_like(ACTIONS), action, np.array([0.5, 0.55, 0.3, -1.0]), 50.0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_exact_critic_has_no_error(algorithm):
    result = measures(run_with(algorithm), SETTINGS)
    assert result["error"] == pytest.approx(0, abs=1e-12)
    assert result["total variation"] == pytest.approx(2)
    assert 0.4 < result["greedy action"] < 0.6
    assert result["late return"] == 25  # two of four late actions are rewarded


def test_offset_and_shape_error_by_hand():
    """Learned = exact + 3 + sin: offset 3, shape error the rms of the sine, error sqrt(9 + 1/2)."""
    wave = np.sin(np.pi * ACTIONS)
    result = measures(run_with(change=3.0 + wave), SETTINGS)
    assert result["offset"] == pytest.approx(3.0)
    assert result["shape error"] == pytest.approx(np.sqrt(0.5), rel=2e-3)
    assert result["error"] == pytest.approx(np.sqrt(9.5), rel=1e-3)


def test_each_critic_has_its_own_counterpart():
    """At pi = 0.5: V = 10 for DDPG, Pr(|w| < 1/2) / (1 - gamma) = 3.829 with smoothing. Outside, DDPG's V is 0."""
    assert run_with("ddpg").exact(SETTINGS).max() == pytest.approx(10)
    assert run_with(paper.METHOD).exact(SETTINGS).max() == pytest.approx(1 + 0.9 * 3.829249225480262)
    assert run_with("ddpg", action=0.3).exact(SETTINGS).max() == 1


def test_table_and_picture(tmp_path):
    runs = [run_with(a, action=0.5, change=0.1 * i) for a in ALGORITHMS for i in range(2)]
    text = StringIO()
    print_table(Console(file=text, width=80), runs, SETTINGS)
    (row,) = [line for line in text.getvalue().splitlines() if "offset" in line and "│" in line]
    assert re.findall(r"[\d.]+ ± [\d.]+", row) == ["0.050 ± 0.050"] * 3
    assert draw(runs, SETTINGS, tmp_path / "new" / "toy.png").stat().st_size > 20_000


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seeds": 0}, "--seeds must be at least 1, got 0"),
        ({"steps": 1_000}, "--steps must be at least 1001, got 1000"),
        ({"epsilon": 0.6}, r"--epsilon must be in \(0, 0.5\], got 0.6"),
        ({"gamma": 1.0}, r"--gamma must be in \[0, 1\), got 1.0"),
        ({"sigma": 0.0}, "--sigma must be positive, got 0.0"),
        ({"batch_size": 0}, "--batch-size must be at least 1, got 0"),
    ],
)
def test_bad_settings_name_the_argument(wrong, message):
    with pytest.raises(UserError, match=message):
        ToySettings(**wrong).check()


def test_one_run_leaves_what_the_table_needs(tmp_path, monkeypatch):
    """In this process and barely trained."""
    monkeypatch.setattr(toy, "_steps", [0])
    monkeypatch.setattr(toy, "_stop", SimpleNamespace(value=0))
    settings = ToySettings(steps=1_020, batch_size=16)
    run = toy.train_one(settings, "ddpg", 3, 0, tmp_path)
    assert toy._steps == [1_020]
    assert run.critic.shape == run.slope.shape == ACTIONS.shape
    assert len(run.late_actions) == toy.LAST // toy.EVERY
    assert -1 <= run.action <= 1
    assert 0 <= measures(run, settings)["return"] <= toy.EPISODE
    stored = toy.load(settings, tmp_path, "ddpg", 3)
    np.testing.assert_array_equal(stored.critic, run.critic)
    monkeypatch.setattr(toy, "_stop", SimpleNamespace(value=1))
    with pytest.raises(InterruptedError):
        toy.train_one(settings, "ddpg", 4, 0, tmp_path)


@pytest.mark.extended
def test_command_trains_all_three(tmp_path):
    """The real thing, barely trained: two processes, three algorithms, a table and a figure."""
    command = [sys.executable, "-m", "softdpg", "toy", "--seeds", "1", "--steps", "1050", "--out", str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    (row,) = [line for line in done.stdout.splitlines() if "learned action" in line]
    assert len(re.findall(r"-?[\d.]+ ± 0\.000", row)) == 3
    assert (tmp_path / "toy.png").stat().st_size > 20_000


def test_finished_runs_are_not_trained_again(tmp_path, monkeypatch, capsys):
    settings = ToySettings(seeds=2, epsilon=0.1, algos=paper.PAPER_ALGORITHMS)
    for algorithm in settings.algos:
        for seed in range(2):
            toy.save(replace(run_with(algorithm), seed=seed), settings, tmp_path)
    trained = []
    monkeypatch.setattr(toy, "train_runs", lambda settings, jobs, *_: trained.extend(jobs) or [run_with()])
    monkeypatch.setattr(toy_report, "draw", lambda runs, settings, path: path)
    toy.run(settings, tmp_path)
    assert trained == []
    assert "of 2 seeds" in capsys.readouterr().out
    # Another seed is the only thing missing; with another epsilon everything is.
    toy.run(replace(settings, seeds=3, algos=("ddpg",)), tmp_path)
    assert trained == [("ddpg", 2)]
    assert toy.load(replace(settings, epsilon=0.2), tmp_path, "ddpg", 0) is None
    (stored,) = [toy.load(settings, tmp_path, paper.METHOD, 1)]
    np.testing.assert_array_equal(stored.critic, run_with(paper.METHOD).critic)


def test_unknown_and_foreign_algorithms_are_refused():
    with pytest.raises(UserError, match="no algorithm 'soft-ddpg-papier'; did you mean"):
        ToySettings(algos=("soft-ddpg-papier",)).check()
    with pytest.raises(UserError, match="got sbx-sac, which belongs to another library"):
        ToySettings(algos=("sbx-sac",)).check()
