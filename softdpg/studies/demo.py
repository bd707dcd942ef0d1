"""``softdpg demo``: a small race, ours beside a peer, on the column that shows the difference best; in minutes."""

from pathlib import Path

from rich.console import Console

from softdpg import paper
from softdpg.algorithms import registry
from softdpg.studies.race import race

COLUMN = "MountainCarDiscrete"
CONTENDERS = paper.CONTENDERS[:2]


def demo(out: Path, budget: int, seed: int) -> int:
    """Race, print the table and write the pictures. Finished runs in ``out`` are not done again."""
    console = Console(highlight=False)
    ours, peer = (registry.find(name).label for name in CONTENDERS)
    console.print(
        f"A car in a valley must first move away from the goal, which pays best. {ours} and {peer} race to it, "
        f"{budget:,} steps at most, one seed. The column is chosen to show the difference; all columns are in "
        "docs/results/race.",
        soft_wrap=True,
    )
    return race([COLUMN], out, algos=CONTENDERS, seeds=1, first_seed=seed, budget=budget)
