"""The directory of a run: who may write to it, its settings, its status, and its tables of evaluations and times."""

import csv
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from softdpg.errors import UserError
from softdpg.runs import files, ownership
from softdpg.runs.config import RunConfig
from softdpg.runs.files import FileError

RESTART = "--restart starts over and sets the old files aside"
STATES = ("finished", "running", "interrupted", "failed")
_ASIDE = "before-restart-"
_IN_A_ROW = 2  # evaluations that must reach a score: one alone may be luck


class Evaluations(NamedTuple):
    """Step of each evaluation, mean and standard deviation of its returns, each of shape ``(evaluations,)``."""

    steps: NDArray[np.int64]
    means: NDArray[np.float64]
    stds: NDArray[np.float64]


class Timings(NamedTuple):
    """Step of each evaluation and CPU seconds until then, by activity, each of shape ``(evaluations,)``."""

    steps: NDArray[np.int64]
    train: NDArray[np.float64]
    evaluate: NDArray[np.float64]
    compile: NDArray[np.float64]


Table = TypeVar("Table", Evaluations, Timings)
ACTIVITIES = Timings._fields[1:]
"""What the CPU seconds of a run are spent on."""


class RunDirectory:
    """Paths and small files of one run. Reading needs no lock; only the process that trains takes it.

    =====================  ================================================================
    ``config.json``        settings, package versions, git commit, machine, signature
    ``status.json``        state, step, wall time
    ``evaluations.csv``    ``step,mean,std,return_1,...``, one row per evaluation
    ``timings.csv``        ``step,train,evaluate,compile``: CPU seconds so far, one row per evaluation
    ``progress.csv``       SB3's log, and TensorBoard events beside it
    ``model.safetensors``  actor and critic weights (written with every checkpoint)
    ``model.zip``          the finished model in SB3's own format
    ``vecnormalize.pkl``   with ``--normalize``: SB3's wrapper for the finished model; written, never read
    ``checkpoints/``       the last two checkpoints, one directory each
    ``replay_buffer.bin``  the replay buffer; removed when the run is finished
    ``train.log``          tracebacks, and what the run printed if ``softdpg reproduce`` started it
    =====================  ================================================================

    :param path: the directory; it need not exist
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()
        self.config = self.path / "config.json"
        self.status = self.path / "status.json"
        self.evaluations = self.path / "evaluations.csv"
        self.timings = self.path / "timings.csv"
        self.progress = self.path / "progress.csv"
        self.model = self.path / "model.safetensors"
        self.model_zip = self.path / "model.zip"
        self.normalization = self.path / "vecnormalize.pkl"
        self.checkpoints = self.path / "checkpoints"
        self.replay_buffer = self.path / "replay_buffer.bin"
        self.log = self.path / "train.log"

    @contextmanager
    def claimed(self, config: RunConfig, about: dict[str, Any]) -> Iterator[list[str]]:
        """Hold the directory for a run, creating it if necessary.

        The ``with`` block gets one phrase for each difference between ``about`` and an existing ``config.json``. Raise
        ``UserError``, and change nothing, if the directory belongs to another run, is in use or cannot be written to;
        raise ``OSError`` if the disk is full. A run with more steps than before is still the same run. If the block
        raises ``UserError`` before it wrote anything, a new ``config.json`` is removed again.

        :param config: resolved settings of the run
        :param about: versions, commit and machine, for a new ``config.json``
        """
        with ExitStack() as stack:
            try:
                self._check_ours()
                new = not self.path.exists()
                self.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(files.locked(self.path))
                first = not os.path.lexists(self.config)
                changes = self._settle_config(config, about)
            except OSError as error:
                if files.is_full(error):
                    raise
                raise UserError(f"cannot write to --out {self.path}: {error.strerror}") from None
            try:
                yield changes
            except UserError:
                if first and {entry.name for entry in self.path.iterdir()} <= {self.config.name, self.log.name}:
                    self.config.unlink()
                    if new and not self.log.exists():
                        self.path.rmdir()
                raise

    def _check_ours(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"--out {self.path} is not a directory")
        # One listing: another process may be writing its first files.
        names = {entry.name for entry in self.path.iterdir()} if self.path.is_dir() else set()
        if self.config.name not in names:
            # A process that is killed while it writes config.json leaves the temporary file.
            foreign = sorted(names - {files.LOCK, self.log.name, f"{self.config.name}.tmp"})
            if foreign:
                raise UserError(f"--out {self.path} is not empty ({foreign[0]}) and not the directory of a run")

    def _settle_config(self, config: RunConfig, about: dict[str, Any]) -> list[str]:
        if not os.path.lexists(self.config):
            self._write_config(config.to_json() | about | {"run": secrets.token_hex(16)}, config)
            return []
        stored = self.read_config()
        before = RunConfig.from_json(stored).resolved()
        differences = config.differences(before)
        if differences and not (config.steps > before.steps and config == replace(before, steps=config.steps)):
            different = "; ".join(differences)
            raise UserError(f"{self.path} holds a run with other settings: {different}. Choose another --out")
        if differences:
            self._write_config(stored | config.to_json(), config if self.is_own(stored, before) else None)
        return [
            f"{key}: {name} was {stored[key].get(name)}, is {value}"
            for key in ("versions", "machine")
            for name, value in about[key].items()
            if stored[key].get(name) != value
        ]

    def _write_config(self, contents: dict[str, Any], own: RunConfig | None) -> None:
        """Write ``config.json``, signed if it is this user's ``own``."""
        contents = contents if own is None else ownership.signed(contents, self.path, own.modules)
        files.write_json(self.config, contents, durable=True)

    def is_own(self, stored: Mapping[str, Any], config: RunConfig) -> bool:
        """Return whether this user made the run, here and with these settings.

        :param stored: the contents of ``config.json``
        :param config: the settings in it
        """
        return ownership.is_own(stored, self.path, config.modules)

    def check_resumable(self, config: RunConfig) -> dict[str, Any]:
        """Return the status of a run that can be resumed, or started without destroying anything.

        Raise ``UserError`` if the files of the run are incomplete.

        :param config: resolved settings of the run
        """
        damage = None
        try:
            status = self.check_status()
        except UserError as error:
            status, damage = {}, str(error)
        if status.get("state") == "finished":
            return status
        if files.is_directory(self.checkpoints) and any(self.checkpoints.iterdir()):
            if not os.path.lexists(self.replay_buffer):
                missing = f"{self.path} has checkpoints but no {self.replay_buffer.name}, which they need"
                raise UserError(f"{damage or missing}; {RESTART}")
        elif damage or (config.algorithm.exact_resume and self._was_checkpointed(config)):
            raise UserError(f"{damage or f'{self.path} had checkpoints that are gone'}; {RESTART}")
        return status

    def _was_checkpointed(self, config: RunConfig) -> bool:
        """Whether there is something that only a run with a checkpoint has."""
        if os.path.lexists(self.model) or os.path.lexists(self.model_zip):
            return True
        try:
            step = files.read_text(self.evaluations).splitlines()[-1].split(",")[0]
            return int(step) > config.checkpoint_every + config.train_freq * config.n_envs
        except (FileNotFoundError, ValueError, IndexError):
            return False

    def set_aside(self) -> None:
        """Move everything but the settings to a directory ``before-restart-N`` in this one."""
        kept = [self.config.name, self.log.name, files.LOCK]
        old = [entry for entry in self.path.iterdir() if entry.name not in kept and not entry.name.startswith(_ASIDE)]
        if not old:
            return
        number = 1
        while os.path.lexists(self.path / f"{_ASIDE}{number}"):
            number += 1
        aside = self.path / f"{_ASIDE}{number}"
        aside.mkdir()
        for entry in old:
            entry.rename(aside / entry.name)

    def locked(self) -> bool:
        """Whether a process is working on this run now."""
        return files.is_locked(self.path)

    def read_config(self) -> dict[str, Any]:
        """Read ``config.json``; raise ``UserError`` if there is none or it is damaged."""
        try:
            stored = files.read_json(self.config)
        except FileNotFoundError:
            raise UserError(f"{self.path} is not the directory of a run: no config.json") from None
        except FileError as error:
            raise UserError(f"{self.path}: {error}") from None
        for key in ("versions", "machine"):
            if not isinstance(stored.setdefault(key, {}), dict):
                raise UserError(f"{self.path}: config.json: {key} is not an object")
        if not isinstance(stored.setdefault("run", ""), str):
            raise UserError(f"{self.path}: config.json: run is not a string")
        return stored

    def read_status(self) -> dict[str, Any]:
        """Read ``status.json``; return ``{}`` if there is none (yet) or it is damaged."""
        try:
            return self.check_status()
        except UserError:
            return {}

    def check_status(self) -> dict[str, Any]:
        """Read ``status.json``; return ``{}`` if there is none (yet) and raise ``UserError`` if it is damaged."""
        try:
            status = files.read_json(self.status)
        except FileNotFoundError:
            return {}
        except FileError as error:
            raise UserError(f"{self.path}: {error}") from None
        checks = {
            "state": lambda value: value in STATES,
            "step": lambda value: type(value) is int and value >= 0,
            "steps": lambda value: type(value) is int and value >= 1,
            "seconds": lambda value: type(value) in (int, float) and value >= 0,
            "updated": lambda value: isinstance(value, str),
            "message": lambda value: isinstance(value, str),
        }
        for key, valid in checks.items():
            if key not in status:
                raise UserError(f"{self.path}: status.json has no {key}")
            if not valid(status[key]):
                raise UserError(f"{self.path}: status.json: {key} is invalid: {str(status[key])[:50]!r}")
        return status

    def write_status(self, state: str, step: int, steps: int, seconds: float, message: str = "") -> None:
        """Replace ``status.json``.

        :param state: one of :data:`STATES`
        :param step: steps taken
        :param steps: steps of the whole run
        :param seconds: wall time of the whole run so far
        :param message: why the run stopped, or how it ended
        """
        updated = datetime.now(UTC).isoformat(timespec="seconds")
        status = {"state": state, "step": step, "steps": steps, "updated": updated, "seconds": round(seconds, 3)}
        message = message.encode(errors="backslashreplace").decode()  # an environment's may have lone surrogates
        files.write_json(self.status, status | {"message": message})

    def create_tables(self, episodes: int) -> None:
        """Start empty tables of evaluations and times.

        :param episodes: episodes of an evaluation
        """
        header = ",".join(["step", "mean", "std", *(f"return_{i + 1}" for i in range(episodes))]) + "\n"
        files.replace_file(self.evaluations, header.encode())
        files.replace_file(self.timings, (",".join(["step", *ACTIVITIES]) + "\n").encode())

    def append_evaluation(self, step: int, returns: np.ndarray, seconds: Mapping[str, float]) -> None:
        """Add a row to both tables, numbers in the shortest form that reads back the same.

        :param step: step of the evaluation
        :param returns: return of each episode, ``(episodes,)``; their standard deviation is stored with divisor K
        :param seconds: CPU seconds so far by activity
        """
        row = [repr(float(value)) for value in (returns.mean(), returns.std(), *returns)]
        files.append(self.evaluations, (",".join([str(step), *row]) + "\n").encode())
        row = [f"{seconds[activity]:.3f}" for activity in ACTIVITIES]
        files.append(self.timings, (",".join([str(step), *row]) + "\n").encode())

    def read_evaluations(self) -> Evaluations:
        """Read ``evaluations.csv``, empty if there is none (yet); raise ``UserError`` if it is damaged."""
        return self._read_table(self.evaluations, parse_evaluations)

    def read_timings(self) -> Timings:
        """Read ``timings.csv``, empty if there is none (yet); raise ``UserError`` if it is damaged."""
        return self._read_table(self.timings, parse_timings)

    def _read_table(self, path: Path, parse: Callable[[str], Table]) -> Table:
        try:
            return parse(files.read_text(path))
        except FileNotFoundError:
            return parse("")
        except FileError as error:
            raise UserError(f"{self.path}: {error}") from None

    def reached_at(self, score: float) -> int | None:
        """Return the step at which the run reached ``score``, if it did; raise ``UserError`` if a table is damaged."""
        evaluations = self.read_evaluations()
        index = first_reached(evaluations.means.tolist(), score)
        return None if index is None else int(evaluations.steps[index])

    def training_seconds(self, step: int | None = None) -> float:
        """Return the CPU seconds of training until the evaluation at ``step``, or until the last one."""
        steps, train, *_ = self.read_timings()
        known = train if step is None else train[steps == step]
        return float(known[-1]) if len(known) else 0.0

    def last_evaluation(self) -> str:
        """Return the last evaluation as ``mean ± std``, or an empty string."""
        try:
            _, means, stds = self.read_evaluations()
            return f"{means[-1]:.1f} ± {stds[-1]:.1f}"
        except (UserError, OSError, IndexError):
            return ""


