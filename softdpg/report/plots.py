"""Interactive plots of the HTML page, as plotly figures in plain data.

The page sets the colours from each trace's ``meta``, so that they follow a light or dark display.
"""

from typing import Any

import numpy as np

from softdpg.algorithms.registry import ALGORITHMS
from softdpg.report.benchmark import COSTS, Benchmark, Task, compared, profile
from softdpg.report.scores import Cell, Results, Row, Sweep
from softdpg.report.statistics import mean_std
from softdpg.report.style import SYMBOLS, env_title, style
from softdpg.report.tables import describe

Plot = dict[str, Any]


def curve_plot(row: Row) -> Plot:
    """Return the learning curves of an environment: the mean over seeds and a band for their spread.

    :param row: cells of the environment
    """
    bands = [band for name, cell in row.cells.items() for band in _band(name, cell)]
    means = [_mean(name, cell) for name, cell in row.cells.items()]
    steps = max(cell.settings.steps for cell in row.cells.values())
    layout = _layout(env_title(row.env), "environment steps", "return")
    layout["xaxis"] |= {"range": [0, 1.02 * steps], "tickformat": "~s"}
    layout["hovermode"] = "x unified"
    return {"data": bands + means, "layout": layout}


def sweep_plots(results: Results) -> list[Plot]:
    """Return the final score against N and against sigma, for each environment that has such runs.

    :param results: arranged runs
    """
    groups: dict[tuple[str, str], list[Sweep]] = {}
    for sweep in results.sweeps:
        groups.setdefault((sweep.env, sweep.parameter), []).append(sweep)
    return [_sweep_plot(sweeps) for sweeps in groups.values()]


def benchmark_plots(benchmark: Benchmark) -> list[Plot]:
    """Return the data profiles against CPU seconds and steps, then the learning curves of each task.

    :param benchmark: all runs
    """
    names, tasks = compared(benchmark)
    plots = []
    for cost in COSTS if tasks else ():
        data = []
        for name in names:
            reached, fractions, _ = profile(benchmark, name, tasks, cost)
            trace = _trace(name, reached, fractions, "lines+markers")
            data.append(trace | {"line": trace["line"] | {"shape": "hv"}})
        layout = _layout(f"Targets reached, {len(tasks)} tasks", cost.label, "fraction of targets")
        layout["xaxis"]["type"] = "log"
        layout["yaxis"] |= {"range": [0, 1.03], "tickformat": ".0%"}
        plots.append({"data": data, "layout": layout})
    return plots + [_benchmark_curves(benchmark, task) for task in benchmark.tasks]


def _layout(title: str, x: str, y: str) -> Plot:
    """The layout that all plots share."""
    return {
        "title": {"text": title, "font": {"size": 14}, "x": 0.02, "xanchor": "left"},
        "margin": {"l": 58, "r": 20, "t": 38, "b": 76},
        "height": 320,
        "showlegend": True,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": {"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top", "font": {"size": 11}},
        "xaxis": {"title": {"text": x, "standoff": 6}, "zeroline": False},
        "yaxis": {"title": {"text": y, "standoff": 6}, "zeroline": False, "automargin": True},
    }


def _meta(algorithm: str, part: str) -> Plot:
    """What a trace shows; the page chooses its colour by it."""
    return {"algorithm": algorithm, "part": part}


def _mean(algorithm: str, cell: Cell) -> Plot:
    spread = [mean_std(scores) for scores in cell.curves.T]
    seeds = f"{len(cell.runs)} seed{'s' * (len(cell.runs) > 1)}"
    hover = [f"{mean:.1f}" if std is None else f"{mean:.1f} ± {std:.1f}" for mean, std in spread]
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(cell.steps) == 1 else "lines",
        "name": ALGORITHMS[algorithm].label,
        "legendgroup": algorithm,
        "x": cell.steps.tolist(),
        "y": [round(mean, 4) for mean, _ in spread],
        "text": hover,
        "hovertemplate": f"%{{text}} ({seeds})",
        "line": {"width": 2, "dash": style(algorithm).plotly_dash},
        "meta": _meta(algorithm, "mean") | {"detail": describe(cell)},
    }


