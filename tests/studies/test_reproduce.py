"""``softdpg reproduce``: which runs, where, skipping and resuming, going on after failures, and what is refused."""

import io
import json
import re
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from softdpg import paper
from softdpg.engines import Ended, process
from softdpg.engines.board import Board
from softdpg.engines.estimate import TYPICAL, estimated_seconds, typical_speed
from softdpg.engines.jobs import make_job, runs
from softdpg.errors import UserError
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.studies.reproduce import reproduce

SMALL = {"steps": 300, "envs": ("PendulumDiscrete",), "algos": ("ddpg",)}


def all_jobs(out, target="all", **arguments):
    targets = paper.TARGETS if target == "all" else (target,)
    return [make_job(config, out) for config in runs(targets, **arguments)]


def test_directories_say_what_a_run_is(tmp_path):
    jobs = all_jobs(tmp_path)
    # 140 + 80 + 20 + 25 runs; sigma 0.2 with N = 50, and with N = 10, are each in two targets.
    assert len({job.path for job in jobs}) == len(jobs) == 265 - 10
    names = {job.name for job in jobs}
    assert {"AntDiscrete-v0/ddpg/seed-4", "Ant-v5/soft-ddpg-sigma0.001-n10/seed-0"} <= names
    assert "Ant-v5/soft-ddpg-sigma0.2-n50/seed-0" in names
    centered = make_job(RunConfig("Ant-v5", "soft-ddpg-centered", 100, 1, sigma=0.2, n_samples=50), tmp_path)
    assert (centered.config.algo, centered.config.estimator) == ("soft-ddpg", "centered")
    assert centered.name == "Ant-v5/soft-ddpg-centered-sigma0.2-n50/seed-1"


def test_runs_skips_and_goes_on_after_a_failure(tmp_path, capsys):
    out = tmp_path / "runs"
    failing = out / "PendulumDiscrete-v0/ddpg/seed-1"
    failing.mkdir(parents=True)
    (out / ".softdpg-runs").touch()
    (failing / "mine.txt").write_text("not a run")
    assert reproduce("table2", out, seeds=2, workers=2, **SMALL) == 1
    printed = capsys.readouterr().out
    assert "2 runs: 0 finished, 0 to resume, 2 new" in printed
    assert "2 at a time; estimated time 0:00:" in printed
    assert f"failed: {failing}: --out {failing} is not empty (mine.txt)" in printed
    assert "1 of 2 runs finished" in printed
    status = RunDirectory(out / "PendulumDiscrete-v0/ddpg/seed-0").read_status()
    assert (status["state"], status["step"]) == ("finished", 300)

    (failing / "mine.txt").unlink()
    (failing / "train.log").unlink()
    failing.rmdir()
    assert reproduce("table2", out, seeds=1, **SMALL) == 0
    assert "1 runs: 1 finished, 0 to resume, 0 new" in capsys.readouterr().out
    with pytest.raises(UserError, match="seed-0 holds a run with other settings: --steps is 400, not 300"):
        reproduce("table2", out, seeds=1, **(SMALL | {"steps": 400}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "tabel1"}, "no target 'tabel1'; did you mean table1"),
        ({"target": "figure"}, r"no target 'figure' \(targets: table1, table2, sensitivity-samples"),
        ({"seeds": 0}, "--seeds must be at least 1, not 0"),
        ({"steps": -5}, "--steps must be at least 1, not -5"),
        ({"workers": 0}, "--workers must be at least 1, not 0"),
        ({"algos": ("soft-dpg",)}, "no algorithm 'soft-dpg'; did you mean soft-ddpg"),
        ({"envs": ("Cartpole-v1",)}, "no environment 'Cartpole-v1'; did you mean CartPole-v1"),
        ({"envs": ("CartPole-v1",)}, "CartPole-v1 has a Discrete action space"),
        ({"address": "localhost:6379"}, "--address applies to --engine ray only"),
        ({"engine": "ray", "workers": 2}, "--workers applies to --engine local only"),
    ],
)
def test_bad_input_writes_nothing(tmp_path, arguments, message):
    with pytest.raises(UserError, match=message):
        reproduce(**({"target": "table1", "out": tmp_path / "runs"} | arguments))
    assert not (tmp_path / "runs").exists()


def test_foreign_directories_are_refused(tmp_path):
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(UserError, match="is not empty and not a directory of softdpg reproduce"):
        reproduce("table1", tmp_path)
    with pytest.raises(UserError, match="cannot write to --out /proc/runs"):
        reproduce("table1", type(tmp_path)("/proc/runs"))


