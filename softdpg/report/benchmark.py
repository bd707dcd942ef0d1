"""The benchmark: environment steps and CPU seconds of training until an algorithm reaches a target score.

A task is an environment with its target score. The cost of an algorithm on a task is the median over its seeds. A seed
that has not reached the target score costs infinitely much, or as much as its whole budget where a finite number is
needed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from softdpg import paper
from softdpg.envs.action_spaces import ACTION_TARGETS
from softdpg.report import statistics
from softdpg.report.runs import Array, Run
from softdpg.report.statistics import Estimate
from softdpg.report.style import table_order


class Task(NamedTuple):
    """An environment and its target score."""

    env: str
    target_score: float


def task_of(run: Run) -> Task:
    """Return the task of a run; raise ``ValueError`` if it has no target score.

    :param run: run of a benchmark
    """
    if run.target_score is None:
        raise ValueError(f"{run.name} must have a target score, got None")
    return Task(run.env, run.target_score)


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
    def steps(self) -> float:
        """Median over seeds of the steps to the target score."""
        return _median([run.steps_to_target for run in self.runs])

    @property
    def seconds(self) -> float:
        """Median over seeds of the CPU seconds to the target score."""
        return _median([run.seconds_to_target for run in self.runs])

    @property
    def steps_or_budget(self) -> float:
        """Median over seeds of the steps to the target score, or of the budget."""
        return _median([run.steps_or_budget for run in self.runs])

    @property
    def seconds_or_budget(self) -> float | None:
        """Median over seeds of the CPU seconds to the target score, or of the budget; None if no seed has a cost."""
        costs = [run.seconds_or_budget for run in self.runs]
        known = [cost for cost in costs if cost is not None]
        return _median(known) if known else None

    @property
    def last_score(self) -> float | None:
        """Median of the last evaluation over the seeds that have not reached the target score."""
        scores = [float(run.means[-1]) for run in self.runs if run.reached is None and len(run.means)]
        return _median(scores) if scores else None

    @property
    def missed_in(self) -> float:
        """Smallest budget, in steps, of the seeds that have not reached the target score; infinite if all have."""
        return min((float(run.settings.steps) for run in self.runs if run.reached is None), default=inf)


def _median(values: list[float]) -> float:
    return float(np.median(values)) if values else inf


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


class Cost(NamedTuple):
    """A kind of cost.

    :param label: label of an axis
    :param to_target: cost to the target score; infinite if it was not reached
    :param or_budget: cost to the target score, or of the budget if it was not reached; None if unknown
    """

    label: str
    to_target: Callable[[Entry], float]
    or_budget: Callable[[Entry], float | None]


COSTS = (
    Cost("CPU seconds of training", lambda entry: entry.seconds, lambda entry: entry.seconds_or_budget),
    Cost("environment steps", lambda entry: entry.steps, lambda entry: entry.steps_or_budget),
)


class Profile(NamedTuple):
    """A data profile: the fraction of tasks whose target score is reached, in the median over seeds, by cost.

    :param costs: costs at which one more task is reached, ascending
    :param fractions: fraction of tasks reached at these costs
    :param until: cost of the largest budget that ended without the target score; nothing is known beyond it
    """

    costs: list[float]
    fractions: list[float]
    until: float


def profile(benchmark: Benchmark, algorithm: str, tasks: list[Task], cost: Cost) -> Profile:
    """Return the data profile of an algorithm.

    :param benchmark: all runs
    :param algorithm: name of an algorithm
    :param tasks: tasks on which it has decided runs
    :param cost: kind of cost
    """
    entries = [benchmark.tasks[task][algorithm] for task in tasks]
    reached = sorted(value for value in map(cost.to_target, entries) if isfinite(value))
    missed = [cost.or_budget(entry) or 0.0 for entry in entries if not isfinite(cost.to_target(entry))]
    return Profile(reached, [(i + 1) / len(tasks) for i in range(len(reached))], max(missed, default=inf))


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
    """Cost of one algorithm divided by the cost of another: geometric means over their shared tasks.

    :param seconds: ratio of CPU seconds
    :param steps: ratio of environment steps
    :param tasks: number of shared tasks
    :param not_reached: tasks whose target score the algorithm did not reach in the median: its budget counts
    :param reference_not_reached: the same for the other algorithm
    :param left_out: tasks left out because all runs of one algorithm failed before they had any cost
    """

    seconds: float
    steps: float
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
    seconds, steps, not_reached, reference_not_reached, left_out = [], [], 0, 0, 0
    for task in benchmark.shared_tasks(algorithm, reference):
        entry, other = benchmark.tasks[task][algorithm], benchmark.tasks[task][reference]
        if not entry.seconds_or_budget or not other.seconds_or_budget:
            left_out += 1
            continue
        seconds.append(entry.seconds_or_budget / other.seconds_or_budget)
        steps.append(entry.steps_or_budget / other.steps_or_budget)
        not_reached += not isfinite(entry.seconds)
        reference_not_reached += not isfinite(other.seconds)
    if not seconds:
        return None
    means = _geometric_mean(seconds), _geometric_mean(steps)
    return Ratio(*means, len(seconds), not_reached, reference_not_reached, left_out)


def _geometric_mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


class Effect(NamedTuple):
    """Cost of a variant divided by the cost of the algorithm that it is a variant of, with intervals."""

    seconds: Estimate
    steps: Estimate


def effect(benchmark: Benchmark, variant: str, reference: str) -> Effect | None:
    """Return the effect of a variant over all seeds of the shared tasks; None if there is no shared task.

    Unlike in :func:`cost_ratio` all seeds count and not their median. A seed that has not reached the target score
    counts with its budget.

    :param benchmark: all runs
    :param variant: name of the variant
    :param reference: name of the algorithm that it is a variant of
    """
    seconds: list[tuple[Array, Array]] = []
    steps: list[tuple[Array, Array]] = []
    for task in benchmark.shared_tasks(variant, reference):
        (x_seconds, x_steps), (y_seconds, y_steps) = (
            _costs(benchmark.tasks[task][name]) for name in (variant, reference)
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
