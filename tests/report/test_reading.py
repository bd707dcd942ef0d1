"""Reading run directories in every state, and results.csv as their exact stand-in."""

import csv
import json
import math

import numpy as np
import pytest
from runs_on_disk import write_run, write_runs

from softdpg.algorithms.registry import ALGORITHMS
from softdpg.errors import UserError
from softdpg.report.page import write_report
from softdpg.report.reading import read_runs, write_results
from softdpg.report.style import table_order


def test_a_run_directory_is_read_whole(tmp_path):
    write_run(tmp_path / "a" / "b", "Ant-v5", "soft-ddpg", 3, [1.5, 2.5], steps=20_000, state="running")
    (run,), _, warnings = read_runs(tmp_path)
    assert warnings == []
    assert (run.name, run.env, run.algorithm, run.seed) == ("a/b", "Ant-v5", "soft-ddpg", 3)
    assert (run.state, run.finished, run.wall_seconds, run.commit) == ("running", False, 36.0, "0123abc")
    assert (run.settings.steps, run.settings.sigma, run.settings.n_samples) == (20_000, 0.2, 50)
    assert dict(run.settings.hyperparameters)["net_arch"] == (400, 300)
    assert dict(run.settings.hyperparameters)["action_layer"] == "second"
    assert dict(run.machine) == {"cores": "2", "cpu": 'a <fast> CPU, "quoted"'}
    np.testing.assert_array_equal(run.evaluated_at, [5_000, 10_000])
    np.testing.assert_array_equal(run.means, [1.5, 2.5])
    np.testing.assert_array_equal(run.stds, [1.0, 1.0])


def test_results_csv_reads_back_as_the_same_runs(tmp_path):
    awkward = [0.1 + 0.2, 1e-300, -1 / 3, 12345678.9, math.nextafter(1.0, 2.0)]
    write_runs(tmp_path / "runs", "softdpg/AntDiscrete-v0", "ddpg", [awkward, awkward[::-1]])
    write_runs(tmp_path / "runs", "Ant-v5", "soft-ddpg-paper", [awkward], sigma=0.001, n_samples=10, antithetic=None)
    runs = read_runs(tmp_path / "runs").scored
    text = write_results(runs)
    (tmp_path / "results.csv").write_text(text)
    again, _, warnings = read_runs(tmp_path / "results.csv")
    assert warnings == []
    assert write_results(again) == text
    for one, other in zip(runs, again, strict=True):
        assert one.settings == other.settings
        assert (one.name, one.seed, one.versions, one.machine) == (
            other.name,
            other.seed,
            other.versions,
            other.machine,
        )
        np.testing.assert_array_equal(one.means, other.means)
        np.testing.assert_array_equal(one.evaluated_at, other.evaluated_at)


def _edit(path, **changes):
    content = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in {**content, **changes}.items() if value != "delete"}))


DAMAGE = {
    "config.json is not valid JSON": lambda run: (run / "config.json").write_text("{"),
    "config.json is not a JSON object": lambda run: (run / "config.json").write_text("[]"),
    "it has no 'steps'": lambda run: _edit(run / "config.json", steps="delete"),
    "td3 with sigma and n_samples (0.2, 50)": lambda run: _edit(run / "config.json", algo="td3"),
    "soft-ddpg with sigma and n_samples (None, 50)": lambda run: _edit(
        run / "config.json", hyperparameters={"n_samples": 50}
    ),
    "config.json: seed must be an integer, got []": lambda run: _edit(run / "config.json", seed=[]),
    "must be an object": lambda run: _edit(run / "config.json", hyperparameters=[]),
    "no evaluations yet": lambda run: (run / "evaluations.csv").unlink(),
    "no evaluations yet (header only)": lambda run: (run / "evaluations.csv").write_text("step,mean,std\n"),
    "does not start with step,mean,std": lambda run: (run / "evaluations.csv").write_text("a,b\n1,2\n"),
    "evaluations.csv has a damaged row": lambda run: (run / "evaluations.csv").write_text("step,mean,std\n5000,x,0\n"),
    "evaluations.csv is not text": lambda run: (run / "evaluations.csv").write_bytes(b"\xff\xfe\x00"),
    "not a finite number": lambda run: (run / "evaluations.csv").write_text("step,mean,std\n5000,nan,0\n"),
    "do not increase": lambda run: (run / "evaluations.csv").write_text("step,mean,std\n5000,1,0\n5000,1,0\n"),
    "evaluated at step 90000 of 10000": lambda run: (run / "evaluations.csv").write_text("step,mean,std\n90000,1,0\n"),
}


