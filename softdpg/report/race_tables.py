"""The race in tables: time to the line by column and contender, one contender against another, what it cost."""

from collections import Counter
from collections.abc import Sequence
from math import isfinite

from softdpg.algorithms.registry import ALGORITHMS
from softdpg.report.document import Section, Table, Text
from softdpg.report.style import env_title
from softdpg.report.tables import MISSING, format_steps
from softdpg.results.race import FALLBACK, HOLD, Column, Entry, Race, cost_ratio, effect, fallbacks
from softdpg.results.statistics import Estimate

HOW_TO_READ = (
    "The finishing line of a column is the better of the paper's two mean scores, or the goal that was given. A run "
    "has crossed it when two evaluations in a row, of 10 deterministic episodes each and 2,000 steps apart, have a "
    "mean at or above it; it counts from the second.",
    "Measured are environment steps and CPU seconds, user and system time of the whole process, of training: "
    "evaluation and compilation are apart, in a table of their own.",
    "Medians over seeds; a seed that has not crossed counts as later than any that has. Where the line was not crossed "
    "in the median, the budget and the score at its end stand in the cell.",
)

HOW_TO_READ_EFFECTS = (
    "Units: ratio of geometric means over seeds, its geometric mean over columns, with the budget's cost where a seed "
    "has not crossed; above 1 is slower. Brackets: 95 % percentile bootstrap intervals over seeds. With so few seeds "
    "they are too narrow rather than too wide."
)


def race_sections(race: Race) -> list[Section]:
    """Everything in text that the race has to show."""
    budgets = sorted({run.settings.steps for run in race.runs})
    notes = [*HOW_TO_READ, f"Budget: {' or '.join(map(format_steps, budgets))} steps."]
    notes += processors_note(race)
    tables = [main_table(race), contender_table(race)]
    if ablated(race):
        notes.append(HOW_TO_READ_EFFECTS)
    elif len(race.contenders) > 1:
        tables.append(ratio_table(race))
    return [Section("race", "The race", notes, tables)]


def processors_note(race: Race) -> list[str]:
    """Whose runs were made on which processor, if there are several: CPU seconds are the machine's, steps are not."""
    runs = Counter((str(dict(run.machine).get("processor") or ""), run.contender) for run in race.runs)
    processors = sorted({processor for processor, _ in runs if processor})
    if len(processors) < 2:
        return []
    counts = {
        processor: [
            f"{ALGORITHMS[name].label} {runs[processor, name]}" for name in race.contenders if runs[processor, name]
        ]
        for processor in processors
    }
    who = "; ".join(f"{processor}: {', '.join(counted)}" for processor, counted in counts.items())
    return [f"The runs are from different processors, so that CPU seconds compare less well than steps. Runs on {who}."]


def ablated(race: Race) -> str:
    """The algorithm of which all other contenders are variants, if it is so; empty if not."""
    bases = {ALGORITHMS[name].base for name in race.contenders}
    base = bases.pop()
    return base if not bases and base in race.contenders and len(race.contenders) > 1 else ""


def main_table(race: Race) -> Table:
    """Who was how soon at the line: a row for each column, or of an ablation for each variant."""
    return effect_table(race, ablated(race)) if ablated(race) else line_table(race)


def effect_table(race: Race, reference: str) -> Table:
    """What each variant needs to the line in units of ``reference``, and on which column."""
    rows = []
    for name in [reference, *(name for name in race.contenders if name != reference)]:
        found = effect(race, name, reference) if name != reference else None
        ratios = [_estimate_text(estimate) for estimate in found] if found else [Text(MISSING)] * 2
        cells = [entry_text(entries.get(name)) for entries in race.columns.values()]
        rows.append([Text(ALGORITHMS[name].label, bold=name == reference), *ratios, *cells])
    of = f"in units of {ALGORITHMS[reference].label}"
    header = ["Contender", f"CPU seconds {of}", f"Steps {of}"]
    header += [f"{env_title(column.env)}, {column.goal:,.2f}" for column in race.columns]
    return Table("To the line with one ingredient changed", header, rows)


def _estimate_text(estimate: Estimate) -> Text:
    interval = "" if estimate.low is None else f"[{estimate.low:.2f}, {estimate.high:.2f}]"
    return Text(f"{estimate.value:.2f}", interval)


def line_table(race: Race, contenders: Sequence[str] = ()) -> Table:
    """CPU seconds and steps to the line, a row for each column, the fastest in bold.

    :param contenders: those that are shown, of the race's; all if empty
    """
    names = [name for name in race.contenders if not contenders or name in contenders]
    rows = []
    for column, everyone in race.columns.items():
        entries = {name: everyone[name] for name in names if name in everyone}
        reached = {name: entry.seconds for name, entry in entries.items() if isfinite(entry.seconds)}
        fastest = min(reached.values(), default=None) if len(entries) > 1 else None
        cells = [entry_text(entries.get(name), reached.get(name) == fastest) for name in names]
        rows.append([column_text(column), Text(f"{column.goal:,.2f}"), *cells])
    labels = [ALGORITHMS[name].label for name in names]
    return Table("CPU seconds and steps to the line", ["Column", "Line", *labels], rows)


