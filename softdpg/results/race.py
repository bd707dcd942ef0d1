"""The race: who is how soon at the finishing line. Steps and CPU seconds of training, medians, profiles, ratios.

A column is an environment with its line. A contender's cost on a column is the median over its seeds; a seed that has
not crossed the line costs infinitely much, or as much as the whole budget where a number is needed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softdpg.algorithms.registry import ALGORITHMS
from softdpg.results import statistics
from softdpg.results.records import Items
from softdpg.results.statistics import Estimate
from softdpg.runs.config import RunConfig
from softdpg.runs.crossing import crossing

Array = NDArray[np.float64]
HOLD = 20_000  # steps after the crossing at which a fallback is looked for
FALLBACK = 0.8  # below this part of the line


@dataclass(frozen=True, eq=False)
class RaceRun:
    """One run of the race as far as it has come. The arrays have shape (evaluations,), CPU seconds are cumulative."""

    name: str
    settings: RunConfig
    state: str
    message: str
    seconds: float
    evaluated_at: NDArray[np.int64]
    means: Array
    train: Array
    evaluate: Array
    compile: Array
    commit: str = ""
    versions: Items = ()
    machine: Items = ()

    @property
    def contender(self) -> str:
        """Name of the algorithm in the registry."""
        return self.settings.algorithm.name

    @property
    def column(self) -> "Column":
        """What it raced on."""
        assert self.settings.goal is not None
        return Column(self.settings.env, float(self.settings.goal))

    @cached_property
    def crossing(self) -> int | None:
        """Index of the evaluation at which the run was over the line."""
        return crossing(self.means.tolist(), self.column.goal)

    @property
    def decided(self) -> bool:
        """Whether it has crossed the line, or will not any more."""
        return self.crossing is not None or self.state in ("finished", "failed")

    @property
    def steps_to_line(self) -> float:
        """Environment steps until the line; infinite if it was not crossed."""
        return inf if self.crossing is None else float(self.evaluated_at[self.crossing])

    @property
    def seconds_to_line(self) -> float:
        """CPU seconds of training until the line; infinite if it was not crossed."""
        return inf if self.crossing is None else float(self.train[self.crossing])

    @property
    def seconds_or_budget(self) -> float | None:
        """The same, or CPU seconds of the whole budget; of a failed run at its speed until then, if it had one."""
        if self.crossing is not None:
            return self.seconds_to_line
        if not len(self.means):
            return None
        return float(self.train[-1]) * self.settings.steps / float(self.evaluated_at[-1])

    @property
    def steps_or_budget(self) -> float:
        """Environment steps until the line, or those of the whole budget."""
        return min(self.steps_to_line, float(self.settings.steps))

    @property
    def fell_back(self) -> bool | None:
        """Whether the score :data:`HOLD` steps after the crossing is below :data:`FALLBACK` of the line, if known.

        Of a negative line, the same part of its amount below it.
        """
        later = self.evaluated_at >= self.steps_to_line + HOLD
        goal = self.column.goal
        return bool(self.means[later][0] < goal - (1 - FALLBACK) * abs(goal)) if later.any() else None


class Column(NamedTuple):
    """An environment and its finishing line."""

    env: str
    goal: float


@dataclass(frozen=True, eq=False)
class Entry:
    """The runs of one contender on one column that are decided, by seed, and the number of those that are not yet."""

    runs: tuple[RaceRun, ...]
    waiting: int

    @property
    def crossed(self) -> int:
        """How many seeds crossed the line."""
        return sum(run.crossing is not None for run in self.runs)

    @property
    def failed(self) -> list[RaceRun]:
        """Those that ended with an error before the line."""
        return [run for run in self.runs if run.crossing is None and run.state == "failed"]

    @property
    def steps(self) -> float:
        """Median over seeds of the steps to the line."""
        return _median([run.steps_to_line for run in self.runs])

    @property
    def seconds(self) -> float:
        """Median over seeds of the CPU seconds to the line."""
        return _median([run.seconds_to_line for run in self.runs])

    @property
    def seconds_or_budget(self) -> float | None:
        """Median over seeds with the budget's cost where the line was not reached; None if no seed has a cost."""
        costs = [run.seconds_or_budget for run in self.runs]
        known = [cost for cost in costs if cost is not None]
        return _median(known) if known else None

    @property
    def steps_or_budget(self) -> float:
        """Median over seeds of the steps to the line, the budget's where it was not reached."""
        return _median([run.steps_or_budget for run in self.runs])

    @property
    def last_score(self) -> float | None:
        """Median of the last evaluation over the seeds that have not crossed: the score at the budget."""
        scores = [float(run.means[-1]) for run in self.runs if run.crossing is None and len(run.means)]
        return _median(scores) if scores else None

    @property
    def missed_in(self) -> float:
        """The least budget, in steps, of the seeds that have not crossed; infinite if there is none."""
        return min((float(run.settings.steps) for run in self.runs if run.crossing is None), default=inf)


