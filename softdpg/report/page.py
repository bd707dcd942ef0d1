"""``softdpg report`` and the files of ``softdpg race``: CSV files, Markdown, figures and one HTML page.

``report.html`` is one file with everything in it, plotly.js included. It makes no network request.
"""

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from softdpg.algorithms.registry import ALGORITHMS
from softdpg.errors import UserError
from softdpg.report.benchmark import Benchmark
from softdpg.report.benchmark_tables import benchmark_sections, main_table
from softdpg.report.document import Section, Table, Text, to_markdown, to_text
from softdpg.report.figures import write_benchmark_figures, write_figures
from softdpg.report.plots import benchmark_plots, curve_plot, sweep_plots
from softdpg.report.reading import (
    BENCHMARK,
    CURVES,
    read_earlier,
    read_runs,
    write_benchmark,
    write_curves,
    write_results,
)
from softdpg.report.runs import Run, joined
from softdpg.report.scores import Results, arrange
from softdpg.report.style import env_title, format_steps, style
from softdpg.report.tables import coverage, how_to_read, sections


class Report(NamedTuple):
    """What was written.

    :param files: files that were written
    :param warnings: one sentence for each run that was skipped or is doubtful
    :param summary: one sentence on what the report covers
    """

    files: list[Path]
    warnings: list[str]
    summary: str


def write_report(path: Path, out: Path | None = None, earlier: Sequence[Path] = ()) -> Report:
    """Read runs and write ``report.html``, ``tables.md``, ``results.csv`` and figures.

    The files of a benchmark are written as well if some runs have a target score. The same runs give the same
    ``tables.md`` and CSV files, byte for byte, whether they are read from directories or from CSV files.

    :param path: directory with run directories anywhere below it, a ``results.csv`` or a ``race.csv``
    :param out: directory to write to; ``path/report`` unless given, or the directory of the CSV file
    :param earlier: ``race.csv`` files of earlier benchmarks, whose runs are added
    """
    runs, with_target, warnings = read_runs(path)
    with_target = joined(with_target, read_earlier(earlier)) if earlier else with_target
    if not runs and not with_target:
        raise UserError(f"{path}: no runs with evaluations found" + (f" ({warnings[0]})" if warnings else ""))
    results, benchmark = arrange(runs), Benchmark(with_target)
    parts = (benchmark_sections(benchmark) if with_target else []) + sections(results)
    summary = coverage(results) if runs else f"{len(with_target)} runs of a benchmark."
    contents = {
        "report.html": render(results, parts, warnings, benchmark, summary),
        "tables.md": to_markdown(title(results, benchmark), [summary, *(how_to_read(results) if runs else ())], parts),
    } | ({"results.csv": write_results(runs)} if runs else {})
    if out is None:
        out = path / "report" if path.is_dir() else path.parent
        if out.is_symlink():
            raise UserError(f"{out} must not be a symbolic link; choose another directory with --out")
    with _written_aside(out) as aside:
        written = _write(contents, aside) + write_figures(results, aside)
        written += _benchmark_files(benchmark, aside) if with_target else []
    return Report([out / file.name for file in written], warnings, summary)


def write_benchmark_report(runs: list[Run], out: Path) -> Report:
    """Write ``race.csv``, ``race_curves.csv``, ``race.md`` and the figures of a benchmark.

    The summary of the returned report is the main table for the terminal.

    :param runs: runs with a target score
    :param out: directory to write to
    """
    benchmark = Benchmark(runs)
    with _written_aside(out) as aside:
        written = _benchmark_files(benchmark, aside)
    return Report([out / file.name for file in written], [], to_text(main_table(benchmark)))


def _benchmark_files(benchmark: Benchmark, directory: Path) -> list[Path]:
    contents = {
        BENCHMARK: write_benchmark(benchmark.runs),
        CURVES: write_curves(benchmark.runs),
        "race.md": to_markdown("Benchmark: tables", [], benchmark_sections(benchmark)),
    }
    return _write(contents, directory) + write_benchmark_figures(benchmark, directory)


@contextmanager
def _written_aside(out: Path) -> Iterator[Path]:
    """Give a directory whose files are moved to ``out`` in the end; raise ``UserError`` if that fails.

    Whoever reads a file meanwhile sees the old one or the new one. Nobody knows the directory's name, so that no link
    can wait in the place of a file.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".report-", dir=out) as aside:
            yield Path(aside)
            for file in Path(aside).iterdir():
                file.replace(out / file.name)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}") from None


def _write(contents: dict[str, str], directory: Path) -> list[Path]:
    for name, text in contents.items():
        (directory / name).write_text(text, encoding="utf-8", newline="\n")
    return [directory / name for name in contents]


def render(results: Results, sections: list[Section], warnings: list[str], benchmark: Benchmark, summary: str) -> str:
    """Return the HTML page.

    :param results: arranged runs without a target score
    :param sections: text of the page
    :param warnings: one sentence for each run that was skipped or is doubtful
    :param benchmark: runs with a target score, possibly none
    :param summary: one sentence on what the report covers
    """
    from plotly.offline import get_plotlyjs

    sections = sections + _warnings(warnings)
    toc = [("reading", "How to read this"), *((section.key, section.title) for section in sections)]
    reading = how_to_read(results) if results.runs else ()  # a benchmark has its own notes
    tiles = _tiles([*results.runs, *benchmark.runs])
    return Template(files("softdpg.report").joinpath("report.html").read_text(encoding="utf-8")).substitute(
        title=escape(title(results, benchmark)),
        tiles="".join(f"<div><b>{value}</b><span>{label}</span></div>" for value, label in tiles),
        summary=escape(summary),
        reading="".join(f"<li>{_inline(line)}</li>" for line in reading),
        toc="".join(f'<li><a href="#{key}">{escape(title)}</a></li>' for key, title in toc),
        sections="".join(_section(section, _plots(section, results, benchmark)) for section in sections),
        colors=_colors("color"),
        dark_colors=_colors("dark_color"),
        plotly=get_plotlyjs(),
    )


def title(results: Results, benchmark: Benchmark) -> str:
    """Return the title of a report: its environment if there is only one, or how many there are.

    :param results: arranged runs without a target score
    :param benchmark: runs with a target score, possibly none
    """
    envs = list(dict.fromkeys(run.env for run in (*results.runs, *benchmark.runs)))
    return f"Results on {env_title(envs[0])}" if len(envs) == 1 else f"Results on {len(envs)} environments"


def _tiles(runs: Sequence[Run]) -> list[tuple[str, str]]:
    finished = sum(run.finished for run in runs)
    hours = sum(run.wall_seconds for run in runs) / 3600
    return [
        (f"{finished} / {len(runs)}", "runs finished"),
        (str(len({run.settings.env for run in runs})), "environments"),
        (str(len({run.settings.seed for run in runs})), "seeds"),
        (format_steps(sum(run.last_step for run in runs)), "environment steps"),
        (f"{hours:.1f} h", "wall time, all runs"),
    ]


def _warnings(warnings: list[str]) -> list[Section]:
    table = Table("Warnings", ["Runs that were skipped or are doubtful"], [[Text(warning)] for warning in warnings])
    return [Section("warnings", "Warnings", [], [table])] if warnings else []


def _plots(section: Section, results: Results, benchmark: Benchmark) -> list[dict[str, Any]]:
    if section.key == "benchmark":
        return benchmark_plots(benchmark)
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
