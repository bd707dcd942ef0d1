"""Print-quality figures in the paper's arrangement, with matplotlib.

Panels without runs are left out and the others close up, so that a full reproduction has the paper's arrangement.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS
from softdpg.report.style import SYMBOLS, env_title, style
from softdpg.report.tables import format_steps
from softdpg.results.cells import Cell, Results, Row, Sweep
from softdpg.results.statistics import mean_std

PANELS_PER_ROW = 4
PANEL_WIDTH, PANEL_HEIGHT, FOOTER_HEIGHT = 2.5, 2.0, 0.55  # inches
LEGEND_WIDTH = 5.2  # inches that the legend needs
STYLE: dict[Any, Any] = {
    **{"font.size": 8, "axes.titlesize": 8.5, "axes.grid": True, "grid.alpha": 0.3, "grid.linewidth": 0.5},
    **{"axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.4, "pdf.fonttype": 42},
}


def write_figures(results: Results, out: Path) -> list[Path]:
    """Write every figure that has runs, as PNG and PDF; returns the files.

    ``mujoco`` and ``gym`` are the paper's Figures 2 and 4, ``other`` shows environments that it did not run,
    ``overview`` all of these together if there is more than one, ``sensitivity`` is Figure 3.
    """
    panels = {"mujoco": _paper_panels(results, 1), "gym": _paper_panels(results, 2), "other": _other_panels(results)}
    panels = {name: rows for name, rows in panels.items() if rows}
    if len(panels) > 1:
        panels["overview"] = _close_up(row for rows in panels.values() for line in rows for row in line)
    files: list[Path] = []
    with matplotlib.rc_context(STYLE):
        figures = {name: curves_figure(rows) for name, rows in panels.items()}
        if results.sweeps:
            figures["sensitivity"] = sensitivity_figure(results.sweeps)
        for name, figure in figures.items():
            files += [out / f"{name}.png", out / f"{name}.pdf"]
            figure.savefig(files[-2], dpi=200)
            figure.set_layout_engine("none")  # it is laid out now
            figure.savefig(files[-1], metadata={"CreationDate": None})  # the same runs give the same file
    return files


def save_curves(rows: list[list[Row]], path: Path) -> None:
    """Write one figure of learning curves."""
    with matplotlib.rc_context(STYLE):
        curves_figure(rows).savefig(path, dpi=200)


def curves_figure(rows: list[list[Row]]) -> Figure:
    """Learning curves, a panel for each environment: mean over seeds and the band of their spread."""
    columns = max(map(len, rows))
    figure = _figure(columns, len(rows))
    grid = figure.add_gridspec(len(rows), 2 * columns)
    cells: list[Cell] = []
    for i, line in enumerate(rows):
        indent = columns - len(line)  # in half panels: short rows are centred
        for j, row in enumerate(line):
            axes = figure.add_subplot(grid[i, indent + 2 * j : indent + 2 * j + 2])
            axes.set_title(env_title(row.env), parse_math=False)
            for name, cell in row.cells.items():
                _draw_curve(axes, name, cell)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: format_steps(round(x))))
            axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
            axes.set_xlim(0, 1.02 * max(cell.settings.steps for cell in row.cells.values()))
            axes.set_xlabel("environment steps" if i == len(rows) - 1 else "")
            axes.set_ylabel("return" if j == 0 else "")
            cells += row.cells.values()
    spreads = {min(len(cell.runs), 3) for cell in cells} - {1}
    words = {2: "both seeds", 3: "one standard deviation"}
    what = "mean and " + ", or ".join(words[spread] for spread in sorted(spreads, reverse=True))
    _footer(figure, cells, "mean and range of" if spreads == {2} else f"{what}, over")
    return figure


def sensitivity_figure(sweeps: list[Sweep]) -> Figure:
    """Final score against N (left) and sigma (right), a row of panels for each environment."""
    envs = list(dict.fromkeys(sweep.env for sweep in sweeps))
    figure = _figure(len(paper.SWEEPS), len(envs), width=3.4)
    panels = figure.subplots(len(envs), len(paper.SWEEPS), squeeze=False)
    for i, env in enumerate(envs):
        for j, design in enumerate(paper.SWEEPS):
            symbol, fixed = (SYMBOLS[name].mathematics for name in (design.parameter, design.fixed[0]))
            label = f"{symbol}, at {fixed} = {design.fixed[1]:g}"
            axes, found = panels[i, j], [s for s in sweeps if (s.env, s.design) == (env, design)]
            axes.set_visible(bool(found))
            for sweep in found:
                _draw_sweep(axes, sweep)
            axes.axvline(design.chosen, color="0.5", linewidth=0.8, linestyle=":", zorder=0)
            axes.set_title(env_title(env), parse_math=False)
            axes.set(xlabel=label, ylabel="final score")
    cells = [cell for sweep in sweeps for cell in sweep.cells.values()]
    _footer(figure, cells, "dotted: the paper's choice; mean and one standard deviation over")
    return figure


def _figure(columns: int, rows: int, width: float = PANEL_WIDTH) -> Figure:
    panel_height = PANEL_HEIGHT if columns > 1 else 1.4 * PANEL_HEIGHT
    height = rows * panel_height + FOOTER_HEIGHT
    footer = FOOTER_HEIGHT / height
    layout = ConstrainedLayoutEngine(h_pad=0.07, rect=(0, footer, 1, 1 - footer))
    return Figure(figsize=(max(columns * width, LEGEND_WIDTH), height), layout=layout)


def _draw_curve(axes: Axes, algorithm: str, cell: Cell) -> None:
    look, mean = style(algorithm), cell.curves.mean(axis=0)
    marker = look.marker if len(mean) == 1 else None  # a line needs two points
    label = ALGORITHMS[algorithm].label
    axes.plot(cell.steps, mean, color=look.color, dashes=look.dash, marker=marker, label=label)
    if len(cell.runs) > 1:
        axes.fill_between(cell.steps, *cell.band, color=look.color, alpha=0.18, linewidth=0)


def _draw_sweep(axes: Axes, sweep: Sweep) -> None:
    look, values = style(sweep.algorithm), list(sweep.cells)
    summary = [mean_std(cell.scores) for cell in sweep.cells.values()]
    axes.errorbar(
        values,
        [mean for mean, _ in summary],
        yerr=[std or 0.0 for _, std in summary],
        color=look.color,
        marker=look.marker,
        markersize=4,
        capsize=2.5,
        label=ALGORITHMS[sweep.algorithm].label,
    )
    for value, cell in sweep.cells.items():
        axes.plot([value] * len(cell.scores), cell.scores, ".", color=look.color, alpha=0.4, markersize=3)
    axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())


def _footer(figure: Figure, cells: list[Cell], what: str) -> None:
    """One legend for all panels, and how many seeds are behind them."""
    handles = {label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels())}  # noqa: B905
    ordered = [a.label for a in ALGORITHMS.values() if a.label in handles]
    legend = figure.legend(
        [handles[label] for label in ordered], ordered, loc="lower center", ncols=len(ordered), frameon=False
    )
    legend.set_in_layout(False)
    legend.set_bbox_to_anchor((0.5, 0.17 / figure.get_figheight()))
    seeds = sorted({len(cell.runs) for cell in cells})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    note = "one seed" if seeds == [1] else f"{what} {count} seeds"
    figure.text(0.5, 0.06 / figure.get_figheight(), note, ha="center", fontsize=7, color="0.35").set_in_layout(False)


def _paper_panels(results: Results, table: int) -> list[list[Row]]:
    """Continuous rewards in the upper rows, discrete ones below, as in Figures 2 and 4."""
    order = [paper.ENVIRONMENTS[name] for line in paper.FIGURE_ROWS[table] for name in line]
    rewards: list[paper.Rewards] = ["continuous", "discrete"]
    ids = [[environment.env_id(kind) for environment in order] for kind in rewards]
    present = [[results.rows[env] for env in line if env in results.rows] for line in ids]
    return [row for line in present for row in _close_up(line, PANELS_PER_ROW)]


def _other_panels(results: Results) -> list[list[Row]]:
    known = {env for e in paper.ENVIRONMENTS.values() for env in (e.discrete, e.continuous)}
    return _close_up(row for env, row in results.rows.items() if env not in known)


def _close_up(rows: Iterable[Row], columns: int | None = None) -> list[list[Row]]:
    """Rows of panels; unless told, three of them stand side by side where that leaves no gap."""
    panels = list(rows)
    columns = columns or (3 if len(panels) in (3, 5, 6, 9) else PANELS_PER_ROW)
    return [panels[i : i + columns] for i in range(0, len(panels), columns)]
