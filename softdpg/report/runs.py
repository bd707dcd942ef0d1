"""One run as the report sees it: its settings, where it came from, its evaluations and its CPU seconds."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softdpg.algorithms.registry import Algorithm
from softdpg.errors import UserError
from softdpg.report.style import table_order
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import first_reached

Array = NDArray[np.float64]
Items = tuple[tuple[str, str], ...]

SMOOTHING = ("sigma", "n_samples")  # hyperparameters that every smoothed algorithm has
LARGEST = 1e100  # largest return that is read: the squares of larger ones overflow
STEPS_AFTER = 20_000  # a run falls back if its score is low so many steps after it reached the target score
FALLBACK = 0.8  # a score below this part of the target score is low


class DamagedRunError(Exception):
    """A run cannot be read; the message says why."""


def _empty() -> Array:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class Run:
    """One run as far as it has come.

    A run with a target score (``settings.stop_at_score``) is part of a benchmark and has CPU seconds. Any other run
    counts by its final score and has standard deviations. The arrays have shape (evaluations,).

    :param name: path of the run directory, relative to the directory that was read
    :param settings: settings of the run
    :param versions: versions of the packages, sorted by name
    :param machine: description of the machine, sorted by name
    :param commit: git commit of the code
    :param state: one of ``softdpg.runs.directory.STATES``
    :param message: error message of a failed run
    :param wall_seconds: wall time of the whole run
    :param evaluated_at: step of each evaluation
    :param means: mean return of each evaluation
    :param stds: standard deviation of the returns of each evaluation
    :param train: CPU seconds of training until each evaluation
    :param evaluate: CPU seconds of all evaluations so far
    :param compile: CPU seconds of all compilation so far
    """

    name: str
    settings: RunConfig
    versions: Items
    machine: Items
    commit: str
    state: str
    message: str
    wall_seconds: float
    evaluated_at: NDArray[np.int64]
    means: Array
    stds: Array = field(default_factory=_empty)
    train: Array = field(default_factory=_empty)
    evaluate: Array = field(default_factory=_empty)
    compile: Array = field(default_factory=_empty)

    def __post_init__(self) -> None:
        if any((getattr(self.settings, name) is None) == self._entry.smoothed for name in SMOOTHING):
            values = tuple(getattr(self.settings, name) for name in SMOOTHING)
            raise DamagedRunError(f"{self.algorithm} with {' and '.join(SMOOTHING)} {values}")
        if len(self.evaluated_at) == 0:
            if self.target_score is None:
                raise DamagedRunError("no evaluations yet")
            return
        numbers = np.concatenate([self.means, self.stds, self.train, self.evaluate, self.compile])
        if not np.isfinite(numbers).all():
            raise DamagedRunError("an evaluation is not a finite number")
        if np.abs(numbers).max() > LARGEST:
            raise DamagedRunError(f"an evaluation is beyond {LARGEST:g}")
        if self.evaluated_at[0] < 1 or (np.diff(self.evaluated_at) <= 0).any():
            raise DamagedRunError("the steps of the evaluations do not increase from 1")
        if min(map(np.min, filter(len, (self.stds, self.train, self.evaluate, self.compile))), default=0) < 0:
            raise DamagedRunError("a standard deviation or a CPU time is negative")
        # The last rollout, of train_freq steps in each environment, is done to its end.
        rollout = (self.settings.train_freq or 1) * self.settings.n_envs
        if self.evaluated_at[-1] >= self.settings.steps + rollout:
            raise DamagedRunError(f"evaluated at step {self.evaluated_at[-1]} of {self.settings.steps}")

    @cached_property
    def _entry(self) -> Algorithm:
        try:
            return self.settings.algorithm
        except UserError as error:
            raise DamagedRunError(str(error)) from None

    @property
    def env(self) -> str:
        """Gymnasium id of the environment, with its arguments if it has any: they make it another one."""
        arguments = self.settings.env_kwargs
        return f"{self.settings.env} ({arguments})" if arguments else self.settings.env

    @property
    def algorithm(self) -> str:
        """Name of the algorithm in the registry."""
        return self._entry.name

    @property
    def seed(self) -> int:
        """The seed."""
        return self.settings.seed

    @property
    def kind(self) -> RunConfig:
        """What runs must share to be averaged: everything that shapes a result except the seed.

        A hyperparameter that was not recorded has its default.
        """
        same = replace(self.settings, seed=0, checkpoint_every=1)
        return same.with_hyperparameters({**self._entry.hyperparameters, **dict(self.settings.hyperparameters)})

    @property
    def finished(self) -> bool:
        """Whether the run has its last evaluation."""
        return self.state == "finished"

    @property
    def last_step(self) -> int:
        """Step of the last evaluation, 0 if there is none."""
        return int(self.evaluated_at[-1]) if len(self.evaluated_at) else 0

    @property
    def target_score(self) -> float | None:
        """Score that the run of a benchmark has to reach; None for any other run."""
        return None if self.settings.stop_at_score is None else float(self.settings.stop_at_score)

    @cached_property
    def reached(self) -> int | None:
        """Index of the evaluation at which the run reached its target score."""
        return None if self.target_score is None else first_reached(self.means.tolist(), self.target_score)

    @property
    def decided(self) -> bool:
        """Whether the run has reached its target score, or cannot reach it any more."""
        return self.reached is not None or self.state in ("finished", "failed")

    @property
    def steps_to_target(self) -> float:
        """Environment steps to the target score; infinite if it was not reached."""
        return inf if self.reached is None else float(self.evaluated_at[self.reached])

    @property
    def seconds_to_target(self) -> float:
        """CPU seconds of training to the target score; infinite if it was not reached."""
        return inf if self.reached is None else float(self.train[self.reached])

    @property
    def steps_or_budget(self) -> float:
        """Environment steps to the target score, or of the whole budget if it was not reached."""
        return min(self.steps_to_target, float(self.settings.steps))

    @property
    def seconds_or_budget(self) -> float | None:
        """CPU seconds to the target score, or of the whole budget if it was not reached.

        The budget of a failed run is extrapolated from its speed; None if it has no evaluation.
        """
        if self.reached is not None:
            return self.seconds_to_target
        if not len(self.means):
            return None
        return float(self.train[-1]) * self.settings.steps / self.last_step

    @property
    def fell_back(self) -> bool | None:
        """Whether the score is low :data:`STEPS_AFTER` steps after the target score was reached; None if unknown.

        Low means below :data:`FALLBACK` of the target score. Below a negative one, it means the same distance from it.
        """
        later = self.evaluated_at >= self.steps_to_target + STEPS_AFTER
        if self.target_score is None or not later.any():
            return None
        return bool(self.means[later][0] < self.target_score - (1 - FALLBACK) * abs(self.target_score))


def without_repeats(runs: list[Run]) -> tuple[list[Run], list[str]]:
    """Keep one run of each environment, algorithm, settings and seed: the one that has come furthest.

    :param runs: runs without a target score
    :return: the runs in the order of the tables, and a warning for each one left out
    """
    kept: dict[tuple[RunConfig, int], Run] = {}
    order = table_order()
    warnings = []
    for run in sorted(runs, key=lambda run: (-run.last_step, not run.finished, run.name)):
        key = (run.kind, run.seed)
        if key in kept:
            warnings.append(f"{run.name}: skipped: the same run as {kept[key].name}")
        else:
            kept[key] = run
    return sorted(kept.values(), key=lambda run: (run.env, order.index(run.algorithm), run.name)), warnings


def joined(runs: Iterable[Run], earlier: Iterable[Run]) -> list[Run]:
    """Join the runs of several benchmarks.

    Of the same task, algorithm and seed the first decided run counts, or the first one if none is decided.

    :param runs: runs with a target score that take precedence
    :param earlier: runs of earlier benchmarks
    """
    kept: dict[tuple[Any, ...], Run] = {}
    for run in (*runs, *earlier):
        key = (run.env, run.target_score, run.algorithm, run.seed)
        if key not in kept or (run.decided and not kept[key].decided):
            kept[key] = run
    named: dict[str, Run] = {}  # the name connects a run with its curve
    for run in kept.values():
        while run.name in named:
            run = replace(run, name=f"{run.name}-earlier")
        named[run.name] = run
    return list(named.values())
