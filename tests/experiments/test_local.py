"""Runs as processes of this machine: slots, failures, and what happens when a process is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from gated_env import VARIABLE, waiting
from processes import tiny_config

from softdpg.experiments import local
from softdpg.experiments.jobs import Job
from softdpg.runs.directory import RunDirectory

TESTS = Path(__file__).parents[1]


def until(condition):
    """Wait for a state that lasts."""
    deadline = time.monotonic() + 900
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def shell_jobs(tmp_path, monkeypatch, *commands):
    """Jobs that are shell commands."""
    jobs = [Job(f"job-{i}", tiny_config(seed=i), tmp_path / str(i)) for i in range(len(commands))]
    by_path = {job.path: command for job, command in zip(jobs, commands, strict=True)}
    monkeypatch.setattr(local, "start_run", lambda _, path: subprocess.Popen(["sh", "-c", by_path[path]]))
    return jobs


def test_waiting_jobs_take_the_slots_of_those_that_ended(tmp_path, monkeypatch):
    gate = tmp_path / "gate"
    wait_at_the_gate = f"touch {gate}.0; while ! [ -e {gate} ]; do sleep 0.02; done"
    jobs = shell_jobs(tmp_path, monkeypatch, wait_at_the_gate, "exit 3", f"touch {gate}.2")
    jobs[0].path.mkdir()
    jobs[0].directory.write_status("finished", 1200, 1200, 1.0)
    engine = local.LocalEngine(2)
    engine.start(jobs)
    ended = []

    def have_ended(count):
        ended.extend(engine.ended())
        return len(ended) == count

    until(lambda: have_ended(2))  # the first still holds its slot, so the third had that of the second
    vanished = (jobs[2], 1, "the process ended before the run was finished")
    assert [(end.job, end.exit_code, end.message) for end in ended] == [(jobs[1], 3, "exit code 3"), vanished]
    assert waiting(gate) == [Path(f"{gate}.0"), Path(f"{gate}.2")]
    gate.touch()
    until(lambda: have_ended(3))
    assert ended[2].exit_code == 0


def test_stop_ends_what_runs_and_starts_nothing_else(tmp_path, monkeypatch):
    jobs = shell_jobs(tmp_path, monkeypatch, "exec sleep 1000", f"touch {tmp_path}/started")
    engine = local.LocalEngine(1)
    engine.start(jobs)
    engine.stop()
    (ended,) = engine.ended()
    assert (ended.job, ended.message) == (jobs[0], "killed by SIGTERM")
    assert not (tmp_path / "started").exists()


def test_messages_of_failures(tmp_path):
    (tmp_path / "train.log").write_text("12 steps\nsoftdpg: error: no such thing\n")
    assert local.failure_message(tmp_path, 2) == "no such thing"
    assert local.failure_message(tmp_path, -signal.SIGKILL) == "killed by SIGKILL"
    assert local.failure_message(tmp_path / "none", 3) == "exit code 3"


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """A file that the runs of this test wait for."""
    gate = tmp_path / "gate"
    monkeypatch.setenv(VARIABLE, str(gate))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS.parent)]))
    return gate


@pytest.mark.extended
def test_a_run_ends_with_the_process_that_started_it(tmp_path, gate):
    """Even if that process is killed, no run continues unseen and keeps its directory locked."""
    code = (
        "import json, pathlib, sys, time\n"
        "from softdpg.runs.config import RunConfig\n"
        "from softdpg.experiments import local\n"
        "local.start_run(RunConfig.from_json(json.loads(sys.argv[1])), pathlib.Path(sys.argv[2]))\n"
        "time.sleep(1000)\n"
    )
    config = tiny_config("gated_env:Gated-v0").resolved()
    parent = subprocess.Popen([sys.executable, "-c", code, json.dumps(config.to_json()), str(tmp_path / "run")])
    until(lambda: waiting(gate))
    assert RunDirectory(tmp_path / "run").locked()
    parent.kill()
    parent.wait()
    until(lambda: not RunDirectory(tmp_path / "run").locked())


@pytest.mark.extended
def test_a_run_killed_before_its_first_checkpoint_starts_over(tmp_path, gate):
    config, out = tiny_config("gated_env:GatedEarly-v0", steps=300), tmp_path / "run"
    killed = local.start_run(config, out)
    until(lambda: waiting(gate))
    killed.kill()
    killed.wait()
    gate.touch()
    assert local.start_run(config, out).wait() == 0, (out / "train.log").read_text()
    assert "resuming from the checkpoint" not in (out / "train.log").read_text()
    assert RunDirectory(out).read_status()["step"] == 300


def test_a_run_killed_while_it_wrote_its_settings_starts_over(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    directory.path.mkdir()
    (directory.path / "config.json.tmp").write_text("{")
    about = {"versions": {}, "machine": {}}
    with directory.claimed(tiny_config().resolved(), about) as changes:
        assert changes == []
    assert [path.name for path in directory.path.iterdir()] == ["config.json"]
