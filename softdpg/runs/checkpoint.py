"""Checkpoints on disk: whole or not there at all, checked before they are trusted, free of pickle.

A checkpoint is a directory named by its step. ``arrays.safetensors`` and ``state.json`` hold the state, further files
are copies of the run's output so far, and ``SHA256SUMS`` (in the format of ``sha256sum``) covers them all.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

KEPT = 2
_ARRAYS, _STATE, _SUMS = "arrays.safetensors", "state.json", "SHA256SUMS"


class DamagedCheckpointError(Exception):
    """A checkpoint whose files are missing or not as they were written."""


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to go on from ``step``."""

    step: int
    arrays: Mapping[str, np.ndarray]
    state: Mapping[str, Any]
    files: Mapping[str, bytes]


def write(directory: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint aside, rename it into place, and remove all but the newest :data:`KEPT`.

    If anything fails, a full disk included, the earlier ones stay as they were.
    """
    target = directory / f"{checkpoint.step:012d}"
    aside = directory / f"{target.name}.tmp"
    directory.mkdir(exist_ok=True)
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir()
        files = {
            _ARRAYS: save(dict(checkpoint.arrays)),
            _STATE: json.dumps(dict(checkpoint.state)).encode(),
            **checkpoint.files,
        }
        sums = "".join(f"{hashlib.sha256(contents).hexdigest()}  {name}\n" for name, contents in files.items())
        for name, contents in {**files, _SUMS: sums.encode()}.items():
            with (aside / name).open("wb") as file:
                file.write(contents)
                file.flush()
                os.fsync(file.fileno())
        _sync_directory(aside)
        if target.exists():  # a damaged one that the run fell back from
            shutil.rmtree(target)
        aside.rename(target)
        _sync_directory(directory)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    for old in _newest_first(directory)[KEPT:]:
        shutil.rmtree(old)


def read(path: Path) -> Checkpoint:
    """Read one checkpoint; :class:`DamagedCheckpointError` unless every byte is as it was written."""
    try:
        files = {}
        for line in (path / _SUMS).read_text().splitlines():
            expected, name = line.split("  ", 1)
            files[name] = (path / name).read_bytes()
            if hashlib.sha256(files[name]).hexdigest() != expected:
                raise DamagedCheckpointError(f"{path / name} is not as it was written")
        arrays, state = load(files.pop(_ARRAYS)), json.loads(files.pop(_STATE))
    except (OSError, ValueError, KeyError) as error:
        raise DamagedCheckpointError(f"{path} cannot be read ({error})") from None
    return Checkpoint(int(path.name), arrays, state, files)


def newest_first(directory: Path) -> Iterator[Checkpoint | DamagedCheckpointError]:
    """The checkpoints in ``directory``, each read as it is asked for; for a damaged one, what is wrong with it."""
    for path in _newest_first(directory):
        try:
            yield read(path)
        except DamagedCheckpointError as error:
            yield error


def _newest_first(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    return sorted((path for path in directory.iterdir() if path.name.isdigit()), reverse=True)


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
