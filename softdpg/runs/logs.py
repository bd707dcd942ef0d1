"""``evaluations.csv``, and SB3's logger so that it can go on with an existing ``progress.csv``."""

import os
import secrets
from pathlib import Path

import numpy as np
from stable_baselines3.common.logger import CSVOutputFormat, Logger, TensorBoardOutputFormat
from torch.utils.tensorboard import SummaryWriter

from softdpg.runs import files


class EvaluationLog:
    """Rows ``step,mean,std,return_1,...,return_K``, numbers in the shortest form that reads back the same."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def create(path: Path, episodes: int) -> None:
        """Start an empty log for evaluations of K = ``episodes`` episodes."""
        header = ",".join(["step", "mean", "std", *(f"return_{i + 1}" for i in range(episodes))]) + "\n"
        files.replace_file(path, header.encode())

    def append(self, step: int, returns: np.ndarray) -> None:
        """Add the evaluation at ``step``; the standard deviation is that of the K episodes (divisor K)."""
        row = [repr(float(value)) for value in (returns.mean(), returns.std(), *returns)]
        files.append(self.path, (",".join([str(step), *row]) + "\n").encode())


class _ContinuedCSV(CSVOutputFormat):
    """SB3's CSV output, which would empty the file, going on with the rows that are there."""

    def __init__(self, path: Path) -> None:
        self.file = open(files.open_regular(path, os.O_RDWR), "r+", encoding="utf-8")  # noqa: SIM115 (SB3 closes it)
        header = self.file.readline().rstrip("\n")
        self.keys = header.split(",") if header else []
        self.file.seek(0, 2)
        self.separator = ","
        self.quotechar = '"'


class _ContinuedTensorBoard(TensorBoardOutputFormat):
    """SB3's TensorBoard output, hiding what earlier event files have from ``purge_step`` on."""

    def __init__(self, directory: Path, purge_step: int | None) -> None:
        # With a name that cannot be foreseen, so that no link waits in its place.
        self.writer = SummaryWriter(str(directory), purge_step=purge_step, filename_suffix=f".{secrets.token_hex(4)}")
        self._is_closed = False


def make_logger(directory: Path, last_step: int) -> Logger:
    """Logger for ``progress.csv`` and TensorBoard that goes on after ``last_step``."""
    outputs = [
        _ContinuedCSV(directory / "progress.csv"),
        _ContinuedTensorBoard(directory, purge_step=last_step + 1 if last_step else None),
    ]
    return Logger(str(directory), outputs)
