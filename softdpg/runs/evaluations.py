"""``evaluations.csv`` read back: rows ``step,mean,std,return_1,...``, as many as are whole."""

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


def parse_evaluations(text: str) -> Evaluations:
    """The evaluations in the text of the file, none included; ``FileError`` if it is damaged."""
    # A line without its line break is still being written.
    lines = text[: text.rfind("\n") + 1].splitlines()
    try:
        header, *rows = list(csv.reader(lines)) or [["step", "mean", "std"]]
    except csv.Error as error:
        raise FileError(f"evaluations.csv is damaged: {error}") from None
    if header[:3] != ["step", "mean", "std"]:
        raise FileError("evaluations.csv does not start with step,mean,std")
    try:
        if any(len(row) != len(header) for row in rows):
            raise ValueError
        steps = np.array([int(row[0]) for row in rows], dtype=np.int64)
        values = np.array([[float(row[1]), float(row[2])] for row in rows], dtype=np.float64).reshape(-1, 2)
    except (ValueError, OverflowError):
        raise FileError("evaluations.csv has a damaged row") from None
    return Evaluations(steps, values[:, 0], values[:, 1])
