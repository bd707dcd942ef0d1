"""``softdpg demo``: three algorithms on Pendulum with discrete rewards, in minutes; a table and a picture."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from softdpg import paper
from softdpg.algorithms import registry
from softdpg.engines import Job
from softdpg.engines.jobs import claim
from softdpg.engines.local import LocalEngine
from softdpg.results.cells import Cell, arrange
from softdpg.runs.config import RunConfig
from softdpg.studies.reproduce import execute

ALGORITHMS = paper.STUDY_ALGORITHMS
ENV = "softdpg/PendulumDiscrete-v0"
SOLVED = 2_000.0  # near the ceiling, which swinging up keeps out of reach


def demo(out: Path, steps: int, seed: int) -> int:
    """Train, print the table and write the picture. Finished runs in ``out`` are not done again."""
    out = out.expanduser().absolute()
    jobs = [_job(algorithm, out, steps, seed) for algorithm in ALGORITHMS]
    claim(out, jobs)
    console = Console(highlight=False)
    console.print(f"{ENV}: {steps:,} steps of each algorithm, one seed; the runs go to {out}", soft_wrap=True)
    unfinished = [job for job in jobs if job.directory.read_status().get("state") != "finished"]
    # All three at once, one thread each, even on two cores: none waits for another.
    exit_code = execute(LocalEngine(len(jobs)), jobs, unfinished, console) if unfinished else 0
    if exit_code:
        return exit_code
    _show(jobs, out / "demo.png", console)
    return 0


def _job(algorithm: str, out: Path, steps: int, seed: int) -> Job:
    config = RunConfig(
        env=ENV,
        algo=algorithm,
        steps=steps,
        seed=seed,
        evaluate_every=max(steps // 20, 1),
        evaluation_episodes=5,
    ).resolved()
    name = f"PendulumDiscrete-v0/{algorithm}/seed-{seed}"
    return Job(name, config, out / name)


def _show(jobs: list[Job], picture: Path, console: Console) -> None:
    from softdpg.report.figures import save_curves
    from softdpg.results import reading as results

    # Earlier demos in the same directory, with another seed or length, are left out.
    runs = [run for job in jobs for run in results.read(job.path)[0]]
    row = arrange(runs).rows[ENV]
    table = Table(
        "algorithm", "final score", "best evaluation", f"steps to {SOLVED:,.0f}", title="Discrete Pendulum, one seed"
    )
    for name, cell in row.cells.items():
        table.add_row(registry.find(name).label, *_figures(cell))
    console.print(table)
    console.print("Final score: mean of the last 10 % of the evaluations, of 5 deterministic episodes each.")
    console.print("One seed shows what learning looks like, not which algorithm is better.")
    save_curves([[row]], picture)
    console.print(f"learning curves: {picture}", soft_wrap=True)


def _figures(cell: Cell) -> tuple[str, str, str]:
    curve = cell.curves[0]
    solved = np.flatnonzero(curve >= SOLVED)
    reached = f"{cell.steps[solved[0]]:,}" if solved.size else "not reached"
    return f"{cell.scores[0]:,.0f}", f"{curve.max():,.0f}", reached
