"""Tables and plot of the throughput benchmark."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.throughput import LIMIT, SAMPLES

CONSOLE = Console()


def ratio(rates: dict[str, list[float]], numerator: str, denominator: str) -> tuple[float, float, float]:
    """Median, least and greatest ratio over the rounds, each taken within its round."""
    ratios = np.divide(rates[numerator], rates[denominator])
    return float(np.median(ratios)), float(ratios.min()), float(ratios.max())


def print_throughput(env: str, threads: str, result: dict[str, Any], bars: list[Any]) -> None:
    rates, (d, m) = result["rates"], result["sizes"]
    title = (
        f"{env}: {d} observations, {m} action{'s' if m > 1 else ''}, {threads} thread{'s' if threads == 'all' else ''}"
    )
    table = Table("contender", "steps/s", "of our DDPG", "range", title=title)
    for name, values in rates.items():
        middle, low, high = ratio(rates, name, "DDPG")
        table.add_row(name, f"{np.median(values):.1f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}")
    CONSOLE.print(table)
    checks = Table("ratio", "least", "measured", "range", "", title=f"{env}: what is asked")
    for numerator, denominator, least in bars:
        if env in least and numerator in rates and denominator in rates:
            middle, low, high = ratio(rates, numerator, denominator)
            verdict = "[green]reached" if middle >= least[env] else "[red]not reached"
            spread = f"{low:.2f} to {high:.2f}"
            checks.add_row(f"{numerator} / {denominator}", f"{least[env]:.2f}", f"{middle:.2f}", spread, verdict)
    if checks.row_count:
        CONSOLE.print(checks)


def print_memory(memory: dict[str, dict[str, float]]) -> None:
    table = Table("contender", "bytes a transition", "peak memory", title="Humanoid-v5, full buffer of 1,000,000")
    for name, values in memory.items():
        table.add_row(name, f"{values['bytes_per_transition']:.0f}", f"{values['peak_rss'] / 1e9:.2f} GB")
    CONSOLE.print(table)


def write_plot(results: dict[str, Any], path: Path) -> None:
    """Throughput against N, a panel for each environment."""
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


if __name__ == "__main__":  # draw the plot again from the stored numbers
    results = Path(__file__).parent / "results"
    write_plot(json.loads((results / "throughput.json").read_text())["one"], results / "throughput.png")
