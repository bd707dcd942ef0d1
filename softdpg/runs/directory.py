"""The directory of a run: who may write to it, and the small files in it that others read while it runs."""

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from softdpg.errors import UserError
from softdpg.runs import files, lock
from softdpg.runs.config import RunConfig
from softdpg.runs.crossing import crossing
from softdpg.runs.evaluations import Evaluations, Timings, parse_evaluations, parse_timings
from softdpg.runs.files import FileError, write_json

RESTART = "--restart starts over and sets the old files aside"
_ASIDE = "before-restart-"
STATES = ("finished", "running", "interrupted", "failed")


class RunDirectory:
    """Paths and small files of one run. Reading needs no lock; only the process that trains takes it.

    =====================  ================================================================
    ``config.json``        settings, package versions, git commit, machine
    ``status.json``        state, step, wall time
    ``evaluations.csv``    ``step,mean,std,return_1,...``, one row an evaluation
    ``timings.csv``        ``step,train,evaluate,compile``: CPU seconds so far, one row an evaluation
    ``progress.csv``       SB3's log, and TensorBoard events beside it
    ``model.safetensors``  actor and critic weights (written with every checkpoint)
    ``model.zip``          the finished model in SB3's own format
    ``vecnormalize.pkl``   with ``--normalize``: SB3's wrapper for the finished model; written, never read
    ``checkpoints/``       the last two checkpoints, one directory each
    ``replay_buffer.bin``  the replay buffer; removed when the run is finished
    ``train.log``          tracebacks, and what the run printed if ``softdpg reproduce`` started it
    =====================  ================================================================
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
        """Hold the directory for a run with these settings, making it if need be.

        ``about`` (versions, commit, machine) goes into a new ``config.json``; where it differs from an existing one,
        the list given to the ``with`` block says so. ``UserError`` if the directory is not that of this run, cannot
        be written to, or is in use; it is left as it was. ``OSError`` if the disk is full. More steps than before are
        not another run.
        """
        self._check_ours()
        with ExitStack() as stack:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(lock.locked(self.path))
                changes = self._settle_config(config, about)
            except lock.InUseError:
                raise UserError(f"another process is working on {self.path}") from None
            except OSError as error:
                if files.is_full(error):
                    raise
                raise UserError(f"cannot write to --out {self.path}: {error.strerror}") from None
            yield changes

    def _check_ours(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"--out {self.path} is not a directory")
        if self.path.is_dir() and not os.path.lexists(self.config):
            foreign = sorted(entry.name for entry in self.path.iterdir() if entry.name not in ("lock", "train.log"))
            if foreign:
                raise UserError(f"--out {self.path} is not empty ({foreign[0]}) and not the directory of a run")

    def _settle_config(self, config: RunConfig, about: dict[str, Any]) -> list[str]:
        if not os.path.lexists(self.config):
            write_json(self.config, config.to_json() | about | {"run": secrets.token_hex(16)}, durable=True)
            return []
        stored = self.read_config()
        before = RunConfig.from_json(stored).resolved()  # earlier versions had fewer hyperparameters
        differences = config.differences(before)
        if differences and not (config.steps > before.steps and config == replace(before, steps=config.steps)):
            raise UserError(f"{self.path} holds a run with other settings: " + "; ".join(differences))
        if differences:
            write_json(self.config, stored | config.to_json(), durable=True)
        return [
            f"{key}: {name} was {stored[key].get(name)}, is {value}"
            for key in ("versions", "machine")
            for name, value in about[key].items()
            if stored[key].get(name) != value
        ]

    def check_resumable(self, config: RunConfig) -> dict[str, Any]:
        """The status of a run that can go on, or begin without destroying anything; ``UserError`` if it cannot."""
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
        kept = [self.config.name, self.log.name, "lock"]
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
        return lock.is_locked(self.path)

    def read_config(self) -> dict[str, Any]:
        """``config.json``; ``UserError`` if there is none, or if it is not an object with objects in their places."""
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
            raise UserError(f"{self.path}: config.json: run is not a text")
        return stored

    def read_status(self) -> dict[str, Any]:
        """``status.json``, or ``{}`` if there is none (yet) or it is damaged."""
        try:
            return self.check_status()
        except UserError:
            return {}

    def check_status(self) -> dict[str, Any]:
        """``status.json``, or ``{}`` if there is none (yet); ``UserError`` if it is damaged."""
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
                raise UserError(f"{self.path}: status.json: {key} cannot be {str(status[key])[:50]!r}")
        return status

    def write_status(self, state: str, step: int, steps: int, seconds: float, message: str = "") -> None:
        """Replace ``status.json``; ``seconds`` is the wall time of the whole run so far."""
        updated = datetime.now(UTC).isoformat(timespec="seconds")
        status = {"state": state, "step": step, "steps": steps, "updated": updated, "seconds": round(seconds, 3)}
        write_json(self.status, status | {"message": message})

    def read_evaluations(self) -> Evaluations:
        """``evaluations.csv``, empty if there is none (yet); ``UserError`` if it is damaged."""
        try:
            return parse_evaluations(files.read_text(self.evaluations))
        except FileNotFoundError:
            return parse_evaluations("")
        except FileError as error:
            raise UserError(f"{self.path}: {error}") from None

    def read_timings(self) -> Timings:
        """``timings.csv``, empty if there is none (yet); ``UserError`` if it is damaged."""
        try:
            return parse_timings(files.read_text(self.timings))
        except FileNotFoundError:
            return parse_timings("")
        except FileError as error:
            raise UserError(f"{self.path}: {error}") from None

    def crossing(self, goal: float) -> int | None:
        """The step at which the run crossed ``goal``, if it has; ``UserError`` if a table is damaged."""
        evaluations = self.read_evaluations()
        index = crossing(evaluations.means.tolist(), goal)
        return None if index is None else int(evaluations.steps[index])

    def training_seconds(self, step: int | None = None) -> float:
        """CPU seconds of training until the evaluation at ``step``, or until the last one."""
        steps, train, *_ = self.read_timings()
        known = train if step is None else train[steps == step]
        return float(known[-1]) if len(known) else 0.0

    def last_evaluation(self) -> str:
        """The last evaluation as ``mean ± std``, or an empty string."""
        try:
            _, means, stds = self.read_evaluations()
            return f"{means[-1]:.1f} ± {stds[-1]:.1f}"
        except (UserError, OSError, IndexError):
            return ""


def find_runs(root: Path) -> list[RunDirectory]:
    """The directories of runs at or below ``root``, by name."""
    return [RunDirectory(config.parent) for config in sorted(root.rglob("config.json"))]
