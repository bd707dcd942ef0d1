"""Reading results: run directories, or the ``results.csv`` that a report wrote from them.

Both give the same list of runs, so everything that follows (cells, tables, figures, report) is the same for both.
"""

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softdpg.errors import UserError
from softdpg.paper import ALGORITHMS
from softdpg.results.records import STATES, DamagedRunError, Items, Run, Settings, without_repeats

# Groups of config.json whose keys are not fixed; results.csv has one column for each key, as in versions.jax.
OPEN_GROUPS = ("hyperparameters", "versions", "machine")
COLUMNS = (
    *("run", "env", "algorithm", "seed", "steps", "sigma", "n_samples", "evaluation.every", "evaluation.episodes"),
    *("commit", "state", "seconds", "step", "mean", "std"),
)


def read(path: Path) -> tuple[list[Run], list[str]]:
    """The runs below a directory, or in a ``results.csv``, and a warning for each one left out or doubtful."""
    if path.is_dir():
        runs, warnings = _read_directory(path)
    elif path.is_file():
        runs, warnings = _read_csv(path), []
    else:
        raise UserError(f"{path}: no such file or directory")
    runs, repeated = without_repeats(runs)
    if not runs:
        raise UserError(f"{path}: no runs with evaluations found" + (f" ({warnings[0]})" if warnings else ""))
    return runs, warnings + repeated


