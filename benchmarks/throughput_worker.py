"""One measurement of the throughput benchmark, in a process of its own: takes and prints JSON."""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from benchmarks import contenders
from benchmarks.throughput import LIMIT


def measure_throughput(
    env: str, threads: str, samples: list[int], only: list[str], rounds: int, seconds: float
) -> dict[str, Any]:
    """Steps per second of each contender in each round: ``{"rates": {name: [rounds]}, "sizes": [d, m]}``."""
    stretches: dict[str, Callable[[int], None]] = {}
    for name, make in contenders.agents(tuple(samples)).items():
        if only and not any(part in name for part in only):
            continue
        model = make(env)
        model.learn(contenders.BATCH + 3)  # fill the buffer for a batch, compile
        stretches[name] = partial(stretch, model)
        d, m = model.observation_space.shape[0], model.action_space.shape[0]
    print("ready", flush=True)
    input()
    if threads == "one":
        pin()
    stretches[LIMIT] = products(contenders.matrix_products(d, m))
    steps = {name: calibrate(run, seconds) for name, run in stretches.items()}
    rates: dict[str, list[float]] = {name: [] for name in stretches}
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        # In another order each time: whoever follows NumPy or torch finds their threads still spinning.
        for name in rng.permutation(list(stretches)):
            start = time.perf_counter()
            stretches[name](steps[name])
            rates[name].append(steps[name] / (time.perf_counter() - start))
    return {"rates": rates, "sizes": [d, m]}


def pin() -> None:
    """Keep this process, with the threads that its libraries have started, on one core."""
    if hasattr(os, "sched_setaffinity"):
        core = max(os.sched_getaffinity(0))
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), {core})


def stretch(model: Any, steps: int) -> None:
    """Train, and wait for the last update, which JAX may still be at work on when ``learn`` returns."""
    model.learn(steps, reset_num_timesteps=False)
    jax.block_until_ready(vars(model.policy).get("actor_state"))


def calibrate(run: Callable[[int], None], seconds: float) -> int:
    """Number of steps that take about ``seconds``."""
    start = time.perf_counter()
    run(5)
    return max(3, round(5 * seconds / (time.perf_counter() - start)))


def products(shapes: list[tuple[tuple[int, int], tuple[int, int]]]) -> Any:
    """A function that does the matrix products of n updates and nothing else, each with the faster library."""
    rng = np.random.default_rng(0)
    product = jax.jit(lambda a, b: a @ b)
    jobs = []
    for left, right in shapes:
        a, b = rng.normal(size=left).astype(np.float32), rng.normal(size=right).astype(np.float32)
        a_jax, b_jax, result = jax.numpy.asarray(a), jax.numpy.asarray(b), np.empty((left[0], right[1]), np.float32)
        candidates = [
            lambda a=a, b=b, result=result: np.matmul(a, b, out=result),
            lambda a=a_jax, b=b_jax: product(a, b).block_until_ready(),
        ]
        jobs.append(min(candidates, key=lambda job: min(timed(job) for _ in range(20))))

    def run(updates: int) -> None:
        for _ in range(updates):
            for job in jobs:
                job()

    return run


def timed(job: Any) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def measure_memory(env: str, threads: str, name: str) -> dict[str, Any]:
    """Peak memory of training with a full buffer of a million transitions."""
    contenders.COMMON["buffer_size"] = 1_000_000
    model = contenders.agents()[name](env)
    arrays = [array for array in vars(model.replay_buffer).values() if isinstance(array, np.ndarray)]
    arrays = [array for array in arrays if array.base is None]  # views of others do not count
    for array in arrays:
        array.fill(0)  # as a full buffer does, make every page real
    model.learn(contenders.BATCH + 3)
    return {
        "bytes_per_transition": sum(array.nbytes for array in arrays) / 1_000_000,
        "peak_rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


if __name__ == "__main__":
    work = json.loads(sys.argv[1])
    measure = {"throughput": measure_throughput, "memory": measure_memory}[work.pop("what")]
    print(json.dumps(measure(**work)))
