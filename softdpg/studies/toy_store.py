"""Finished runs of the toy on disk, so that the same command trains only what is left."""

import io
import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from softdpg.runs import files
from softdpg.studies.toy import ToyRun, ToySettings

_NUMBERS = ("critic", "slope", "action", "late_actions", "episode_return")


def path_of(out: Path, algorithm: str, seed: int) -> Path:
    """The file of one run below ``out``."""
    return out / "runs" / f"{algorithm}-seed-{seed}.npz"


def save(run: ToyRun, settings: ToySettings, out: Path) -> None:
    """Store a run with the settings that shaped it."""
    path, contents = path_of(out, run.algorithm, run.seed), io.BytesIO()
    numbers: dict[str, Any] = {name: np.asarray(getattr(run, name)) for name in _NUMBERS}
    np.savez(contents, settings=_text(settings), **numbers)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace_file(path, contents.getvalue())


def load(settings: ToySettings, out: Path, algorithm: str, seed: int) -> ToyRun | None:
    """The stored run with these settings; None if there is none, or one with other settings."""
    try:
        with np.load(io.BytesIO(files.read_bytes(path_of(out, algorithm, seed), files.ARRAYS))) as stored:
            if str(stored["settings"]) != _text(settings):
                return None
            critic, slope, action, late_actions, episode_return = (stored[name] for name in _NUMBERS)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return ToyRun(algorithm, seed, critic, slope, float(action), late_actions, float(episode_return))


def _text(settings: ToySettings) -> str:
    """What shapes a run: not how many there are, nor how many at a time."""
    shaping = {key: value for key, value in asdict(settings).items() if key not in ("seeds", "workers", "algos")}
    return json.dumps(shaping, sort_keys=True)