def test_a_run_ends_with_the_process_that_started_it(tmp_path):
    """Even when that one is killed, no run goes on unseen and keeps its directory locked."""
    job = make_job(RunConfig("Pendulum-v1", "ddpg", 1_000_000), tmp_path)
    code = (
        "import json, pathlib, sys, time\n"
        "from softdpg.runs.config import RunConfig\n"
        "from softdpg.engines import process\n"
        "child = process.start(RunConfig.from_json(json.loads(sys.argv[1])), pathlib.Path(sys.argv[2]))\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(1000)\n"
    )
    command = [sys.executable, "-c", code, json.dumps(job.config.to_json()), str(job.path)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert parent.stdout.readline()
    while not job.directory.locked():
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while job.directory.locked():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_estimate_divides_the_work(tmp_path):
    jobs = all_jobs(tmp_path, "table1")
    one = sum(job.config.steps / typical_speed(job) for job in jobs)
    assert estimated_seconds(jobs, 1) == pytest.approx(one)
    assert estimated_seconds(jobs, 4) == pytest.approx(one / 4)
    ddpg, soft = (
        make_job(config, tmp_path) for config in (RunConfig("Ant-v5", "ddpg"), RunConfig("Ant-v5", "soft-ddpg", 1))
    )
    assert (typical_speed(ddpg), typical_speed(soft)) == pytest.approx(TYPICAL["Ant"])
    assert TYPICAL.keys() == paper.ENVIRONMENTS.keys()
    # A finished half of the same kind that took twice the typical time doubles the estimate of the rest.
    pair = [make_job(RunConfig("Ant-v5", "ddpg", 100_000, seed), tmp_path) for seed in range(2)]
    pair[0].path.mkdir(parents=True)
    pair[0].directory.write_status("running", 50_000, 100_000, 2 * 50_000 / TYPICAL["Ant"].exact)
    assert estimated_seconds(pair, 1) == pytest.approx(150_000 * 2 / TYPICAL["Ant"].exact)


def test_the_board_shows_every_run(tmp_path):
    jobs = all_jobs(tmp_path, "table2", seeds=3, envs=("Pendulum",), steps=1000)
    for job, (state, step) in zip(jobs, [("finished", 1000), ("running", 500), ("running", 10)], strict=False):
        job.path.mkdir(parents=True)
        job.directory.write_status(state, step, 1000, step / 50)
        job.directory.evaluations.write_text(f"step,mean,std,return_1\n{step},{step}.25,0.5,1.0\n")
    console = Console(file=io.StringIO(), force_terminal=True, width=110, height=30, color_system=None)
    with Board(jobs, console) as board:
        board.ended(Ended(jobs[4], 1, "boom"))
        board.update()
    shown = re.sub(r"\x1b\[\??[0-9;]*[A-Za-z]", "", console.file.getvalue()).splitlines()
    header, first, second, third, fourth = (line.split() for line in shown[-6:-1])
    assert header == ["environment", "algorithm", "seeds", "steps", "steps/s", "last", "evaluation"]
    # Jobs 0 to 3 are the four combinations of seed 0; job 4 is the first combination's seed 1.
    assert first == ["PendulumDiscrete-v0", "ddpg", "✔✘·", "33%", "1,000.2"]
    assert second == ["PendulumDiscrete-v0", "soft-ddpg-sigma0.2-n50", "▅··", "17%", "50", "500.2"]
    assert third == ["Pendulum-v1", "ddpg", "▁··", "0%", "50", "10.2"]
    assert fourth == ["Pendulum-v1", "soft-ddpg-sigma0.2-n50", "···", "0%"]
    assert "1 finished, 2 running, 1 failed, 8 waiting; 1,510/12,000 steps" in shown[-1]


def test_the_board_of_a_race_counts_the_pace_of_steps_that_were_taken(tmp_path, monkeypatch):
    """A run that crosses early is done with its budget; the steps that it saved make nothing faster."""
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    jobs = [make_job(RunConfig("Pendulum-v1", "ddpg", 10_000, seed, goal=-200.0), tmp_path) for seed in range(2)]
    for job in jobs:
        job.path.mkdir(parents=True)
        job.directory.write_status("running", 0, 10_000, 0.0)
    console = Console(file=io.StringIO(), width=120)
    board = Board(jobs, console)
    board.update()
    clock[0] = 200.0
    jobs[0].directory.write_status("finished", 400, 10_000, 100.0)
    jobs[1].directory.write_status("running", 600, 10_000, 100.0)
    board.update()
    last = console.file.getvalue().splitlines()[-1]
    assert last == "1 finished, 1 running; 10,600/20,000 steps, 10 steps/s, at most 0:15:40 left"


def test_reasons_of_failures(tmp_path):
    (tmp_path / "train.log").write_text("12 steps\nsoftdpg: error: no such thing\n")
    assert process.reason(tmp_path, 2) == "no such thing"
    assert process.reason(tmp_path, -signal.SIGKILL) == "killed by SIGKILL"
    assert process.reason(tmp_path / "none", 3) == "exit code 3"
