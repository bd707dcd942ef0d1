"""``softdpg report``: from run directories, or a stored ``results.csv``, to tables, figures and one HTML page."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from softdpg.errors import UserError
from softdpg.report.document import to_markdown
from softdpg.report.figures import write_figures
from softdpg.report.page import render
from softdpg.report.race_tables import race_sections
from softdpg.report.race_writing import write_race_files
from softdpg.report.replacing import write_texts, written_aside
from softdpg.report.tables import coverage, how_to_read, sections
from softdpg.results import reading as results
from softdpg.results.cells import arrange
from softdpg.results.race import Race
from softdpg.results.race_reading import is_race, joined, read_earlier, read_race


class Report(NamedTuple):
    """What was written, what was left out on reading, and how much of the paper's tables it covers."""

    files: list[Path]
    warnings: list[str]
    coverage: str


def write_report(path: Path, out: Path | None = None, earlier: Sequence[Path] = ()) -> Report:
    """Read runs from ``path`` and write ``report.html``, ``tables.md``, ``results.csv`` and figures to ``out``.

    ``out`` is ``path/report`` unless given, or the directory of ``path`` if that is a ``results.csv`` or ``race.csv``.
    The same runs give the same ``tables.md`` and CSV files, byte for byte, read from either. Where there is a race,
    its own files are written as well, with the runs of ``earlier`` races among its own.
    """
    racing, warnings = read_race(path)
    racing = joined(racing, read_earlier(earlier)) if earlier else racing
    runs, more = ([], []) if is_race(path) else results.read(path, may_be_none=bool(racing))
    warnings = warnings + more
    arranged, race = arrange(runs), Race(racing)
    parts = (race_sections(race) if racing else []) + sections(arranged)
    summary = coverage(arranged) if runs else f"{len(racing)} runs of a race."
    texts = {
        "report.html": render(arranged, parts, warnings, race),
        "tables.md": to_markdown("Results", [summary, *(how_to_read(arranged) if runs else ())], parts),
    } | ({"results.csv": results.write_csv(runs)} if runs else {})
    if out is None:
        out = path / "report" if path.is_dir() else path.parent
        if out.is_symlink():
            raise UserError(f"{out} is a link, which is not followed; --out names a place")
    with written_aside(out) as aside:
        written = write_texts(texts, aside) + write_figures(arranged, aside)
        written += write_race_files(race, aside) if racing else []
    return Report([out / file.name for file in written], warnings, summary)
