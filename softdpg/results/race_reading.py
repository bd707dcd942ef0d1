"""Reading races back: run directories with a goal, or ``race.csv`` with ``race_curves.csv`` beside it.

``race.csv`` has one row a run: what it was, how it ended, settings, versions, machine. ``race_curves.csv`` has one row
an evaluation: score and CPU seconds so far. Reading them gives what the run directories gave.
"""

import csv
import io
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from softdpg.errors import UserError
from softdpg.results.race import RaceRun
from softdpg.results.reading import OPEN_GROUPS, as_items, as_text, escaped, from_text, stored_algorithm, unescaped
from softdpg.results.records import DamagedRunError
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import STATES, RunDirectory, find_runs

RUNS, CURVES = "race.csv", "race_curves.csv"
_SETTINGS = ("seed", "steps", "evaluate_every", "evaluation_episodes", "n_envs", "goal", "after_crossing")
_COLUMNS = (
    *("run", "env", "algorithm", *_SETTINGS, "state", "crossed_at", "cpu_seconds", "last_step", "last_score"),
    *("wall_seconds", "message", "commit"),
)
_CURVE = ("step", "mean", "train", "evaluate", "compile")


def read_race(path: Path) -> tuple[list[RaceRun], list[str]]:
    """The runs with a goal below a directory, or in a ``race.csv``, and a warning for each one left out."""
    if path.is_dir():
        return _read_directory(path)
    return (_read_csv(path), []) if is_race(path) else ([], [])


def read_earlier(files: Iterable[Path]) -> list[RaceRun]:
    """The runs of earlier races, from their ``race.csv``."""
    runs: list[RaceRun] = []
    for file in files:
        if not is_race(file):
            raise UserError(f"{file}: not the {RUNS} of a race")
        runs = joined(runs, _read_csv(file))
    return runs


def joined(runs: Iterable[RaceRun], earlier: Iterable[RaceRun]) -> list[RaceRun]:
    """Runs of several races as one: of the same column, contender and seed the first that is decided, or the first."""
    kept: dict[tuple[Any, ...], RaceRun] = {}
    for run in (*runs, *earlier):
        key = (run.column, run.contender, run.settings.seed)
        if key not in kept or (run.decided and not kept[key].decided):
            kept[key] = run
    named: dict[str, RaceRun] = {}  # the name leads from a run's row to its curve
    for run in kept.values():
        while run.name in named:
            run = replace(run, name=f"{run.name}-earlier")
        named[run.name] = run
    return list(named.values())


def is_race(path: Path) -> bool:
    """Whether a file is one that a race wrote, by its name."""
    return path.is_file() and path.name == RUNS


def write_runs(runs: Iterable[RaceRun]) -> str:
    """``race.csv``."""
    rows: list[dict[str, Any]] = []
    for run in runs:
        settings = run.settings
        row: dict[str, Any] = {"run": run.name, "env": settings.env, "algorithm": run.contender}
        row |= {name: getattr(settings, name) for name in _SETTINGS}
        crossed = run.crossing is not None
        row |= {
            "state": run.state,
            "crossed_at": int(run.steps_to_line) if crossed else "",
            "cpu_seconds": run.seconds_to_line if crossed else "",
            "last_step": int(run.evaluated_at[-1]) if len(run.means) else "",
            "last_score": float(run.means[-1]) if len(run.means) else "",
            "wall_seconds": run.seconds,
            "message": run.message,
            "commit": run.commit,
        }
        hyperparameters = [(key, as_text(value)) for key, value in settings.hyperparameters]
        for group, pairs in zip(OPEN_GROUPS, (hyperparameters, run.versions, run.machine), strict=True):
            row |= {f"{group}.{key}": value for key, value in pairs}
        rows.append(row)
    more = {key for row in rows for key in row} - set(_COLUMNS)
    order = [*_COLUMNS, *sorted(more, key=lambda key: (OPEN_GROUPS.index(key.split(".")[0]), key))]
    return _csv(order, rows)


def write_curves(runs: Iterable[RaceRun]) -> str:
    """``race_curves.csv``."""
    rows = []
    for run in runs:
        columns = [column.tolist() for column in (run.evaluated_at, run.means, run.train, run.evaluate, run.compile)]
        rows += [{"run": run.name} | dict(zip(_CURVE, row, strict=True)) for row in zip(*columns, strict=True)]
    return _csv(["run", *_CURVE], rows)


