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

Worker = subprocess.Popen[str]
ROOT = Path(__file__).resolve().parents[1]
LIMIT = "matrix products"
SAMPLES = (1, 10, 50, 200)
ENVS = ("Pendulum-v1", "HalfCheetah-v5", "Ant-v5", "Humanoid-v5")
# (numerator, denominator, {environment: least ratio}), all on one thread
C50, P50, PLAIN = "SoftDDPG centered N=50", "SoftDDPG paper N=50", "Algorithm 1 plain N=50"
SOFT_TD3, RECIPE, TD3_256 = "SoftTD3 256x256 N=8", "SoftTD3 256x256 defaults", "TD3 256x256"
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
    (SOFT_TD3, "SBX SAC", {"HalfCheetah-v5": 1.0}),
    (RECIPE, "SBX SAC", {"HalfCheetah-v5": 1.0}),
    (RECIPE, TD3_256, {"HalfCheetah-v5": 0.75}),
    (SOFT_TD3, TD3_256, {"HalfCheetah-v5": 0.75}),
    (SOFT_TD3, f"{SOFT_TD3} no layer norm", {"HalfCheetah-v5": 0.85}),
]


@dataclass
class Options:
    """Measure training throughput and memory."""

    quick: bool = False
    """One thread, fewer N and shorter rounds: about 3 minutes."""
    envs: tuple[str, ...] = ENVS
    """Environments, whose sizes decide the cost of an update."""
    rounds: int = 0
    """Turns of each contender; 0 for 9, or 3 with --quick."""
    seconds: float = 0.0
    """Length of a turn; 0 for 1.0, or 0.35 with --quick."""
    contenders: tuple[str, ...] = ()
    """Only those whose name contains one of these; all unless given."""
    threads: tuple[Literal["one", "all"], ...] = ("one", "all")
    """Measure with one thread, with all, or both; --quick is with one."""
    out: Path = ROOT / "benchmarks" / "results"
    """Directory for throughput.json and throughput.png."""


def main(options: Options) -> None:
    """Measure each environment in a process of its own, print tables, write JSON and plot."""
    from benchmarks.throughput_report import print_memory, print_throughput, write_plot

    started = time.time()
    work: dict[str, Any] = {
        "rounds": options.rounds or (3 if options.quick else 9),
        "seconds": options.seconds or (0.35 if options.quick else 1.0),
    }
    results: dict[str, Any] = {"machine": machine(), **work}
    options.out.mkdir(parents=True, exist_ok=True)
    settings = ("one",) if options.quick else options.threads
    for threads in settings:
        print(f"compiling, threads: {threads} ...", file=sys.stderr)
        workers = {}
        for env in options.envs:
            samples = SAMPLES if not options.quick else (1, 50, 200) if env == ENVS[0] else (50,)
            workers[env] = start("throughput", env, threads, samples=samples, only=options.contenders, **work)
        for worker in workers.values():
            wait_until_ready(worker)
        for env, worker in workers.items():
            print(f"measuring {env}, threads: {threads} ...", file=sys.stderr)
            results.setdefault(threads, {})[env] = result(worker)
            print_throughput(env, threads, results[threads][env], BARS if threads == "one" else [])
            write_json(results, options.out)  # at once: it is long until the end
    if not options.contenders:
        contenders = ("DDPG", "SB3 DDPG") if options.quick else ("DDPG", C50, "SBX DDPG", "SB3 DDPG")
        results["memory"] = {name: result(start("memory", "Humanoid-v5", "one", name=name)) for name in contenders}
        print_memory(results["memory"])
        write_json(results, options.out)
        write_plot(results[settings[0]], options.out / "throughput.png")
    print(f"wrote {', '.join(file.name for file in options.out.glob('throughput.*'))} in {options.out} ", end="")
    print(f"after {time.time() - started:.0f} s")


def write_json(results: dict[str, Any], out: Path) -> None:
    """Store the rates of every round."""
    (out / "throughput.json").write_text(json.dumps(results, indent=1) + "\n")


def start(what: str, env: str, threads: str, **arguments: Any) -> Worker:
    """Start a worker in a process of its own, whose threads are set before anything is imported.

    Workers make ready side by side and then wait for :func:`result`, so that one measures while the others sleep.
    """
    from softdpg.runs.threads import use_one_thread

    environ = dict(os.environ, PYTHONPATH=str(ROOT))
    if threads == "one":
        use_one_thread(environ)
    work = json.dumps({"what": what, "env": env, "threads": threads, **arguments})
    command = [sys.executable, "-m", "benchmarks.throughput_worker", work]
    return subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def wait_until_ready(worker: Worker) -> None:
    """Wait for the worker's line ``ready``, past what the libraries may print before it."""
    assert worker.stdout is not None
    while (line := worker.stdout.readline()) != "ready\n":
        if not line:
            raise subprocess.CalledProcessError(worker.wait(), worker.args)


def result(worker: Worker) -> dict[str, Any]:
    """Let the worker measure; what it found."""
    output, _ = worker.communicate("go\n")
    if worker.returncode:
        raise subprocess.CalledProcessError(worker.returncode, worker.args)
    return json.loads(output.splitlines()[-1])


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
