"""Table and figure of ``softdpg toy``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from softdpg.algorithms.registry import ALGORITHMS
from softdpg.experiments.toy import ACTIONS, EPISODE, LAST, ToyRun, ToySettings, measures
from softdpg.report.style import style
from softdpg.theory.toy import CENTER


def print_table(console: Console, runs: list[ToyRun], settings: ToySettings) -> None:
    """Print mean and standard deviation over seeds of each measure, with the ideal value and one column per algorithm.

    :param console: where to print
    :param runs: all runs of the study
    :param settings: settings of the study
    """
    interval = f"{CENTER - settings.epsilon:g}..{CENTER + settings.epsilon:g}"
    ideal = {
        "error": "0",
        "offset": "0",
        "shape error": "0",
        "total variation": "2",
        "greedy action": interval,
        "learned action": interval,
        "return": str(EPISODE),
        "late return": str(EPISODE),
    }
    table = Table(
        title=f"After {settings.steps:,} steps, mean ± std of {settings.seeds} seeds", title_justify="left", padding=0
    )
    table.add_column("", no_wrap=True)
    table.add_column("ideal", justify="right", no_wrap=True)
    columns = {a: [measures(run, settings) for run in runs if run.algorithm == a] for a in settings.algos}
    for algorithm in settings.algos:
        table.add_column(ALGORITHMS[algorithm].label.replace(" (", "\n("), justify="right", no_wrap=True)
    for name, best in ideal.items():
        cells = ([row[name] for row in rows] for rows in columns.values())
        table.add_row(name, best, *(f"{np.mean(cell):.3f} ± {np.std(cell):.3f}" for cell in cells))
    console.print(table)
    console.print(
        "error: root mean square, over actions in [-1, 1], of the learned critic minus the exact one of the learned "
        "policy (Q, or Q_sigma where the critic is smoothed); offset: the mean of that difference; shape error: what "
        f"remains without the offset; late return: the mean over the policies of the last {LAST:,} steps.",
        style="dim",
        highlight=False,
    )


def draw(runs: list[ToyRun], settings: ToySettings, path: Path) -> Path:
    """Draw learned Q(s, .) and |dQ/da| with the exact curves: one column per algorithm, a band over seeds.

    :param runs: all runs of the study
    :param settings: settings of the study
    :param path: the figure; its directory is created
    """
    figure = Figure(figsize=(10.4, 6.0), layout="constrained")
    axes = figure.subplots(2, len(settings.algos), sharex=True, squeeze=False)
    for column, algorithm in enumerate(settings.algos):
        own = [run for run in runs if run.algorithm == algorithm]
        color = style(algorithm).color
        values, slopes = axes[0, column], axes[1, column]
        for ax, curves in ((values, [run.critic for run in own]), (slopes, [run.slope for run in own])):
            ax.axvspan(CENTER - settings.epsilon, CENTER + settings.epsilon, color="0.85", linewidth=0)
            ax.fill_between(ACTIONS, np.min(curves, 0), np.max(curves, 0), color=color, alpha=0.3, linewidth=0)
            ax.plot(ACTIONS, np.mean(curves, 0), color=color, linewidth=1.8)
            ax.set_xlim(-1, 1)
        for run in own:
            values.plot(ACTIONS, run.exact(settings), color="black", linestyle="--", linewidth=1.1)
            slopes.plot(run.action, 0, marker="^", color=color, markeredgecolor="black", markersize=9, clip_on=False)
        slopes.axhline(0, color="black", linestyle="--", linewidth=1.1)
        slopes.set_xlabel("action $a$, scaled to [-1, 1]")
        values.set_title(ALGORITHMS[algorithm].label, fontsize=11)
    top = max(ax.get_ylim()[1] for ax in axes[1])
    for ax in axes[1]:
        ax.set_ylim(-0.06 * top, top)
    axes[0, 0].set_ylabel("$Q(s, a)$, discounted return")
    axes[1, 0].set_ylabel("$|\\partial Q/\\partial a|$, return per unit of action")
    _legend(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    return path


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure.legend(
        handles=[
            Patch(color="0.85", label="rewarded interval"),
            Line2D([], [], color="0.35", linewidth=1.8, label="learned: mean, and range over seeds"),
            Line2D([], [], color="black", linestyle="--", linewidth=1.1, label="exact, of each learned policy"),
            Line2D([], [], color="0.6", marker="^", linestyle="none", markeredgecolor="black", label="learned action"),
        ],
        loc="outside lower center",
        ncols=4,
        fontsize=9,
        frameon=False,
    )
