"""Which settings, versions, commits and machines are behind a set of runs."""

import json
from collections import Counter
from collections.abc import Iterable

from softdpg import paper
from softdpg.report.document import Table, Text
from softdpg.results.records import STATES, Run


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
    smoothed = [run.settings for run in runs if run.settings.sigma is not None]
    settings = [run.settings for run in runs]
    rows = []
    if smoothed:
        rows += [["sigma (Soft DDPG)", _values(f"{s.sigma:g}" for s in smoothed), f"{paper.SIGMA:g}"]]
        rows += [["N (Soft DDPG)", _values(str(s.n_samples) for s in smoothed), str(paper.N_SAMPLES)]]
    rows += [["total timesteps", _values(f"{s.steps:,}" for s in settings), f"{paper.TOTAL_TIMESTEPS:,}"]]
    for name in sorted({name for s in settings for name, _ in s.hyperparameters}):
        theirs = json.dumps(paper.HYPERPARAMETERS[name]) if name in paper.HYPERPARAMETERS else "not stated"
        rows.append([name, _values(dict(s.hyperparameters).get(name, "") for s in settings), theirs])
    rows += [["evaluation every", _values(f"{s.evaluation_every:,} steps" for s in settings), "not stated"]]
    rows += [["evaluation episodes", _values(str(s.evaluation_episodes) for s in settings), "not stated"]]
    return rows


def _software(runs: list[Run]) -> list[list[str]]:
    rows = [["commit", _values(run.commit for run in runs)]]
    for title, groups in (("version of", [run.versions for run in runs]), ("machine:", [run.machine for run in runs])):
        for name in sorted({name for items in groups for name, _ in items}):
            rows.append([f"{title} {name}", _values(dict(items).get(name, "") for items in groups)])
    return rows
