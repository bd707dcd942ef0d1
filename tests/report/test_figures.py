"""Figures: the paper's arrangement, the right numbers in each panel, files that open."""

from dataclasses import replace

import matplotlib
import matplotlib.image
import numpy as np
import pytest
from benchmark_runs import run, two_algorithms
from runs_on_disk import write_runs

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS
from softdpg.experiments.jobs import runs
from softdpg.report.benchmark import Benchmark, Task
from softdpg.report.figures import (
    STYLE,
    benchmark_curves_figure,
    curves_figure,
    paper_panels,
    profile_figure,
    sensitivity_figure,
    write_figures,
)
from softdpg.report.reading import read_runs
from softdpg.report.scores import Results, arrange


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Every environment of both tables and both sweeps, two seeds, three evaluations."""
    root = tmp_path_factory.mktemp("runs")
    for i, spec in enumerate(runs(paper.TARGETS, seeds=1)):
        smoothing = {} if spec.sigma is None else {"sigma": spec.sigma, "n_samples": spec.n_samples}
        write_runs(root, spec.env, spec.algo, [[i, i + 1.0, i + 2.0], [i, i + 3.0, i + 4.0]], **smoothing)
    return arrange(read_runs(root)[0])


def test_arrangement_is_the_papers(everything):
    titles = [[[paper_title(row.env) for row in line] for line in paper_panels(everything, table)] for table in (1, 2)]
    first, second = (
        ["Ant", "HalfCheetah", "Hopper", "Walker2d"],
        ["Humanoid", "InvertedDoublePendulum", "InvertedPendulum"],
    )
    gym = ["BipedalWalker", "LunarLander", "Pendulum", "MountainCar"]
    rows = [[(name, kind) for name in line] for kind in ("continuous", "discrete") for line in (first, second)]
    assert titles[0] == rows
    assert titles[1] == [[(name, kind) for name in gym] for kind in ("continuous", "discrete")]


def paper_title(env):
    return next(
        (name, kind)
        for name, environment in paper.ENVIRONMENTS.items()
        for kind in ("continuous", "discrete")
        if environment.env_id(kind) == env
    )


def test_panels_show_mean_and_band(everything):
    row = everything.rows["Ant-v5"]
    figure = curves_figure([[row]])
    (axes,) = figure.axes
    for line, (name, cell) in zip(axes.lines, row.cells.items(), strict=True):
        assert line.get_label() == ALGORITHMS[name].label
        np.testing.assert_array_equal(line.get_xdata(), [5_000, 10_000, 15_000])
        start = cell.curves[0, 0]
        # Seeds (s, s + 1, s + 2) and (s, s + 3, s + 4): means s, s + 2, s + 3; the band is from the one to the other.
        np.testing.assert_allclose(line.get_ydata(), [start, start + 2, start + 3])
        band = axes.collections[list(row.cells).index(name)].get_paths()[0].vertices[:, 1]
        assert band.min() == pytest.approx(start)
        assert band.max() == pytest.approx(start + 4)
    dashes = {line.get_label(): line._dash_pattern for line in axes.lines}
    assert dashes["DDPG"] != dashes["Soft DDPG (paper)"]
    texts = [text.get_text() for text in figure.texts]
    assert texts == ["mean and range of 2 seeds"]


def test_sensitivity_has_one_panel_for_each_parameter(everything):
    left, right = sensitivity_figure(everything.sweeps).axes
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["10", "20", "50", "100"]
    assert [tick.get_text() for tick in right.get_xticklabels()] == ["0.001", "0.01", "0.1", "0.2", "0.5"]
    scores = [float(cell.scores.mean()) for cell in everything.sweeps[0].cells.values()]
    np.testing.assert_allclose(np.asarray(left.containers[0].lines[0].get_ydata(), dtype=float), scores)


@pytest.mark.extended
def test_files(everything, tmp_path):
    few = ("Ant-v5", "softdpg/AntDiscrete-v0", "softdpg/PendulumDiscrete-v0")
    subset = Results(everything.runs, {env: everything.rows[env] for env in few}, everything.sweeps, [])
    files = write_figures(subset, tmp_path)
    names = ["mujoco", "gym", "overview", "sensitivity"]
    assert [file.name for file in files] == [f"{name}.{suffix}" for name in names for suffix in ("png", "pdf")]
    for file in files:
        if file.suffix == ".png":
            image = matplotlib.image.imread(file)
            assert image.shape[1] >= 500  # one panel of 2.5 inches at 200 dots an inch
            assert image[..., :3].std() > 0.05
        else:
            assert file.read_bytes().startswith(b"%PDF-")


def test_the_same_runs_give_the_same_files(tmp_path):
    write_runs(tmp_path / "runs", "Pendulum-v1", "ddpg", [[1.0]])
    arranged = arrange(read_runs(tmp_path / "runs")[0])
    contents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        contents.append([file.read_bytes() for file in write_figures(arranged, tmp_path / name)])
    assert contents[0] == contents[1]
    assert sorted(file.name for file in (tmp_path / "one").iterdir()) == ["gym.pdf", "gym.png"]


@pytest.mark.parametrize(
    ("benchmark", "note"),
    [
        (two_algorithms(), "5 targets on 2 shared tasks, all seeds; curves end with the budget"),
        (
            Benchmark([run([10, 10]), run([1, 1], algo="sbx-sac")]),
            "1 target on Hopper (continuous), all seeds; curves end with the budget",
        ),
    ],
)
def test_the_profile_says_what_it_counts(benchmark, note):
    figure = profile_figure(benchmark)
    assert [text.get_text() for text in figure.texts] == [note]


def test_a_line_of_the_profile_ends_with_the_budget():
    """Of Swimmer and Hopper: without a random score below the target score, each has that target alone."""
    swimmer = Task("Swimmer-v5", 10.0)
    runs = [
        replace(r, settings=replace(r.settings, env="Swimmer-v5")) for r in two_algorithms().runs if r.env == "Ant-v5"
    ]
    runs += [r for r in two_algorithms().runs if r.env != "Ant-v5"]
    runs += [run([1, 1, 1], task=swimmer, algo="ddpg", budget=6_000), run([10, 10], algo="ddpg", budget=6_000)]
    seconds, steps = profile_figure(Benchmark(runs)).axes
    assert lines(steps) == {
        "DDPG": ([2_800, 4_000, 6_000], [0, 0.5, 0.5]),  # 0.7 of the least to 1.4 of the most
        "TD3": ([2_800, 4_000, 8_000, 11_200], [0, 0.5, 1, 1]),
        "SAC (SBX)": ([2_800, 4_000, 8_000], [0, 0.5, 0.5]),
    }
    assert lines(seconds)["SAC (SBX)"] == ([2.8, 12, 16.8], [0, 0.5, 0.5])  # its budget cost 24 seconds


def lines(axes):
    drawn = {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}
    return {
        name: (pytest.approx(list(line.get_xdata())), pytest.approx(list(line.get_ydata())))
        for name, line in drawn.items()
    }


def test_many_names_are_in_rows_that_fit():
    names = [name for name in ALGORITHMS if name != "ocpg"]
    with matplotlib.rc_context(STYLE):
        figure = profile_figure(Benchmark([run([10, 10], algo=name) for name in names]))
        figure.draw_without_rendering()
    legend = figure.legends[0]
    assert len(legend.get_texts()) == len(names)
    box = legend.get_window_extent().transformed(figure.transFigure.inverted())
    assert box.x0 >= 0
    assert box.x1 <= 1
    lowest = min(axes.get_tightbbox().transformed(figure.transFigure.inverted()).y0 for axes in figure.axes)
    assert box.y1 <= lowest


def test_curves_stand_on_an_axis_of_factors():
    """Three times the cost is the same way on the paper for 1 and 3 seconds as for 100 and 300."""
    axes = benchmark_curves_figure(two_algorithms()).axes[0]
    places = axes.transData.transform([(seconds, 0) for seconds in (1, 3, 100, 300)])[:, 0]
    assert places[1] - places[0] == pytest.approx(places[3] - places[2])
    assert sorted({line.get_label() for line in axes.lines if not line.get_label().startswith("_")}) == [
        "SAC (SBX)",
        "TD3",
    ]
