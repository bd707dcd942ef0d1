"""A small document model, titles, notes and tables of text, and its Markdown; ``report.py`` makes HTML of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


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
    """A part of the report; ``envs`` are the environments whose learning curves belong to it."""

    key: str
    title: str
    notes: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    envs: list[str] = field(default_factory=list)


def to_markdown(title: str, introduction: Iterable[str], sections: Iterable[Section]) -> str:
    """The document as Markdown; ``introduction`` becomes a list."""
    text = f"# {title}\n\n" + "".join(f"- {line}\n" for line in introduction)
    for section in sections:
        text += f"\n## {section.title}\n"
        text += "".join(f"\n{note}\n" for note in section.notes)
        for table in section.tables:
            text += f"\n### {table.title}\n\n" + "".join(f"{line}\n" for line in table_lines(table))
    return text


def table_lines(table: Table) -> list[str]:
    """A table in Markdown, without its title."""
    body = ([_markdown(cell) for cell in row] for row in table.rows)
    return [f"| {' | '.join(row)} |" for row in (table.header, ["---"] * len(table.header), *body)]


def to_text(table: Table) -> str:
    """A table for the terminal: columns in line, the second line of a cell in brackets."""
    rows = [
        table.header,
        *([f"{cell.main} ({cell.detail})" if cell.detail else cell.main for cell in row] for row in table.rows),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _markdown(cell: Text) -> str:
    main, detail = (text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ") for text in cell[:2])
    return (f"**{main}**" if cell.bold else main) + (f"<br>{detail}" if detail else "")
