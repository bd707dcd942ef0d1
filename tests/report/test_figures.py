"""Figures: the paper's arrangement, the right numbers in each panel, files that open."""

import matplotlib.image
import numpy as np
import pytest
from runs_on_disk import write_runs

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS
from softdpg.engines.jobs import runs
from softdpg.report.figures import _paper_panels as paper_panels
from softdpg.report.figures import curves_figure, sensitivity_figure, write_figures
from softdpg.results import reading as results
from softdpg.results.cells import Results, arrange


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Every environment of both tables and both sweeps, two seeds, three evaluations."""
    root = tmp_path_factory.mktemp("runs")
    for i, spec in enumerate(runs(paper.TARGETS, seeds=1)):
        smoothing = {} if spec.sigma is None else {"sigma": spec.sigma, "n_samples": spec.n_samples}
        write_runs(root, spec.env, spec.algo, [[i, i + 1.0, i + 2.0], [i, i + 3.0, i + 4.0]], **smoothing)
    return arrange(results.read(root)[0])


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
    assert dashes["DDPG"] != dashes["Soft DDPG"]
    texts = [text.get_text() for text in figure.texts]
    assert texts == ["mean and range of 2 seeds"]


def test_sensitivity_has_one_panel_for_each_parameter(everything):
    left, right = sensitivity_figure(everything.sweeps).axes
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["10", "20", "50", "100"]
    assert [tick.get_text() for tick in right.get_xticklabels()] == ["0.001", "0.01", "0.1", "0.2", "0.5"]
    scores = [float(cell.scores.mean()) for cell in everything.sweeps[0].cells.values()]
    np.testing.assert_allclose(np.asarray(left.containers[0].lines[0].get_ydata(), dtype=float), scores)


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
    arranged = arrange(results.read(tmp_path / "runs")[0])
    contents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        contents.append([file.read_bytes() for file in write_figures(arranged, tmp_path / name)])
    assert contents[0] == contents[1]
    assert sorted(file.name for file in (tmp_path / "one").iterdir()) == ["gym.pdf", "gym.png"]
