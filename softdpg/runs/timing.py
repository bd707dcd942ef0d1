"""CPU seconds of a run: user and system time of all threads of its process, by what they were spent on."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

from softdpg.runs import files
from softdpg.runs.evaluations import Timings

KINDS = Timings._fields[1:]
_compilations = 0


def _count_compilations(event: str, *_: object, **__: Any) -> None:
    global _compilations
    _compilations += event.startswith("/jax/core/compile/")


jax.monitoring.register_event_duration_secs_listener(_count_compilations)


class CpuClock:
    """Stopwatches for training, evaluation and compilation, of which one runs at any time.

    JAX reports how long it compiled in wall time, which on a busy machine has little to do with CPU time. So its
    reports only tell *that* it compiled: the CPU time of a stretch of training between two calls of :meth:`lap`, half a
    step, counts as compilation if it did. An evaluation counts as that as a whole.

    :param before: CPU seconds by kind so far, of earlier parts of the run
    """

    def __init__(self, before: Mapping[str, float]) -> None:
        self.seconds = {kind: float(before.get(kind, 0.0)) for kind in KINDS}
        self._mark, self._compilations = time.process_time(), _compilations

    def lap(self) -> None:
        """Count the time since the last lap as training, or as compilation if JAX compiled in it."""
        self._count("train" if _compilations == self._compilations else "compile")

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """Count what happens inside as evaluation."""
        self.lap()
        try:
            yield
        finally:
            self._count("evaluate")

    def _count(self, kind: str) -> None:
        now = time.process_time()
        self.seconds[kind] += now - self._mark
        self._mark, self._compilations = now, _compilations


class TimingLog:
    """``timings.csv``: rows ``step,train,evaluate,compile``, CPU seconds since the beginning, one row an evaluation."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def create(path: Path) -> None:
        """Start an empty log."""
        files.replace_file(path, (",".join(["step", *KINDS]) + "\n").encode())

    def append(self, step: int, seconds: Mapping[str, float]) -> None:
        """Add the times at ``step``."""
        row = [str(step), *(f"{seconds[kind]:.3f}" for kind in KINDS)]
        files.append(self.path, (",".join(row) + "\n").encode())
