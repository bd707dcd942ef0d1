"""Throughput and memory of training, side by side with SBX's and SB3's DDPG and with Algorithm 1 written plainly.

All agents of one environment live in one process and train in turns, a short stretch each, so that whatever else the
machine does hits all alike; ratios are taken within a round, and their median and range over the rounds are printed.

    python benchmarks/throughput.py            everything, on one thread and on all: about 20 minutes on two cores
    python benchmarks/throughput.py --quick    one thread, fewer contenders and rounds: 3 minutes
"""

import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

ROOT = Path(__file__).resolve().parents[1]
ENVS = ("Pendulum-v1", "HalfCheetah-v5", "Ant-v5", "Humanoid-v5")
LIMIT = "matrix products"
# (numerator, denominator, {environment: least ratio}), all on one thread; None: reported without a bar
C50, P50, PLAIN = "SoftDDPG centered N=50", "SoftDDPG paper N=50", "Algorithm 1 plain N=50"
SHARE = {"Pendulum-v1": 0.85, "HalfCheetah-v5": 0.7, "Ant-v5": 0.65, "Humanoid-v5": 0.65}
BARS: list[tuple[str, str, dict[str, float]]] = [
    (C50, "DDPG", SHARE),
    (P50, "DDPG", {env: 0.9 * share for env, share in SHARE.items()}),
    (C50, PLAIN, {env: 8.0 if env == "Pendulum-v1" else 6.0 for env in ENVS}),
    (P50, PLAIN, {env: 8.0 if env == "Pendulum-v1" else 6.0 for env in ENVS}),
    ("DDPG", "SBX DDPG", dict.fromkeys(ENVS, 1.15)),
    ("DDPG", "SB3 DDPG", dict.fromkeys(ENVS, 2.0)),
    ("DDPG", LIMIT, dict.fromkeys(ENVS, 0.7)),
    ("SoftDDPG paper N=200", "SoftDDPG paper N=1", {"Pendulum-v1": 0.5}),
]


@dataclass
class Options:
    """Measure training throughput and memory."""

    quick: bool = False
    """One thread, N in 1, 50, 200 and shorter rounds: about 3 minutes."""
    envs: tuple[str, ...] = ENVS
    """Environments, whose sizes decide the cost of an update."""
    rounds: int = 0
    """Turns of each contender; 0 for 9, or 3 with --quick."""
    seconds: float = 0.0
    """Length of a turn; 0 for 1.0, or 0.35 with --quick."""
    out: Path = ROOT / "benchmarks" / "results"
    """Directory for throughput.json and throughput.png."""
    worker: tyro.conf.Suppress[Literal["", "one", "all", "memory"]] = ""
    """Used by the benchmark itself: measure in this process and print JSON."""
    contender: tyro.conf.Suppress[str] = ""

    def __post_init__(self) -> None:
        self.rounds = self.rounds or (3 if self.quick else 9)
        self.seconds = self.seconds or (0.35 if self.quick else 1.0)


def main(options: Options) -> None:
    if options.worker == "memory":
        print(json.dumps(measure_memory(options.contender)))
    elif options.worker:
        print(json.dumps(measure_env(options)))
    else:
        orchestrate(options)


def orchestrate(options: Options) -> None:
    from benchmarks.throughput_report import print_memory, print_throughput, write_plot

    results: dict[str, Any] = {"machine": machine(), "rounds": options.rounds, "seconds": options.seconds}
    started = time.time()
    for threads in ("one",) if options.quick else ("one", "all"):
        for env in options.envs:
            print(f"measuring {env}, threads: {threads} ...", file=sys.stderr)
            arguments = ["--envs", env, "--rounds", str(options.rounds), "--seconds", str(options.seconds)]
            arguments += ["--quick"] if options.quick else []
            results.setdefault(threads, {})[env] = spawn(threads, arguments)
            print_throughput(env, threads, results[threads][env], BARS if threads == "one" else [])
    results["memory"] = {name: spawn("memory", ["--contender", name]) for name in ("DDPG", C50, "SBX DDPG", "SB3 DDPG")}
    print_memory(results["memory"])
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "throughput.json").write_text(json.dumps(results, indent=1) + "\n")
    write_plot(results["one"], options.out / "throughput.png")
    print(f"wrote {options.out}/throughput.json and throughput.png after {time.time() - started:.0f} s")


def spawn(worker: str, arguments: list[str]) -> dict[str, Any]:
    """Run a worker in a process of its own, whose threads are set before anything is imported."""
    environ = dict(os.environ, PYTHONPATH=str(ROOT))
    if worker != "all":
        environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    command = [sys.executable, __file__, "--worker", worker, *arguments]
    output = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])


def measure_env(options: Options) -> dict[str, Any]:
    """Steps per second of each contender in each round: ``{"rates": {name: [rounds]}, "sizes": [d, m]}``."""
    if options.worker == "one" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    from benchmarks.contenders import SAMPLES, agents, matrix_products

    (env,) = options.envs
    stretches: dict[str, Any] = {}
    for name, make in agents((1, 50, 200) if options.quick else SAMPLES).items():
        model = make(env)
        model.learn(300)  # fill the buffer for a batch, compile
        stretches[name] = lambda steps, model=model: model.learn(steps, reset_num_timesteps=False)
        d, m = model.observation_space.shape[0], model.action_space.shape[0]
    stretches[LIMIT] = products(matrix_products(d, m))
    steps = {name: calibrate(stretch, options.seconds) for name, stretch in stretches.items()}
    rates: dict[str, list[float]] = {name: [] for name in stretches}
    for _ in range(options.rounds):
        for name, stretch in stretches.items():
            start = time.perf_counter()
            stretch(steps[name])
            rates[name].append(steps[name] / (time.perf_counter() - start))
    return {"rates": rates, "sizes": [d, m]}


def calibrate(stretch: Any, seconds: float) -> int:
    """Number of steps that take about ``seconds``."""
    start = time.perf_counter()
    stretch(10)
    return max(3, round(10 * seconds / (time.perf_counter() - start)))


def products(shapes: list[tuple[tuple[int, int], tuple[int, int]]]) -> Any:
    """A function that does the matrix products of n updates and nothing else, each with the faster library."""
    import jax
    import numpy as np

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


def measure_memory(name: str) -> dict[str, Any]:
    """Peak memory of training on Humanoid-v5 with a full buffer of a million transitions."""
    import resource

    import numpy as np

    from benchmarks import contenders

    contenders.COMMON["buffer_size"] = 1_000_000
    model = contenders.agents()[name]("Humanoid-v5")
    arrays = [array for array in vars(model.replay_buffer).values() if isinstance(array, np.ndarray)]
    for array in arrays:
        array.fill(0)  # as a full buffer does, make every page real
    model.learn(300)
    return {
        "bytes_per_transition": sum(array.nbytes for array in arrays) / 1_000_000,
        "peak_rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def machine() -> dict[str, Any]:
    from importlib.metadata import version

    packages = ("jax", "jaxlib", "sbx-rl", "stable-baselines3", "torch", "numpy", "softdpg")
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main(tyro.cli(Options))
