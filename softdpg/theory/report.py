"""``softdpg theory``: the sweep as a table or as JSON, and the figure."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from softdpg.theory.check import Check
from softdpg.theory.figure import draw_errors
from softdpg.theory.sweep import run_counterexamples, run_statements

FIGURE = "error_vs_sigma.png"


def run(all_cases: bool, as_json: bool, out: Path) -> None:
    """Evaluate everything, print it, write the figure. With ``as_json`` standard output carries the JSON alone."""
    statements, pairs = list(run_statements()), list(run_counterexamples())
    figure = draw_errors(out / FIGURE)
    if as_json:
        records = [check.record() for check in [*statements, *(check for pair in pairs for check in pair)]]
        json.dump(records, sys.stdout, indent=1, allow_nan=False)
        print()
    else:
        print_tables(Console(width=None if sys.stdout.isatty() else 120), statements, pairs, all_cases)
    print(f"figure: {figure}", file=sys.stderr)


def print_tables(console: Console, statements: list[Check], pairs: list[tuple[Check, Check]], all_cases: bool) -> None:
    """One row a statement and family of problems, with its worst case; then what fails as written."""
    if all_cases:
        table = _table("Statements, case by case", "problem, sigma")
        for check in statements:
            _row(table, check, check.holds, f"{check.problem}, {check.sigma:g}")
    else:
        table = _table("Statements on problems that satisfy their assumptions: the worst case of each", "cases")
        for check, cases, holds in summarise(statements):
            _row(table, check, holds, f"{cases} {check.family}")
    console.print(table)
    table = _table("As written these do not hold; below each, the form that does", "problem, sigma")
    for pair in pairs:
        for check in pair:
            _row(table, check, check.holds, f"{check.problem}, {check.sigma:g}" if check.sigma else check.problem)
        table.add_section()
    console.print(table)
    console.print("* corrected or sharper than in the paper", style="dim")
    held = sum(check.holds for check in statements)
    console.print(
        f"{held} of {len(statements)} cases hold. {sum(not wrong.holds for wrong, _ in pairs)} statements fail as "
        f"written on the problem shown; {sum(right.holds for _, right in pairs)} of {len(pairs)} corrected forms hold. "
        "Why: docs/theory.md.",
        highlight=False,
    )


def summarise(checks: Iterable[Check]) -> list[tuple[Check, int, bool]]:
    """For each statement and family of problems: the worst case, the number of cases, whether all hold."""
    order: dict[tuple[str, str, str], int] = {}
    checks = list(checks)
    for check in checks:
        order.setdefault(_group(check), len(order))
    rows = []
    for _, group in groupby(sorted(checks, key=lambda c: order[_group(c)]), key=_group):
        cases = list(group)
        rows.append((max(cases, key=_severity), len(cases), all(case.holds for case in cases)))
    return sorted(rows, key=lambda row: (_position(row[0].reference), row[0].reference, row[0].statement))


def _group(check: Check) -> tuple[str, str, str]:
    return check.reference, check.statement, check.family


def _position(reference: str) -> float:
    """Where a reference stands in the paper: by its number; what precedes or replaces a lemma goes with it."""
    digits = "".join(c for c in reference if c.isdigit() or c == ".").strip(".")
    return 6.0 if "A." in reference else 3.05 if "Equation" in reference else float(digits)


def _severity(check: Check) -> float:
    """Larger is worse: how close an inequality is, how far an equality is off, how small a difference is."""
    if check.kind == "inequality":
        return check.ratio
    return -check.measured if check.kind == "distinct" else relative_error(check)


def relative_error(check: Check) -> float:
    """Error of an equality relative to its larger side."""
    size = max(abs(check.claimed), abs(check.measured))
    return check.error / size if size > 0 else 0.0


ABBREVIATIONS = {
    "Definition": "Def", "Lemma": "Lem", "Theorem": "Thm", "Equations": "Eq", "Equation": "Eq", "Section": "Sec",
    "Algorithm": "Alg", "Proof of ": "~", "instead of ": "~", ", line": ":",
}  # fmt: skip


def _table(title: str, detail: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=0)
    table.add_column("paper", no_wrap=True)
    table.add_column("statement", min_width=16)
    table.add_column(detail, min_width=8, style="dim")
    for name in ("claimed", "measured", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("holds", no_wrap=True)
    return table


def _row(table: Table, check: Check, holds: bool, detail: str) -> None:
    reference = check.reference
    for long, short in ABBREVIATIONS.items():
        reference = reference.replace(long, short)
    relation = {"inequality": "≤ ", "distinct": "> "}.get(check.kind, "")
    ratio = "-" if check.ratio != check.ratio or check.kind == "distinct" else f"{check.ratio + 0.0:.3g}"
    if check.holds and check.kind in ("equality", "limit"):
        ratio = f"1±{relative_error(check):.0e}" if relative_error(check) > 1e-16 else "1"
        ratio = ratio if check.measured else "-"
    table.add_row(
        reference + ("" if check.as_written else " *"),
        Text(check.statement),
        Text(detail),
        f"{relation}{check.claimed:.4g}",
        f"{check.measured:.4g}",
        ratio,
        "[green]yes[/]" if holds else "[red]NO[/]",
    )
