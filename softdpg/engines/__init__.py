"""Where runs are executed: on the cores of this machine, or on a Ray cluster.

Both start the same process for a run, ``softdpg train`` with one thread, so results do not depend on the engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory


@dataclass(frozen=True)
class Job:
    """One run and where it goes."""

    name: str
    config: RunConfig
    path: Path

    @property
    def directory(self) -> RunDirectory:
        """Its run directory."""
        return RunDirectory(self.path)


@dataclass(frozen=True)
class Ended:
    """A job that ended, well (exit code 0) or not."""

    job: Job
    exit_code: int
    message: str = ""


class Engine(Protocol):
    """Runs jobs in the background."""

    slots: int
    """How many jobs run at the same time."""

    def start(self, jobs: Sequence[Job]) -> None:
        """Accept all jobs; those beyond the number of slots wait."""

    def ended(self) -> list[Ended]:
        """The jobs that ended since the last call."""

    def stop(self) -> None:
        """End all jobs, each with a checkpoint where it can, and release what the engine holds."""
