"""``softdpg race``: algorithms that reach the target score, never do, fail or get NaN; killed and resumed; the demo."""

import csv
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import strange_envs
from gated_env import VARIABLE, waiting
from inline_runs import InlineEngine
from matplotlib import image

from softdpg.algorithms import registry
from softdpg.cli import main
from softdpg.errors import UserError
from softdpg.experiments import execute
from softdpg.experiments import race as study
from softdpg.experiments.race import race
from softdpg.report.benchmark import SECONDS, STEPS, Benchmark, Task
from softdpg.report.benchmark_tables import target_table
from softdpg.report.reading import read_runs
from softdpg.runs.directory import RunDirectory
from softdpg.runs.files import locked

TESTS = Path(__file__).parents[1]
PROTOCOL = {"evaluate_every": 100, "evaluation_episodes": 2, "checkpoint_every": 150}
ENV, GATED = "strange_envs:Timed-v0", "gated_env:Gated-v0"
# Sums over 70 steps of minus a squared distance: below 0 always, far above -1e6.
AT_ONCE, NEVER = -1e6, 0.0


@pytest.fixture
def small(monkeypatch):
    """A quick protocol, and algorithms that the processes of the runs find as well."""
    monkeypatch.setattr(study, "PROTOCOL", PROTOCOL)
    monkeypatch.setenv("SOFTDPG_PLUGINS", "tiny_algorithms")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS.parent)]))
    assert "tiny-td3" in registry.ALGORITHMS
    yield
    registry._loaded.discard("tiny_algorithms")
    sys.modules.pop("tiny_algorithms", None)
    for name in ("tiny-td3", "failing"):
        registry.unregister(name)


@pytest.fixture
def inline(small, monkeypatch):
    """The runs are made in this process."""
    monkeypatch.setattr(study, "make_engine", InlineEngine)
    monkeypatch.setattr(execute, "POLL_SECONDS", 0)


def rows(path):
    """Return a CSV without what differs from one time to the next."""
    with path.open() as file:
        timed = ("cpu_seconds", "wall_seconds", "train", "evaluate", "compile", "message", "commit")
        return [{key: value for key, value in row.items() if key not in timed} for row in csv.DictReader(file)]


@pytest.mark.extended
def test_each_algorithm_is_shown_as_what_it_is(inline, tmp_path, capsys):
    envs = [ENV, "strange_envs:WithoutReward-v0"]
    settings = {"seeds": 1, "budget": 400, "stop_at_score": AT_ONCE, "steps_after_score": 100}
    assert race(envs, tmp_path, algos=["tiny-td3", "failing"], **settings) == 1
    printed = capsys.readouterr().out
    assert "4 runs: 0 finished, 0 to resume, 4 new" in printed
    assert "1 of 4 runs finished" in printed
    _, runs, warnings = read_runs(tmp_path)
    assert warnings == []
    tasks = Benchmark(runs).tasks
    reached = tasks[Task(ENV, AT_ONCE)]["tiny-td3"]
    assert (reached.average(STEPS), reached.runs[0].evaluated_at.tolist()) == (200, [100, 200, 300])
    assert 0 < reached.average(SECONDS) < reached.runs[0].train[-1]
    (failed,) = tasks[Task(ENV, AT_ONCE)]["failing"].failed
    assert "RuntimeError: out of ideas" in failed.message
    assert failed.evaluated_at.tolist() == [100]
    for entry in tasks[Task(envs[1], AT_ONCE)].values():
        assert entry.failed[0].message == "error after step 1: the reward of step 1 is NaN or infinite: [nan]"
    shown = {row[0].main: [cell.main for cell in row[2:]] for row in target_table(Benchmark(runs)).rows}
    assert shown[envs[1]] == ["failed", "failed"]
    assert shown[ENV][0].endswith("s, 200 steps")
    assert shown[ENV][1] == "failed"
    assert (tmp_path / "race_profile.png").stat().st_size > 0

    # What is decided in an earlier benchmark with the same settings is not repeated; with other settings it is.
    settings = {"algos": ["tiny-td3"], "seeds": 2, "stop_at_score": AT_ONCE, "earlier": [tmp_path / "race.csv"]}
    for budget, left in ((400, [1]), (300, [0, 1])):
        seeds, shown = [], []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(study, "execute", lambda *a, seeds=seeds: seeds.extend(j.config.seed for j in a[2]) or 0)
            patch.setattr(study, "_write", lambda out, earlier, console, shown=shown: shown.extend(earlier))
            assert race([ENV], tmp_path / str(budget), budget=budget, **settings) == 0
        assert seeds == left
        assert [(run.settings.env, run.settings.algo) for run in shown] == [
            (r.settings.env, r.settings.algo) for r in runs
        ]


