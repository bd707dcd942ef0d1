"""Which settings, versions, commits and machines are behind a set of runs."""

from collections import Counter
from collections.abc import Iterable

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS
from softdpg.report.document import Table, Text
from softdpg.results.cells import show, symbol
from softdpg.results.reading import NAMED
from softdpg.results.records import Run
from softdpg.runs.directory import STATES


def settings_tables(runs: list[Run]) -> list[Table]:
    """Tables of the runs' states and time, their hyperparameters beside the paper's, and their software."""
    return [
        _table("Runs", ["", ""], _summary(runs)),
        _table("Hyperparameters", ["Name", "Here", "Paper"], _hyperparameters(runs)),
        _table("Software and machines", ["Name", "Value"], _software(runs)),
    ]


def _table(title: str, header: list[str], rows: list[list[str]]) -> Table:
    return Table(title, header, [[Text(text) for text in row] for row in rows])


def _summary(runs: list[Run]) -> list[list[str]]:
    states = Counter(run.state for run in runs)
    steps = sum(int(run.evaluated_at[-1]) for run in runs)
    hours = sum(run.seconds for run in runs) / 3600
    return [
        ["Runs", str(len(runs))],
        *([state.capitalize(), str(states[state])] for state in STATES if states[state]),
        ["Steps evaluated, all runs together", f"{steps:,}"],
        ["Wall time, all runs together", f"{hours:.2f} hours"],
    ]


def _values(texts: Iterable[str]) -> str:
    """The one value that all runs share, or each value with the number of its runs."""
    counts = Counter(texts)
    if len(counts) == 1:
        return next(iter(counts)) or "not recorded"
    return ", ".join(f"{text or 'not set'} ({count} run{'s' * (count > 1)})" for text, count in sorted(counts.items()))


def _hyperparameters(runs: list[Run]) -> list[list[str]]:
    settings = [run.settings for run in runs]
    rows = []
    for name, theirs in (("sigma", paper.SIGMA), ("n_samples", paper.N_SAMPLES)):
        values = [show(value) for value in (getattr(s, name) for s in settings) if value is not None]
        if values:
            rows += [[f"{symbol(name)} ({ALGORITHMS[paper.METHOD].label})", _values(values), show(theirs)]]
    rows += [["total timesteps", _values(f"{s.steps:,}" for s in settings), f"{paper.TOTAL_TIMESTEPS:,}"]]
    for name in sorted({name for s in settings for name, _ in s.hyperparameters if name not in NAMED}):
        stated = show(paper.HYPERPARAMETERS[name]) if name in paper.HYPERPARAMETERS else "not stated"
        given = [dict(s.hyperparameters).get(name) for s in settings]
        rows.append([name, _values("" if value is None else show(value) for value in given), stated])
    rows += [["evaluation every", _values(f"{s.evaluate_every:,} steps" for s in settings), "not stated"]]
    rows += [["evaluation episodes", _values(str(s.evaluation_episodes) for s in settings), "not stated"]]
    return rows


def _software(runs: list[Run]) -> list[list[str]]:
    rows = [["commit", _values(run.commit for run in runs)]]
    for title, groups in (("version of", [run.versions for run in runs]), ("machine:", [run.machine for run in runs])):
        for name in sorted({name for items in groups for name, _ in items}):
            rows.append([f"{title} {name}", _values(dict(items).get(name, "") for items in groups)])
    return rows
