"""Runs of a race made by hand, with known numbers."""

import numpy as np

from softdpg.results.race import Column, Race, RaceRun
from softdpg.runs.config import RunConfig

HOPPER, ANT = Column("Hopper-v5", 10.0), Column("Ant-v5", 10.0)


def run(means, *, column=HOPPER, algo="td3", seed=0, state="finished", message="", pace=2.0, budget=8_000, hold=0):
    """A run evaluated every 2,000 steps that takes ``pace`` CPU seconds for each of these stretches."""
    numbers = np.arange(1, len(means) + 1)
    settings = RunConfig(column.env, algo, budget, seed, 2_000, 10, goal=column.goal, after_crossing=hold).resolved()
    return RaceRun(
        name=f"{column.env}/{algo}/seed-{seed}",
        settings=settings,
        state=state,
        message=message,
        seconds=7.5,
        evaluated_at=2_000 * numbers,
        means=np.array(means, dtype=float),
        train=pace * numbers,
        evaluate=0.5 * numbers,
        compile=np.full(len(means), 3.0),
        commit="0123abc",
        versions=(("jax", "0.9"),),
        machine=(("cpu", "a CPU"),),
    )


def two_contenders(ours="td3"):
    """Ours crosses Ant after 4 s and Hopper after 8 s; SAC crosses Ant after 12 s, and Hopper not within 24 s."""
    return Race(
        [
            run([10, 10], column=ANT, algo=ours),
            run([1, 1, 10, 10], algo=ours),
            run([10, 10], column=ANT, algo="sbx-sac", pace=6.0),
            run([1, 1, 1, 9.5], algo="sbx-sac", pace=6.0),
        ]
    )


def steps_by_seed(entry):
    """Steps to the line in thousands, as the pages have them: a dash for a miss, empty for a contender without runs."""
    runs = sorted(entry.runs, key=lambda run: run.settings.seed) if entry else []
    return ", ".join("–" if run.crossing is None else f"{run.steps_to_line / 1000:.0f}" for run in runs)
