"""``softdpg reproduce``: the runs behind the paper's tables and figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rich.console import Console

from softdpg import paper
from softdpg.algorithms import registry
from softdpg.errors import UserError, near_matches
from softdpg.experiments.board import estimated_seconds
from softdpg.experiments.execute import check_engine, execute, make_engine, unfinished_jobs
from softdpg.experiments.jobs import Job, claimed, make_job, runs
from softdpg.experiments.toy import ToySettings
from softdpg.experiments.toy import run as train_toy
from softdpg.runs.display import format_seconds
from softdpg.runs.environments import make_env

ALL = (*paper.TARGETS, "toy", "all")


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
    """Execute all runs of a target that are not finished yet. Return the exit code of the command.

    :param target: a name in ``ALL``
    :param out: directory of the run directories
    :param steps: environment steps of a run; the paper's by default, and for the toy its own
    :param seeds: runs of each algorithm on each environment
    :param envs: environments instead of the target's own; names for :func:`paper.expand_env`
    :param evaluate_every: steps between two evaluations
    :param algos: names in the registry; the paper's two by default
    :param engine: where to execute the runs
    :param address: of a Ray cluster
    :param workers: number of processes at a time on this machine
    """
    out = out.expanduser().absolute()
    jobs = _jobs(target, out, steps, seeds, envs, evaluate_every, algos)
    toy = _toy(target, seeds, steps, algos, workers)
    check_engine(engine, address, workers)
    console = Console(highlight=False)
    with claimed(out, jobs):
        if toy is not None:
            train_toy(toy, out / "toy")
        unfinished = unfinished_jobs(jobs, console) if jobs else []
        if not unfinished:
            return 0
        executor = make_engine(engine, address, workers)
        seconds = estimated_seconds(unfinished, executor.slots)
        console.print(f"{executor.slots} at a time; estimated time {format_seconds(seconds)}")
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
    """Return the jobs of a target after checking every argument."""
    if target not in ALL:
        raise UserError(f"no target {target!r}{near_matches(target, list(ALL))} (targets: {', '.join(ALL)})")
    for name, value in (("--seeds", seeds), ("--steps", steps), ("--evaluate-every", evaluate_every)):
        if value is not None and value < 1:
            raise UserError(f"{name} must be at least 1, got {value}")
    for algo in algos or ():
        registry.find(algo)
    for name in envs or ():
        for env_id in paper.expand_env(name):
            make_env(env_id).close()
    targets = tuple(paper.TARGETS) if target == "all" else (target,) if target in paper.TARGETS else ()
    chosen = {"steps": steps or paper.TOTAL_TIMESTEPS, "seeds": seeds, "algos": algos or paper.PAPER_ALGORITHMS}
    chosen["evaluate_every"] = evaluate_every
    return [make_job(config, out) for config in runs(targets, envs=envs, **chosen)]  # type: ignore[arg-type]


def _toy(
    target: str, seeds: int, steps: int | None, algos: Sequence[str] | None, workers: int | None
) -> ToySettings | None:
    """Return the checked settings of the toy, or None if the target does not include it."""
    if target not in ("toy", "all"):
        return None
    given = {"steps": steps, "algos": None if algos is None else tuple(algos), "workers": workers}
    settings = ToySettings(seeds=seeds, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    settings.check()
    return settings
