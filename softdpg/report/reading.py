"""Reading runs from their directories or from CSV files, and writing these files.

``results.csv`` has one row per evaluation, with the settings of its run. A benchmark has two files: ``race.csv`` with
one row per run, and ``race_curves.csv`` with one row per evaluation (score and CPU seconds so far). The CSV files hold
the same runs as the directories, so that tables and figures do not depend on where the runs were read from.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softdpg.algorithms.registry import find
from softdpg.errors import UserError
from softdpg.report.runs import LARGEST, DamagedRunError, Items, Run, joined, without_repeats
from softdpg.runs.config import SETTINGS, RunConfig
from softdpg.runs.directory import STATES, RunDirectory, find_runs
from softdpg.runs.files import FileError, parse_value, read_text

BENCHMARK, CURVES = "race.csv", "race_curves.csv"
# Groups with one column for each key, as in versions.jax.
GROUPS = ("hyperparameters", "versions", "machine")
_SETTINGS = ("seed", "steps", "evaluate_every", "evaluation_episodes")
# Settings that have a column only if a run departs from their defaults.
_OPTIONAL = (
    *("n_envs", "stop_at_score", "steps_after_score", "env_kwargs", "normalize", "her", "n_sampled_goal"),
    *("goal_selection_strategy", "env_wrapper", "policy"),
)
_ORIGIN = ("state", "wall_seconds", "message", "commit")
_COLUMNS = ("run", "env", "algorithm", *_SETTINGS, *_ORIGIN)
_EVALUATION = ("step", "mean", "std")
_OUTCOME = ("reached_at", "cpu_seconds", "last_step", "last_score")
_CURVE = ("step", "mean", "train", "evaluate", "compile")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet's formula may begin with
_LARGEST_STEP = 2**53  # larger floats are not exact


class Runs(NamedTuple):
    """Runs that were read.

    :param scored: runs without a target score, which count by their final score
    :param benchmark: runs with a target score
    :param warnings: one sentence for each run that was skipped or is doubtful
    """

    scored: list[Run]
    benchmark: list[Run]
    warnings: list[str]


def read_runs(path: Path) -> Runs:
    """Read all runs below a directory or in a CSV file; raise ``UserError`` if ``path`` is neither.

    :param path: directory with run directories anywhere below it, a ``results.csv`` or a ``race.csv``
    """
    warnings: list[str] = []
    if path.is_dir():
        runs, warnings = _read_directory(path)
    elif not path.is_file():
        raise UserError(f"{path}: no such file or directory")
    else:
        runs = _read_benchmark(path) if path.name == BENCHMARK else _read_results(path)
    scored, repeated = without_repeats([run for run in runs if run.target_score is None])
    return Runs(scored, [run for run in runs if run.target_score is not None], warnings + repeated)


def read_earlier(files: Iterable[Path]) -> list[Run]:
    """Read the runs of earlier benchmarks; raise ``UserError`` for a file that is not a ``race.csv``.

    :param files: ``race.csv`` files with their ``race_curves.csv`` beside them
    """
    runs: list[Run] = []
    for file in files:
        if not file.is_file() or file.name != BENCHMARK:
            raise UserError(f"{file}: not the {BENCHMARK} of a benchmark")
        runs = joined(runs, _read_benchmark(file))
    return runs


def write_results(runs: Iterable[Run]) -> str:
    """Return the text of ``results.csv``: one row per evaluation, with the settings of its run.

    :param runs: runs without a target score
    """
    rows = []
    for run in runs:
        settings = _row(run)
        for evaluation in zip(run.evaluated_at.tolist(), run.means.tolist(), run.stds.tolist(), strict=True):
            rows.append(settings | dict(zip(_EVALUATION, evaluation, strict=True)))
    return _csv(rows, _EVALUATION)


def write_benchmark(runs: Iterable[Run]) -> str:
    """Return the text of ``race.csv``: one row per run with its settings and how it ended.

    :param runs: runs with a target score
    """
    rows = []
    for run in runs:
        outcome: dict[str, Any] = {}
        if run.reached is not None:
            outcome |= {"reached_at": int(run.steps_to_target), "cpu_seconds": run.seconds_to_target}
        if len(run.means):
            outcome |= {"last_step": run.last_step, "last_score": float(run.means[-1])}
        rows.append(_row(run) | outcome)
    return _csv(rows, _OUTCOME)


def write_curves(runs: Iterable[Run]) -> str:
    """Return the text of ``race_curves.csv``: one row per evaluation with score and CPU seconds so far.

    :param runs: runs with a target score
    """
    rows = []
    for run in runs:
        columns = [column.tolist() for column in (run.evaluated_at, run.means, run.train, run.evaluate, run.compile)]
        rows += [{"run": run.name} | dict(zip(_CURVE, row, strict=True)) for row in zip(*columns, strict=True)]
    return _text(["run", *_CURVE], rows)


def show(value: Any) -> str:
    """Write a setting as a string: JSON, but strings without quotes.

    :param value: value of the setting
    """
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _row(run: Run) -> dict[str, Any]:
    """What both CSV files hold of a run."""
    settings = run.settings
    row: dict[str, Any] = {"run": run.name, "env": settings.env, "algorithm": run.algorithm}
    row |= {name: getattr(settings, name) for name in _SETTINGS}
    row |= {name: show(getattr(settings, name)) for name in _OPTIONAL if getattr(settings, name) != _default(name)}
    row |= {name: getattr(run, name) for name in _ORIGIN}
    hyperparameters = tuple((name, show(value)) for name, value in settings.hyperparameters)
    for group, items in zip(GROUPS, (hyperparameters, run.versions, run.machine), strict=True):
        row |= {f"{group}.{key}": value for key, value in items}
    return row


def _default(name: str) -> Any:
    return SETTINGS[name].default


def _csv(rows: list[dict[str, Any]], last: tuple[str, ...]) -> str:
    """Rows of :func:`_row` with more columns, ``last``; optional settings stand beside the others."""
    present = {key for row in rows for key in row}
    optional = [name for name in _OPTIONAL if name in present]
    groups = [key for group in GROUPS for key in sorted(present) if key.startswith(f"{group}.")]
    return _text(["run", "env", "algorithm", *_SETTINGS, *optional, *groups, *_ORIGIN, *last], rows)


def _text(order: list[str], rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, order, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _escaped(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def _escaped(value: Any) -> Any:
    """Put a quote before a string that a spreadsheet would take for a formula, unless it is a number."""
    if not isinstance(value, str) or (not _is_formula(value) and _unescaped(value) == value):
        return value
    try:
        float(value)
    except ValueError:
        return "'" + value
    return value


def _unescaped(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and (_is_formula(cell[1:]) or cell[1:].startswith("'")) else cell


def _is_formula(text: str) -> bool:
    return text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA)


def _read_directory(root: Path) -> tuple[list[Run], list[str]]:
    runs, warnings = [], []
    for directory in find_runs(root):
        name = directory.path.relative_to(root.absolute()).as_posix()
        shown = root / name if name != "." else root
        try:
            run, doubts = _read_run(directory, _encodable(name if name != "." else root.resolve().name))
        except (UserError, DamagedRunError, OSError) as error:
            warnings.append(f"{shown}: skipped: {str(error).removeprefix(f'{directory.path}: ')}")
            continue
        runs.append(run)
        warnings += [f"{shown}: {doubt}" for doubt in doubts]
    return runs, list(map(_encodable, warnings))


def _encodable(text: str) -> str:
    """Escape the bytes of a file name that are not UTF-8, so that the text can be written to a file."""
    return text.encode(errors="backslashreplace").decode()


def _read_run(directory: RunDirectory, name: str) -> tuple[Run, list[str]]:
    config = directory.read_config()
    settings = RunConfig.from_json(config)
    doubts = []
    try:
        status = directory.check_status()
        doubts += [] if status else ["status.json is missing, taken as interrupted"]
    except UserError as error:
        status = {}
        doubts.append(f"{str(error).removeprefix(f'{directory.path}: ')}, taken as interrupted")
    run = Run(
        name=name,
        settings=settings,
        versions=_items(config["versions"]),
        machine=_items(config["machine"]),
        commit="" if config.get("commit") is None else show(config["commit"]),
        state=status.get("state", "interrupted"),
        message=str(status.get("message", "")).partition(" (more in ")[0],  # without paths of this machine
        wall_seconds=float(status.get("seconds", 0.0)),
        **(_evaluations(directory) if settings.stop_at_score is None else _timed_evaluations(directory)),
    )
    return run, doubts


def _evaluations(directory: RunDirectory) -> dict[str, Any]:
    steps, means, stds = directory.read_evaluations()
    return {"evaluated_at": steps, "means": means, "stds": stds}


def _timed_evaluations(directory: RunDirectory) -> dict[str, Any]:
    """Evaluations that have their CPU seconds; these are written last, so that an evaluation may not have any yet."""
    evaluations, timings = directory.read_evaluations(), directory.read_timings()
    scores = dict(zip(evaluations.steps.tolist(), evaluations.means.tolist(), strict=True))
    return _curve((row[0], scores[row[0]], *row[1:]) for row in zip(*timings, strict=True) if row[0] in scores)


def _items(group: dict[str, Any]) -> Items:
    """The pairs of a group of config.json, sorted, values as strings; an empty cell of a CSV file is no pair."""
    return tuple(sorted((str(key), show(value)) for key, value in group.items() if value not in (None, "")))


def _read_results(path: Path) -> list[Run]:
    groups: dict[str, list[dict[str, str]]] = {}
    for row in _rows(path, (*_COLUMNS, *_EVALUATION), "results.csv of softdpg report"):
        groups.setdefault(row["run"], []).append(row)
    with _naming(path):
        names = ("evaluated_at", "means", "stds")
        runs = [
            _run(rows[0], _arrays(names, ([row[key] for key in _EVALUATION] for row in rows)))
            for rows in groups.values()
        ]
        if any(run.target_score is not None for run in runs):
            raise DamagedRunError(f"a run with a target score belongs to {BENCHMARK}")
        return runs


def _read_benchmark(path: Path) -> list[Run]:
    curves: dict[str, list[list[str]]] = {}
    for row in _rows(path.with_name(CURVES), ("run", *_CURVE), f"{CURVES} of softdpg race"):
        curves.setdefault(row["run"], []).append([row[name] for name in _CURVE])
    rows = _rows(path, (*_COLUMNS, *_OUTCOME), f"{BENCHMARK} of softdpg race")
    with _naming(path):
        runs = [_run(row, _curve(curves.get(row["run"], []))) for row in rows]
        if any(run.target_score is None for run in runs):
            raise DamagedRunError("a run has no stop_at_score")
        return runs


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn whatever is wrong with a file or a row of it into a ``UserError`` that names the file."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except FileError as error:
        raise UserError(f"{path.parent}: {error}") from None
    except (ValueError, csv.Error, DamagedRunError) as error:
        raise UserError(f"{path}: unreadable row: {str(error)[:1000]}") from None


def _rows(path: Path, columns: Iterable[str], what: str) -> list[dict[str, str]]:
    with _naming(path):
        reader = csv.DictReader(io.StringIO(read_text(path)))
        missing = [column for column in columns if column not in (reader.fieldnames or [])]
        if missing:
            raise UserError(f"{path}: not a {what}: no column {', '.join(missing)}")
        rows = list(reader)
        if any(None in row or None in row.values() for row in rows):
            raise DamagedRunError("a row does not have as many cells as the header")
        return [{key: _unescaped(value) for key, value in row.items()} for row in rows]


def _run(row: dict[str, str], arrays: dict[str, Any]) -> Run:
    """The run that :func:`_row` wrote."""
    groups: dict[str, dict[str, str]] = {group: {} for group in GROUPS}
    for column in sorted(row):
        group, _, key = column.partition(".")
        if group in groups and row[column]:
            groups[group][key] = row[column]
    if row["state"] not in STATES:
        raise DamagedRunError(f"unknown state {row['state']!r}")
    try:
        entry = find(row["algorithm"])
    except UserError as error:
        raise DamagedRunError(str(error)) from None
    stored = {name: _value(text) for name, text in groups["hyperparameters"].items()}
    settings = RunConfig(row["env"], entry.base).to_json() | {"hyperparameters": {**entry.preset, **stored}}
    settings |= {name: _value(row[name]) for name in (*_SETTINGS, *_OPTIONAL) if row.get(name) or name in _SETTINGS}
    try:
        config = RunConfig.from_json(settings)
    except UserError as error:
        raise DamagedRunError(str(error).removeprefix("config.json: ")) from None
    wall_seconds = float(row["wall_seconds"])
    if not 0 <= wall_seconds <= LARGEST:
        raise DamagedRunError(f"wall_seconds must be a finite number of at least 0, got {row['wall_seconds']}")
    return Run(
        name=row["run"],
        settings=config,
        versions=tuple(groups["versions"].items()),
        machine=tuple(groups["machine"].items()),
        commit=row["commit"],
        state=row["state"],
        message=row["message"],
        wall_seconds=wall_seconds,
        **arrays,
    )


def _value(text: str) -> Any:
    """The setting that :func:`show` wrote; what is not JSON is a string."""
    try:
        return parse_value(text)
    except FileError:
        return text


def _curve(rows: Iterable[Iterable[Any]]) -> dict[str, Any]:
    return _arrays(("evaluated_at", "means", "train", "evaluate", "compile"), rows)


def _arrays(names: tuple[str, ...], rows: Iterable[Iterable[Any]]) -> dict[str, Any]:
    """Columns of a table by name; the first one holds the steps."""
    table = [[float(cell) for cell in row] for row in rows]
    columns = np.array(table, dtype=np.float64).reshape(-1, len(names)).T
    if not (np.abs(columns[0]) < _LARGEST_STEP).all():
        raise DamagedRunError("the step of an evaluation is not a number of steps")
    return dict(zip(names, columns, strict=True)) | {names[0]: columns[0].astype(np.int64)}
