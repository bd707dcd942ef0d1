"""The directory of a run: who may write to it, and the small files in it that others read while it runs."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from softdpg.errors import UserError
from softdpg.runs.config import RunConfig


class RunDirectory:
    """Paths and small files of one run. Reading needs no lock; only the process that trains takes it.

    =====================  ================================================================
    ``config.json``        settings, package versions, git commit, machine
    ``status.json``        state, step, wall time
    ``evaluations.csv``    ``step,mean,std,return_1,...``, one row an evaluation
    ``progress.csv``       SB3's log, and TensorBoard events beside it
    ``model.safetensors``  actor and critic weights (written with every checkpoint)
    ``model.zip``          the finished model in SB3's own format
    ``checkpoints/``       the last two checkpoints, one directory each
    ``replay_buffer.bin``  the replay buffer; removed when the run is finished
    =====================  ================================================================
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()
        self.config = self.path / "config.json"
        self.status = self.path / "status.json"
        self.evaluations = self.path / "evaluations.csv"
        self.progress = self.path / "progress.csv"
        self.model = self.path / "model.safetensors"
        self.model_zip = self.path / "model.zip"
        self.checkpoints = self.path / "checkpoints"
        self.replay_buffer = self.path / "replay_buffer.bin"
        self.log = self.path / "train.log"
        self._lock = self.path / "lock"

    @contextmanager
    def claimed(self, config: RunConfig, about: dict[str, Any]) -> Iterator[list[str]]:
        """Hold the directory for a run with these settings, making it if need be.

        ``about`` (versions, commit, machine) goes into a new ``config.json``; where it differs from an existing one,
        the list given to the ``with`` block says so. ``UserError`` if the directory is not that of this run, cannot
        be written to, or is in use; it is left as it was.
        """
        self._check_ours()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # The kernel releases a lock with its process, even one that was killed: there are no stale locks.
            lock = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(f"cannot write to --out {self.path}: {error.strerror}") from None
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"another process is working on {self.path}") from None
            yield self._settle_config(config, about)
        finally:
            os.close(lock)

    def _check_ours(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"--out {self.path} is not a directory")
        if self.path.is_dir() and not self.config.exists():
            foreign = sorted(entry.name for entry in self.path.iterdir() if entry.name not in ("lock", "train.log"))
            if foreign:
                raise UserError(f"--out {self.path} is not empty ({foreign[0]}) and not the directory of a run")

    def _settle_config(self, config: RunConfig, about: dict[str, Any]) -> list[str]:
        if not self.config.exists():
            write_json(self.config, config.to_json() | about)
            return []
        stored = self.read_config()
        differences = config.differences(RunConfig.from_json(stored))
        if differences:
            raise UserError(f"{self.path} holds a run with other settings: " + "; ".join(differences))
        return [
            f"{key}: {name} was {stored.get(key, {}).get(name)}, is {value}"
            for key in ("versions", "machine")
            for name, value in about[key].items()
            if stored.get(key, {}).get(name) != value
        ]

    def locked(self) -> bool:
        """Whether a process is working on this run now."""
        try:
            lock = os.open(self._lock, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def read_config(self) -> dict[str, Any]:
        """``config.json``; ``UserError`` if there is none."""
        try:
            return dict(json.loads(self.config.read_text()))
        except FileNotFoundError:
            raise UserError(f"{self.path} is not the directory of a run: no config.json") from None
        except (ValueError, OSError) as error:
            raise UserError(f"cannot read {self.config}: {error}") from None

    def read_status(self) -> dict[str, Any]:
        """``status.json``, or ``{}`` if there is none (yet)."""
        try:
            return dict(json.loads(self.status.read_text()))
        except (ValueError, OSError):
            return {}

    def write_status(self, state: str, step: int, steps: int, seconds: float, message: str = "") -> None:
        """Replace ``status.json``; ``seconds`` is the wall time of the whole run so far."""
        updated = datetime.now(UTC).isoformat(timespec="seconds")
        status = {"state": state, "step": step, "steps": steps, "updated": updated, "seconds": round(seconds, 3)}
        write_json(self.status, status | {"message": message})

    def last_evaluation(self) -> str:
        """The last evaluation as ``mean ± std``, or an empty string."""
        try:
            _, *rows = self.evaluations.read_text().splitlines()
            _, mean, std, *_ = rows[-1].split(",")
            return f"{float(mean):.1f} ± {float(std):.1f}"
        except (OSError, ValueError, IndexError):
            return ""


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file so that a reader sees the old contents or the new, never a part."""
    replace_file(path, (json.dumps(value, indent=2) + "\n").encode())


def replace_file(path: Path, contents: bytes) -> None:
    """Write ``contents`` aside, then rename."""
    aside = path.with_name(path.name + ".tmp")
    try:
        aside.write_bytes(contents)
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