def _band(algorithm: str, cell: Cell) -> list[Plot]:
    if len(cell.runs) < 2:
        return []
    low, high = cell.band
    outline = np.concatenate([high, low[::-1]])
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": np.concatenate([cell.steps, cell.steps[::-1]]).tolist(),
            "y": outline.round(4).tolist(),
            "fill": "toself",
            "line": {"width": 0},
            "legendgroup": algorithm,
            "showlegend": False,
            "hoverinfo": "skip",
            "meta": _meta(algorithm, "band"),
        }
    ]


def _sweep_plot(sweeps: list[Sweep]) -> Plot:
    env, design = sweeps[0].env, sweeps[0].design
    symbol = SYMBOLS[design.parameter].page
    fixed, chosen = f"{SYMBOLS[design.fixed[0]].page} = {design.fixed[1]:g}", design.chosen
    data: list[Plot] = []
    for sweep in sweeps:
        look, cells = style(sweep.algorithm), sweep.cells
        spread = [mean_std(cell.scores) for cell in cells.values()]
        data += [
            {
                "type": "scatter",
                "mode": "markers",
                "x": [value for value, cell in cells.items() for _ in cell.scores],
                "y": [round(float(score), 4) for cell in cells.values() for score in cell.scores],
                "marker": {"size": 5, "opacity": 0.45},
                "legendgroup": sweep.algorithm,
                "showlegend": False,
                "hovertemplate": "one seed: %{y}<extra></extra>",
                "meta": _meta(sweep.algorithm, "seeds"),
            },
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": ALGORITHMS[sweep.algorithm].label,
                "legendgroup": sweep.algorithm,
                "x": list(cells),
                "y": [round(mean, 4) for mean, _ in spread],
                "error_y": {"type": "data", "array": [round(std or 0.0, 4) for _, std in spread]},
                "text": [describe(cell, swept=True) for cell in cells.values()],
                "hovertemplate": f"{symbol} = %{{x}}: %{{y:.1f}} ± %{{error_y.array:.1f}}<br>%{{text}}<extra></extra>",
                "line": {"width": 2, "dash": look.plotly_dash},
                "marker": {"size": 8, "symbol": look.plotly_marker},
                "meta": _meta(sweep.algorithm, "mean"),
            },
        ]
    values = sorted({value for sweep in sweeps for value in sweep.cells})
    layout = _layout(f"{env_title(env)}: {symbol} at {fixed}", symbol, "final score")
    layout["xaxis"] |= {"type": "log", "tickvals": values, "ticktext": [f"{value:g}" for value in values]}
    line = {"type": "line", "x0": chosen, "x1": chosen, "yref": "paper", "y0": 0, "y1": 1}
    note = {"x": float(np.log10(chosen)), "y": 1, "yref": "paper", "text": "paper's choice", "showarrow": False}
    layout["shapes"] = [line | {"line": {"width": 1, "dash": "dot", "color": "#888"}}]
    layout["annotations"] = [note | {"xanchor": "right", "yanchor": "bottom", "font": {"size": 10}}]
    return {"data": data, "layout": layout}


def _benchmark_curves(benchmark: Benchmark, task: Task) -> Plot:
    data = []
    for name, entry in benchmark.tasks[task].items():
        for i, run in enumerate(entry.runs):
            trace = _trace(name, run.train.tolist(), run.means.round(4).tolist(), "lines")
            hover = [f"seed {run.seed}, step {step:,}" for step in run.evaluated_at.tolist()]
            data.append(trace | {"showlegend": i == 0, "text": hover, "hovertemplate": "%{text}: %{y} after %{x} s"})
    layout = _layout(env_title(task.env), "CPU seconds of training", "return")
    layout["xaxis"]["type"] = "log"
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": task.target_score, "y1": task.target_score}
    layout["shapes"] = [line | {"line": {"width": 1.5, "dash": "dot", "color": "#888"}}]
    return {"data": data, "layout": layout}


def _trace(name: str, x: list[float], y: list[float], mode: str) -> Plot:
    return {
        "type": "scatter",
        "mode": mode,
        "name": ALGORITHMS[name].label,
        "legendgroup": name,
        "x": x,
        "y": y,
        "line": {"width": 1.6, "dash": style(name).plotly_dash},
        "meta": _meta(name, "mean"),
    }