def _csv(order: list[str], rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, order, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: escaped(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def _read_directory(root: Path) -> tuple[list[RaceRun], list[str]]:
    runs, warnings = [], []
    for directory in find_runs(root):
        name = directory.path.relative_to(root.absolute()).as_posix()
        try:
            config = directory.read_config()
            settings = RunConfig.from_json(config)
            if settings.goal is None:
                continue
        except UserError:
            continue  # the reading of other runs says what is wrong with it
        try:
            runs.append(_read_run(directory, name if name != "." else root.resolve().name, config, settings))
        except (UserError, DamagedRunError, OSError) as error:
            warnings.append(f"{root / name}: skipped: {str(error).removeprefix(f'{directory.path}: ')}")
    return runs, warnings


def _read_run(directory: RunDirectory, name: str, config: dict[str, Any], settings: RunConfig) -> RaceRun:
    settings.algorithm  # noqa: B018 (UserError unless it is known)
    status = directory.read_status()
    evaluations, timings = directory.read_evaluations(), directory.read_timings()
    scores = dict(zip(evaluations.steps.tolist(), evaluations.means.tolist(), strict=True))
    # The row of the times comes last; an evaluation without one is under way.
    rows = [(row[0], scores[row[0]], *row[1:]) for row in zip(*map(list, timings), strict=True) if row[0] in scores]
    return RaceRun(
        name=name,
        settings=settings,
        state=str(status.get("state", "interrupted")),
        message=str(status.get("message", "")).partition(" (more in ")[0],  # paths are nobody else's business
        seconds=float(status.get("seconds", 0.0)),
        commit=as_text(config.get("commit")),
        versions=as_items(config["versions"]),
        machine=as_items(config["machine"]),
        **_arrays(rows),
    )


def _arrays(rows: list[tuple[float, ...]]) -> dict[str, Any]:
    """The arrays of a run from rows ``step, mean, train, evaluate, compile``."""
    numbers = np.array(rows, dtype=np.float64).reshape(-1, len(_CURVE))
    if not np.isfinite(numbers).all() or (np.diff(numbers[:, 0]) <= 0).any():
        raise DamagedRunError("the evaluations are not finite numbers at increasing steps")
    _, means, train, evaluate, compile_ = numbers.T
    steps = numbers[:, 0].astype(np.int64)
    return {"evaluated_at": steps, "means": means, "train": train, "evaluate": evaluate, "compile": compile_}


def _read_csv(path: Path) -> list[RaceRun]:
    try:
        curves: dict[str, list[tuple[float, ...]]] = {}
        for row in _rows(path.with_name(CURVES), ("run", *_CURVE)):
            curves.setdefault(row["run"], []).append(tuple(float(row[name]) for name in _CURVE))
        return [_from_row(row, curves.get(row["run"], [])) for row in _rows(path, _COLUMNS)]
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from None
    except (TypeError, ValueError, OverflowError, AttributeError, csv.Error, DamagedRunError) as error:
        raise UserError(f"{path}: unreadable row: {error}") from None


def _rows(path: Path, columns: Iterable[str]) -> list[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    missing = [column for column in columns if column not in (reader.fieldnames or [])]
    if missing:
        raise UserError(f"{path}: not a file of softdpg race: no column {', '.join(missing)}")
    return [{key: unescaped(value) for key, value in row.items()} for row in reader]


def _from_row(row: dict[str, str], curve: list[tuple[float, ...]]) -> RaceRun:
    hyperparameters, versions, machine = (
        {key.removeprefix(f"{group}."): row[key] for key in sorted(row) if key.startswith(f"{group}.") and row[key]}
        for group in OPEN_GROUPS
    )
    if row["state"] not in STATES:
        raise DamagedRunError(f"unknown state {row['state']!r}")
    settings = RunConfig(
        row["env"],
        stored_algorithm(row["algorithm"]).base,
        **{name: from_text(row[name]) for name in _SETTINGS},
        hyperparameters=[(name, from_text(value)) for name, value in hyperparameters.items()],
    )
    return RaceRun(
        name=row["run"],
        settings=settings,
        state=row["state"],
        message=row["message"],
        seconds=float(row["wall_seconds"]),
        commit=row["commit"],
        versions=tuple(versions.items()),
        machine=tuple(machine.items()),
        **_arrays(curve),
    )