@pytest.mark.parametrize("message", DAMAGE)
def test_a_damaged_run_is_skipped_by_name(tmp_path, message):
    write_run(tmp_path / "good", "Ant-v5", "ddpg", 0, [1.0, 2.0])
    bad = write_run(tmp_path / "bad", "Ant-v5", "soft-ddpg-paper", 1, [1.0, 2.0])
    DAMAGE[message](bad)
    runs, _, warnings = read_runs(tmp_path)
    assert [run.name for run in runs] == ["good"]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"{bad}: skipped: ")
    assert message.split(" (header")[0] in warnings[0]


@pytest.mark.parametrize(("last", "warned"), [(10_003, 0), (10_004, 1)])
def test_the_last_rollout_of_four_environments_may_go_beyond_the_steps(tmp_path, last, warned):
    write_run(tmp_path / "good", "Ant-v5", "ddpg", 1, [1.0, 2.0])
    run = write_run(tmp_path / "run", "Ant-v5", "ddpg", 0, [1.0, 2.0])
    _edit(run / "config.json", n_envs=4)
    (run / "evaluations.csv").write_text(f"step,mean,std\n5000,1,0\n{last},2,0\n")
    runs, _, warnings = read_runs(tmp_path)
    assert (len(runs), len(warnings)) == (2 - warned, warned)


def test_a_line_that_is_still_being_written_is_left_out(tmp_path):
    run = write_run(tmp_path / "run", "Ant-v5", "ddpg", 0, [1.0, 2.0], steps=50_000, state="running")
    with (run / "evaluations.csv").open("a") as file:
        file.write("15000,3.0,1.0,4.")
    (read,), _, warnings = read_runs(tmp_path)
    assert warnings == []
    assert read.evaluated_at.tolist() == [5_000, 10_000]


def test_a_run_without_status_counts_as_interrupted(tmp_path):
    (write_run(tmp_path / "run", "Ant-v5", "ddpg", 0, [1.0]) / "status.json").unlink()
    (run,), _, warnings = read_runs(tmp_path)
    assert run.state == "interrupted"
    assert warnings == [f"{tmp_path / 'run'}: status.json is missing, taken as interrupted"]


def test_of_two_copies_of_a_run_the_further_one_counts(tmp_path):
    write_run(tmp_path / "copy", "Ant-v5", "ddpg", 0, [1.0], steps=10_000, state="running")
    write_run(tmp_path / "original", "Ant-v5", "ddpg", 0, [1.0, 2.0])
    runs, _, warnings = read_runs(tmp_path)
    assert [run.name for run in runs] == ["original"]
    assert warnings == ["copy: skipped: the same run as original"]


def test_nothing_to_read_is_one_clear_line(tmp_path):
    with pytest.raises(UserError, match="absent: no such file or directory"):
        read_runs(tmp_path / "absent")
    with pytest.raises(UserError, match=r"no runs with evaluations found$"):
        write_report(tmp_path)
    (write_run(tmp_path / "run", "Ant-v5", "ddpg", 0, [1.0]) / "evaluations.csv").unlink()
    with pytest.raises(UserError, match=r"no runs with evaluations found \(.*run: skipped: no evaluations yet\)"):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "not a results.csv of softdpg report: no column run, env"),
        ("", "not a results.csv of softdpg"),
        (None, "unreadable row: could not convert string to float: 'x'"),
    ],
)
def test_a_foreign_or_damaged_csv_is_one_clear_line(tmp_path, text, message):
    if text is None:
        write_run(tmp_path / "runs", "Ant-v5", "ddpg", 0, [1.25])
        text = write_results(read_runs(tmp_path / "runs")[0]).replace("1.25", "x")
    (tmp_path / "results.csv").write_text(text)
    with pytest.raises(UserError, match=message):
        read_runs(tmp_path / "results.csv")


def test_every_algorithm_of_the_registry_can_be_read(tmp_path):
    for algorithm in ALGORITHMS:
        write_run(tmp_path / algorithm, "Ant-v5", algorithm, 0, [1.0])
    assert [run.algorithm for run in read_runs(tmp_path)[0]] == table_order()


@pytest.mark.parametrize(
    "env", ["=1+1", "+cmd", "-cmd|x", "@SUM(A1)", "'=1", " =1+1", "' =1", "plain", "'quoted'", "-1.5"]
)
def test_texts_that_look_like_formulas_are_escaped_and_read_back(tmp_path, env):
    write_run(tmp_path / "runs" / "a", env, "ddpg", 0, [-1.0, 2.0])
    runs = read_runs(tmp_path / "runs").scored
    text = write_results(runs)
    (tmp_path / "results.csv").write_text(text)
    cell = next(csv.DictReader(text.splitlines()))["env"]
    assert cell == env if env in ("plain", "'quoted'", "-1.5") else cell == "'" + env
    assert next(csv.DictReader(text.splitlines()))["mean"] == "-1.0"
    assert read_runs(tmp_path / "results.csv")[0][0].env == env
