"""The benchmark: environment steps and CPU seconds of training until an algorithm reaches a target score.

A task is an environment with its target score. The cost of an algorithm on a task is its average runtime, as in COCO:
the cost of all its seeds divided by the number of seeds that reached the target score. A seed that did not reach it
counts with its whole budget.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softdpg import paper
from softdpg.envs.action_spaces import ACTION_TARGETS
from softdpg.report import statistics
from softdpg.report.runs import Run
from softdpg.report.statistics import Estimate, Spent
from softdpg.report.style import table_order
from softdpg.runs.directory import first_reached


class Task(NamedTuple):
    """An environment and its target score."""

    env: str
    target_score: float

    @property
    def targets(self) -> tuple[float, ...]:
        """The targets of the data profile: 25, 50, 75 and 100 % of the way from a random policy to the target score.

        The target score alone if the score of a random policy is unknown or not below it.
        """
        start = paper.RANDOM_SCORES.get(self.env, inf)
        if start >= self.target_score:
            return (self.target_score,)
        way = self.target_score - start
        return (*(start + part * way for part in (0.25, 0.5, 0.75)), self.target_score)


def task_of(run: Run) -> Task:
    """Return the task of a run; raise ``ValueError`` if it has no target score.

    :param run: run of a benchmark
    """
    if run.target_score is None:
        raise ValueError(f"{run.name} must have a target score, got None")
    return Task(run.env, run.target_score)


class Cost(NamedTuple):
    """A kind of cost.

    :param label: label of an axis
    :param until: cost of a run until each of its evaluations, ``(evaluations,)``
    :param or_budget: cost to the target score, or of the budget if it was not reached; None if unknown
    """

    label: str
    until: Callable[[Run], NDArray[Any]]
    or_budget: Callable[[Run], float | None]


SECONDS = Cost("CPU seconds of training", lambda run: run.train, lambda run: run.seconds_or_budget)
STEPS = Cost("environment steps", lambda run: run.evaluated_at, lambda run: run.steps_or_budget)
COSTS = (SECONDS, STEPS)


@dataclass(frozen=True, eq=False)
class Entry:
    """The runs of one algorithm on one task.

    :param runs: decided runs, by seed
    :param waiting: number of runs that are not decided yet
    """

    runs: tuple[Run, ...]
    waiting: int

    @property
    def reached(self) -> int:
        """Number of seeds that reached the target score."""
        return sum(run.reached is not None for run in self.runs)

    @property
    def failed(self) -> list[Run]:
        """Runs that ended with an error before they reached the target score."""
        return [run for run in self.runs if run.reached is None and run.state == "failed"]

    @property
    def reached_in_median(self) -> bool:
        """Whether the median seed, and therefore more than half of them, reached the target score."""
        return 2 * self.reached > len(self.runs)

    def spent(self, cost: Cost) -> Spent:
        """Return what each seed spent; a run that failed before its first evaluation has no cost and is left out.

        :param cost: kind of cost
        """
        runs = [run for run in self.runs if run.seconds_or_budget is not None]
        costs = np.array([cost.or_budget(run) for run in runs], dtype=np.float64)
        return Spent(costs, np.array([run.reached is not None for run in runs], dtype=bool))

    def average(self, cost: Cost) -> float:
        """Return the average runtime; infinite if no seed reached the target score.

        :param cost: kind of cost
        """
        return statistics.average_runtime(self.spent(cost))

    @property
    def last_score(self) -> float | None:
        """Median of the last evaluation over the seeds that have not reached the target score."""
        scores = [float(run.means[-1]) for run in self.runs if run.reached is None and len(run.means)]
        return float(np.median(scores)) if scores else None

    @property
    def missed_in(self) -> float:
        """Smallest budget, in steps, of the seeds that have not reached the target score; infinite if all have."""
        return min((float(run.settings.steps) for run in self.runs if run.reached is None), default=inf)


@dataclass(frozen=True, eq=False)
class Benchmark:
    """All runs by task, in the order of the paper, and by algorithm, the paper's first.

    :param runs: runs with a target score
    """

    runs: list[Run]
    tasks: dict[Task, dict[str, Entry]] = field(init=False)

    def __post_init__(self) -> None:
        groups: dict[Task, dict[str, list[Run]]] = {}
        order = table_order()
        for run in sorted(self.runs, key=lambda run: (order.index(run.algorithm), run.seed)):
            groups.setdefault(task_of(run), {}).setdefault(run.algorithm, []).append(run)
        entries = {task: {name: _entry(runs) for name, runs in groups[task].items()} for task in _ordered(groups)}
        object.__setattr__(self, "tasks", entries)

    @property
    def algorithms(self) -> list[str]:
        """Names of the algorithms, in the order of the tables."""
        present = {run.algorithm for run in self.runs}
        return [name for name in table_order() if name in present]

    def shared_tasks(self, *algorithms: str) -> list[Task]:
        """Return the tasks on which each of the algorithms has a decided run.

        :param algorithms: names of algorithms
        """
        return [
            task
            for task, entries in self.tasks.items()
            if all(name in entries and entries[name].runs for name in algorithms)
        ]


def _entry(runs: list[Run]) -> Entry:
    decided = tuple(run for run in runs if run.decided)
    return Entry(decided, len(runs) - len(decided))


def _ordered(tasks: Iterable[Task]) -> list[Task]:
    order = [*paper.TARGET_SCORES, *ACTION_TARGETS]
    return sorted(tasks, key=lambda task: (order.index(task.env) if task.env in order else len(order), task))


class Profile(NamedTuple):
    """A data profile: the fraction of targets reached, over all tasks and seeds, by cost.

    :param costs: costs at which one more target is reached by one more seed, ascending
    :param fractions: fraction of targets reached at these costs
    :param until: cost of the largest budget that ended without the target score; nothing is known beyond it
    """

    costs: list[float]
    fractions: list[float]
    until: float


def profile(benchmark: Benchmark, algorithm: str, tasks: list[Task], cost: Cost) -> Profile:
    """Return the data profile of an algorithm: the fraction of triples (task, target, seed) reached, by cost.

    Tasks weigh the same, also if they have different numbers of targets or seeds.

    :param benchmark: all runs
    :param algorithm: name of an algorithm
    :param tasks: tasks on which it has decided runs
    :param cost: kind of cost
    """
    reached: list[tuple[float, Fraction]] = []  # cost and weight of each triple
    missed: list[float] = []
    for task in tasks:
        runs = benchmark.tasks[task][algorithm].runs
        weight = Fraction(1, len(tasks) * len(runs) * len(task.targets))
        for run in runs:
            found = (first_reached(run.means.tolist(), target) for target in task.targets)
            reached += [(float(cost.until(run)[index]), weight) for index in found if index is not None]
            missed += [] if run.reached is not None else [cost.or_budget(run) or 0.0]
    reached.sort()
    fractions = [float(fraction) for fraction in accumulate(weight for _, weight in reached)]
    return Profile([value for value, _ in reached], fractions, max(missed, default=inf))


def compared(benchmark: Benchmark) -> tuple[list[str], list[Task]]:
    """Return the algorithms of the data profile, and the tasks that all of them share.

    An algorithm with few tasks would leave few shared tasks, and a profile of few tasks says little. The profile
    therefore takes the algorithms with most tasks, at least two. Their number is the one that maximises the number of
    algorithms times the square of the number of shared tasks.

    :param benchmark: all runs
    """
    counts = {name: len(benchmark.shared_tasks(name)) for name in benchmark.algorithms}
    most = sorted(filter(counts.__getitem__, counts), key=lambda name: -counts[name])
    choices = [most[:n] for n in range(len(most), 0, -1) if n >= min(2, len(most))]
    taken = max(choices, key=lambda names: len(names) * len(benchmark.shared_tasks(*names)) ** 2, default=[])
    names = [name for name in benchmark.algorithms if name in taken]
    return names, benchmark.shared_tasks(*names) if names else []


class Ratio(NamedTuple):
    """Average runtime of one algorithm divided by that of another: geometric means over their shared tasks.

    :param seconds: ratio of CPU seconds
    :param steps: ratio of environment steps
    :param tasks: number of shared tasks
    :param not_reached: tasks on which no seed of the algorithm reached the target score: the cost of all counts
    :param reference_not_reached: the same for the other algorithm
    :param left_out: tasks left out because an algorithm has no cost there: all its runs failed before they had any
    """

    seconds: Estimate
    steps: Estimate
    tasks: int
    not_reached: int
    reference_not_reached: int
    left_out: int


def cost_ratio(benchmark: Benchmark, algorithm: str, reference: str) -> Ratio | None:
    """Return the cost of an algorithm divided by that of another one; None if they share no task.

    :param benchmark: all runs
    :param algorithm: name of the algorithm
    :param reference: name of the algorithm whose cost is the divisor
    """
    shared = benchmark.shared_tasks(algorithm, reference)
    pairs = [(benchmark.tasks[task][algorithm], benchmark.tasks[task][reference]) for task in shared]
    kept = [pair for pair in pairs if all(_has_costs(entry.spent(SECONDS)) for entry in pair)]
    if not kept:
        return None
    seconds, steps = (
        statistics.runtime_ratio([(entry.spent(cost), other.spent(cost)) for entry, other in kept]) for cost in COSTS
    )
    not_reached, reference_not_reached = (sum(not entry.reached for entry in side) for side in zip(*kept, strict=True))
    return Ratio(seconds, steps, len(kept), not_reached, reference_not_reached, len(pairs) - len(kept))


def _has_costs(spent: Spent) -> bool:
    return len(spent.costs) > 0 and bool((spent.costs > 0).all())


class Fallbacks(NamedTuple):
    """How many of the runs that went on for ``STEPS_AFTER`` steps after the target score fell back."""

    fell_back: int
    followed: int
    tasks: int


def fallbacks(benchmark: Benchmark, algorithm: str) -> Fallbacks:
    """Count how often an algorithm lost the score that it had reached.

    :param benchmark: all runs
    :param algorithm: name of an algorithm
    """
    followed = [run for run in benchmark.runs if run.algorithm == algorithm and run.fell_back is not None]
    return Fallbacks(sum(bool(run.fell_back) for run in followed), len(followed), len(set(map(task_of, followed))))
