"""``softdpg race``: steps and CPU seconds until the paper's score, contender beside contender."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console

from softdpg import paper
from softdpg.algorithms import registry
from softdpg.engines import Job
from softdpg.engines.estimate import estimated_seconds
from softdpg.engines.jobs import claim, make_job
from softdpg.errors import UserError
from softdpg.runs.config import RunConfig
from softdpg.runs.display import format_seconds
from softdpg.runs.environments import make_env
from softdpg.studies.reproduce import check_engine, execute, make_engine, what_is_left

if TYPE_CHECKING:
    from softdpg.results.race import RaceRun

PROTOCOL: dict[str, Any] = {"evaluate_every": 2_000, "evaluation_episodes": 10, "checkpoint_every": 10_000}


def race(
    envs: Sequence[str],
    out: Path,
    *,
    algos: Sequence[str] = paper.CONTENDERS,
    seeds: int = paper.RACE_SEEDS,
    first_seed: int = 0,
    budget: int = paper.RACE_BUDGET,
    goal: float | None = None,
    hold: int = 0,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    workers: int | None = None,
    earlier: Sequence[Path] = (),
) -> int:
    """Do all runs of a race that are not finished yet, and write what came out. Returns the exit code of the command.

    :param envs: columns of the paper's tables (names for :func:`paper.expand_env`), all 22 if empty; with ``goal`` any
        environments
    :param hold: steps that a run goes on after it has crossed the line
    :param earlier: ``race.csv`` files; a run that is decided there, with the same settings, is not made again
    """
    out = out.expanduser().absolute()
    check_engine(engine, address, workers)
    lines = _lines(envs, goal)
    if not algos:
        raise UserError("--algos needs at least one algorithm")
    for name, value, least in (
        ("seeds", seeds, 1),
        ("first-seed", first_seed, 0),
        ("budget", budget, 1),
        ("hold", hold, 0),
    ):
        if value < least:
            raise UserError(f"--{name} must be at least {least}, not {value}")
    # Seed by seed, and the contenders of a column one after the other: what else the machine does meets all alike.
    chosen = product(range(first_seed, first_seed + seeds), lines.items(), dict.fromkeys(algos))
    jobs = [_job(env, algo, seed, line, budget, hold, out) for seed, (env, line), algo in chosen]
    console = Console(highlight=False)
    before = _read_earlier(earlier)
    done = {_identity(run.settings.resolved()) for run in before if run.decided}
    jobs = [job for job in jobs if _identity(job.config) not in done]
    claim(out, jobs)
    unfinished = what_is_left(jobs, console)
    code = 0
    if unfinished:
        executor = make_engine(engine, address, workers)
        longest = format_seconds(estimated_seconds(unfinished, executor.slots))
        console.print(f"{executor.slots} at a time; at most about {longest}, less as runs cross their lines")
        code = execute(executor, jobs, unfinished, console)
    _show(out, before, console)
    return code


def _lines(envs: Sequence[str], goal: float | None) -> dict[str, float]:
    """The finishing line of each environment that is asked for; ``UserError`` for one that has none."""
    ids = [env_id for name in envs for env_id in paper.expand_env(name)] or list(paper.FINISHING_LINES)
    if goal is not None and not envs:
        raise UserError("--goal needs the environments that it is for")
    lines = {}
    for env_id in ids:
        make_env(env_id).close()
        line = paper.FINISHING_LINES.get(env_id) if goal is None else goal
        if line is None:
            raise UserError(f"the paper has no score for {env_id}; give the finishing line with --goal")
        lines[env_id] = line
    return lines


def _job(env: str, algo: str, seed: int, line: float, budget: int, hold: int, out: Path) -> Job:
    defaults = registry.find(algo).hyperparameters
    config = RunConfig(
        env,
        algo,
        budget,
        seed,
        goal=line,
        after_crossing=hold,
        **PROTOCOL,
        **{key: defaults[key] for key in paper.SWEPT if key in defaults},
    )
    return make_job(config, out)


def _identity(config: RunConfig) -> tuple[Any, ...]:
    """What makes two runs of a race the same; steps after the crossing do not count."""
    return config.env, config.algo, config.seed, config.goal, config.steps, config.n_envs, config.hyperparameters


def _read_earlier(files: Sequence[Path]) -> "list[RaceRun]":
    if not files:
        return []  # what reads them takes a while to import
    from softdpg.results.race_reading import read_earlier

    return read_earlier(files)


def _show(out: Path, earlier: "list[RaceRun]", console: Console) -> None:
    """Print the table and write the files, of all runs in the directory and those of earlier races."""
    from softdpg.report.race_writing import write_race
    from softdpg.results.race_reading import joined, read_race

    runs, warnings = read_race(out)
    runs = joined(runs, earlier) if earlier else runs
    for warning in warnings:
        console.print(f"warning: {warning}", soft_wrap=True, markup=False)
    if runs:
        written = write_race(runs, out)
        console.print(written.summary, soft_wrap=True, markup=False)
        console.print("\n".join(f"wrote {file}" for file in written.files), soft_wrap=True, markup=False)
