"""``softdpg race``: contenders that cross, never do, fail or get NaN; killed and gone on with; on a Ray cluster."""

import csv
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from softdpg.algorithms import registry
from softdpg.errors import UserError
from softdpg.report.race_tables import line_table
from softdpg.results.race import Column, Race
from softdpg.results.race_reading import read_race
from softdpg.studies import race as study
from softdpg.studies.race import race

TESTS = Path(__file__).parents[1]
PROTOCOL = {"evaluate_every": 100, "evaluation_episodes": 2, "checkpoint_every": 150}
ENV = "strange_envs:Timed-v0"
# Sums over 70 steps of minus a squared distance: below 0 always, far above -1e6.
AT_ONCE, NEVER = -1e6, 0.0


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A quick protocol, and contenders that the processes of the runs find as well."""
    monkeypatch.setattr(study, "PROTOCOL", PROTOCOL)
    monkeypatch.setenv("SOFTDPG_PLUGINS", "contenders")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS.parent)]))
    assert "tiny-td3" in registry.ALGORITHMS
    yield
    registry._loaded.discard("contenders")
    sys.modules.pop("contenders", None)
    for name in ("tiny-td3", "failing"):
        registry.unregister(name)


def rows(path):
    """A CSV without what differs from one time to the next."""
    with path.open() as file:
        timed = ("cpu_seconds", "wall_seconds", "train", "evaluate", "compile", "message", "commit")
        return [{key: value for key, value in row.items() if key not in timed} for row in csv.DictReader(file)]


def test_each_contender_is_shown_as_what_it_is(tmp_path, capsys):
    envs = [ENV, "strange_envs:WithoutReward-v0"]
    assert race(envs, tmp_path, algos=["tiny-td3", "failing"], seeds=1, budget=400, goal=AT_ONCE, hold=100) == 1
    printed = capsys.readouterr().out
    assert "4 runs: 0 finished, 0 to resume, 4 new" in printed
    assert "1 of 4 runs finished" in printed
    runs, warnings = read_race(tmp_path)
    assert warnings == []
    columns = Race(runs).columns
    crossed = columns[Column(ENV, AT_ONCE)]["tiny-td3"]
    assert (crossed.steps, crossed.runs[0].evaluated_at.tolist()) == (200, [100, 200, 300])
    assert 0 < crossed.seconds < crossed.runs[0].train[-1]
    (failed,) = columns[Column(ENV, AT_ONCE)]["failing"].failed
    assert "RuntimeError: out of ideas" in failed.message
    assert failed.evaluated_at.tolist() == [100]
    for entry in columns[Column(envs[1], AT_ONCE)].values():
        assert entry.failed[0].message == "error after step 1: the reward of step 1 is NaN or infinite: [nan]"
    shown = {row[0].main: [cell.main for cell in row[2:]] for row in line_table(Race(runs)).rows}
    assert shown[envs[1]] == ["failed", "failed"]
    assert shown[ENV][0].endswith("s, 200 steps")
    assert shown[ENV][1] == "failed"
    assert (tmp_path / "race_profile.png").stat().st_size > 0


def test_what_an_earlier_race_decided_is_not_run_again(tmp_path, capsys):
    arguments = {"algos": ["tiny-td3"], "seeds": 1, "budget": 200, "goal": AT_ONCE}
    assert race([ENV], tmp_path / "there", **arguments) == 0
    earlier = [tmp_path / "there" / "race.csv"]
    assert race([ENV], tmp_path / "here", first_seed=0, **{**arguments, "seeds": 2}, earlier=earlier) == 0
    assert "1 runs: 0 finished, 0 to resume, 1 new" in capsys.readouterr().out
    assert [run.settings.seed for run in read_race(tmp_path / "here")[0]] == [1]
    assert [run.settings.seed for run in read_race(tmp_path / "here" / "race.csv")[0]] == [1, 0]
    # With other settings it is another run.
    assert race([ENV], tmp_path / "other", **{**arguments, "budget": 300}, earlier=earlier) == 0
    assert len(read_race(tmp_path / "other")[0]) == 1


def start(out):
    code = (
        "import sys; from pathlib import Path; from softdpg.studies import race\n"
        f"race.PROTOCOL = {PROTOCOL!r}\n"
        f"sys.exit(race.race([{ENV!r}], Path({str(out)!r}), algos=['tiny-td3', 'failing'], seeds=1, first_seed=3,"
        f" budget=700, goal={NEVER!r}, workers=2))"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_killed_and_gone_on_with(tmp_path):
    whole = start(tmp_path / "whole")
    assert "not crossed" in whole.communicate()[0]

    killed, directory = start(tmp_path / "parts"), tmp_path / "parts/Timed-v0/tiny-td3/seed-3"
    deadline = time.monotonic() + 240
    while not (directory / "checkpoints").is_dir() or not any((directory / "checkpoints").iterdir()):
        assert killed.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert not (tmp_path / "parts/race.csv").exists()
    again = start(tmp_path / "parts")
    assert "to resume" in again.communicate()[0]
    for name in ("race.csv", "race_curves.csv"):
        assert rows(tmp_path / "whole" / name) == rows(tmp_path / "parts" / name)
    ours = next(run for run in read_race(tmp_path / "parts")[0] if run.contender == "tiny-td3")
    assert ours.evaluated_at.tolist() == list(range(100, 701, 100))
    assert (ours.train[1:] > ours.train[:-1]).all()
    assert ours.crossing is None


def test_through_a_ray_cluster_that_loses_a_node(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_worker_niceness", "0")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    directories = [tmp_path / f"Timed-v0/tiny-td3/seed-{seed}/checkpoints" for seed in range(2)]

    def lose_a_node():
        deadline = time.monotonic() + 240
        while not all(path.is_dir() and any(path.iterdir()) for path in directories) and time.monotonic() < deadline:
            time.sleep(0.05)
        cluster.remove_node(nodes[0], allow_graceful=False)

    killer = threading.Thread(target=lose_a_node)
    killer.start()
    try:
        arguments = {"algos": ["tiny-td3"], "seeds": 2, "budget": 1500, "goal": NEVER}
        assert race([ENV], tmp_path, engine="ray", address=cluster.address, **arguments) == 0
    finally:
        killer.join()
        cluster.shutdown()
    entry = Race(read_race(tmp_path)[0]).columns[Column(ENV, NEVER)]["tiny-td3"]
    assert [run.evaluated_at[-1] for run in entry.runs] == [1500, 1500]
    logs = [(path.parent / "train.log").read_text() for path in directories]
    assert sum("going on from the checkpoint" in log for log in logs) == 1


@pytest.mark.parametrize(
    ("envs", "arguments", "message"),
    [
        (["Swimmer-v5"], {}, "the paper has no score for Swimmer-v5; give the finishing line with --goal"),
        ([], {"goal": 3.0}, "--goal needs the environments that it is for"),
        (["Pendulum"], {"goal": float("nan")}, "--goal must be a finite number, not nan"),
        (["Pendulum"], {"seeds": 0}, "--seeds must be at least 1, not 0"),
        (["Pendulum"], {"first_seed": -1}, "--first-seed must be at least 0, not -1"),
        (["Pendulum"], {"budget": 0}, "--budget must be at least 1, not 0"),
        (["Pendulum"], {"hold": -1}, "--hold must be at least 0, not -1"),
        (["Pendulum"], {"algos": ["sbx-sca"]}, "no algorithm 'sbx-sca'; did you mean sbx-sac"),
        (["Pendulum"], {"algos": []}, "--algos needs at least one algorithm"),
        (["Pendulum"], {"workers": 0}, "--workers must be at least 1, not 0"),
    ],
)
def test_bad_input_writes_nothing(tmp_path, envs, arguments, message):
    with pytest.raises(UserError, match=message):
        race(envs, tmp_path / "race", **({"algos": ["td3"]} | arguments))
    assert not (tmp_path / "race").exists()


def test_the_order_of_the_runs(tmp_path, monkeypatch):
    """Seed by seed, then column by column, the contenders of a column one after the other."""
    seen = []
    monkeypatch.setattr(study, "claim", lambda out, jobs: seen.extend(job.name for job in jobs))
    monkeypatch.setattr(study, "what_is_left", lambda jobs, console: [])
    assert race(["Pendulum"], tmp_path, algos=["td3", "sbx-sac"], seeds=2, first_seed=5) == 0
    assert seen == [
        f"{env}/{algo}/seed-{seed}"
        for seed in (5, 6)
        for env in ("PendulumDiscrete-v0", "Pendulum-v1")
        for algo in ("td3", "sbx-sac")
    ]
