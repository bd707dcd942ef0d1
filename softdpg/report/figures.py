"""Print-quality figures with matplotlib: the paper's learning curves and sweeps, and the benchmark.

Panels without runs are left out and the others close up, so that a full reproduction has the paper's arrangement.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS
from softdpg.report.benchmark import COSTS, Benchmark, Entry, compared, profile
from softdpg.report.scores import Cell, Results, Row, Sweep
from softdpg.report.statistics import mean_std
from softdpg.report.style import SYMBOLS, Style, env_title, format_steps, style, table_order

PANELS_PER_ROW = 4
PANEL_WIDTH, WIDE_PANEL, PANEL_HEIGHT, FOOTER_HEIGHT = 2.5, 3.4, 2.0, 0.55  # inches
LEGEND_HANDLE, LEGEND_LETTER, LEGEND_HEIGHT = 0.53, 0.058, 0.18  # inches of a name in the legend
LEAST_WIDTH = 5.6  # inches of a figure
STYLE: dict[Any, Any] = {
    **{"font.size": 8, "axes.titlesize": 8.5, "axes.grid": True, "grid.alpha": 0.3, "grid.linewidth": 0.5},
    **{"axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.4, "pdf.fonttype": 42},
}


def write_figures(results: Results, out: Path) -> list[Path]:
    """Write every figure that has runs, as PNG and PDF, and return the files.

    ``mujoco`` and ``gym`` are the paper's Figures 2 and 4. ``other`` shows environments that the paper did not run,
    ``overview`` all of these together if there is more than one. ``sensitivity`` is Figure 3.

    :param results: arranged runs
    :param out: directory
    """
    panels = {"mujoco": paper_panels(results, 1), "gym": paper_panels(results, 2), "other": _other_panels(results)}
    panels = {name: rows for name, rows in panels.items() if rows}
    if len(panels) > 1:
        panels["overview"] = _close_up(row for rows in panels.values() for line in rows for row in line)
    with matplotlib.rc_context(STYLE):
        figures = {name: curves_figure(rows) for name, rows in panels.items()}
        if results.sweeps:
            figures["sensitivity"] = sensitivity_figure(results.sweeps)
        return _save(figures, out)


def write_benchmark_figures(benchmark: Benchmark, out: Path) -> list[Path]:
    """Write ``race_profile`` and ``race_curves``, if there is something to show, as PNG and PDF; return the files.

    :param benchmark: all runs
    :param out: directory
    """
    with matplotlib.rc_context(STYLE):
        figures = {"race_profile": profile_figure(benchmark), "race_curves": benchmark_curves_figure(benchmark)}
        return _save({name: figure for name, figure in figures.items() if figure is not None}, out)


def curves_figure(rows: list[list[Row]]) -> Figure:
    """Return learning curves, a panel per environment: the mean over seeds and a band for their spread.

    :param rows: rows of panels
    """
    columns = max(map(len, rows))
    cells = [cell for line in rows for row in line for cell in row.cells.values()]
    names = _names(cells)
    figure = _figure(columns, len(rows), PANEL_WIDTH, names)
    grid = figure.add_gridspec(len(rows), 2 * columns)
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
    spreads = {min(len(cell.runs), 3) for cell in cells} - {1}
    words = {2: "both seeds", 3: "one standard deviation"}
    what = "mean and " + ", or ".join(words[spread] for spread in sorted(spreads, reverse=True))
    _footer(figure, names, _seeds(cells, "mean and range of" if spreads == {2} else f"{what}, over"))
    return figure


def sensitivity_figure(sweeps: list[Sweep]) -> Figure:
    """Return the final score against N (left) and sigma (right), a row of panels per environment.

    :param sweeps: sensitivity sweeps
    """
    envs = list(dict.fromkeys(sweep.env for sweep in sweeps))
    cells = [cell for sweep in sweeps for cell in sweep.cells.values()]
    figure = _figure(len(paper.SWEEPS), len(envs), WIDE_PANEL, _names(cells))
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
    note = _seeds(cells, "dotted: the paper's choice; mean and one standard deviation over")
    _footer(figure, _names(cells), note)
    return figure


def profile_figure(benchmark: Benchmark) -> Figure | None:
    """Return the fraction of targets reached, over all tasks and seeds, against CPU seconds and steps; None if empty.

    :param benchmark: all runs
    """
    names, tasks = compared(benchmark)
    if not tasks:
        return None
    figure = _figure(2, 1, WIDE_PANEL, names)
    for axes, cost in zip(figure.subplots(1, 2, sharey=True), COSTS, strict=True):
        profiles = {name: profile(benchmark, name, tasks, cost) for name in names}
        costs = [value for p in profiles.values() for value in p.costs]
        low, high = (0.7 * min(costs), 1.4 * max(costs)) if costs else (1.0, 10.0)
        for name, (reached, fractions, until) in profiles.items():
            look = style(name)
            end = max([low, *reached, min(until, high)])
            x, y = [low, *reached, end], [0.0, *fractions, fractions[-1] if fractions else 0.0]
            # Markers as parts of the picture: one for every step would hide the line.
            look_of = {"marker": look.marker, "markersize": 3.5, "markevery": (0.1, 0.25)} | _line(look)
            axes.step(x, y, where="post", label=ALGORITHMS[name].label, **look_of)
        _log_costs(axes, (1, 2, 5))
        axes.set(xlabel=cost.label, xlim=(low, high), ylim=(-0.02, 1.02))
    figure.axes[0].set_ylabel("targets reached")
    figure.axes[0].yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.0%}"))
    left = [ALGORITHMS[name].label for name in benchmark.algorithms if name not in names]
    others = f"; too few of these tasks: {', '.join(left)}" if left else ""
    which = env_title(tasks[0].env) if len(tasks) == 1 else f"{len(tasks)} shared tasks"
    targets = sum(len(task.targets) for task in tasks)
    targets_of = f"{targets} target{'s' * (targets > 1)} on {which}, all seeds"
    _footer(figure, names, f"{targets_of}; curves end with the budget{others}")
    return figure


def benchmark_curves_figure(benchmark: Benchmark) -> Figure | None:
    """Return the evaluations of every run against CPU seconds, a panel per task; None if there are none.

    A dot marks where a run reached the target score.

    :param benchmark: all runs
    """
    panels = [
        task
        for task, entries in benchmark.tasks.items()
        if any(len(run.means) for entry in entries.values() for run in entry.runs)
    ]
    if not panels:
        return None
    columns = min(len(panels), PANELS_PER_ROW)
    rows = -(-len(panels) // columns)
    figure = _figure(columns, rows, PANEL_WIDTH, benchmark.algorithms)
    axes_of = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for axes in axes_of[len(panels) :]:
        axes.set_visible(False)
    for i, (axes, task) in enumerate(zip(axes_of, panels, strict=False)):
        axes.axhline(task.target_score, color="0.25", linewidth=0.9, linestyle=(0, (1, 1)), zorder=1)
        for name, entry in benchmark.tasks[task].items():
            _draw_entry(axes, name, entry)
        axes.set_title(env_title(task.env).replace(" (", "\n("), parse_math=False)  # long names need two lines
        _log_costs(axes, (1,))
        axes.set_xlabel("CPU seconds of training" if i >= len(panels) - columns else "")
        axes.set_ylabel("return" if i % columns == 0 else "")
    note = "one curve per seed; dotted: target score; a dot marks where a run reached it"
    _footer(figure, benchmark.algorithms, note)
    return figure


def paper_panels(results: Results, table: int) -> list[list[Row]]:
    """Return the panels of Figure 2 or 4: continuous rewards in the upper rows, discrete ones below.

    :param results: arranged runs
    :param table: number of the paper's table with the same environments
    """
    order = [paper.ENVIRONMENTS[name] for line in paper.FIGURE_ROWS[table] for name in line]
    rewards: list[paper.Rewards] = ["continuous", "discrete"]
    ids = [[environment.env_id(kind) for environment in order] for kind in rewards]
    present = [[results.rows[env] for env in line if env in results.rows] for line in ids]
    return [row for line in present for row in _close_up(line, PANELS_PER_ROW)]


def _other_panels(results: Results) -> list[list[Row]]:
    return _close_up(row for env, row in results.rows.items() if env not in paper.ENV_IDS)


def _close_up(rows: Iterable[Row], columns: int | None = None) -> list[list[Row]]:
    """Rows of panels: four side by side, or three where that leaves no gap, unless ``columns`` says otherwise."""
    panels = list(rows)
    columns = columns or (3 if len(panels) in (3, 5, 6, 9) else PANELS_PER_ROW)
    return [panels[i : i + columns] for i in range(0, len(panels), columns)]


def _save(figures: dict[str, Figure], out: Path) -> list[Path]:
    files: list[Path] = []
    for name, figure in figures.items():
        files += [out / f"{name}.png", out / f"{name}.pdf"]
        figure.savefig(files[-2], dpi=200)
        figure.set_layout_engine("none")  # it is laid out now
        figure.savefig(files[-1], metadata={"CreationDate": None})  # the same runs give the same file
    return files


def _figure(columns: int, rows: int, panel_width: float, names: list[str]) -> Figure:
    """A figure of panels with room for a legend of these algorithms below."""
    width = max(columns * panel_width, LEAST_WIDTH)
    footer = FOOTER_HEIGHT + (_legend_rows(names, width) - 1) * LEGEND_HEIGHT
    height = rows * (PANEL_HEIGHT if rows > 1 else 1.3 * PANEL_HEIGHT) + footer
    layout = ConstrainedLayoutEngine(h_pad=0.07, rect=(0, footer / height, 1, 1 - footer / height))
    return Figure(figsize=(width, height), layout=layout)


def _legend_rows(names: list[str], width: float) -> int:
    longest = max((len(ALGORITHMS[name].label) for name in names), default=0)
    return -(-len(names) // max(int(width / (LEGEND_HANDLE + LEGEND_LETTER * longest)), 1)) or 1


def _footer(figure: Figure, names: list[str], note: str) -> None:
    """One legend for all panels, and a note below it."""
    handles = {label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels())}  # noqa: B905
    labels = [label for label in (ALGORITHMS[name].label for name in names) if label in handles]
    columns = -(-len(labels) // _legend_rows(names, figure.get_figwidth()))
    legend = figure.legend(
        [handles[label] for label in labels], labels, loc="lower center", ncols=columns, frameon=False
    )
    legend.set_in_layout(False)
    legend.set_bbox_to_anchor((0.5, 0.17 / figure.get_figheight()))
    look: dict[str, Any] = {"ha": "center", "fontsize": 7, "color": "0.35", "parse_math": False}
    figure.text(0.5, 0.06 / figure.get_figheight(), note, **look).set_in_layout(False)


def _names(cells: list[Cell]) -> list[str]:
    present = {cell.algorithm for cell in cells}
    return [name for name in table_order() if name in present]


def _seeds(cells: list[Cell], what: str) -> str:
    """The note on how many seeds are behind a figure."""
    seeds = sorted({len(cell.runs) for cell in cells})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return "one seed" if seeds == [1] else f"{what} {count} seeds"


def _line(look: Style) -> dict[str, Any]:
    """Colour and dashes; matplotlib takes no empty dashes for a solid step."""
    return {"color": look.color} | ({"dashes": look.dash} if look.dash else {})


def _draw_curve(axes: Axes, algorithm: str, cell: Cell) -> None:
    look, mean = style(algorithm), cell.curves.mean(axis=0)
    marker = look.marker if len(mean) == 1 else None  # a line needs two points
    axes.plot(cell.steps, mean, marker=marker, label=ALGORITHMS[algorithm].label, **_line(look))
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


def _draw_entry(axes: Axes, name: str, entry: Entry) -> None:
    look = style(name)
    for run in entry.runs:
        axes.plot(run.train, run.means, linewidth=0.9, label=ALGORITHMS[name].label, **_line(look))
        if run.reached is not None:
            axes.plot(run.train[run.reached], run.means[run.reached], "o", color=look.color, markersize=3.5)


def _log_costs(axes: Axes, ticks: tuple[int, ...]) -> None:
    """A logarithmic axis, because costs differ by factors; ``ticks`` are the positions in each decade."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: format_steps(round(x)) if x >= 1 else f"{x:g}"))
