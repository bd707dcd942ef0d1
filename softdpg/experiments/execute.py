"""Executing jobs, for ``softdpg reproduce`` and ``softdpg race``: choose an engine, start it, show progress."""

import time

from rich.console import Console

from softdpg.errors import UserError
from softdpg.experiments.board import Board
from softdpg.experiments.jobs import Ended, Engine, Job
from softdpg.experiments.ray import check_address
from softdpg.runs.process import Signals

POLL_SECONDS = 0.5


def check_engine(name: str, address: str | None, workers: int | None) -> None:
    """Raise ``UserError`` for the first invalid argument of an engine.

    :param name: ``local`` or ``ray``
    :param address: of a Ray cluster
    :param workers: number of processes at a time on this machine
    """
    if workers is not None and workers < 1:
        raise UserError(f"--workers must be at least 1, got {workers}")
    if name == "local" and address is not None:
        raise UserError("--address applies to --engine ray only")
    if name == "ray" and workers is not None:
        raise UserError("--workers applies to --engine local only; Ray uses all cores of its cluster")
    if address is not None:
        check_address(address)


def make_engine(name: str, address: str | None, workers: int | None) -> Engine:
    """Return an engine; the arguments are those of :func:`check_engine`."""
    if name == "ray":
        from softdpg.experiments.ray import RayEngine

        return RayEngine(address)
    from softdpg.experiments.local import LocalEngine

    return LocalEngine(workers)


def unfinished_jobs(jobs: list[Job], console: Console) -> list[Job]:
    """Return the jobs that are not finished, started ones first, and print how many there are of each kind."""
    unfinished = [job for job in jobs if job.directory.read_status().get("state") != "finished"]
    unfinished.sort(key=lambda job: not job.directory.config.exists())
    started = sum(job.directory.config.exists() for job in unfinished)
    finished = len(jobs) - len(unfinished)
    console.print(f"{len(jobs)} runs: {finished} finished, {started} to resume, {len(unfinished) - started} new")
    return unfinished


def execute(engine: Engine, jobs: list[Job], unfinished: list[Job], console: Console) -> int:
    """Execute jobs and show their progress. Return the exit code of the command.

    :param engine: the engine to use; it is stopped at the end
    :param jobs: all jobs, which the progress table shows
    :param unfinished: those of them that are to be executed
    :param console: where to print
    """
    failures: list[Ended] = []
    with Signals() as signals:
        try:
            with Board(jobs, console) as board:
                engine.start(unfinished)
                open_jobs = set(unfinished)
                while open_jobs and signals.received is None:
                    time.sleep(POLL_SECONDS)
                    for ended in engine.ended():
                        open_jobs.discard(ended.job)
                        board.ended(ended)
                        if ended.exit_code:
                            failures.append(ended)
                    board.update()
            if signals.received is not None:
                console.print("stopping: each run writes a checkpoint; press Ctrl-C again to quit at once")
        finally:
            engine.stop()
    if signals.received is not None:
        console.print("interrupted; run the same command again to resume")
        return 128 + signals.received
    for ended in failures:
        console.print(f"failed: {ended.job.path}: {ended.message}", soft_wrap=True, markup=False)
    console.print(f"{len(jobs) - len(failures)} of {len(jobs)} runs finished")
    return 1 if failures else 0