def column_text(column: Column) -> Text:
    """A column by the paper's name, or the environment's."""
    return Text(env_title(column.env))


def entry_text(entry: Entry | None, bold: bool = False) -> Text:
    """A contender on a column: seconds and steps, or the score at the end; seeds, failures and runs under way."""
    if entry is None:
        return Text(MISSING)
    seeds = [f"{entry.crossed} of {len(entry.runs)} seeds crossed"] if entry.runs else []
    failed = [f"{len(entry.failed)} failed: {entry.failed[0].message}"] if entry.failed else []
    waiting = [f"{entry.waiting} not at the end yet"] if entry.waiting else []
    detail = ", ".join(seeds + failed + waiting)
    if isfinite(entry.seconds):
        return Text(
            f"{entry.seconds:,.0f} s, {format_steps(int(entry.steps))} steps", detail, bold and bool(entry.runs)
        )
    if not entry.runs:
        return Text("under way", detail)
    if len(entry.failed) == len(entry.runs):
        return Text("failed", detail)
    score = "" if entry.last_score is None else f", {entry.last_score:,.2f}"
    return Text(f"not crossed in {format_steps(int(entry.missed_in))}{score}", detail)


def contender_table(race: Race) -> Table:
    """What each contender crossed, whether it stayed there, and what it cost."""
    header = ["Contender", "Columns crossed", f"Fell back {format_steps(HOLD)} steps later"]
    header += ["Training", "Evaluation", "Compilation", "Wall time"]
    rows = []
    for name in race.contenders:
        raced = race.raced(name)
        crossed = sum(isfinite(race.columns[column][name].seconds) for column in raced)
        runs = [run for run in race.runs if run.contender == name]
        after = fallbacks(race, name)
        part = f"{after.fell_back} of {after.followed}" if after.followed else MISSING
        columns = f"{after.columns} column{'s' * (after.columns != 1)}"
        detail = f"runs, below {FALLBACK:.0%} of the line; {columns}" if after.followed else ""
        hours = [sum(float(getattr(run, kind)[-1]) for run in runs if len(run.means)) / 3600 for kind in _KINDS]
        hours.append(sum(run.seconds for run in runs) / 3600)
        cells = [Text(f"{crossed} of {len(raced)}", f"{len(runs)} runs"), Text(part, detail)]
        rows.append([Text(ALGORITHMS[name].label), *cells, *(Text(f"{hour:.2f} h") for hour in hours)])
    return Table("The contenders, CPU hours of all their runs", header, rows)


_KINDS = ("train", "evaluate", "compile")


def ratio_table(race: Race) -> Table:
    """Geometric means over columns of CPU seconds to the line, one contender in units of another."""
    rows = []
    for name in race.contenders:
        cells = [_ratio_text(race, name, other) if other != name else Text("") for other in race.contenders]
        rows.append([Text(ALGORITHMS[name].label), *cells])
    header = ["CPU seconds of", *(f"in units of {ALGORITHMS[name].label}" for name in race.contenders)]
    return Table(
        "Geometric mean over the columns raced by both; the budget's cost where the line was missed", header, rows
    )


def _ratio_text(race: Race, contender: str, reference: str) -> Text:
    ratio = cost_ratio(race, contender, reference)
    if ratio is None:
        return Text(MISSING)
    out = f", {ratio.left_out} left out" if ratio.left_out else ""
    detail = f"{ratio.columns} columns; missed {ratio.missed}, and {ratio.reference_missed}{out}"
    return Text(f"{ratio.seconds:.2f}", detail)


def beside_table(race: Race, contender: str) -> Table:
    """What ``contender`` needs in units of each of the others, a row for each, geometric means over columns."""
    rows = []
    for name in race.contenders:
        ratio = cost_ratio(race, contender, name) if name != contender else None
        if ratio is not None:
            missed = f"{ratio.missed}, they {ratio.reference_missed}"
            cells = [f"{ratio.seconds:.2f}", f"{ratio.steps:.2f}", f"{ratio.columns}", missed]
            rows.append([Text(ALGORITHMS[name].label), *map(Text, cells)])
    label = ALGORITHMS[contender].label
    header = [f"{label} beside", "CPU seconds, of theirs", "Steps, of theirs", "Columns of both", "Lines missed"]
    return Table(f"{label} beside the others", header, rows)