def _median(values: list[float]) -> float:
    return float(np.median(values)) if values else inf


@dataclass(frozen=True, eq=False)
class Race:
    """All runs, by column and contender; both in the order of the paper and of the registry."""

    runs: list[RaceRun]
    columns: dict[Column, dict[str, Entry]] = field(init=False)

    def __post_init__(self) -> None:
        groups: dict[Column, dict[str, list[RaceRun]]] = {}
        order = list(ALGORITHMS)
        for run in sorted(self.runs, key=lambda run: (order.index(run.contender), run.settings.seed)):
            groups.setdefault(run.column, {}).setdefault(run.contender, []).append(run)
        entries = {column: {name: _entry(runs) for name, runs in groups[column].items()} for column in _ordered(groups)}
        object.__setattr__(self, "columns", entries)

    @property
    def contenders(self) -> list[str]:
        """Names of the algorithms in the race, in the order of the registry."""
        present = {run.contender for run in self.runs}
        return [name for name in ALGORITHMS if name in present]

    def raced(self, *contenders: str) -> list[Column]:
        """The columns that all the given contenders have raced on, with at least one run that is decided."""
        return [
            column
            for column, entries in self.columns.items()
            if all(name in entries and entries[name].runs for name in contenders)
        ]


def _entry(runs: list[RaceRun]) -> Entry:
    decided = tuple(run for run in runs if run.decided)
    return Entry(decided, len(runs) - len(decided))


def _ordered(columns: Iterable[Column]) -> list[Column]:
    from softdpg import paper

    order = list(paper.FINISHING_LINES)
    return sorted(columns, key=lambda c: (order.index(c.env) if c.env in order else len(order), c))


class Cost(NamedTuple):
    """What is counted: to the line, infinite if it was not crossed, and with the budget's in that case, if known."""

    label: str
    to_line: Callable[[Entry], float]
    or_budget: Callable[[Entry], float | None]


COSTS = (
    Cost("CPU seconds of training", lambda entry: entry.seconds, lambda entry: entry.seconds_or_budget),
    Cost("environment steps", lambda entry: entry.steps, lambda entry: entry.steps_or_budget),
)


class Profile(NamedTuple):
    """Share of columns whose line is crossed (median over seeds) at a cost of at most ``costs``; both ascend.

    Nothing is known beyond ``until``, where the last budget of a column that was not crossed came to its end.
    """

    costs: list[float]
    shares: list[float]
    until: float


def profile(race: Race, contender: str, columns: list[Column], cost: Cost) -> Profile:
    """The data profile of a contender over ``columns``, all of which it raced on."""
    entries = [race.columns[column][contender] for column in columns]
    reached = sorted(value for value in map(cost.to_line, entries) if isfinite(value))
    missed = [cost.or_budget(entry) or 0.0 for entry in entries if not isfinite(cost.to_line(entry))]
    return Profile(reached, [(i + 1) / len(columns) for i in range(len(reached))], max(missed, default=inf))


