"""From runs to what is compared: cells (environment, algorithm, settings), rows of a table, sensitivity sweeps.

Only runs with equal settings share a cell, and only cells with equal settings share a row. Whatever does not fit
is kept apart and shown as runs with other settings.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from softdpg import paper
from softdpg.results.records import Run, Settings
from softdpg.results.statistics import Array, Comparison, compare

# Besides sigma and N, what DDPG does not have and the estimators of Soft DDPG choose differently.
SMOOTHING_HYPERPARAMETERS = frozenset({"antithetic"})


@dataclass(frozen=True, eq=False)
class Cell:
    """The runs of one environment, algorithm and settings that count, up to the step that all of them reached.

    Those are the finished ones; while none has finished, all. ``waiting`` runs of the same kind do not count yet.
    """

    env: str
    algorithm: str
    settings: Settings
    runs: tuple[Run, ...]
    waiting: int

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """The steps at which every run was evaluated, shape (evaluations,)."""
        return reduce(np.intersect1d, (run.evaluated_at for run in self.runs))

    @cached_property
    def curves(self) -> Array:
        """Mean return of each run at each of these steps, shape (seeds, evaluations)."""
        return np.array([run.means[np.isin(run.evaluated_at, self.steps)] for run in self.runs])

    @property
    def step(self) -> int:
        """The last of these steps."""
        return int(self.steps[-1])

    @cached_property
    def scores(self) -> Array:
        """Final score of each run, shape (seeds,): the mean over the last tenth of the evaluations up to ``step``."""
        last = self.steps > self.step - max(1, round(paper.FINAL_FRACTION * self.step))
        return self.curves[:, last].mean(axis=1)

    def is_complete(self, swept: bool = False) -> bool:
        """Whether the cell has the paper's seeds, steps and settings (for ``swept``, see :func:`deviations`)."""
        enough = len(self.runs) >= paper.SEEDS and self.step >= paper.TOTAL_TIMESTEPS
        return enough and not deviations(self, swept)


@dataclass(frozen=True, eq=False)
class Row:
    """The cells of one environment, by algorithm, at the settings they share; sigma and N are the paper's."""

    env: str
    cells: dict[str, Cell]

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Each algorithm against DDPG, if both are there and at the same step."""
        ddpg = self.cells.get("ddpg")
        return {
            name: compare(cell.scores, ddpg.scores)
            for name, cell in self.cells.items()
            if ddpg and name != "ddpg" and cell.step == ddpg.step
        }


@dataclass(frozen=True, eq=False)
class Sweep:
    """Cells of one environment and algorithm that differ in one smoothing parameter, in its order."""

    env: str
    algorithm: str
    parameter: Literal["n_samples", "sigma"]
    cells: dict[float, Cell]


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that the tables and figures show."""

    runs: list[Run]
    rows: dict[str, Row]
    sweeps: list[Sweep]
    other_settings: list[Cell]


def arrange(runs: list[Run]) -> Results:
    """Sort runs into rows and sweeps; each cell that is in neither is among ``other_settings``."""
    cells = _cells(runs)
    envs = list(dict.fromkeys(cell.env for cell in cells))
    rows = [_row(env, [cell for cell in cells if cell.env == env]) for env in envs]
    sweeps = [
        sweep
        for env in envs
        for algorithm, settings in paper.ALGORITHMS.items()
        if settings.estimator
        for sweep in _sweeps([cell for cell in cells if (cell.env, cell.algorithm) == (env, algorithm)])
    ]
    shown = {id(cell) for row in rows for cell in row.cells.values()}
    shown |= {id(cell) for sweep in sweeps for cell in sweep.cells.values()}
    return Results(
        runs=runs,
        rows={row.env: row for row in rows if row.cells},
        sweeps=sweeps,
        other_settings=[cell for cell in cells if id(cell) not in shown],
    )


