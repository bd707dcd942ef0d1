"""A small document model: sections with notes and tables of text, and their Markdown. ``page.py`` writes the HTML."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from softdpg.report.statistics import Estimate

MISSING = "–"


class Text(NamedTuple):
    """A table cell: the main text, and a second, smaller line."""

    main: str
    detail: str = ""
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """A title, column names and rows of cells."""

    title: str
    header: list[str]
    rows: list[list[Text]]


@dataclass(frozen=True)
class Section:
    """A part of the report.

    :param key: anchor in the HTML page
    :param title: heading
    :param notes: paragraphs below the heading
    :param tables: tables below the notes
    :param envs: environments whose learning curves belong to the section
    """

    key: str
    title: str
    notes: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    envs: list[str] = field(default_factory=list)


def to_markdown(title: str, introduction: Iterable[str], sections: Iterable[Section]) -> str:
    """Return a document as Markdown.

    :param title: heading of the document
    :param introduction: items of a list below the heading
    :param sections: parts of the document
    """
    text = f"# {title}\n\n" + "".join(f"- {line}\n" for line in introduction)
    for section in sections:
        text += f"\n## {section.title}\n"
        text += "".join(f"\n{note}\n" for note in section.notes)
        for table in section.tables:
            text += f"\n### {table.title}\n\n" + "".join(f"{line}\n" for line in _table_lines(table))
    return text


def to_text(table: Table) -> str:
    """Return a table for the terminal: aligned columns, the second line of a cell in brackets.

    :param table: the table
    """
    rows = [
        table.header,
        *([f"{cell.main} ({cell.detail})" if cell.detail else cell.main for cell in row] for row in table.rows),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def interval(estimate: Estimate) -> str:
    """Return the interval of an estimate in brackets, or an empty string if it has none.

    :param estimate: a value and its interval
    """
    return "" if estimate.low is None else f"[{estimate.low:.2f}, {estimate.high:.2f}]"


def _table_lines(table: Table) -> list[str]:
    body = ([_markdown(cell) for cell in row] for row in table.rows)
    return [f"| {' | '.join(row)} |" for row in (table.header, ["---"] * len(table.header), *body)]


def _markdown(cell: Text) -> str:
    main, detail = (text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ") for text in cell[:2])
    return (f"**{main}**" if cell.bold else main) + (f"<br>{detail}" if detail else "")
