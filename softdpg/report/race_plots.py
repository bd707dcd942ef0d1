"""Interactive plots of the race for the report's page."""

from typing import Any

from softdpg.algorithms.registry import ALGORITHMS
from softdpg.report.plots import Plot, layout_of, meta
from softdpg.report.style import env_title, style
from softdpg.results.race import COSTS, Column, Race, RaceRun, compared, profile


def race_plots(race: Race) -> list[Plot]:
    """The profiles against CPU seconds and steps, then the learning curves of each column."""
    names, columns = compared(race)
    plots = []
    for cost in COSTS if columns else ():
        data = []
        for name in names:
            reached, shares, _ = profile(race, name, columns, cost)
            data.append(_line(name, reached, shares, "lines+markers") | {"line": _look(name) | {"shape": "hv"}})
        layout = layout_of(f"Columns crossed, of {len(columns)}", cost.label, "share of columns")
        layout["xaxis"]["type"] = "log"
        layout["yaxis"] |= {"range": [0, 1.03], "tickformat": ".0%"}
        plots.append({"data": data, "layout": layout})
    return plots + [_curves(race, column) for column in race.columns]


def _curves(race: Race, column: Column) -> Plot:
    data = []
    for name, entry in race.columns[column].items():
        for i, run in enumerate(entry.runs):
            data.append(
                _line(name, run.train.tolist(), run.means.round(4).tolist(), "lines", shown=i == 0) | _hover(run)
            )
    layout = layout_of(env_title(column.env), "CPU seconds of training", "return")
    layout["xaxis"]["type"] = "log"
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": column.goal, "y1": column.goal}
    layout["shapes"] = [line | {"line": {"width": 1.5, "dash": "dot", "color": "#888"}}]
    return {"data": data, "layout": layout}


def _hover(run: RaceRun) -> Plot:
    texts = [f"seed {run.settings.seed}, step {step:,}" for step in run.evaluated_at.tolist()]
    return {"text": texts, "hovertemplate": "%{text}: %{y} after %{x} s"}


def _line(name: str, x: list[float], y: list[float], mode: str, shown: bool = True) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": mode,
        "name": ALGORITHMS[name].label,
        "legendgroup": name,
        "showlegend": shown,
        "x": x,
        "y": y,
        "line": _look(name),
        "meta": meta(name, "mean"),
    }


def _look(name: str) -> dict[str, Any]:
    return {"width": 1.6, "dash": style(name).plotly_dash}
