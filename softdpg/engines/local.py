"""A pool of processes on this machine."""

import os
import subprocess
from collections import deque
from collections.abc import Sequence

from softdpg.engines import Ended, Job, process


class LocalEngine:
    """As many processes at a time as there are cores, one thread each.

    :param slots: processes at a time; all cores that this process may use unless given
    """

    def __init__(self, slots: int | None = None) -> None:
        self.slots = slots or cores()
        self._waiting: deque[Job] = deque()
        self._running: dict[Job, subprocess.Popen[bytes]] = {}

    def start(self, jobs: Sequence[Job]) -> None:
        """Start as many jobs as there are slots; the others wait."""
        self._waiting.extend(jobs)
        self._fill()

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self.slots:
            job = self._waiting.popleft()
            self._running[job] = process.start(job.config, job.path)

    def ended(self) -> list[Ended]:
        """The jobs that ended since the last call; waiting ones take their slots."""
        ended = []
        for job, child in list(self._running.items()):
            code = child.poll()
            if code is not None:
                del self._running[job]
                ended.append(Ended(job, code, process.reason(job.path, code) if code else ""))
        self._fill()
        return ended

    def stop(self) -> None:
        """Ask the running jobs to end with a checkpoint, and wait until they have."""
        self._waiting.clear()
        for child in self._running.values():
            child.terminate()
        try:
            for child in self._running.values():
                child.wait()
        except KeyboardInterrupt:
            for child in self._running.values():
                child.kill()
            raise


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
