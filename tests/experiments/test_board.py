"""The estimate before jobs start, and the table while they run."""

import io
import re
import time

import pytest
from rich.console import Console

from softdpg import paper
from softdpg.experiments.board import TYPICAL, Board, estimated_seconds, typical_speed
from softdpg.experiments.jobs import Ended, make_job, runs
from softdpg.runs.config import RunConfig


def all_jobs(out, target, **arguments):
    return [make_job(config, out) for config in runs([target], **arguments)]


def test_the_estimate_divides_the_work(tmp_path):
    jobs = all_jobs(tmp_path, "table1")
    one = sum(job.config.steps / typical_speed(job) for job in jobs)
    assert estimated_seconds(jobs, 1) == pytest.approx(one)
    assert estimated_seconds(jobs, 4) == pytest.approx(one / 4)
    ddpg, soft = (
        make_job(config, tmp_path) for config in (RunConfig("Ant-v5", "ddpg"), RunConfig("Ant-v5", paper.METHOD, 1))
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
    assert second == ["PendulumDiscrete-v0", f"{paper.METHOD}-sigma0.2-n50", "▅··", "17%", "50", "500.2"]
    assert third == ["Pendulum-v1", "ddpg", "▁··", "0%", "50", "10.2"]
    assert fourth == ["Pendulum-v1", f"{paper.METHOD}-sigma0.2-n50", "···", "0%"]
    assert "1 finished, 2 running, 1 failed, 8 waiting; 1,510/12,000 steps" in shown[-1]


def test_the_board_of_a_race_counts_the_pace_of_steps_that_were_taken(tmp_path, monkeypatch):
    """A run that reaches its target score early skips the rest of its budget; that makes nothing faster."""
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    jobs = [
        make_job(RunConfig("Pendulum-v1", "ddpg", 10_000, seed, stop_at_score=-200.0), tmp_path) for seed in range(2)
    ]
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
