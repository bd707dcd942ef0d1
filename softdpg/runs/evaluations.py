"""``evaluations.csv`` and ``timings.csv`` read back: one row an evaluation, as many as are whole."""

import csv
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softdpg.runs.files import FileError


class Evaluations(NamedTuple):
    """Step of each evaluation, mean and standard deviation of its returns, each of shape ``(evaluations,)``."""

    steps: NDArray[np.int64]
    means: NDArray[np.float64]
    stds: NDArray[np.float64]


class Timings(NamedTuple):
    """Step of each evaluation, and the CPU seconds until then by what they were spent on, ``(evaluations,)`` each."""

    steps: NDArray[np.int64]
    train: NDArray[np.float64]
    evaluate: NDArray[np.float64]
    compile: NDArray[np.float64]


def parse_evaluations(text: str) -> Evaluations:
    """The evaluations in the text of the file, none included; ``FileError`` if it is damaged."""
    steps, (means, stds) = _parse(text, "evaluations.csv", ("step", "mean", "std"))
    return Evaluations(steps, means, stds)


def parse_timings(text: str) -> Timings:
    """The times in the text of the file, none included; ``FileError`` if it is damaged."""
    steps, (train, evaluate, compile_) = _parse(text, "timings.csv", ("step", *Timings._fields[1:]))
    return Timings(steps, train, evaluate, compile_)


def _parse(text: str, name: str, columns: tuple[str, ...]) -> tuple[NDArray[np.int64], list[NDArray[np.float64]]]:
    """The first columns of a table, of which the very first is the step."""
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
        steps = np.array([int(row[0]) for row in rows], dtype=np.int64)
        more = [np.array([float(row[i]) for row in rows], dtype=np.float64) for i in range(1, len(columns))]
    except (ValueError, OverflowError):
        raise FileError(f"{name} has a damaged row") from None
    return steps, more
