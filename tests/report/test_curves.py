"""``softdpg plot``: which runs become which curve, and its interval; and reports about runs of a user's own."""

import json

import numpy as np
import pytest
from runs_on_disk import write_run

from softdpg.errors import UserError
from softdpg.report.curves import curves, interval, plot
from softdpg.report.page import write_report
from softdpg.report.reading import read_runs
from softdpg.report.scores import group
from softdpg.runs.config import RunConfig


def make(path, env, algorithm, seed, means, steps=None, state="finished", **hyperparameters):
    """A run of an algorithm with its own defaults, evaluated every 1,000 steps."""
    write_run(path, env, algorithm, seed, means, every=1000, steps=steps, state=state)
    config = RunConfig(env, algorithm, steps or 1000 * len(means), seed, 1000, 10, **hyperparameters).resolved()
    stored = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(stored | config.to_json()))


@pytest.fixture
def runs(tmp_path):
    for seed in range(3):
        make(tmp_path / f"runs/a{seed}", "Pendulum-v1", "soft-td3", seed, [-900.0 + seed, -300.0, -150.0 - 30 * seed])
    make(tmp_path / "runs/short", "Pendulum-v1", "soft-td3", 0, [-1000.0])
    make(tmp_path / "runs/sigma", "Pendulum-v1", "soft-td3", 0, [-800.0, -700.0], sigma=0.4)
    make(tmp_path / "runs/ddpg", "Tank-v0", "td3", 0, [1.0, 2.0, 3.0, 4.0], steps=9000, state="interrupted")
    make(tmp_path / "runs/ddpg1", "Tank-v0", "td3", 1, [5.0], steps=9000, state="interrupted")
    return tmp_path / "runs"


def test_each_algorithm_and_settings_is_a_curve_of_the_longest_runs(runs):
    figure = curves(group(read_runs(runs).scored))
    pendulum, tank = figure.axes
    assert [pendulum.get_title(), tank.get_title()] == ["Pendulum-v1", "Tank-v0"]
    lines = {line.get_label(): line.get_xydata().tolist() for line in pendulum.lines}
    assert lines == {
        "Soft TD3": [[1000, -899.0], [2000, -300.0], [3000, -180.0]],
        "Soft TD3 (sigma 0.4)": [[1000, -800.0], [2000, -700.0]],
    }
    assert tank.lines[0].get_xydata().tolist() == [[1000, 1.0], [2000, 2.0], [3000, 3.0], [4000, 4.0]]
    band = pendulum.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (-900.0, -150.0)  # of three seeds the interval is nearly the range
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["TD3, 1 seed", "Soft TD3, 3 seeds", "Soft TD3 (sigma 0.4), 1 seed"]


def test_the_interval_is_the_bootstrap_of_the_mean():
    scores = np.random.default_rng(0).normal(size=(8, 5))
    low, high = interval(scores)
    samples = scores[np.random.default_rng(1).integers(8, size=(20_000, 8))].mean(axis=1)
    np.testing.assert_allclose(np.stack([low, high]), np.quantile(samples, [0.025, 0.975], axis=0), atol=0.05)


@pytest.mark.extended
def test_plot_writes_one_file_of_several_directories(runs, tmp_path):
    make(tmp_path / "more/x", "Tank-v0", "soft-td3", 0, [3.0])
    for name in ("curves.png", "curves.pdf"):
        out, warnings = plot([runs, tmp_path / "more"], tmp_path / name)
        assert out.stat().st_size > 5000
        assert warnings == []


def test_plot_says_what_is_wrong(tmp_path):
    with pytest.raises(UserError, match=r"--out must end in .png, .pdf, .svg, got '.txt'"):
        plot([tmp_path], tmp_path / "curves.txt")
    with pytest.raises(UserError, match="no runs with evaluations found"):
        plot([tmp_path], tmp_path / "curves.png")


@pytest.mark.extended
def test_a_report_is_about_the_runs_that_are_there(runs, tmp_path):
    """Pendulum is a task of the paper, but nobody ran the paper's algorithms: none of its columns appear."""
    written = write_report(runs, tmp_path / "report")
    assert written.summary == "7 runs on 2 environments."
    text = (tmp_path / "report/tables.md").read_text()
    assert text.startswith("# Results on 2 environments\n")
    table = text.partition("### Runs by environment")[2].partition("\n### ")[0]
    assert [
        line.split(" | ")[1:] for line in table.splitlines() if line.startswith("| P") or line.startswith("| T")
    ] == [
        ["Soft TD3", "defaults", "3", "3k", "-180.00 ± 30.00 |"],
        ["Soft TD3", "sigma 0.4", "1", "2k", "-700.00 |"],
        ["Soft TD3", "defaults", "1", "1k", "-1000.00 |"],
        ["TD3", "defaults", "1<br>1 more not finished", "4k of 9k", "4.00 |"],
    ]
    for words in ("Paper", "the paper", "eported", "†"):
        assert words not in text, words
    page = (tmp_path / "report/report.html").read_text()
    assert "<h1>Results on 2 environments</h1>" in page


@pytest.mark.extended
def test_the_papers_columns_are_there_with_its_algorithms(runs, tmp_path):
    make(runs / "paper", "Pendulum-v1", "ddpg", 0, [-900.0, -300.0])
    write_report(runs, tmp_path / "report")
    text = (tmp_path / "report/tables.md").read_text()
    assert "DDPG, reported | DDPG, measured" in text
    assert "| Name | Here | Paper |" in text
