"""The paper's experiments as data: the counts, the sharing of runs between targets, the numbers of the tables."""

import subprocess
import sys

import pytest

from softdpg import paper
from softdpg.engines.jobs import runs as paper_runs
from softdpg.errors import UserError


def test_both_tables_are_220_runs_and_all_targets_255():
    tables = paper_runs(["table1", "table2"])
    assert len(tables) == len(set(tables)) == 11 * 2 * 2 * 5 == 220
    # The sweeps add N = 10, 20, 100 and sigma = 0.001, 0.01, 0.1, 0.5; N = 50 is Table 1's own run and
    # (0.2, 10) is in both sweeps.
    assert len(paper_runs(paper.TARGETS)) == 220 + 5 * (3 + 4) == 255


def test_equal_runs_of_different_targets_are_one_object():
    table = set(paper_runs(["table1"]))
    samples = set(paper_runs(["sensitivity-samples"]))
    sigma = set(paper_runs(["sensitivity-sigma"]))
    assert {run.n_samples for run in table & samples} == {50}
    assert len(table & samples) == 5
    assert {(run.sigma, run.n_samples) for run in samples & sigma} == {(0.2, 10)}
    assert not table & sigma


def test_sensitivity_leaves_ddpg_out_and_stays_on_continuous_ant():
    runs = paper_runs(["sensitivity-samples"], seeds=1, algos=paper.STUDY_ALGORITHMS)
    assert {run.env for run in runs} == {"Ant-v5"}
    assert [(run.algo, run.n_samples) for run in runs] == [
        (algo, n) for algo in ("soft-ddpg", "soft-ddpg-centered") for n in (10, 20, 50, 100)
    ]
    assert paper_runs(["sensitivity-sigma"], algos=["ddpg"]) == []


def test_envs_widen_and_shrink():
    runs = paper_runs(["table2"], envs=["Pendulum", "HopperDiscrete", "Reacher-v5"], seeds=2, steps=30_000)
    assert len(runs) == 4 * 2 * 2
    assert {run.env for run in runs} == {
        "softdpg/PendulumDiscrete-v0",
        "Pendulum-v1",
        "softdpg/HopperDiscrete-v0",
        "Reacher-v5",
    }
    assert {run.steps for run in runs} == {30_000}
    assert [run.seed for run in runs] == [0] * 8 + [1] * 8


def test_bad_names_say_what_is_accepted():
    with pytest.raises(ValueError, match="target must be one of table1, table2"):
        paper_runs(["table3"])
    with pytest.raises(UserError, match=r"no algorithm 'ddpq'; did you mean ddpg.*\(algorithms: ddpg, soft-ddpg, "):
        paper_runs(["table1"], algos=["ddpq"])


def test_scores_cover_the_tables_and_agree_with_the_papers_bold_face():
    assert list(paper.PAPER_SCORES) == list(paper.ENVIRONMENTS)
    better = {
        rewards: {
            name: scores.score(rewards, "soft-ddpg").mean - scores.score(rewards, "ddpg").mean
            for name, scores in paper.PAPER_SCORES.items()
        }
        for rewards in ("discrete", "continuous")
    }
    # Bold in the paper: Soft DDPG in nine of eleven discrete rows, in two continuous rows, one tie.
    assert {name for name, gain in better["discrete"].items() if gain < 0} == {"Humanoid", "LunarLander"}
    assert {name for name, gain in better["continuous"].items() if gain > 0} == {"Ant", "InvertedDoublePendulum"}
    assert [name for name, gain in better["continuous"].items() if gain == 0] == ["MountainCar"]
    assert paper.PAPER_SCORES["Ant"].score("discrete", "soft-ddpg-centered") is None
    # A checksum over the 88 printed numbers, added up from the tables.
    assert sum(value for row in paper.PAPER_SCORES.values() for cell in row for value in cell) == pytest.approx(
        106_740.68
    )


def test_figures_show_every_environment_of_their_table_once():
    for table, rows in paper.FIGURE_ROWS.items():
        names = [name for row in rows for name in row]
        assert sorted(names) == sorted(e.name for e in paper.ENVIRONMENTS.values() if e.table == table)


def test_import_is_light():
    code = "import sys, softdpg.paper; print(sorted({'jax', 'torch', 'pandas', 'plotly'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