def deviations(cell: Cell, swept: bool = False) -> list[str]:
    """Where a cell's settings other than the number of steps depart from the paper, and from the evaluation protocol.

    Sigma and N do not count in a sensitivity sweep (``swept``), whose subject they are.
    """
    settings, found = cell.settings, []
    if not swept and settings.sigma not in (None, paper.SIGMA):
        found.append(f"sigma {settings.sigma:g} instead of {paper.SIGMA:g}")
    if not swept and settings.n_samples not in (None, paper.N_SAMPLES):
        found.append(f"N {settings.n_samples} instead of {paper.N_SAMPLES}")
    for name, text in settings.hyperparameters:
        if name in paper.HYPERPARAMETERS and not _same(text, paper.HYPERPARAMETERS[name]):
            found.append(f"{name} {text} instead of {json.dumps(paper.HYPERPARAMETERS[name])}")
    if cell.algorithm == "soft-ddpg" and ("antithetic", "true") in settings.hyperparameters:
        found.append("antithetic instead of independent noise")
    if settings.evaluation_every != paper.EVALUATION_EVERY:
        found.append(f"evaluated every {settings.evaluation_every} steps instead of {paper.EVALUATION_EVERY}")
    if settings.evaluation_episodes != paper.EVALUATION_EPISODES:
        found.append(f"{settings.evaluation_episodes} evaluation episodes instead of {paper.EVALUATION_EPISODES}")
    return found


def differences(settings: Settings, reference: Settings) -> list[str]:
    """Each setting that differs from a reference, as ``name value``."""
    ours, theirs = _flat(settings), _flat(reference)
    return [f"{name} {ours.get(name, 'not set')}" for name in ours | theirs if ours.get(name) != theirs.get(name)]


def _flat(settings: Settings) -> dict[str, str]:
    fixed = {name: value for name, value in vars(settings).items() if name != "hyperparameters" and value is not None}
    return {name: f"{value:g}" if name == "sigma" else str(value) for name, value in fixed.items()} | dict(
        settings.hyperparameters
    )


def _same(text: str, value: Any) -> bool:
    try:
        return bool(json.loads(text) == (list(value) if isinstance(value, tuple) else value))
    except ValueError:
        return False


def _cells(runs: Iterable[Run]) -> list[Cell]:
    groups: dict[tuple[str, str, Settings], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.env, run.algorithm, run.settings), []).append(run)
    cells = []
    for key, members in groups.items():
        counted = [run for run in members if run.finished] or members
        if not reduce(np.intersect1d, (run.evaluated_at for run in counted)).size:
            counted = counted[:1]  # nothing to average: no step at which all were evaluated
        cells.append(Cell(*key, tuple(sorted(counted, key=lambda run: run.seed)), len(members) - len(counted)))
    return cells


def _shared_settings(settings: Settings) -> tuple[Any, ...]:
    """What cells of different algorithms must have in common to be compared."""
    hyperparameters = tuple(item for item in settings.hyperparameters if item[0] not in SMOOTHING_HYPERPARAMETERS)
    return settings.steps, settings.evaluation_every, settings.evaluation_episodes, hyperparameters


def _row(env: str, cells: list[Cell]) -> Row:
    """The settings with the paper's hyperparameters, the most algorithms, steps and seeds, in this order."""
    groups: dict[tuple[Any, ...], dict[str, Cell]] = {}
    for cell in sorted(cells, key=lambda cell: (not deviations(cell), len(cell.runs))):
        if cell.settings.sigma in (None, paper.SIGMA) and cell.settings.n_samples in (None, paper.N_SAMPLES):
            groups.setdefault(_shared_settings(cell.settings), {})[cell.algorithm] = cell
    best = max(
        groups.values(),
        key=lambda group: (
            not any(deviations(cell) for cell in group.values()),
            len(group),
            next(iter(group.values())).settings.steps,
            sum(len(cell.runs) for cell in group.values()),
        ),
        default={},
    )
    return Row(env, {name: best[name] for name in paper.ALGORITHMS if name in best})


def _sweeps(cells: list[Cell]) -> list[Sweep]:
    found = []
    for parameter, fixed, value in (
        ("n_samples", "sigma", paper.SIGMA),
        ("sigma", "n_samples", paper.SENSITIVITY_SIGMA_N_SAMPLES),
    ):
        groups: dict[tuple[Any, ...], dict[float, Cell]] = {}
        for cell in sorted(cells, key=lambda cell: (getattr(cell.settings, parameter), len(cell.runs))):
            if getattr(cell.settings, fixed) == value:
                key = _shared_settings(cell.settings)
                groups.setdefault(key, {})[getattr(cell.settings, parameter)] = cell
        best = max(groups.values(), key=len, default={})
        if len(best) > 1:
            found.append(Sweep(cells[0].env, cells[0].algorithm, parameter, best))  # type: ignore[arg-type]
    return found