def start(out, gate):
    """Start a benchmark in a process of its own, whose runs wait for the file ``gate``."""
    code = (
        "import sys; from pathlib import Path; from softdpg.experiments import race\n"
        f"race.PROTOCOL = {PROTOCOL!r}\n"
        f"sys.exit(race.race([{GATED!r}], Path({str(out)!r}), algos=['tiny-td3', 'failing'], seeds=1, first_seed=3,"
        f" budget=700, stop_at_score={NEVER!r}, workers=2))"
    )
    environment = os.environ | {VARIABLE: str(gate)}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.extended
def test_killed_and_resumed(small, tmp_path):
    opened, gate = tmp_path / "open", tmp_path / "gate"
    opened.touch()
    whole = start(tmp_path / "whole", opened)
    assert "not reached" in whole.communicate()[0]

    killed, run = start(tmp_path / "parts", gate), RunDirectory(tmp_path / "parts/Gated-v0/tiny-td3/seed-3")
    deadline = time.monotonic() + 900
    while not waiting(gate) or not run.checkpoints.is_dir():
        assert killed.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    while run.locked():  # the run is killed together with its parent
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not (tmp_path / "parts/race.csv").exists()
    gate.touch()
    again = start(tmp_path / "parts", gate)
    assert "to resume" in again.communicate()[0]
    assert "resuming from the checkpoint at step 150" in run.log.read_text()
    for name in ("race.csv", "race_curves.csv"):
        assert rows(tmp_path / "whole" / name) == rows(tmp_path / "parts" / name)
    resumed = next(run for run in read_runs(tmp_path / "parts").benchmark if run.algorithm == "tiny-td3")
    assert resumed.evaluated_at.tolist() == list(range(100, 701, 100))
    assert (resumed.train[1:] > resumed.train[:-1]).all()
    assert resumed.reached is None


@pytest.mark.parametrize(
    ("envs", "arguments", "message"),
    [
        (["Swimmer-v5"], {}, "Swimmer-v5 has no target score; give a target score with --stop-at-score"),
        ([], {"stop_at_score": 3.0}, "--stop-at-score needs the environments that it applies to"),
        (["Pendulum"], {"stop_at_score": float("nan")}, "--stop-at-score must be a finite number, .* nan"),
        (["Pendulum"], {"seeds": 0}, "--seeds must be at least 1, got 0"),
        (["Pendulum"], {"first_seed": -1}, "--first-seed must be at least 0, got -1"),
        (["Pendulum"], {"budget": 0}, "--budget must be at least 1, got 0"),
        (["Pendulum"], {"steps_after_score": -1}, "--steps-after-score must be at least 0, got -1"),
        (["Pendulum"], {"algos": ["sbx-sca"]}, "no algorithm 'sbx-sca'; did you mean sbx-sac"),
        (["Pendulum"], {"algos": []}, "--algos needs at least one algorithm"),
        (["Pendulum"], {"workers": 0}, "--workers must be at least 1, got 0"),
    ],
)
def test_bad_input_writes_nothing(tmp_path, envs, arguments, message):
    with pytest.raises(UserError, match=message):
        race(envs, tmp_path / "race", **({"algos": ["td3"]} | arguments))
    assert not (tmp_path / "race").exists()


