"""``softdpg reproduce``: finished runs are skipped, failures do not stop the others, bad input writes nothing."""

import pytest
from inline_runs import InlineEngine

from softdpg import paper
from softdpg.errors import UserError
from softdpg.experiments import execute, reproduce
from softdpg.experiments.local import LocalEngine
from softdpg.experiments.toy import ToySettings
from softdpg.runs.directory import RunDirectory

SMALL = {"steps": 300, "envs": ("PendulumDiscrete",), "algos": ("ddpg",)}


def failing_run(out):
    """Put a file that is not ours where the run with seed 1 goes."""
    failing = out / "PendulumDiscrete-v0/ddpg/seed-1"
    failing.mkdir(parents=True)
    (out / ".softdpg-runs").touch()
    (failing / "mine.txt").write_text("not a run")
    return failing


def check_failure(printed, out, failing):
    assert "2 runs: 0 finished, 0 to resume, 2 new" in printed
    assert f"failed: {failing}: --out {failing} is not empty (mine.txt)" in printed
    assert "1 of 2 runs finished" in printed
    status = RunDirectory(out / "PendulumDiscrete-v0/ddpg/seed-0").read_status()
    assert (status["state"], status["step"]) == ("finished", 300)


def test_finished_runs_are_skipped_and_failures_do_not_stop_the_others(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(reproduce, "make_engine", InlineEngine)
    monkeypatch.setattr(execute, "POLL_SECONDS", 0)
    out = tmp_path / "runs"
    failing = failing_run(out)
    assert reproduce.reproduce("table2", out, seeds=2, **SMALL) == 1
    printed = capsys.readouterr().out
    check_failure(printed, out, failing)
    assert "1 at a time; estimated time 0:00:" in printed

    assert reproduce.reproduce("table2", out, seeds=1, **SMALL) == 0
    assert "1 runs: 1 finished, 0 to resume, 0 new" in capsys.readouterr().out
    with pytest.raises(UserError, match="seed-0 holds a run with other settings: --steps is 400, not 300"):
        reproduce.reproduce("table2", out, seeds=1, **(SMALL | {"steps": 400}))


@pytest.mark.extended
def test_with_processes(tmp_path, capsys):
    failing = failing_run(tmp_path / "runs")
    assert reproduce.reproduce("table2", tmp_path / "runs", seeds=2, workers=2, **SMALL) == 1
    printed = capsys.readouterr().out
    check_failure(printed, tmp_path / "runs", failing)
    assert "2 at a time; estimated time 0:00:" in printed


def test_the_papers_algorithms_by_default(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(reproduce, "unfinished_jobs", lambda jobs, console: seen.extend(jobs) or [])
    assert reproduce.reproduce("table2", tmp_path, seeds=1, envs=("Pendulum-v1",)) == 0
    assert [job.config.algorithm.name for job in seen] == list(paper.PAPER_ALGORITHMS)
    assert [job.config.estimator for job in seen] == [None, "paper"]


def test_engines_by_name():
    assert isinstance(execute.make_engine("local", None, 3), LocalEngine)
    assert execute.make_engine("local", None, 3).slots == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "tabel1"}, "no target 'tabel1'; did you mean table1"),
        ({"target": "figure"}, r"no target 'figure' \(targets: table1, table2, sensitivity-samples"),
        ({"seeds": 0}, "--seeds must be at least 1, got 0"),
        ({"steps": -5}, "--steps must be at least 1, got -5"),
        ({"workers": 0}, "--workers must be at least 1, got 0"),
        ({"algos": ("soft-dpg",)}, "no algorithm 'soft-dpg'; did you mean soft-ddpg"),
        ({"envs": ("Cartpole-v1",)}, "no environment 'Cartpole-v1'; did you mean CartPole-v1"),
        ({"envs": ("CliffWalking-v1",)}, "CliffWalking-v1 has a Discrete observation space"),
        ({"address": "localhost:6379"}, "--address applies to --engine ray only"),
        ({"engine": "ray", "workers": 2}, "--workers applies to --engine local only"),
    ],
)
def test_bad_input_writes_nothing(tmp_path, arguments, message):
    with pytest.raises(UserError, match=message):
        reproduce.reproduce(**({"target": "table1", "out": tmp_path / "runs"} | arguments))
    assert not (tmp_path / "runs").exists()


def test_the_toy_gets_the_arguments(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(reproduce, "train_toy", lambda settings, out: calls.append((settings, out)))
    assert reproduce.reproduce("toy", tmp_path, steps=1_200, seeds=2, algos=("ddpg",), workers=1) == 0
    assert reproduce.reproduce("toy", tmp_path) == 0
    assert calls == [
        (ToySettings(seeds=2, steps=1_200, algos=("ddpg",), workers=1), tmp_path / "toy"),
        (ToySettings(seeds=5), tmp_path / "toy"),
    ]
    with pytest.raises(UserError, match="--steps must be at least 1001, got 900"):
        reproduce.reproduce("toy", tmp_path, steps=900)
