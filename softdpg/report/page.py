"""``report.html``: one file with everything in it, plotly.js too, that makes no request to any network."""

import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from softdpg.algorithms.registry import ALGORITHMS
from softdpg.report.document import Section, Table, Text
from softdpg.report.plots import curve_plot, sweep_plots
from softdpg.report.race_plots import race_plots
from softdpg.report.race_tables import HOW_TO_READ as RACE_HOW_TO_READ
from softdpg.report.style import style
from softdpg.report.tables import coverage, format_steps, how_to_read
from softdpg.results.cells import Results
from softdpg.results.race import Race, RaceRun
from softdpg.results.records import Run


def render(results: Results, sections: list[Section], warnings: list[str], race: Race) -> str:
    """The page as text; ``warnings`` name what was left out on reading, ``race`` may be without runs."""
    from plotly.offline import get_plotlyjs

    sections = sections + _warnings(warnings)
    toc = [("reading", "How to read this"), *((section.key, section.title) for section in sections)]
    return Template(files("softdpg.report").joinpath("report.html").read_text(encoding="utf-8")).substitute(
        tiles="".join(
            f"<div><b>{value}</b><span>{label}</span></div>" for value, label in _tiles([*results.runs, *race.runs])
        ),
        coverage=escape(coverage(results)) if results.runs else "",
        reading="".join(
            f"<li>{_inline(line)}</li>" for line in (how_to_read(results) if results.runs else RACE_HOW_TO_READ)
        ),
        toc="".join(f'<li><a href="#{key}">{escape(title)}</a></li>' for key, title in toc),
        sections="".join(_section(section, _plots(section, results, race)) for section in sections),
        colors=_colors("color"),
        dark_colors=_colors("dark_color"),
        plotly=get_plotlyjs(),
    )


def _tiles(runs: Sequence[Run | RaceRun]) -> list[tuple[str, str]]:
    finished = sum(run.state == "finished" for run in runs)
    hours = sum(run.seconds for run in runs) / 3600
    return [
        (f"{finished} / {len(runs)}", "runs finished"),
        (str(len({run.settings.env for run in runs})), "environments"),
        (str(len({run.settings.seed for run in runs})), "seeds"),
        (format_steps(sum(int(run.evaluated_at[-1]) for run in runs if len(run.means))), "environment steps"),
        (f"{hours:.1f} h", "wall time, all runs"),
    ]


def _warnings(warnings: list[str]) -> list[Section]:
    table = Table("Warnings", ["What was left out or doubtful on reading"], [[Text(warning)] for warning in warnings])
    return [Section("warnings", "Left out", [], [table])] if warnings else []


def _plots(section: Section, results: Results, race: Race) -> list[dict[str, Any]]:
    if section.key == "race":
        return race_plots(race)
    if section.key == "sensitivity":
        return sweep_plots(results)
    return [curve_plot(results.rows[env]) for env in section.envs]


def _section(section: Section, plots: list[dict[str, Any]]) -> str:
    body = "".join(f"<p>{_inline(note)}</p>" for note in section.notes)
    body += "".join(_table(table) for table in section.tables)
    if plots:
        figures = "".join(
            f'<figure class="plot"><script type="application/json">{_json(p)}</script></figure>' for p in plots
        )
        body += f'<div class="plots">{figures}</div>'
    return f'<section id="{section.key}"><h2>{escape(section.title)}</h2>{body}</section>'


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.header)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in table.rows)
    head = f"<thead><tr>{head}</tr></thead>" if any(table.header) else ""
    return (
        f'<h3>{escape(table.title)}</h3><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(table.title)}"><table>{head}<tbody>{body}</tbody></table></div>'
    )


def _row(row: list[Text]) -> str:
    cells = []
    for i, (main, detail, bold) in enumerate(row):
        tag = "td" if i else 'th scope="row"'
        text = f"<b{_short(main)}>{escape(main)}</b>" if bold else f"<span{_short(main)}>{escape(main)}</span>"
        small = f"<small{_short(detail)}>{escape(detail)}</small>" if detail else ""
        cells.append(f"<{tag}>{text}{small}</{tag[:2]}>")
    return "".join(cells)


def _short(text: str) -> str:
    """Numbers with their interval or deviation stay on one line; longer text may wrap."""
    return ' class="short"' if len(text) < 26 else ""


def _inline(text: str) -> str:
    """Escaped text with ``*emphasis*``."""
    return re.sub(r"\*(.+?)\*", r"<em>\1</em>", escape(text))


def _json(value: Any) -> str:
    """JSON that can stand inside a script element whatever text it holds."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _colors(attribute: str) -> str:
    return "".join(f"--{name}: {getattr(style(name), attribute)};" for name in ALGORITHMS)
