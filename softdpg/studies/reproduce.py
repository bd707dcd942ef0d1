"""``softdpg reproduce``: the runs behind the paper's tables and figures, on one machine or many."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rich.console import Console

from softdpg import paper
from softdpg.algorithms import registry
from softdpg.engines import Ended, Engine, Job
from softdpg.engines.board import Board
from softdpg.engines.estimate import estimated_seconds
from softdpg.engines.jobs import claim, make_job, runs
from softdpg.engines.ray import check_address
from softdpg.errors import UserError, near_matches
from softdpg.runs.display import format_seconds
from softdpg.runs.environments import make_env
from softdpg.runs.signals import Signals
from softdpg.studies.toy import ToySettings
from softdpg.studies.toy import run as train_toy

ALL = (*paper.TARGETS, "toy", "all")
POLL_SECONDS = 0.5


def reproduce(
    target: str,
    out: Path,
    *,
    steps: int | None = None,
    seeds: int = paper.SEEDS,
    envs: Sequence[str] | None = None,
    evaluate_every: int = paper.EVALUATION_EVERY,
    algos: Sequence[str] | None = None,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    workers: int | None = None,
) -> int:
    """Do all runs of a target that are not finished yet. Returns the exit code of the command.

    ``steps`` and ``algos`` are those of the paper unless given, and the toy's own there.
    """
    out = out.expanduser().absolute()
    jobs = _jobs(target, out, steps, seeds, envs, evaluate_every, algos)
    toy = _toy(target, seeds, steps, algos, workers)
    check_engine(engine, address, workers)
    claim(out, jobs)
    console = Console(highlight=False)
    if toy is not None:
        train_toy(toy, out / "toy")
    if not jobs:
        return 0
    unfinished = what_is_left(jobs, console)
    if not unfinished:
        return 0
    executor = make_engine(engine, address, workers)
    seconds = estimated_seconds(unfinished, executor.slots)
    console.print(f"{executor.slots} at a time; estimated time {format_seconds(seconds)}, refined as runs go on")
    return execute(executor, jobs, unfinished, console)


def _jobs(
    target: str,
    out: Path,
    steps: int | None,
    seeds: int,
    envs: Sequence[str] | None,
    evaluate_every: int,
    algos: Sequence[str] | None,
) -> list[Job]:
    if target not in ALL:
        raise UserError(f"no target {target!r}{near_matches(target, list(ALL))} (targets: {', '.join(ALL)})")
    for name, value in (("--seeds", seeds), ("--steps", steps), ("--evaluate-every", evaluate_every)):
        if value is not None and value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")
    for algo in algos or ():
        registry.find(algo)
    for name in envs or ():
        for env_id in paper.expand_env(name):
            make_env(env_id).close()
    targets = tuple(paper.TARGETS) if target == "all" else (target,) if target in paper.TARGETS else ()
    chosen = {"steps": steps or paper.TOTAL_TIMESTEPS, "seeds": seeds, "algos": algos or paper.PAPER_ALGORITHMS}
    chosen["evaluate_every"] = evaluate_every
    return [make_job(config, out) for config in runs(targets, envs=envs, **chosen)]  # type: ignore[arg-type]


def check_engine(name: str, address: str | None, workers: int | None) -> None:
    """``UserError`` if there can be no such engine."""
    if workers is not None and workers < 1:
        raise UserError(f"--workers must be at least 1, not {workers}")
    if name == "local" and address is not None:
        raise UserError("--address applies to --engine ray only")
    if name == "ray" and workers is not None:
        raise UserError("--workers applies to --engine local only; a cluster has the cores it has")
    if address is not None:
        check_address(address)


def make_engine(name: str, address: str | None, workers: int | None) -> Engine:
    """The engine that the command line names."""
    if name == "ray":
        from softdpg.engines.ray import RayEngine

        return RayEngine(address)
    from softdpg.engines.local import LocalEngine

    return LocalEngine(workers)


def what_is_left(jobs: list[Job], console: Console) -> list[Job]:
    """The jobs that are not finished, those that were begun first."""
    unfinished = [job for job in jobs if job.directory.read_status().get("state") != "finished"]
    unfinished.sort(key=lambda job: not job.directory.config.exists())
    started = sum(job.directory.config.exists() for job in unfinished)
    finished = len(jobs) - len(unfinished)
    console.print(f"{len(jobs)} runs: {finished} finished, {started} to resume, {len(unfinished) - started} new")
    return unfinished


def execute(engine: Engine, jobs: list[Job], unfinished: list[Job], console: Console) -> int:
    """Run the unfinished ones of ``jobs`` with a display of all. Returns the exit code of the command."""
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
                console.print("ending the runs, each with a checkpoint; once more to quit at once")
        finally:
            engine.stop()
    if signals.received is not None:
        console.print("interrupted; the same command goes on where the runs were")
        return 128 + signals.received
    for ended in failures:
        console.print(f"failed: {ended.job.path}: {ended.message}", soft_wrap=True, markup=False)
    console.print(f"{len(jobs) - len(failures)} of {len(jobs)} runs finished")
    return 1 if failures else 0


def _toy(
    target: str, seeds: int, steps: int | None, algos: Sequence[str] | None, workers: int | None
) -> ToySettings | None:
    """The toy's settings, checked, if the target has the toy."""
    if target not in ("toy", "all"):
        return None
    given = {"steps": steps, "algos": None if algos is None else tuple(algos), "workers": workers}
    settings = ToySettings(seeds=seeds, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    settings.check()
    return settings
