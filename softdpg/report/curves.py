"""``softdpg plot``: the learning curves of any runs in one figure, a panel per environment, with intervals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from scipy import stats

from softdpg.algorithms.registry import ALGORITHMS
from softdpg.errors import UserError
from softdpg.report.figures import STYLE
from softdpg.report.reading import read_runs
from softdpg.report.runs import Array, Run, without_repeats
from softdpg.report.scores import Cell, group
from softdpg.report.statistics import BOOTSTRAP_SEED, CONFIDENCE, RESAMPLES
from softdpg.report.style import format_steps, style, table_order
from softdpg.report.tables import changes

FORMATS = (".png", ".pdf", ".svg")
_COLUMNS, _WIDTH, _HEIGHT, _LINE = 3, 3.4, 2.5, 0.17  # panels side by side, inches of a panel and of a line of text
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#3B3B3B")


def plot(paths: Sequence[Path], out: Path) -> tuple[Path, list[str]]:
    """Draw the learning curves of all runs below some directories; return the file and warnings about skipped runs.

    Each environment is a panel, each algorithm with its settings a curve: the mean over seeds, and its 95 % bootstrap
    interval. Of runs that differ only in their length the longest are shown.

    :param paths: directories with run directories anywhere below them, or CSV files of ``softdpg report``
    :param out: the figure, ending in .png, .pdf or .svg
    """
    if out.suffix.lower() not in FORMATS:
        raise UserError(f"--out must end in {', '.join(FORMATS)}, got {out.suffix or 'nothing'!r}")
    runs: list[Run] = []
    warnings: list[str] = []
    for path in paths:
        found = read_runs(path)
        runs += [run for run in (*found.scored, *found.benchmark) if len(run.means)]
        warnings += found.warnings
    if not runs:
        shown = ", ".join(map(str, paths))
        raise UserError(f"{shown}: no runs with evaluations found" + (f" ({warnings[0]})" if warnings else ""))
    runs, repeated = without_repeats(runs)
    with matplotlib.rc_context(STYLE):
        figure = curves(group(runs))
        try:
            figure.savefig(out, dpi=200)
        except OSError as error:
            raise UserError(f"cannot write {out}: {error.strerror}") from None
    return out, warnings + repeated


def curves(cells: Sequence[Cell]) -> Figure:
    """Return the figure.

    :param cells: runs with equal settings, grouped
    """
    envs = list(dict.fromkeys(cell.env for cell in cells))
    columns = min(len(envs), _COLUMNS)
    rows = -(-len(envs) // columns)
    order = table_order()
    longest = {(cell.env, _label(cell)): cell for cell in sorted(cells, key=lambda cell: cell.step)}
    cells = sorted(longest.values(), key=lambda cell: (order.index(cell.algorithm), changes(cell)))
    labels = list(dict.fromkeys(map(_label, cells)))
    looks = _looks(cells, labels)
    footer = len(labels) * _LINE + 0.35
    width, height = max(columns * _WIDTH, 4.6), rows * (_HEIGHT if rows > 1 else 1.15 * _HEIGHT) + footer
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(rect=(0, footer / height, 1, 1 - footer / height), h_pad=0.07)  # type: ignore[union-attr, call-arg]
    for i, env in enumerate(envs):
        axes = figure.add_subplot(rows, columns, i + 1)
        own = [cell for cell in cells if cell.env == env]
        for cell in own:
            _draw(axes, cell, looks[_label(cell)])
        axes.set_title(env, parse_math=False)
        axes.set_xlim(0, 1.02 * max(cell.step for cell in own))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: format_steps(round(x))))
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        axes.set_xlabel("environment steps" if i + columns >= len(envs) else "")
        axes.set_ylabel("return" if i % columns == 0 else "")
    handles = {label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels())}  # noqa: B905
    legend = figure.legend(
        [handles[label] for label in labels],
        [f"{label}, {_seeds(cells, label)}" for label in labels],
        loc="lower center",
        frameon=False,
        labelspacing=0.3,
    )
    legend.set_in_layout(False)
    legend.set_bbox_to_anchor((0.5, 0.2 / height))
    several = any(len(cell.runs) > 1 for cell in cells)
    note = "mean over seeds, band: 95 % bootstrap interval of the mean" if several else "one seed each"
    figure.text(0.5, 0.08 / height, note, ha="center", fontsize=7, color="0.35").set_in_layout(False)
    return figure


def interval(curves: Array) -> tuple[Array, Array]:
    """Return the 95 % percentile bootstrap interval of the mean over seeds, two arrays of shape (evaluations,).

    :param curves: mean return of each run at each evaluation, shape (seeds, evaluations)
    """
    found = stats.bootstrap(
        (curves,),
        np.mean,
        n_resamples=RESAMPLES // 5,
        confidence_level=CONFIDENCE,
        method="percentile",
        axis=0,
        vectorized=True,
        rng=np.random.default_rng(BOOTSTRAP_SEED),
    ).confidence_interval
    return found.low, found.high


def _label(cell: Cell) -> str:
    different = changes(cell)
    different = different if len(different) <= 60 else f"{different[:59]}…"
    return ALGORITHMS[cell.algorithm].label + (f" ({different})" if different else "")


def _seeds(cells: Sequence[Cell], label: str) -> str:
    numbers = sorted({len(cell.runs) for cell in cells if _label(cell) == label})
    shown = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    return "1 seed" if numbers == [1] else f"{shown} seeds"


def _looks(cells: Sequence[Cell], labels: list[str]) -> dict[str, dict[str, Any]]:
    """Colours and dashes: an algorithm's own, or a palette where one algorithm has several settings."""
    algorithms = {_label(cell): cell.algorithm for cell in cells}
    if len(set(algorithms.values())) < len(labels):
        return {label: {"color": _COLORS[i % len(_COLORS)]} for i, label in enumerate(labels)}
    looks = {label: style(algorithm) for label, algorithm in algorithms.items()}
    return {
        label: {"color": look.color} | ({"dashes": look.dash} if look.dash else {}) for label, look in looks.items()
    }


def _draw(axes: Axes, cell: Cell, look: dict[str, Any]) -> None:
    marker = "o" if len(cell.steps) < 3 else None  # a line needs points
    axes.plot(cell.steps, cell.curves.mean(axis=0), marker=marker, markersize=3, label=_label(cell), **look)
    if len(cell.runs) > 1:
        low, high = interval(cell.curves)
        axes.fill_between(cell.steps, low, high, color=look["color"], alpha=0.18, linewidth=0)
