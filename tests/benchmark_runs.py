"""Runs of a benchmark made by hand, with known numbers."""

import numpy as np

from softdpg.report.benchmark import Benchmark, Task
from softdpg.report.runs import Run
from softdpg.runs.config import RunConfig

HOPPER, ANT = Task("Hopper-v5", 10.0), Task("Ant-v5", 10.0)


def run(means, *, task=HOPPER, algo="td3", seed=0, state="finished", message="", pace=2.0, budget=8_000, after=0):
    """A run evaluated every 2,000 steps that takes ``pace`` CPU seconds from one evaluation to the next."""
    numbers = np.arange(1, len(means) + 1)
    stops = {"stop_at_score": task.target_score, "steps_after_score": after}
    return Run(
        name=f"{task.env}/{algo}/seed-{seed}",
        settings=RunConfig(task.env, algo, budget, seed, 2_000, 10, **stops).resolved(),
        versions=(("jax", "0.9"),),
        machine=(("cpu", "a CPU"),),
        commit="0123abc",
        state=state,
        message=message,
        wall_seconds=7.5,
        evaluated_at=2_000 * numbers,
        means=np.array(means, dtype=float),
        train=pace * numbers,
        evaluate=0.5 * numbers,
        compile=np.full(len(means), 3.0),
    )


def two_algorithms(first="td3"):
    """The first reaches Ant after 4 s and Hopper after 8 s; SAC reaches Ant after 12 s, and Hopper not within 24 s."""
    return Benchmark(
        [
            run([10, 10], task=ANT, algo=first),
            run([1, 1, 10, 10], algo=first),
            run([10, 10], task=ANT, algo="sbx-sac", pace=6.0),
            run([1, 1, 1, 9.5], algo="sbx-sac", pace=6.0),
        ]
    )
