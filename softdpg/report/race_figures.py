"""The race in pictures: data profiles, and learning curves with the finishing line drawn in."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from softdpg.algorithms.registry import ALGORITHMS
from softdpg.report.figures import FOOTER_HEIGHT, PANEL_HEIGHT, PANEL_WIDTH, PANELS_PER_ROW, STYLE
from softdpg.report.style import env_title, style
from softdpg.report.tables import format_steps
from softdpg.results.race import COSTS, Entry, Race, compared, profile


def write_race_figures(race: Race, out: Path) -> list[Path]:
    """Write ``race_profile`` and ``race_curves`` as PNG and PDF, as far as there is something to draw."""
    files: list[Path] = []
    with matplotlib.rc_context(STYLE):
        figures = {"race_profile": profile_figure(race), "race_curves": curves_figure(race)}
        for name, figure in figures.items():
            if figure is not None:
                files += [out / f"{name}.png", out / f"{name}.pdf"]
                figure.savefig(files[-2], dpi=200)
                figure.set_layout_engine("none")  # it is laid out now
                figure.savefig(files[-1], metadata={"CreationDate": None})  # the same runs give the same file
    return files


def profile_figure(race: Race) -> Figure | None:
    """Share of columns crossed, in the median over seeds, against CPU seconds (log) and against steps."""
    names, columns = compared(race)
    if not columns:
        return None
    figure = _figure(2, 1, 3.4, len(names))
    for axes, cost in zip(figure.subplots(1, 2, sharey=True), COSTS, strict=True):
        profiles = {name: profile(race, name, columns, cost) for name in names}
        costs = [value for p in profiles.values() for value in p.costs]
        low, high = (0.7 * min(costs), 1.4 * max(costs)) if costs else (1.0, 10.0)
        for name, (reached, shares, until) in profiles.items():
            look = style(name)
            end = max([low, *reached, min(until, high)])
            x, y = [low, *reached, end], [0.0, *shares, shares[-1] if shares else 0.0]
            lines = axes.step(x, y, where="post", color=look.color, label=ALGORITHMS[name].label)
            if look.dash:
                lines[0].set_dashes(look.dash)
            axes.plot(reached, shares, look.marker, color=look.color, markersize=3)
        _log_costs(axes, (1, 2, 5))
        axes.set(xlabel=cost.label, xlim=(low, high), ylim=(-0.02, 1.02))
    figure.axes[0].set_ylabel("share of columns crossed")
    figure.axes[0].yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.0%}"))
    left = [ALGORITHMS[name].label for name in race.contenders if name not in names]
    others = f"; on too few of them: {', '.join(left)}" if left else ""
    which = env_title(columns[0].env) if len(columns) == 1 else f"{len(columns)} columns that all of them raced on"
    _footer(figure, names, f"{which}, median over seeds; a line ends with its budget{others}")
    return figure


def curves_figure(race: Race) -> Figure | None:
    """Every run's evaluations against CPU seconds of training (log), up to its end; a dot where it crossed the line."""
    panels = [column for column, entries in race.columns.items() if any(_drawn(entry) for entry in entries.values())]
    if not panels:
        return None
    columns = min(len(panels), PANELS_PER_ROW)
    rows = -(-len(panels) // columns)
    figure = _figure(columns, rows, PANEL_WIDTH, len(race.contenders))
    axes_of = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for axes in axes_of[len(panels) :]:
        axes.set_visible(False)
    for i, (axes, column) in enumerate(zip(axes_of, panels, strict=False)):
        axes.axhline(column.goal, color="0.25", linewidth=0.9, linestyle=(0, (1, 1)), zorder=1)
        for name, entry in race.columns[column].items():
            _draw(axes, name, entry)
        axes.set_title(env_title(column.env).replace(" (", "\n("))  # long names are wider than a panel
        _log_costs(axes, (1,))
        axes.set_xlabel("CPU seconds of training" if i >= len(panels) - columns else "")
        axes.set_ylabel("return" if i % columns == 0 else "")
    _footer(figure, race.contenders, "one line a seed; dotted: the finishing line; a dot where it was crossed")
    return figure


def _drawn(entry: Entry) -> bool:
    return any(len(run.means) for run in entry.runs)


def _draw(axes: Axes, name: str, entry: Entry) -> None:
    look = style(name)
    for run in entry.runs:
        (line,) = axes.plot(run.train, run.means, color=look.color, linewidth=0.9, label=ALGORITHMS[name].label)
        if look.dash:
            line.set_dashes(look.dash)
        if run.crossing is not None:
            axes.plot(run.train[run.crossing], run.means[run.crossing], "o", color=look.color, markersize=3.5)


def _log_costs(axes: Axes, ticks: tuple[int, ...]) -> None:
    """A logarithmic axis: costs differ by factors, and who is quick is to be seen beside who is slow.

    :param ticks: where they are in each decade
    """
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: format_steps(round(x)) if x >= 1 else f"{x:g}"))


def _figure(columns: int, rows: int, panel_width: float, contenders: int) -> Figure:
    width = max(columns * panel_width, 6.8)
    footer = FOOTER_HEIGHT + (_legend_rows(contenders, width) - 1) * _LEGEND_HEIGHT
    height = rows * PANEL_HEIGHT + footer + (0.6 if rows == 1 else 0.0)
    layout = ConstrainedLayoutEngine(h_pad=0.07, rect=(0, footer / height, 1, 1 - footer / height))
    return Figure(figsize=(width, height), layout=layout)


_LEGEND_WIDTH, _LEGEND_HEIGHT = 1.35, 0.18  # inches of an entry


def _legend_rows(contenders: int, width: float) -> int:
    return -(-contenders // int(width / _LEGEND_WIDTH)) or 1


def _footer(figure: Figure, names: list[str], note: str) -> None:
    handles = {label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels())}  # noqa: B905
    labels = [label for label in (ALGORITHMS[name].label for name in names) if label in handles]
    columns = -(-len(labels) // _legend_rows(len(labels), figure.get_figwidth()))
    legend = figure.legend(
        [handles[label] for label in labels], labels, loc="lower center", ncols=columns, frameon=False
    )
    legend.set_in_layout(False)
    legend.set_bbox_to_anchor((0.5, 0.17 / figure.get_figheight()))
    figure.text(0.5, 0.06 / figure.get_figheight(), note, ha="center", fontsize=7, color="0.35").set_in_layout(False)
