"""Checkpoints on disk: whole or not there at all, checked before they are trusted, free of pickle.

A checkpoint is a directory named by its step. ``arrays.safetensors`` and ``state.json`` hold the state, further files
are copies of the run's output so far, and ``SHA256SUMS`` (in the format of ``sha256sum``) covers them all. The names
are fixed: a checkpoint made by a stranger is read from, and written to, no other place.
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
from safetensors.numpy import save

from softdpg.runs import files
from softdpg.runs.weights import load_arrays

KEPT = 2
OUTPUTS = ("evaluations.csv", "progress.csv", "timings.csv")
_FIRST_OUTPUTS = OUTPUTS[:2]  # of 0.1.0, whose checkpoints did not name them
_ARRAYS, _STATE, _SUMS = "arrays.safetensors", "state.json", "SHA256SUMS"
_LIMITS = {_ARRAYS: files.ARRAYS, _STATE: files.TABLE} | dict.fromkeys(OUTPUTS, files.TABLE)


class DamagedCheckpointError(Exception):
    """A checkpoint whose files are missing or not as they were written."""


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to go on from ``step``. ``files`` are the contents of :data:`OUTPUTS`, or some of them."""

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
    files.make_directory(directory)
    _remove(aside)
    try:
        aside.mkdir()
        state = dict(checkpoint.state) | {"files": sorted(checkpoint.files)}  # so that a lost line of the sums is seen
        contents_of = {
            _ARRAYS: save(dict(checkpoint.arrays)),
            _STATE: json.dumps(state).encode(),
            **checkpoint.files,
        }
        sums = "".join(f"{hashlib.sha256(contents).hexdigest()}  {name}\n" for name, contents in contents_of.items())
        for name, contents in {**contents_of, _SUMS: sums.encode()}.items():
            with (aside / name).open("wb") as file:
                file.write(contents)
                file.flush()
                os.fsync(file.fileno())
        _sync_directory(aside)
        _remove(target)  # a damaged one that the run fell back from
        aside.rename(target)
        _sync_directory(directory)
    except BaseException:
        _remove(aside)
        raise
    for old in _newest_first(directory)[KEPT:]:
        shutil.rmtree(old)


def read(path: Path) -> Checkpoint:
    """Read one checkpoint; :class:`DamagedCheckpointError` unless every byte is as it was written."""
    try:
        found = {}
        for line in files.read_text(path / _SUMS, files.SMALL).splitlines():
            expected, name = line.split("  ", 1)
            if name not in _LIMITS:
                raise DamagedCheckpointError(f"{path / _SUMS} names a file that no checkpoint has: {name!r}")
            found[name] = files.read_bytes(path / name, _LIMITS[name])
            if hashlib.sha256(found[name]).hexdigest() != expected:
                raise DamagedCheckpointError(f"{path / name} is not as it was written")
        arrays, state = load_arrays(found.pop(_ARRAYS)), files.parse_json(found.pop(_STATE), _STATE)
        if found.keys() != set(state.pop("files", _FIRST_OUTPUTS)):
            raise DamagedCheckpointError(f"{path / _SUMS} does not name all files of the checkpoint")
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DamagedCheckpointError(f"{path} cannot be read ({error})") from None
    return Checkpoint(int(path.name), arrays, state, found)


def newest_step(directory: Path) -> int:
    """The step of the newest checkpoint in ``directory``, damaged or not; 0 if there is none."""
    return max((int(path.name) for path in _newest_first(directory)), default=0)


def newest_first(directory: Path) -> Iterator[Checkpoint | DamagedCheckpointError]:
    """The checkpoints in ``directory``, each read as it is asked for; for a damaged one, what is wrong with it."""
    for path in _newest_first(directory):
        try:
            yield read(path)
        except DamagedCheckpointError as error:
            yield error


def _newest_first(directory: Path) -> list[Path]:
    if not files.is_directory(directory):
        return []
    return sorted(
        (path for path in directory.iterdir() if _is_step(path.name) and files.is_directory(path)), reverse=True
    )


def _is_step(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) == 12


def _remove(path: Path) -> None:
    """Remove a directory, or a link in its place, if there is one."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
