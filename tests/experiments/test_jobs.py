"""Which runs a target of the paper has, and where they go."""

import pytest

from softdpg import paper
from softdpg.errors import UserError
from softdpg.experiments.jobs import claimed, make_job, runs
from softdpg.runs.config import RunConfig


def test_both_tables_are_220_runs_and_all_targets_255():
    tables = runs(["table1", "table2"])
    assert len(tables) == len(set(tables)) == 11 * 2 * 2 * 5 == 220
    # The sweeps add N = 10, 20, 100 and sigma = 0.001, 0.01, 0.1, 0.5; N = 50 is Table 1's own run and
    # (0.2, 10) is in both sweeps.
    assert len(runs(paper.TARGETS)) == 220 + 5 * (3 + 4) == 255


def test_equal_runs_of_different_targets_are_one_object():
    table = set(runs(["table1"]))
    samples = set(runs(["sensitivity-samples"]))
    sigma = set(runs(["sensitivity-sigma"]))
    assert {run.n_samples for run in table & samples} == {50}
    assert len(table & samples) == 5
    assert {(run.sigma, run.n_samples) for run in samples & sigma} == {(0.2, 10)}
    assert not table & sigma


def test_sensitivity_leaves_ddpg_out_and_stays_on_continuous_ant():
    found = runs(["sensitivity-samples"], seeds=1, algos=paper.STUDY_ALGORITHMS)
    assert {run.env for run in found} == {"Ant-v5"}
    assert [(run.algo, run.n_samples) for run in found] == [
        (algo, n) for algo in paper.STUDY_ALGORITHMS[1:] for n in (10, 20, 50, 100)
    ]
    assert runs(["sensitivity-sigma"], algos=["ddpg"]) == []


def test_envs_replace_those_of_the_target():
    found = runs(["table2"], envs=["Pendulum", "HopperDiscrete", "Reacher-v5"], seeds=2, steps=30_000)
    assert len(found) == 4 * 2 * 2
    assert {run.env for run in found} == {
        "softdpg/PendulumDiscrete-v0",
        "Pendulum-v1",
        "softdpg/HopperDiscrete-v0",
        "Reacher-v5",
    }
    assert {run.steps for run in found} == {30_000}
    assert [run.seed for run in found] == [0] * 8 + [1] * 8


def test_bad_names_say_what_is_accepted():
    with pytest.raises(ValueError, match="target must be one of table1, table2"):
        runs(["table3"])
    with pytest.raises(UserError, match=r"no algorithm 'ddpq'; did you mean ddpg.*\(algorithms: ddpg, soft-ddpg"):
        runs(["table1"], algos=["ddpq"])


def test_directories_say_what_a_run_is(tmp_path):
    jobs = [make_job(config, tmp_path) for config in runs(paper.TARGETS)]
    # 140 + 80 + 20 + 25 runs; sigma 0.2 with N = 50, and with N = 10, are each in two targets.
    assert len({job.path for job in jobs}) == len(jobs) == 265 - 10
    names = {job.name for job in jobs}
    assert {"AntDiscrete-v0/ddpg/seed-4", f"Ant-v5/{paper.METHOD}-sigma0.001-n10/seed-0"} <= names
    assert f"Ant-v5/{paper.METHOD}-sigma0.2-n50/seed-0" in names
    for algo, estimator in zip(paper.STUDY_ALGORITHMS[1:], ("paper", "centered"), strict=True):
        job = make_job(RunConfig("Ant-v5", algo, 100, 1, sigma=0.2, n_samples=50), tmp_path)
        assert (job.config.algo, job.config.estimator) == ("soft-ddpg", estimator)
        assert job.name == f"Ant-v5/{algo}-sigma0.2-n50/seed-1"


def test_other_directories_are_refused(tmp_path):
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(UserError, match="is not empty and not a directory of softdpg reproduce"):
        claimed(tmp_path, []).__enter__()
    with pytest.raises(UserError, match=r"photo\.jpg is not a directory"):
        claimed(tmp_path / "photo.jpg", []).__enter__()
    with pytest.raises(UserError, match="cannot write to --out /proc/runs"):
        claimed(type(tmp_path)("/proc/runs"), []).__enter__()