def write_csv(runs: Iterable[Run]) -> str:
    """All runs as tidy CSV: one row for each evaluation, with the settings of its run. Reading it loses nothing."""
    rows: list[dict[str, Any]] = []
    for run in runs:
        settings = run.settings
        fixed: dict[str, Any] = {
            "run": run.name,
            "env": run.env,
            "algorithm": run.algorithm,
            "seed": run.seed,
            "steps": settings.steps,
            "sigma": _text(settings.sigma),
            "n_samples": _text(settings.n_samples),
            "evaluation.every": settings.evaluation_every,
            "evaluation.episodes": settings.evaluation_episodes,
            "commit": run.commit,
            "state": run.state,
            "seconds": run.seconds,
        }
        for group, items in zip(OPEN_GROUPS, (settings.hyperparameters, run.versions, run.machine), strict=True):
            fixed |= {f"{group}.{key}": value for key, value in items}
        for step, mean, std in zip(run.evaluated_at, run.means, run.stds, strict=True):
            rows.append(fixed | {"step": int(step), "mean": float(mean), "std": float(std)})
    open_columns = {key for row in rows for key in row} - set(COLUMNS)
    order = [*COLUMNS[:9], *sorted(open_columns, key=lambda key: (OPEN_GROUPS.index(key.split(".")[0]), key))]
    out = io.StringIO()
    writer = csv.DictWriter(out, order + list(COLUMNS[9:]), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _text(value: Any) -> str:
    """A setting as text: JSON, but strings bare and None empty."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _items(group: Any) -> Items:
    if not isinstance(group, dict):
        raise DamagedRunError("config.json: hyperparameters, versions and machine must be objects")
    # An empty text in results.csv is a column that the run does not have, so None is left out here as well.
    return tuple(sorted((str(key), _text(value)) for key, value in group.items() if value not in (None, "")))


def _read_directory(directory: Path) -> tuple[list[Run], list[str]]:
    runs, warnings = [], []
    for config in sorted(directory.rglob("config.json")):
        name = config.parent.relative_to(directory).as_posix()
        try:
            run, doubts = _read_run(config.parent, name if name != "." else directory.resolve().name)
        except (DamagedRunError, OSError) as error:
            warnings.append(f"{config.parent}: skipped: {error}")
        else:
            runs.append(run)
            warnings += [f"{config.parent}: {doubt}" for doubt in doubts]
    return runs, warnings


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DamagedRunError(f"{path.name} is missing") from None
    except ValueError:  # includes bad UTF-8
        raise DamagedRunError(f"{path.name} is not valid JSON") from None
    if not isinstance(content, dict):
        raise DamagedRunError(f"{path.name} is not a JSON object")
    return content


def _read_run(directory: Path, name: str) -> tuple[Run, list[str]]:
    config = _read_json(directory / "config.json")
    doubts = []
    try:
        status = _read_json(directory / "status.json")
    except DamagedRunError as error:
        status = {}
        doubts.append(f"{error}, taken as interrupted")
    try:
        algorithm = _algorithm(config["algo"], config["estimator"])
        evaluation = config["evaluation"]
        settings = Settings(
            steps=int(config["steps"]),
            sigma=None if config["sigma"] is None else float(config["sigma"]),
            n_samples=None if config["n_samples"] is None else int(config["n_samples"]),
            evaluation_every=int(evaluation["every"]),
            evaluation_episodes=int(evaluation["episodes"]),
            hyperparameters=_items(config["hyperparameters"]),
        )
        state = str(status.get("state", "interrupted"))
        run = Run(
            name=name,
            env=str(config["env"]),
            algorithm=algorithm,
            seed=int(config["seed"]),
            settings=settings,
            versions=_items(config.get("versions", {})),
            machine=_items(config.get("machine", {})),
            commit=_text(config.get("commit")),
            state=state if state in STATES else "interrupted",
            seconds=float(status.get("seconds", 0.0)),
            **_read_evaluations(directory / "evaluations.csv"),
        )
    except KeyError as error:
        raise DamagedRunError(f"config.json has no {error}") from None
    except (TypeError, ValueError) as error:
        raise DamagedRunError(f"config.json or status.json: {error}") from None
    return run, doubts


def _algorithm(algo: Any, estimator: Any) -> str:
    for algorithm in ALGORITHMS.values():
        if (algorithm.algo, algorithm.estimator) == (algo, estimator):
            return algorithm.name
    raise DamagedRunError(f"unknown algorithm: algo {algo!r} with estimator {estimator!r}")


def _read_evaluations(path: Path) -> dict[str, NDArray[Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DamagedRunError("no evaluations yet") from None
    except ValueError:
        raise DamagedRunError("evaluations.csv is not text") from None
    # A line without its line break is still being written.
    lines = text[: text.rfind("\n") + 1].splitlines()
    if len(lines) < 2:
        raise DamagedRunError("no evaluations yet")
    header, *rows = list(csv.reader(lines))
    if header[:3] != ["step", "mean", "std"]:
        raise DamagedRunError("evaluations.csv does not start with step,mean,std")
    try:
        if any(len(row) != len(header) for row in rows):
            raise ValueError
        steps = np.array([int(row[0]) for row in rows], dtype=np.int64)
        values = np.array([[float(row[1]), float(row[2])] for row in rows], dtype=np.float64)
    except (ValueError, OverflowError):
        raise DamagedRunError("evaluations.csv has a damaged row") from None
    return {"evaluated_at": steps, "means": values[:, 0], "stds": values[:, 1]}


def _read_csv(path: Path) -> list[Run]:
    try:
        reader = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
        missing = [column for column in COLUMNS if column not in (reader.fieldnames or [])]
        if missing:
            raise UserError(f"{path}: not a results.csv of softdpg: no column {', '.join(missing)}")
        groups: dict[str, list[dict[str, str]]] = {}
        for row in reader:
            groups.setdefault(row["run"], []).append(row)
        return [_run_from_rows(rows) for rows in groups.values()]
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (TypeError, ValueError, DamagedRunError) as error:
        raise UserError(f"{path}: damaged row: {error}") from None


def _run_from_rows(rows: list[dict[str, str]]) -> Run:
    first = rows[0]
    hyperparameters, versions, machine = (
        tuple(
            sorted(
                (key.removeprefix(f"{group}."), value)
                for key, value in first.items()
                if key.startswith(f"{group}.") and value
            )
        )
        for group in OPEN_GROUPS
    )
    values = np.array([[float(row["mean"]), float(row["std"])] for row in rows])
    return Run(
        name=first["run"],
        env=first["env"],
        algorithm=first["algorithm"],
        seed=int(first["seed"]),
        settings=Settings(
            steps=int(first["steps"]),
            sigma=float(first["sigma"]) if first["sigma"] else None,
            n_samples=int(first["n_samples"]) if first["n_samples"] else None,
            evaluation_every=int(first["evaluation.every"]),
            evaluation_episodes=int(first["evaluation.episodes"]),
            hyperparameters=hyperparameters,
        ),
        versions=versions,
        machine=machine,
        commit=first["commit"],
        state=first["state"],
        seconds=float(first["seconds"]),
        evaluated_at=np.array([int(row["step"]) for row in rows], dtype=np.int64),
        means=values[:, 0],
        stds=values[:, 1],
    )
