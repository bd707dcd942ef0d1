"""The environments as a table: for the command ``softdpg envs`` and for the documentation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator
from rich.console import Console
from rich.table import Table

from softdpg.envs import DISCRETE_ENVS
from softdpg.envs.action_spaces import SUMMARIES
from softdpg.envs.discrete_reward import DiscreteReward
from softdpg.envs.toy import Toy

COLUMNS = ("Id", "Base", "Steps", "Obs", "Act", "Reward rule", "Ceiling")
SCORE_COLUMNS = ("Environment", "DDPG", "Soft DDPG", "DDPG, continuous", "Soft DDPG, continuous")
Scores: TypeAlias = Mapping[str, Iterable[Sequence[float]]]


class EnvRow(NamedTuple):
    """One environment as strings, in the order of ``COLUMNS``."""

    id: str
    base: str
    steps: str
    observation_size: str
    action_size: str
    rule: str
    ceiling: str


def env_rows() -> list[EnvRow]:
    """Return one row for each environment, with the rules' default arguments."""
    rows = []
    for name, env in DISCRETE_ENVS.items():
        spec = gym.spec(f"softdpg/{name}Discrete-v0")
        env_class: type[DiscreteReward] = load_env_creator(str(spec.entry_point))  # type: ignore[assignment]
        assert spec.max_episode_steps is not None
        ceiling = env_class.rule_class().ceiling(spec.max_episode_steps)
        text = "none" if ceiling is None else f"{ceiling:,.0f}"
        if env_class.ceiling_note:
            text += f" ({env_class.ceiling_note})"
        sizes = str(env.observation_size), str(env.action_size)
        rows.append(EnvRow(spec.id, env.base_id, f"{spec.max_episode_steps:,}", *sizes, env_class.summary, text))
    toy = Toy()
    rows.append(EnvRow("softdpg/Toy-v0", "none", str(toy.length), "1", "1", Toy.summary, f"{toy.ceiling():,.0f}"))
    return rows


def score_rows(scores: Scores) -> list[tuple[str, ...]]:
    """Return the paper's scores (mean and standard deviation; discrete, then continuous rewards) as strings.

    Environments that the paper does not have are left out.
    """
    return [
        (name, *(f"{mean:,.2f} ± {std:,.2f}" for mean, std in scores[name])) for name in DISCRETE_ENVS if name in scores
    ]


def print_listing(scores: Scores) -> None:
    """Print a block of lines for each environment; it reads well in a terminal of any width."""
    console = Console(highlight=False)
    paper = {name: cells for name, *cells in score_rows(scores)}
    for name, row in zip((*DISCRETE_ENVS, "Toy"), env_rows(), strict=True):
        lines = Table.grid(padding=(0, 2))
        lines.add_row(
            "  base", f"{row.base}; {row.steps} steps, observation {row.observation_size}, action {row.action_size}"
        )
        lines.add_row("  reward", row.rule)
        lines.add_row("  ceiling", row.ceiling)
        if name in paper:
            discrete, continuous = paper[name][:2], paper[name][2:]
            lines.add_row("  paper", f"discrete: DDPG {discrete[0]}, Soft DDPG {discrete[1]}")
            lines.add_row("", f"continuous: DDPG {continuous[0]}, Soft DDPG {continuous[1]}")
        console.print(row.id, style="bold")
        console.print(lines)
    for env_id, summary in SUMMARIES.items():
        console.print(env_id, style="bold")
        console.print(f"  {summary}")


def markdown(scores: Scores) -> str:
    """Return both tables in Markdown, as they stand in ``docs/environments.md``."""
    tables = ((COLUMNS, env_rows()), (SCORE_COLUMNS, score_rows(scores)))
    return "\n".join(_markdown_table(columns, rows) for columns, rows in tables)


def _markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [columns, ["---"] * len(columns), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)
