"""Reading results: run directories, or the ``results.csv`` that a report wrote from them.

Both give the same list of runs, so everything that follows (cells, tables, figures, report) is the same for both.
"""

import csv
import io
import json
from collections.abc import Iterable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from softdpg.algorithms.registry import Algorithm, find
from softdpg.errors import UserError
from softdpg.results.records import SMOOTHING, DamagedRunError, Items, Run, without_repeats
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory, find_runs

# Groups of config.json whose keys are not fixed; results.csv has one column for each key, as in versions.jax.
OPEN_GROUPS = ("hyperparameters", "versions", "machine")
# Hyperparameters that are not in the open group: two have columns of their own, one is in the algorithm's name.
NAMED = (*SMOOTHING, "estimator")
# Settings that have a column only if a run departs from their defaults.
OPTIONAL = ("n_envs", "env_kwargs", "normalize", "her", "n_sampled_goal", "goal_selection_strategy")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet's formula may begin with
COLUMNS = (
    *("run", "env", "algorithm", "seed", "steps", "sigma", "n_samples", "evaluation.every", "evaluation.episodes"),
    *("commit", "state", "seconds", "step", "mean", "std"),
)


def read(path: Path, *, may_be_none: bool = False) -> tuple[list[Run], list[str]]:
    """The runs below a directory, or in a ``results.csv``, and a warning for each one left out or doubtful.

    Those that end at a goal are the race's (``race_reading.py``) and not among them. ``UserError`` if there are none,
    unless there may be.
    """
    if path.is_dir():
        runs, warnings = _read_directory(path)
    elif path.is_file():
        runs, warnings = _read_csv(path), []
    else:
        raise UserError(f"{path}: no such file or directory")
    runs, repeated = without_repeats(runs)
    if not runs and not may_be_none:
        raise UserError(f"{path}: no runs with evaluations found" + (f" ({warnings[0]})" if warnings else ""))
    return runs, warnings + repeated


