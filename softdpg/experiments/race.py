"""``softdpg race`` and ``softdpg demo``: how much training each algorithm needs to reach a target score."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console

from softdpg import paper
from softdpg.algorithms import registry
from softdpg.envs.action_spaces import ACTION_TARGETS
from softdpg.errors import UserError
from softdpg.experiments.board import estimated_seconds
from softdpg.experiments.execute import check_engine, execute, make_engine, unfinished_jobs
from softdpg.experiments.jobs import Job, claimed, make_job
from softdpg.runs.config import RunConfig
from softdpg.runs.display import format_seconds
from softdpg.runs.environments import make_env, make_run_env

if TYPE_CHECKING:
    from softdpg.report.runs import Run

TASK_SETS = {"actions": tuple(ACTION_TARGETS)}
PROTOCOL: dict[str, Any] = {"evaluate_every": 2_000, "evaluation_episodes": 10, "checkpoint_every": 10_000}
DEMO_TASK = "MountainCarDiscrete"
DEMO_ALGORITHMS = paper.RACE_ALGORITHMS[:2]


def race(
    tasks: Sequence[str],
    out: Path,
    *,
    algos: Sequence[str] = paper.RACE_ALGORITHMS,
    seeds: int = paper.RACE_SEEDS,
    first_seed: int = 0,
    budget: int = paper.RACE_BUDGET,
    stop_at_score: float | None = None,
    steps_after_score: int = 0,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    workers: int | None = None,
    earlier: Sequence[Path] = (),
) -> int:
    """Execute all runs of a benchmark that are not finished yet, and write its tables and figures.

    Return the exit code of the command.

    :param tasks: names for :func:`paper.expand_env`, or ``actions`` for the tasks with discrete, on/off and mixed
        actions; all 22 tasks of the paper if empty
    :param out: directory of the run directories, tables and figures
    :param algos: names in the registry
    :param seeds: runs of each algorithm on each task
    :param first_seed: the first seed
    :param budget: environment steps after which a run ends without having reached the target score
    :param stop_at_score: target score instead of the paper's; with it a task can be any environment
    :param steps_after_score: steps that a run continues after it has reached the target score
    :param engine: where to execute the runs
    :param address: of a Ray cluster
    :param workers: number of processes at a time on this machine
    :param earlier: ``race.csv`` files; runs that ended there with the same settings are not repeated
    """
    out = out.expanduser().absolute()
    check_engine(engine, address, workers)
    targets = _target_scores(tasks, stop_at_score)
    if not algos:
        raise UserError("--algos needs at least one algorithm")
    for name, value, least in (
        ("seeds", seeds, 1),
        ("first-seed", first_seed, 0),
        ("budget", budget, 1),
        ("steps-after-score", steps_after_score, 0),
    ):
        if value < least:
            raise UserError(f"--{name} must be at least {least}, got {value}")
    # The algorithms alternate on each task and seed, so that other load on the machine affects all of them alike.
    chosen = product(range(first_seed, first_seed + seeds), targets.items(), dict.fromkeys(algos))
    jobs = [_job(env, algo, seed, target, budget, steps_after_score, out) for seed, (env, target), algo in chosen]
    console = Console(highlight=False)
    jobs = _possible(jobs, console)
    before = _read_earlier(earlier)
    done = {_identity(run.settings.resolved()) for run in before if run.decided}
    jobs = [job for job in jobs if _identity(job.config) not in done]
    with claimed(out, jobs):
        unfinished = unfinished_jobs(jobs, console)
        code = 0
        if unfinished:
            executor = make_engine(engine, address, workers)
            longest = format_seconds(estimated_seconds(unfinished, executor.slots))
            console.print(f"{executor.slots} at a time; at most about {longest}, less if runs reach their targets")
            code = execute(executor, jobs, unfinished, console)
        _write(out, before, console)
    return code


def demo(out: Path, budget: int, seed: int) -> int:
    """Run a small benchmark of two algorithms on one task. Return the exit code of the command.

    :param out: directory of the runs, the table and the figures; finished runs in it are not repeated
    :param budget: environment steps after which a run ends
    :param seed: seed of the runs
    """
    first, second = (registry.find(name).label for name in DEMO_ALGORITHMS)
    Console(highlight=False).print(
        f"A car in a valley must reach the top of a hill. It has to move away from the goal first. {first} and "
        f"{second} train for at most {budget:,} steps with one seed. We chose this task because it shows the "
        "difference clearly; docs/results/race has all tasks.",
        soft_wrap=True,
    )
    return race([DEMO_TASK], out, algos=DEMO_ALGORITHMS, seeds=1, first_seed=seed, budget=budget)


def _target_scores(tasks: Sequence[str], stop_at_score: float | None) -> dict[str, float]:
    """Return the target score of each task by Gymnasium id; raise ``UserError`` for a task without one."""
    known = paper.TARGET_SCORES | ACTION_TARGETS
    expanded = [TASK_SETS.get(name) or paper.expand_env(name) for name in tasks]
    ids = [env_id for names in expanded for env_id in names] or list(paper.TARGET_SCORES)
    if stop_at_score is not None and not tasks:
        raise UserError("--stop-at-score needs the environments that it applies to")
    scores = {}
    for env_id in ids:
        make_env(env_id).close()
        score = known.get(env_id) if stop_at_score is None else stop_at_score
        if score is None:
            raise UserError(f"{env_id} has no target score; give a target score with --stop-at-score")
        scores[env_id] = score
    return scores


def _job(env: str, algo: str, seed: int, target: float, budget: int, steps_after_score: int, out: Path) -> Job:
    defaults = registry.find(algo).hyperparameters
    config = RunConfig(
        env,
        algo,
        budget,
        seed,
        stop_at_score=target,
        steps_after_score=steps_after_score,
        **PROTOCOL,
        **{key: defaults[key] for key in paper.SWEPT if key in defaults},
    )
    return make_job(config, out)


def _possible(jobs: Sequence[Job], console: Console) -> list[Job]:
    """Return the jobs whose algorithm acts in the environment, and say which pairs are left out."""
    refused: dict[tuple[str, str], str] = {}
    for env, algo in dict.fromkeys((job.config.env, job.config.algo) for job in jobs):
        try:
            make_run_env(RunConfig(env, algo)).close()
        except UserError as error:
            refused[env, algo] = str(error)
    for reason in refused.values():
        console.print(f"left out: {reason}", soft_wrap=True, markup=False)
    left = [job for job in jobs if (job.config.env, job.config.algo) not in refused]
    if jobs and not left:
        raise UserError("none of the algorithms acts in these environments")
    return left


def _identity(config: RunConfig) -> tuple[Any, ...]:
    """Return the settings that two equal runs of a benchmark share; steps after the target score do not count."""
    return (
        config.env,
        config.algo,
        config.seed,
        config.stop_at_score,
        config.steps,
        config.n_envs,
        config.hyperparameters,
    )


def _read_earlier(files: Sequence[Path]) -> "list[Run]":
    if not files:
        return []  # the import below is slow
    from softdpg.report.reading import read_earlier

    return read_earlier(files)


def _write(out: Path, earlier: "list[Run]", console: Console) -> None:
    """Print the table and write the files, with the runs in the directory and those of earlier benchmarks."""
    from softdpg.report.page import write_benchmark_report
    from softdpg.report.reading import read_runs
    from softdpg.report.runs import joined

    _, runs, warnings = read_runs(out)
    runs = joined(runs, earlier) if earlier else runs
    for warning in warnings:
        console.print(f"warning: {warning}", soft_wrap=True, markup=False)
    if runs:
        written = write_benchmark_report(runs, out)
        console.print(written.summary, soft_wrap=True, markup=False)
        console.print("\n".join(f"wrote {file}" for file in written.files), soft_wrap=True, markup=False)