def compared(race: Race) -> tuple[list[str], list[Column]]:
    """Contenders and columns of the profile: the columns that all of them raced on.

    Whoever raced on few columns would leave few: of the two or more contenders with most columns as many are taken as
    make their number times the square of that of the columns largest. A profile of few columns says little.
    """
    counts = {name: len(race.raced(name)) for name in race.contenders}
    most = sorted(filter(counts.__getitem__, counts), key=lambda name: -counts[name])
    choices = [most[:n] for n in range(len(most), 0, -1) if n >= min(2, len(most))]
    taken = max(choices, key=lambda names: len(names) * len(race.raced(*names)) ** 2, default=[])
    names = [name for name in race.contenders if name in taken]
    return names, race.raced(*names) if names else []


class Ratio(NamedTuple):
    """Geometric means over columns of one contender's CPU seconds and steps to the line in units of another's.

    ``missed`` and ``reference_missed`` count the columns where the line was not crossed in the median, so that the
    budget's cost stands in; ``left_out`` those where all runs of one failed before they had any cost.
    """

    seconds: float
    steps: float
    columns: int
    missed: int
    reference_missed: int
    left_out: int


def cost_ratio(race: Race, contender: str, reference: str) -> Ratio | None:
    """The ratio over the columns that both have raced on; None if there is none."""
    seconds, steps, missed, reference_missed, left_out = [], [], 0, 0, 0
    for column in race.raced(contender, reference):
        ours, theirs = race.columns[column][contender], race.columns[column][reference]
        if not ours.seconds_or_budget or not theirs.seconds_or_budget:
            left_out += 1
            continue
        seconds.append(ours.seconds_or_budget / theirs.seconds_or_budget)
        steps.append(ours.steps_or_budget / theirs.steps_or_budget)
        missed += not isfinite(ours.seconds)
        reference_missed += not isfinite(theirs.seconds)
    if not seconds:
        return None
    return Ratio(_geometric_mean(seconds), _geometric_mean(steps), len(seconds), missed, reference_missed, left_out)


def _geometric_mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


class Effect(NamedTuple):
    """What a variant needs to the line in units of the algorithm that it is a variant of, with intervals."""

    seconds: Estimate
    steps: Estimate


def effect(race: Race, variant: str, reference: str) -> Effect | None:
    """Over all seeds of the columns that both have raced on; None if there is none.

    Unlike in :func:`cost_ratio` all seeds count and not their median, the budget's cost where one has not crossed.
    """
    seconds: list[tuple[Array, Array]] = []
    steps: list[tuple[Array, Array]] = []
    for column in race.raced(variant, reference):
        (x_seconds, x_steps), (y_seconds, y_steps) = (
            _costs(race.columns[column][name]) for name in (variant, reference)
        )
        if len(x_seconds) and len(y_seconds):
            seconds.append((x_seconds, y_seconds))
            steps.append((x_steps, y_steps))
    return Effect(statistics.cost_ratio(seconds), statistics.cost_ratio(steps)) if seconds else None


def _costs(entry: Entry) -> tuple[Array, Array]:
    """CPU seconds and steps of the runs that have a cost, ``(seeds,)`` each."""
    runs = [run for run in entry.runs if run.seconds_or_budget]
    return (
        np.array([run.seconds_or_budget for run in runs], dtype=np.float64),
        np.array([run.steps_or_budget for run in runs], dtype=np.float64),
    )


class Fallbacks(NamedTuple):
    """Of the runs that were followed for :data:`HOLD` steps after they crossed, how many fell back."""

    fell_back: int
    followed: int
    columns: int


def fallbacks(race: Race, contender: str) -> Fallbacks:
    """How well a contender keeps what it has reached."""
    followed = [run for run in race.runs if run.contender == contender and run.fell_back is not None]
    return Fallbacks(sum(bool(run.fell_back) for run in followed), len(followed), len({run.column for run in followed}))
