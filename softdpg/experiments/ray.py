"""Runs as tasks on a Ray cluster. The run directories must be on a file system that all nodes share."""

import logging
import re
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softdpg.errors import UserError, require_extra
from softdpg.experiments.jobs import Ended, Job
from softdpg.experiments.local import failure_message, start_run
from softdpg.runs.config import RunConfig

RETRIES = 10  # of a run whose worker or node died
CONNECT_SECONDS = 5.0
LOCK_SECONDS = 120.0  # how long a retry waits for the lock of the dead worker; NFS releases it late


class RayEngine:
    """Execute each job as a task with one core. If its worker dies, Ray repeats the task and the run resumes.

    :param address: ``host:port`` of a cluster's head, ``ray://host:port``, or ``auto``; None starts a local cluster
    """

    def __init__(self, address: str | None = None) -> None:
        require_extra("ray", "--engine ray")
        import ray

        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise UserError(f"cannot connect to Ray at {address}: {str(error).splitlines()[0]}") from None
        self._ray: Any = ray
        self._task = ray.remote(num_cpus=1, max_retries=RETRIES)(_run)
        self._running: dict[Any, Job] = {}
        self.slots = max(int(ray.cluster_resources().get("CPU", 1)), 1)

    def start(self, jobs: Sequence[Job]) -> None:
        """Submit all jobs; Ray starts them as cores become free."""
        for job in jobs:
            self._running[self._task.remote(job.config, str(job.path))] = job

    def ended(self) -> list[Ended]:
        """Return the jobs that have ended since the last call."""
        if not self._running:
            return []
        self.slots = max(int(self._ray.cluster_resources().get("CPU", 1)), 1)
        done, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
        return [self._end(reference, self._running.pop(reference)) for reference in done]

    def _end(self, reference: Any, job: Job) -> Ended:
        try:
            code, message = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return Ended(job, 1, str(error).strip().splitlines()[0])
        return Ended(job, code, message)

    def stop(self) -> None:
        """Cancel the tasks, whose runs write a checkpoint and end, and leave the cluster."""
        for reference in self._running:
            self._ray.cancel(reference, force=False)
        if self._running:
            self._ray.wait(list(self._running), num_returns=len(self._running), timeout=30)
        self._ray.shutdown()


def check_address(address: str) -> None:
    """Raise ``UserError`` if no server listens at ``address``. Ray itself would try for minutes.

    :param address: as for :class:`RayEngine`
    """
    if address == "auto":
        return
    match = re.fullmatch(r"(?:ray://)?\[?([^\]]+?)\]?:(\d+)", address)
    if match is None:
        raise UserError(f"--address must be host:port, ray://host:port or auto, got {address!r}")
    try:
        socket.create_connection((match[1], int(match[2])), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"no Ray cluster at {address}: {error}") from None


def _run(config: RunConfig, path: str) -> tuple[int, str]:
    """Execute one run and return its exit code and, if it failed, the reason. This is the task."""
    job = Job(path, config, Path(path))
    deadline = time.monotonic() + LOCK_SECONDS
    while job.directory.locked() and time.monotonic() < deadline:
        time.sleep(0.5)
    process = start_run(config, job.path)
    try:
        code = process.wait()
    except KeyboardInterrupt:  # the task was cancelled
        process.terminate()
        code = process.wait()
    return code, failure_message(job.path, code) if code else ""
