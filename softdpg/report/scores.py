"""Final scores of runs, arranged in cells (environment, algorithm, settings), rows of tables and sensitivity sweeps.

Only runs with equal settings share a cell. Cells share a row if they have the same protocol: environment, steps and
evaluation. Hyperparameters may differ, as they do between algorithms. Runs that fit nowhere are listed as runs with
other settings.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS
from softdpg.report.reading import show
from softdpg.report.runs import Array, Run
from softdpg.report.statistics import Comparison, compare
from softdpg.report.style import table_order
from softdpg.runs.config import RunConfig

_NOISE = {True: "antithetic instead of independent noise", False: "independent instead of antithetic noise"}


@dataclass(frozen=True, eq=False)
class Cell:
    """The runs of one environment, algorithm and settings that count, up to the last step that all of them reached.

    :param env: environment
    :param algorithm: name of the algorithm
    :param settings: settings that the runs share
    :param runs: the finished runs; while none is finished, those that have come at least half as far as the longest
    :param waiting: number of runs of the same kind that do not count yet
    :param reproduces: whether some of the runs beside it have the paper's algorithms on its environments
    """

    env: str
    algorithm: str
    settings: RunConfig
    runs: tuple[Run, ...]
    waiting: int
    reproduces: bool = False

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """Steps at which every run was evaluated, shape (evaluations,)."""
        return reduce(np.intersect1d, (run.evaluated_at for run in self.runs))

    @cached_property
    def curves(self) -> Array:
        """Mean return of each run at each of these steps, shape (seeds, evaluations)."""
        return np.array([run.means[np.isin(run.evaluated_at, self.steps)] for run in self.runs])

    @property
    def step(self) -> int:
        """Last step at which every run was evaluated."""
        return int(self.steps[-1])

    @cached_property
    def scores(self) -> Array:
        """Final score of each run, shape (seeds,): the mean over the last tenth of the evaluations up to ``step``."""
        last = self.steps > self.step - max(1, round(paper.FINAL_FRACTION * self.step))
        return self.curves[:, last].mean(axis=1)

    @property
    def in_paper(self) -> bool:
        """Whether the cell is compared with the paper, which ran this environment."""
        return self.reproduces and self.env in paper.ENV_IDS

    @cached_property
    def band(self) -> tuple[Array, Array]:
        """Lower and upper edge of the spread over seeds, each of shape (evaluations,).

        It is one sample standard deviation around the mean. With two seeds it is their range, because the standard
        deviation of two numbers reaches beyond both.
        """
        if len(self.runs) == 2:
            return self.curves.min(axis=0), self.curves.max(axis=0)
        mean, std = self.curves.mean(axis=0), self.curves.std(axis=0, ddof=1)
        return mean - std, mean + std

    def is_complete(self, swept: bool = False) -> bool:
        """Return whether the cell has the paper's seeds, steps and settings.

        :param swept: whether the cell is part of a sensitivity sweep, where sigma and N may differ
        """
        enough = len(self.runs) >= paper.SEEDS and self.step >= paper.TOTAL_TIMESTEPS
        return enough and not deviations(self, swept)


@dataclass(frozen=True, eq=False)
class Row:
    """The cells of one environment and protocol, by algorithm, with the default sigma and N of each."""

    env: str
    cells: dict[str, Cell]

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Comparison of each algorithm with the baseline, where both are present at the same step."""
        baseline = self.cells.get(paper.BASELINE)
        return {
            name: compare(cell.scores, baseline.scores)
            for name, cell in self.cells.items()
            if baseline and name != paper.BASELINE and cell.step == baseline.step
        }


@dataclass(frozen=True, eq=False)
class Sweep:
    """Cells of one environment and algorithm that differ in the swept hyperparameter, in ascending order."""

    env: str
    algorithm: str
    design: paper.Sweep
    cells: dict[float, Cell]

    @property
    def parameter(self) -> str:
        """Name of the swept hyperparameter."""
        return self.design.parameter


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that the tables and figures show."""

    runs: list[Run]
    rows: dict[str, Row]
    sweeps: list[Sweep]
    other_settings: list[Cell]

    @property
    def in_paper(self) -> bool:
        """Whether some runs have the paper's algorithms on its environments, and are compared with its tables."""
        return any(cell.in_paper for row in self.rows.values() for cell in row.cells.values()) or any(
            cell.in_paper for cell in self.other_settings
        )


