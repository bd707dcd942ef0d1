"""A run as the report sees it: its settings, where it came from, and its evaluations."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softdpg.paper import ALGORITHMS

STATES = ("finished", "running", "interrupted", "failed")
Items = tuple[tuple[str, str], ...]


class DamagedRunError(Exception):
    """A run that cannot be read, and why."""


@dataclass(frozen=True)
class Settings:
    """What runs must share to be averaged: everything that shapes a result but environment, algorithm and seed.

    Hyperparameters are sorted pairs (name, JSON text of the value).
    """

    steps: int
    sigma: float | None
    n_samples: int | None
    evaluation_every: int
    evaluation_episodes: int
    hyperparameters: Items


@dataclass(frozen=True, eq=False)
class Run:
    """One run as far as it has come. ``evaluated_at``, ``means`` and ``stds`` have shape (evaluations,)."""

    name: str
    env: str
    algorithm: str
    seed: int
    settings: Settings
    versions: Items
    machine: Items
    commit: str
    state: str
    seconds: float
    evaluated_at: NDArray[np.int64]
    means: NDArray[np.float64]
    stds: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise DamagedRunError(f"unknown algorithm {self.algorithm!r}")
        smoothing = (self.settings.sigma, self.settings.n_samples)
        if any((value is None) != (self.algorithm == "ddpg") for value in smoothing):
            raise DamagedRunError(f"{self.algorithm} with sigma and n_samples {smoothing}")
        if len(self.evaluated_at) == 0:
            raise DamagedRunError("no evaluations yet")
        if not (np.isfinite(self.means).all() and np.isfinite(self.stds).all()):
            raise DamagedRunError("an evaluation is not a finite number")
        if self.evaluated_at[0] < 0 or (np.diff(self.evaluated_at) <= 0).any():
            raise DamagedRunError("the steps of the evaluations do not increase")
        if self.evaluated_at[-1] > self.settings.steps:
            raise DamagedRunError(f"evaluated at step {self.evaluated_at[-1]} of {self.settings.steps}")

    @property
    def finished(self) -> bool:
        """Whether the run has its last evaluation."""
        return self.state == "finished"


def without_repeats(runs: list[Run]) -> tuple[list[Run], list[str]]:
    """One run for each environment, algorithm, settings and seed: the one that has come furthest."""
    kept: dict[tuple[Any, ...], Run] = {}
    warnings = []
    for run in sorted(runs, key=lambda run: (-int(run.evaluated_at[-1]), not run.finished, run.name)):
        key = (run.env, run.algorithm, run.settings, run.seed)
        if key in kept:
            warnings.append(f"{run.name}: skipped: the same run as {kept[key].name}")
        else:
            kept[key] = run
    return sorted(kept.values(), key=lambda run: (run.env, list(ALGORITHMS).index(run.algorithm), run.name)), warnings
