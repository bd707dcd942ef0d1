"""Measure throughput and memory of training beside SBX's and SB3's DDPG and Algorithm 1 in its plain form.

    python benchmarks/throughput.py            everything, on one thread and on all: about 20 minutes on two cores
    python benchmarks/throughput.py --quick    one thread, fewer algorithms and rounds: 3 minutes
    python benchmarks/throughput.py --plot     draw the plot again from the stored numbers

All models of one environment live in one process and train in turns, so that other load on the machine affects all
alike. Ratios are taken within a round; the tables show their median and range over the rounds.
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

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

Worker = subprocess.Popen[str]
ROOT = Path(__file__).resolve().parents[1]
LIMIT = "matrix products"
SAMPLES = (1, 10, 50, 200)
CONSOLE = Console()
ENVS = ("Pendulum-v1", "HalfCheetah-v5", "Ant-v5", "Humanoid-v5")
# (numerator, denominator, {environment: smallest accepted ratio}), all on one thread
C50, P50, PLAIN = "SoftDDPG centered N=50", "SoftDDPG paper N=50", "Algorithm 1 plain N=50"
SOFT_TD3, RECIPE, TD3_256 = "SoftTD3 256x256 N=8", "SoftTD3 256x256 defaults", "TD3 256x256"
RELATIVE = {"Pendulum-v1": 0.85, "HalfCheetah-v5": 0.7, "Ant-v5": 0.65, "Humanoid-v5": 0.65}
REQUIRED: list[tuple[str, str, dict[str, float]]] = [
    (C50, "DDPG", RELATIVE),
    (P50, "DDPG", {env: 0.9 * ratio for env, ratio in RELATIVE.items()}),
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
    """Use one thread, fewer N and shorter rounds: about 3 minutes."""
    plot: bool = False
    """Draw the plot again from the stored numbers, and measure nothing."""
    envs: tuple[str, ...] = ENVS
    """Environments. Their sizes decide the cost of an update."""
    rounds: int = 0
    """Turns of each algorithm; 0 for 9, or 3 with --quick."""
    seconds: float = 0.0
    """Length of a turn in seconds; 0 for 1.0, or 0.35 with --quick."""
    algorithms: tuple[str, ...] = ()
    """Measure only algorithms whose name contains one of these strings; all by default."""
    threads: tuple[Literal["one", "all"], ...] = ("one", "all")
    """Measure with one thread, with all, or both. --quick uses one."""
    out: Path = ROOT / "benchmarks" / "results"
    """Directory for throughput.json and throughput.png."""


def main(options: Options) -> None:
    """Measure each environment in a process of its own, print tables, write JSON and plot."""
    if options.plot:
        write_plot(json.loads((options.out / "throughput.json").read_text())["one"], options.out / "throughput.png")
        return
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
            workers[env] = start("throughput", env, threads, samples=samples, only=options.algorithms, **work)
        for worker in workers.values():
            wait_until_ready(worker)
        for env, worker in workers.items():
            print(f"measuring {env}, threads: {threads} ...", file=sys.stderr)
            results.setdefault(threads, {})[env] = result(worker)
            print_throughput(env, threads, results[threads][env], REQUIRED if threads == "one" else [])
            write_json(results, options.out)  # at once: the rest takes long
    if not options.algorithms:
        names = ("DDPG", "SB3 DDPG") if options.quick else ("DDPG", C50, "SBX DDPG", "SB3 DDPG")
        results["memory"] = {name: result(start("memory", "Humanoid-v5", "one", name=name)) for name in names}
        print_memory(results["memory"])
        write_json(results, options.out)
        write_plot(results[settings[0]], options.out / "throughput.png")
    print(f"wrote {', '.join(file.name for file in options.out.glob('throughput.*'))} in {options.out} ", end="")
    print(f"after {time.time() - started:.0f} s")


def write_json(results: dict[str, Any], out: Path) -> None:
    """Store the rates of every round."""
    (out / "throughput.json").write_text(json.dumps(results, indent=1) + "\n")


def start(what: str, env: str, threads: str, **arguments: Any) -> Worker:
    """Start a worker in its own process, whose threads are set before anything is imported.

    Workers compile side by side and then wait for :func:`result`, so that one measures while the others sleep.

    :param what: ``throughput`` or ``memory``
    :param env: environment id
    :param threads: ``one`` or ``all``
    :param arguments: further arguments of the worker's function
    """
    from softdpg.runs.process import use_one_thread

    environ = dict(os.environ, PYTHONPATH=str(ROOT))
    if threads == "one":
        use_one_thread(environ)
    work = json.dumps({"what": what, "env": env, "threads": threads, **arguments})
    command = [sys.executable, "-m", "benchmarks.throughput_worker", work]
    return subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def wait_until_ready(worker: Worker) -> None:
    """Wait until the worker prints the line ``ready``; skip what the libraries print before it."""
    assert worker.stdout is not None
    while (line := worker.stdout.readline()) != "ready\n":
        if not line:
            raise subprocess.CalledProcessError(worker.wait(), worker.args)


def result(worker: Worker) -> dict[str, Any]:
    """Let the worker measure, and return its result."""
    output, _ = worker.communicate("go\n")
    if worker.returncode:
        raise subprocess.CalledProcessError(worker.returncode, worker.args)
    return json.loads(output.splitlines()[-1])


def ratio(rates: dict[str, list[float]], numerator: str, denominator: str) -> tuple[float, float, float]:
    """Return the median, smallest and largest ratio over the rounds, each taken within its round."""
    ratios = np.divide(rates[numerator], rates[denominator])
    return float(np.median(ratios)), float(ratios.min()), float(ratios.max())


def print_throughput(env: str, threads: str, result: dict[str, Any], requirements: list[Any]) -> None:
    rates, (d, m) = result["rates"], result["sizes"]
    title = (
        f"{env}: {d} observations, {m} action{'s' if m > 1 else ''}, {threads} thread{'s' if threads == 'all' else ''}"
    )
    table = Table("algorithm", "steps/s", "/ softdpg DDPG", "range", title=title)
    for name, values in rates.items():
        middle, low, high = ratio(rates, name, "DDPG")
        table.add_row(name, f"{np.median(values):.1f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}")
    CONSOLE.print(table)
    checks = Table("ratio", "required", "measured", "range", "", title=f"{env}: required ratios")
    for numerator, denominator, required in requirements:
        if env in required and numerator in rates and denominator in rates:
            middle, low, high = ratio(rates, numerator, denominator)
            verdict = "[green]reached" if middle >= required[env] else "[red]not reached"
            spread = f"{low:.2f} to {high:.2f}"
            checks.add_row(f"{numerator} / {denominator}", f"{required[env]:.2f}", f"{middle:.2f}", spread, verdict)
    if checks.row_count:
        CONSOLE.print(checks)


def print_memory(memory: dict[str, dict[str, float]]) -> None:
    table = Table("algorithm", "bytes per transition", "peak memory", title="Humanoid-v5, full buffer of 1,000,000")
    for name, values in memory.items():
        table.add_row(name, f"{values['bytes_per_transition']:.0f}", f"{values['peak_rss'] / 1e9:.2f} GB")
    CONSOLE.print(table)


def write_plot(results: dict[str, Any], path: Path) -> None:
    """Plot throughput against N, one panel per environment."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(results), 3.2), layout="constrained")
    axes = figure.subplots(1, len(results), squeeze=False)[0]
    for ax, (env, result) in zip(axes, results.items(), strict=True):
        rates = {name: float(np.median(values)) for name, values in result["rates"].items()}
        for estimator, style in (("centered", "o-"), ("paper", "s--")):
            prefix = f"SoftDDPG {estimator} N="
            points = sorted((int(name.removeprefix(prefix)), rate) for name, rate in rates.items() if prefix in name)
            ax.plot(*zip(*points, strict=True), style, label=f"Soft DDPG, {estimator}", markersize=5)
        ax.plot([50], [rates["Algorithm 1 plain N=50"]], "kx", label="Algorithm 1, plain")
        for name, style, colour in (("DDPG", "-", "0.2"), ("SBX DDPG", "-.", "0.4"), ("SB3 DDPG", ":", "0.4")):
            ax.axhline(rates[name], linestyle=style, color=colour, linewidth=1, label=name)
        drawn = [rate for name, rate in rates.items() if name != LIMIT]
        ax.set(xscale="log", ylim=(0, 1.06 * max(drawn)), xlabel="samples N", title=env)
        ax.set_xticks(SAMPLES, map(str, SAMPLES), minor=False)
        ax.minorticks_off()
    axes[0].set_ylabel("training steps per second")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize="small")
    figure.savefig(path, dpi=150)


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