def arrange(runs: list[Run]) -> Results:
    """Sort runs into rows and sweeps; cells that are in neither become ``other_settings``.

    :param runs: runs without a target score
    """
    cells = group(runs)
    envs = list(dict.fromkeys(cell.env for cell in cells))
    rows = [_row(env, [cell for cell in cells if cell.env == env]) for env in envs]
    sweeps = [
        sweep
        for env in envs
        for algorithm in table_order()
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
    """Return one phrase for each setting, except the number of steps, that departs from the paper or its evaluation.

    :param cell: runs with equal settings
    :param swept: whether the cell is part of a sensitivity sweep, where sigma and N may differ
    """
    settings, found = cell.settings, []
    if ALGORITHMS[cell.algorithm].origin == "peer":
        found += [f"{name} {show(value)}" for name, value in settings.hyperparameters]
    for name, usual in _expected(cell.algorithm).items():
        value = getattr(settings, name)
        if value not in (None, usual) and not (swept and name in paper.SWEPT):
            found.append(
                _NOISE[value] if name == "antithetic" else f"{symbol(name)} {show(value)} instead of {show(usual)}"
            )
    found += [name for name in ("normalize", "her") if getattr(settings, name)]
    if settings.evaluate_every != paper.EVALUATION_EVERY:
        found.append(f"evaluated every {settings.evaluate_every} steps instead of {paper.EVALUATION_EVERY}")
    if settings.evaluation_episodes != paper.EVALUATION_EPISODES:
        found.append(f"{settings.evaluation_episodes} evaluation episodes instead of {paper.EVALUATION_EPISODES}")
    return found


def _expected(algorithm: str) -> dict[str, Any]:
    """The settings that the paper states, for its algorithms and their variants; all defaults for other algorithms."""
    entry = ALGORITHMS[algorithm]
    of_the_paper = bool({entry.name, entry.base} & set(paper.PAPER_ALGORITHMS))
    names = (*paper.SWEPT, *paper.HYPERPARAMETERS, "antithetic") if of_the_paper else tuple(entry.hyperparameters)
    return {name: entry.hyperparameters[name] for name in names if entry.hyperparameters.get(name) is not None}


def differences(settings: RunConfig, reference: RunConfig) -> list[str]:
    """Return each setting that differs from a reference, as ``name value``.

    :param settings: settings of a run
    :param reference: settings to compare with
    """
    here, there = _flat(settings), _flat(reference)
    return [f"{name} {here.get(name, 'not set')}" for name in here | there if here.get(name) != there.get(name)]


def _flat(settings: RunConfig) -> dict[str, str]:
    preset = settings.algorithm.preset  # the name of the algorithm says these
    given = {name: value for name, value in settings.hyperparameters if name not in preset}
    names = ["steps", *(name for name in paper.SWEPT if name in given), "evaluate_every", "evaluation_episodes", *given]
    names += [name for name in ("normalize", "her") if getattr(settings, name)]
    return {name: show(getattr(settings, name)) for name in names}


def symbol(name: str) -> str:
    """Return the name of a hyperparameter in tables.

    :param name: name in the settings
    """
    return {"n_samples": "N"}.get(name, name)


def group(runs: Iterable[Run]) -> list[Cell]:
    """Group runs with equal settings into cells.

    :param runs: runs, each of them evaluated at least once
    """
    groups: dict[tuple[str, str, RunConfig], list[Run]] = {}
    runs = list(runs)
    reproduces = any(run.env in paper.ENV_IDS and run.algorithm in paper.PAPER_ALGORITHMS for run in runs)
    for run in runs:
        groups.setdefault((run.env, run.algorithm, run.kind), []).append(run)
    cells = []
    for key, members in groups.items():
        counted = [run for run in members if run.finished] or _long(members)
        if not reduce(np.intersect1d, (run.evaluated_at for run in counted)).size:
            counted = counted[:1]  # nothing to average: no step at which all were evaluated
        ordered = tuple(sorted(counted, key=lambda run: run.seed))
        cells.append(Cell(*key, ordered, len(members) - len(counted), reproduces))
    return cells


def _long(runs: list[Run]) -> list[Run]:
    """Return the unfinished runs that have come at least half as far as the longest: others would cut its curve."""
    longest = max(run.last_step for run in runs)
    return [run for run in runs if 2 * run.last_step >= longest]


def _protocol(settings: RunConfig) -> tuple[int, int, int]:
    """What cells of one environment must share to be compared."""
    return settings.steps, settings.evaluate_every, settings.evaluation_episodes


def _row(env: str, cells: list[Cell]) -> Row:
    """Choose the cells that a row compares.

    Beside the paper, all have one protocol: that with the paper's hyperparameters, the most algorithms, steps and
    seeds, in this order. Elsewhere each algorithm shows its longest runs. Sigma and N are at their defaults, but
    outside the paper an algorithm without such a run may have others.
    """
    at_default = {cell.algorithm for cell in cells if _unswept(cell)}
    shown = sorted((c for c in cells if _unswept(c) or not (c.in_paper or c.algorithm in at_default)), key=_weight)
    if not any(cell.in_paper for cell in cells):
        longest = {cell.algorithm: cell for cell in sorted(shown, key=lambda cell: cell.step)}
        return Row(env, {name: longest[name] for name in table_order() if name in longest})
    groups: dict[tuple[int, int, int], dict[str, Cell]] = {}
    for cell in shown:
        groups.setdefault(_protocol(cell.settings), {})[cell.algorithm] = cell
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
    return Row(env, {name: best[name] for name in table_order() if name in best})


def _unswept(cell: Cell) -> bool:
    defaults = ALGORITHMS[cell.algorithm].hyperparameters
    return all(getattr(cell.settings, name) == defaults.get(name) for name in paper.SWEPT)


def _weight(cell: Cell) -> tuple[bool, int]:
    """Order of two cells of one algorithm: the row shows the later one."""
    return not deviations(cell), len(cell.runs)


def _sweeps(cells: list[Cell]) -> list[Sweep]:
    found = []
    for design in paper.SWEEPS:
        groups: dict[RunConfig, dict[float, Cell]] = {}
        swept = [cell for cell in cells if isinstance(getattr(cell.settings, design.parameter), int | float)]
        for cell in sorted(swept, key=lambda cell: (getattr(cell.settings, design.parameter), len(cell.runs))):
            if getattr(cell.settings, design.fixed[0]) == design.fixed[1]:
                rest = cell.settings.with_hyperparameters({design.parameter: None})
                groups.setdefault(rest, {})[getattr(cell.settings, design.parameter)] = cell
        best = max(groups.values(), key=len, default={})
        if len(best) > 1:
            found.append(Sweep(cells[0].env, cells[0].algorithm, design, best))
    return found