def write_csv(runs: Iterable[Run]) -> str:
    """All runs as tidy CSV: one row for each evaluation, with the settings of its run. Reading it loses nothing."""
    rows: list[dict[str, Any]] = []
    for run in runs:
        settings = run.settings
        fixed: dict[str, Any] = {
            "run": run.name,
            "env": settings.env,
            "algorithm": run.algorithm,
            "seed": run.seed,
            "steps": settings.steps,
            **{name: as_text(getattr(settings, name)) for name in SMOOTHING},
            "evaluation.every": settings.evaluate_every,
            "evaluation.episodes": settings.evaluation_episodes,
            "commit": run.commit,
            "state": run.state,
            "seconds": run.seconds,
        } | {name: as_text(getattr(settings, name)) for name in OPTIONAL if getattr(settings, name) != _usual(name)}
        hyperparameters = tuple((key, as_text(value)) for key, value in settings.hyperparameters if key not in NAMED)
        for group, items in zip(OPEN_GROUPS, (hyperparameters, run.versions, run.machine), strict=True):
            fixed |= {f"{group}.{key}": value for key, value in items}
        for step, mean, std in zip(run.evaluated_at, run.means, run.stds, strict=True):
            rows.append(fixed | {"step": int(step), "mean": float(mean), "std": float(std)})
    open_columns = {key for row in rows for key in row} - set(COLUMNS)
    groups = [*OPTIONAL, *OPEN_GROUPS]
    order = [*COLUMNS[:9], *sorted(open_columns, key=lambda key: (groups.index(key.split(".")[0]), key))]
    out = io.StringIO()
    writer = csv.DictWriter(out, order + list(COLUMNS[9:]), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: escaped(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def _usual(name: str) -> Any:
    return signature(RunConfig).parameters[name].default


def escaped(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: a text that begins like one, and is no number, gets a quote."""
    if not isinstance(value, str) or (not value.startswith(_FORMULA) and unescaped(value) == value):
        return value
    try:
        float(value)
    except ValueError:
        return "'" + value
    return value


def unescaped(cell: str) -> str:
    """What :func:`escaped` made ``cell`` from."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith((*_FORMULA, "'")) else cell


def as_text(value: Any) -> str:
    """A setting as text: JSON, but strings bare and None empty."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def as_items(group: dict[str, Any]) -> Items:
    """The pairs of an open group of config.json, sorted, values as text."""
    # An empty text in results.csv is a column that the run does not have, so None is left out here as well.
    return tuple(sorted((str(key), as_text(value)) for key, value in group.items() if value not in (None, "")))


def _read_directory(root: Path) -> tuple[list[Run], list[str]]:
    runs, warnings = [], []
    for directory in find_runs(root):
        name = directory.path.relative_to(root.absolute()).as_posix()
        shown = root / name if name != "." else root
        try:
            found = _read_run(directory, name if name != "." else root.resolve().name)
        except (UserError, DamagedRunError, OSError) as error:
            warnings.append(f"{shown}: skipped: {str(error).removeprefix(f'{directory.path}: ')}")
            continue
        if found is not None:
            run, doubts = found
            runs.append(run)
            warnings += [f"{shown}: {doubt}" for doubt in doubts]
    return runs, warnings


def _read_run(directory: RunDirectory, name: str) -> tuple[Run, list[str]] | None:
    config = directory.read_config()
    settings = RunConfig.from_json(config)
    if settings.goal is not None:
        return None
    doubts = []
    try:
        status = directory.check_status()
        doubts += [] if status else ["status.json is missing, taken as interrupted"]
    except UserError as error:
        status = {}
        doubts.append(f"{str(error).removeprefix(f'{directory.path}: ')}, taken as interrupted")
    evaluations = directory.read_evaluations()
    run = Run(
        name=name,
        settings=settings,
        versions=as_items(config["versions"]),
        machine=as_items(config["machine"]),
        commit=as_text(config.get("commit")),
        state=status.get("state", "interrupted"),
        seconds=float(status.get("seconds", 0.0)),
        evaluated_at=evaluations.steps,
        means=evaluations.means,
        stds=evaluations.stds,
    )
    return run, doubts


def _read_csv(path: Path) -> list[Run]:
    try:
        reader = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
        missing = [column for column in COLUMNS if column not in (reader.fieldnames or [])]
        if missing:
            raise UserError(f"{path}: not a results.csv of softdpg: no column {', '.join(missing)}")
        groups: dict[str, list[dict[str, str]]] = {}
        for row in reader:
            plain = {key: unescaped(value) for key, value in row.items()}
            groups.setdefault(plain["run"], []).append(plain)
        return [_run_from_rows(rows) for rows in groups.values()]
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (TypeError, ValueError, OverflowError, AttributeError, csv.Error, DamagedRunError) as error:
        raise UserError(f"{path}: unreadable row: {error}") from None


def stored_algorithm(name: str) -> Algorithm:
    """The algorithm that a row of a CSV names; ``DamagedRunError`` if it is not registered, as without its plug-in."""
    try:
        return find(name)
    except UserError as error:
        raise DamagedRunError(str(error)) from None


def _run_from_rows(rows: list[dict[str, str]]) -> Run:
    first = rows[0]
    hyperparameters, versions, machine = (
        {
            key.removeprefix(f"{group}."): value
            for key, value in sorted(first.items())
            if key.startswith(f"{group}.") and value
        }
        for group in OPEN_GROUPS
    )
    entry = stored_algorithm(first["algorithm"])
    values = np.array([[float(row["mean"]), float(row["std"])] for row in rows])
    return Run(
        name=first["run"],
        settings=RunConfig(
            first["env"],
            entry.base,
            int(first["steps"]),
            int(first["seed"]),
            int(first["evaluation.every"]),
            int(first["evaluation.episodes"]),
            **{name: from_text(first[name]) for name in OPTIONAL if first.get(name)},
            estimator=entry.hyperparameters.get("estimator"),
            **{name: from_text(first[name]) for name in SMOOTHING},
            **{name: from_text(text) for name, text in hyperparameters.items()},
        ),
        versions=tuple(versions.items()),
        machine=tuple(machine.items()),
        commit=first["commit"],
        state=first["state"],
        seconds=float(first["seconds"]),
        evaluated_at=np.array([int(row["step"]) for row in rows], dtype=np.int64),
        means=values[:, 0],
        stds=values[:, 1],
    )


def from_text(text: str) -> Any:
    """The setting that :func:`as_text` wrote."""
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text