def find_runs(root: Path) -> list[RunDirectory]:
    """Return the directories of runs at or below ``root``, sorted by name."""
    return [RunDirectory(config.parent) for config in sorted(root.rglob("config.json"))]


def first_reached(means: Sequence[float], score: float) -> int | None:
    """Return the index of the evaluation that completes the first two in a row with a mean of at least ``score``.

    :param means: mean return of each evaluation
    :param score: the target score
    """
    in_a_row = 0
    for index, mean in enumerate(means):
        in_a_row = in_a_row + 1 if mean >= score else 0
        if in_a_row == _IN_A_ROW:
            return index
    return None


def parse_evaluations(text: str) -> Evaluations:
    """Parse the text of ``evaluations.csv``; raise ``FileError`` if it is damaged."""
    return Evaluations(*_parse_table(text, "evaluations.csv", ("step", "mean", "std")))


def parse_timings(text: str) -> Timings:
    """Parse the text of ``timings.csv``; raise ``FileError`` if it is damaged."""
    return Timings(*_parse_table(text, "timings.csv", ("step", *ACTIVITIES)))


def _parse_table(text: str, name: str, columns: tuple[str, ...]) -> Iterator[Any]:
    """Yield the first columns of a table: the steps as integers, the others as floats."""
    # A line without its line break is still being written.
    lines = text[: text.rfind("\n") + 1].splitlines()
    try:
        header, *rows = list(csv.reader(lines)) or [list(columns)]
    except csv.Error as error:
        raise FileError(f"{name} is damaged: {error}") from None
    if tuple(header[: len(columns)]) != columns:
        raise FileError(f"{name} does not start with {','.join(columns)}")
    try:
        if any(len(row) != len(header) for row in rows):
            raise ValueError
        yield np.array([int(row[0]) for row in rows], dtype=np.int64)
        for i in range(1, len(columns)):
            yield np.array([float(row[i]) for row in rows], dtype=np.float64)
    except (ValueError, OverflowError):
        raise FileError(f"{name} has a damaged row") from None
