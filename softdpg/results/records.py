"""A run as the report sees it: its settings, where it came from, and its evaluations."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softdpg.algorithms.registry import ALGORITHMS, Algorithm
from softdpg.errors import UserError
from softdpg.runs.config import RunConfig

# What a smoothed critic cannot do without.
SMOOTHING = ("sigma", "n_samples")
LARGEST = 1e100  # return: the squares of larger ones overflow
Items = tuple[tuple[str, str], ...]


class DamagedRunError(Exception):
    """A run that cannot be read, and why."""


@dataclass(frozen=True, eq=False)
class Run:
    """One run as far as it has come. ``evaluated_at``, ``means`` and ``stds`` have shape (evaluations,)."""

    name: str
    settings: RunConfig
    versions: Items
    machine: Items
    commit: str
    state: str
    seconds: float
    evaluated_at: NDArray[np.int64]
    means: NDArray[np.float64]
    stds: NDArray[np.float64]

    def __post_init__(self) -> None:
        missing = [name for name in SMOOTHING if (getattr(self.settings, name) is None) == self._entry.smoothed]
        if missing:
            values = tuple(getattr(self.settings, name) for name in SMOOTHING)
            raise DamagedRunError(f"{self.algorithm} with {' and '.join(SMOOTHING)} {values}")
        if len(self.evaluated_at) == 0:
            raise DamagedRunError("no evaluations yet")
        if not (np.isfinite(self.means).all() and np.isfinite(self.stds).all()):
            raise DamagedRunError("an evaluation is not a finite number")
        if max(np.abs(self.means).max(), np.abs(self.stds).max()) > LARGEST:
            raise DamagedRunError(f"an evaluation is beyond {LARGEST:g}")
        if self.evaluated_at[0] < 0 or (np.diff(self.evaluated_at) <= 0).any():
            raise DamagedRunError("the steps of the evaluations do not increase")
        # The last rollout, of train_freq steps in each environment, is done to its end.
        rollout = (self.settings.train_freq or 1) * self.settings.n_envs
        if self.evaluated_at[-1] >= self.settings.steps + rollout:
            raise DamagedRunError(f"evaluated at step {self.evaluated_at[-1]} of {self.settings.steps}")

    @property
    def _entry(self) -> Algorithm:
        settings = self.settings
        try:
            entry = settings.algorithm
            if settings.estimator is not None and settings.estimator != entry.hyperparameters.get("estimator"):
                raise UserError("")
        except UserError:
            raise DamagedRunError(
                f"unknown algorithm: algo {settings.algo!r} with estimator {settings.estimator!r}"
            ) from None
        return entry

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
        """What runs must share to be averaged: everything that shapes a result but the seed.

        What was not recorded, because the version that made the run did not have it yet, is the default.
        """
        same = replace(self.settings, seed=0, checkpoint_every=1)
        return same.with_hyperparameters({**self._entry.hyperparameters, **dict(self.settings.hyperparameters)})

    @property
    def finished(self) -> bool:
        """Whether the run has its last evaluation."""
        return self.state == "finished"


def without_repeats(runs: list[Run]) -> tuple[list[Run], list[str]]:
    """One run for each environment, algorithm, settings and seed: the one that has come furthest."""
    kept: dict[tuple[Any, ...], Run] = {}
    warnings = []
    for run in sorted(runs, key=lambda run: (-int(run.evaluated_at[-1]), not run.finished, run.name)):
        key = (run.kind, run.seed)
        if key in kept:
            warnings.append(f"{run.name}: skipped: the same run as {kept[key].name}")
        else:
            kept[key] = run
    return sorted(kept.values(), key=lambda run: (run.env, list(ALGORITHMS).index(run.algorithm), run.name)), warnings