def test_a_directory_in_use_is_refused(tmp_path):
    with locked(tmp_path), pytest.raises(UserError, match=f"another process is working on {tmp_path}"):
        race(["Pendulum"], tmp_path, algos=["td3"], seeds=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.extended
def test_a_full_disk_is_one_line_and_the_benchmark_resumes(inline, small_tmpfs, monkeypatch, capsys):
    monkeypatch.setattr(strange_envs, "FAULT", (partial(strange_envs.fill, small_tmpfs), 250))
    line = ["softdpg", "race", ENV, "--algos", "tiny-td3", "--seeds", "2", "--budget", "400"]
    line += ["--stop-at-score", str(NEVER), "--out", str(small_tmpfs / "race")]
    monkeypatch.setattr(sys, "argv", line)
    codes, printed = [], []
    for _ in range(2):
        with pytest.raises(SystemExit) as end:
            main()
        codes.append(end.value.code)
        printed.append(capsys.readouterr())
        strange_envs.FAULT = None
        (small_tmpfs / "filler").unlink(missing_ok=True)
    assert codes == [1, 0]
    assert printed[0].out.count("the disk is full") == 1  # the second run cannot begin
    assert printed[0].err.startswith("softdpg: the disk is full")
    assert len(printed[0].err.splitlines()) == 1
    assert "2 of 2 runs finished" in printed[1].out
    assert (small_tmpfs / "race" / "race.csv").stat().st_size > 0


def test_the_order_of_the_runs(tmp_path, monkeypatch):
    """Seed by seed, then task by task, and on each task one algorithm after the other."""
    seen = []
    monkeypatch.setattr(study, "claimed", lambda out, jobs: nullcontext(seen.extend(job.name for job in jobs)))
    monkeypatch.setattr(study, "unfinished_jobs", lambda jobs, console: [])
    assert race(["Pendulum"], tmp_path, algos=["td3", "sbx-sac"], seeds=2, first_seed=5) == 0
    assert seen == [
        f"{env}/{algo}/seed-{seed}"
        for seed in (5, 6)
        for env in ("PendulumDiscrete-v0", "Pendulum-v1")
        for algo in ("td3", "sbx-sac")
    ]


def test_the_demo_is_a_small_benchmark(tmp_path, monkeypatch, capsys):
    calls = []
    monkeypatch.setattr(study, "race", lambda *a, **k: calls.append((a, k)) or 0)
    assert study.demo(tmp_path, 300, 7) == 0
    arguments = {"algos": ("soft-td3", "sbx-sac"), "seeds": 1, "first_seed": 7, "budget": 300}
    assert calls == [((["MountainCarDiscrete"], tmp_path), arguments)]
    assert "We chose this task because it shows the difference" in capsys.readouterr().out


def run_demo(out, *arguments):
    command = [sys.executable, "-m", "softdpg", "demo", "--out", str(out), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.extended
def test_demo_prints_a_table_and_draws_the_curves(tmp_path):
    """With so few steps that it is over before learning starts."""
    first = run_demo(tmp_path / "demo", "--budget", "300")
    assert first.returncode == 0, first.stderr
    assert "2 of 2 runs finished" in first.stdout
    table = first.stdout[first.stdout.index("MountainCar (discrete)") :]
    for name in study.DEMO_ALGORITHMS:
        assert registry.find(name).label in first.stdout
    assert "0 of 1" in table
    assert np.ptp(image.imread(tmp_path / "demo/race_curves.png")) > 0

    again = run_demo(tmp_path / "demo", "--budget", "300")
    assert again.returncode == 0
    assert "2 runs: 2 finished" in again.stdout  # nothing was repeated
    assert again.stdout[again.stdout.index("MountainCar (discrete)") :] == table

    other = run_demo(tmp_path / "demo", "--budget", "500")
    assert other.returncode == 2
    assert "is 500, not 300" in other.stderr


def test_the_task_set_of_action_spaces_and_pairs_left_out(tmp_path, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(study, "claimed", lambda out, jobs: nullcontext(seen.extend(jobs)))
    monkeypatch.setattr(study, "unfinished_jobs", lambda jobs, console: [])
    monkeypatch.setitem(study.TASK_SETS, "actions", ("CartPole-v1", "strange_envs:StrangeMixed-v0"))
    monkeypatch.setitem(study.ACTION_TARGETS, "strange_envs:StrangeMixed-v0", -5.0)
    assert race(["actions"], tmp_path, algos=["soft-td3", "sb3-dqn", "td3-relaxed"], seeds=1) == 0
    found = [(job.config.env, job.config.algo, job.config.stop_at_score) for job in seen]
    assert found == [
        ("CartPole-v1", "soft-td3", 475.0),
        ("CartPole-v1", "sb3-dqn", 475.0),
        ("CartPole-v1", "td3-relaxed", 475.0),
        ("strange_envs:StrangeMixed-v0", "soft-td3", -5.0),
        ("strange_envs:StrangeMixed-v0", "td3-relaxed", -5.0),
    ]
    left_out = "left out: strange_envs:StrangeMixed-v0 has a Dict action space; sb3-dqn needs a Discrete"
    assert left_out in capsys.readouterr().out
    with pytest.raises(UserError, match="none of the algorithms acts in these environments"):
        race(["Pendulum-v1"], tmp_path, algos=["sb3-dqn"])


@pytest.mark.extended
def test_peers_on_discrete_actions(inline, tmp_path, capsys):
    """Each ends with the rollout of its last step, PPO, whose rollouts are long, at once."""
    algos = ["sb3-dqn", "qr-dqn", "sb3-ppo", "sbx-sac-relaxed", "td3-relaxed", "soft-td3"]
    assert race(["CartPole-v1"], tmp_path, algos=algos, seeds=1, budget=150) == 0
    _, runs, warnings = read_runs(tmp_path)
    assert warnings == []
    assert {run.algorithm: run.evaluated_at.tolist() for run in runs} == {name: [100, 150] for name in algos} | {
        "sb3-dqn": [100, 152],
        "qr-dqn": [100, 152],
        "soft-td3": [104, 152],
        "sb3-ppo": [150],
    }
