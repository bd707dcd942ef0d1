"""``softdpg report``: from run directories, or a stored ``results.csv``, to tables, figures and one HTML page."""

import tempfile
from pathlib import Path
from typing import NamedTuple

from softdpg.errors import UserError
from softdpg.report.document import to_markdown
from softdpg.report.figures import write_figures
from softdpg.report.page import render
from softdpg.report.tables import coverage, how_to_read, sections
from softdpg.results import reading as results
from softdpg.results.cells import arrange


class Report(NamedTuple):
    """What was written, what was left out on reading, and how much of the paper's tables it covers."""

    files: list[Path]
    warnings: list[str]
    coverage: str


def write_report(path: Path, out: Path | None = None) -> Report:
    """Read runs from ``path`` and write ``report.html``, ``tables.md``, ``results.csv`` and figures to ``out``.

    ``out`` is ``path/report`` unless given, or the directory of ``path`` if that is a ``results.csv``. The same
    runs give the same ``tables.md`` and ``results.csv``, byte for byte, read from either.
    """
    runs, warnings = results.read(path)
    arranged = arrange(runs)
    parts = sections(arranged)
    summary = coverage(arranged)
    texts = {
        "report.html": render(arranged, parts, warnings),
        "tables.md": to_markdown("Results", [summary, *how_to_read(arranged)], parts),
        "results.csv": results.write_csv(runs),
    }
    if out is None:
        out = path / "report" if path.is_dir() else path.parent
        if out.is_symlink():
            raise UserError(f"{out} is a link, which is not followed; --out names a place")
    try:
        out.mkdir(parents=True, exist_ok=True)
        # Aside, then renamed: whoever reads a file meanwhile sees the old one or the new one. In a directory whose name
        # nobody knows: no link can wait in the place of a file.
        with tempfile.TemporaryDirectory(prefix=".report-", dir=out) as aside:
            for name, text in texts.items():
                (Path(aside) / name).write_text(text, encoding="utf-8", newline="\n")
            written = [*(Path(aside) / name for name in texts), *write_figures(arranged, Path(aside))]
            files = [file.replace(out / file.name) for file in written]
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}") from None
    return Report(files, warnings, summary)
