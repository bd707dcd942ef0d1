"""``softdpg theory``: the sweep as a table or as JSON, and the figure of the smoothing error beside its bound."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from softdpg.theory import bellman_statements as bellman
from softdpg.theory.check import Check
from softdpg.theory.problems import random_finite, random_lqr, rule_for, sharp_reward
from softdpg.theory.sweep import run_counterexamples, run_statements

FIGURE = "error_vs_sigma.png"
SIGMAS = np.geomspace(0.01, 1.0, 17)
# Okabe-Ito: distinguishable with colour vision deficiencies; line styles carry the same information in grey.
BLUE, ORANGE, GREEN, BLACK = "#0072B2", "#D55E00", "#009E73", "#000000"


def run(all_cases: bool, as_json: bool, out: Path) -> None:
    """Evaluate every statement, print the results and write the figure.

    :param all_cases: print every case instead of the worst case of each statement
    :param as_json: print JSON, and nothing else, on standard output
    :param out: folder of the figure
    """
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
    """Print one row per statement and family of problems with its worst case, then the statements that fail as written.

    :param console: where to print
    :param statements: outcomes of the sweep
    :param pairs: counterexamples, each beside the form that holds
    :param all_cases: print one row per case
    """
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
    """Return the worst case of each statement and family of problems, the number of cases, and whether all hold."""
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
    """Order references by their number in the paper. What precedes or replaces a lemma goes with it."""
    digits = "".join(c for c in reference if c.isdigit() or c == ".").strip(".")
    return 6.0 if "A." in reference else 3.05 if "Equation" in reference else float(digits)


def _severity(check: Check) -> float:
    """Rank cases: the larger the worse. A close inequality, an inexact equality and a small difference are bad."""
    if check.kind == "inequality":
        return check.ratio
    return -check.measured if check.kind == "distinct" else relative_error(check)


def relative_error(check: Check) -> float:
    """Return the error of an equality relative to its larger side."""
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


def draw_errors(path: Path) -> Path:
    """Draw four panels: the bounds where they are sharp and on a smooth problem, LQR, and the policy gradient."""
    figure = Figure(figsize=(9.6, 7.4), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    _bounds(axes[0, 0], sharp_reward(), "(a) kink at the policy: 1 state, R = 2 - |a|")
    _bounds(axes[0, 1], random_finite(2), "(b) smooth: 3 states, R and P sinusoidal")
    _lqr(axes[1, 0])
    _gradients(axes[1, 1])
    for ax in axes.flat:
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.grid(True, which="major", color="0.88", linewidth=0.8)
        ax.legend(fontsize=8.5, framealpha=0.95)
    for ax in axes[1]:
        ax.set_xlabel("smoothing parameter $\\sigma$ (units of the action)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return path


def _bounds(ax: Axes, problem: bellman.FiniteProblem, title: str) -> None:
    curves = (
        ("bound on |V - V$_\\sigma$|, lemma 5.3", bellman.value_error_bound, "claimed", BLUE, "--"),
        ("|V - V$_\\sigma$|, largest over states", bellman.value_error_bound, "measured", BLUE, "-"),
        ("bound on |Q - Q$_\\sigma$|, lemma 5.5", bellman.q_error_bound, "claimed", ORANGE, (0, (1, 1))),
        ("|Q - Q$_\\sigma$|, largest over states, actions", bellman.q_error_bound, "measured", ORANGE, "-."),
    )
    for label, statement, side, color, style in curves:
        values = [getattr(statement(problem, sigma), side) for sigma in SIGMAS]
        ax.plot(SIGMAS, values, color=color, linestyle=style, linewidth=2, label=label)
    ax.set_title(title, fontsize=10.5, loc="left")
    ax.set_ylabel("error (discounted return)")


def _lqr(ax: Axes) -> None:
    problem = random_lqr(1)
    checks = [bellman.lqr_value_error(problem, sigma) for sigma in SIGMAS]
    ax.plot(
        SIGMAS,
        [c.claimed for c in checks],
        color=BLACK,
        linestyle=":",
        linewidth=2,
        label="closed form, O($\\sigma^2$)",
    )
    ax.plot(
        SIGMAS, [c.measured for c in checks], color=BLUE, linestyle="none", marker="o", markersize=5,
        label="|V - V$_\\sigma$|, the same in each state",
    )  # fmt: skip
    ax.set_title("(c) LQR: R unbounded, no bound of the paper applies", fontsize=10.5, loc="left")
    ax.set_ylabel("error (discounted return)")


def _gradients(ax: Axes) -> None:
    for name, problem, color, style in (
        ("finite, 3 states", random_finite(2), GREEN, "-"),
        ("LQR, 2 state dimensions", random_lqr(1), ORANGE, "--"),
    ):
        rule = rule_for(problem, 0.0)
        dpg = problem.dpg(problem.theta, rule)
        errors = [np.linalg.norm(problem.soft_dpg(problem.theta, s, rule) - dpg) for s in SIGMAS]
        ax.plot(SIGMAS, np.array(errors) / np.linalg.norm(dpg), color=color, linestyle=style, linewidth=2, label=name)
    ax.plot(SIGMAS, SIGMAS**2, color="0.5", linestyle=":", linewidth=1.5, label="slope 2")
    ax.set_title("(d) Soft-DPG to DPG, lemma 3.4", fontsize=10.5, loc="left")
    ax.set_ylabel("relative distance of the gradients")
