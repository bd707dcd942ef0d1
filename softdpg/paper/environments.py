"""The rows of the paper's tables: each environment is one entry here and nowhere else."""

from dataclasses import dataclass
from typing import Literal

Rewards = Literal["discrete", "continuous"]


@dataclass(frozen=True)
class Environment:
    """One row of Table 1 or Table 2: an environment with its discrete and its continuous reward."""

    name: str
    label: str
    continuous: str
    table: Literal[1, 2]

    @property
    def discrete(self) -> str:
        """Gymnasium id of the discrete-reward variant."""
        return f"softdpg/{self.name}Discrete-v0"

    def env_id(self, rewards: Rewards) -> str:
        """Gymnasium id of the variant with the given rewards."""
        return self.discrete if rewards == "discrete" else self.continuous


# In the order of the tables.
ENVIRONMENTS: dict[str, Environment] = {
    environment.name: environment
    for environment in (
        Environment("Ant", "Ant", "Ant-v5", 1),
        Environment("HalfCheetah", "HalfCheetah", "HalfCheetah-v5", 1),
        Environment("Hopper", "Hopper", "Hopper-v5", 1),
        Environment("Walker2d", "Walker2d", "Walker2d-v5", 1),
        Environment("Humanoid", "Humanoid", "Humanoid-v5", 1),
        Environment("InvertedPendulum", "Inverted Pendulum", "InvertedPendulum-v5", 1),
        Environment("InvertedDoublePendulum", "Inverted Double Pendulum", "InvertedDoublePendulum-v5", 1),
        Environment("BipedalWalker", "BipedalWalker", "BipedalWalker-v3", 2),
        Environment("LunarLander", "LunarLander", "LunarLanderContinuous-v3", 2),
        Environment("Pendulum", "Pendulum", "Pendulum-v1", 2),
        Environment("MountainCar", "MountainCar", "MountainCarContinuous-v0", 2),
    )
}
ENV_IDS = frozenset(env for e in ENVIRONMENTS.values() for env in (e.discrete, e.continuous))
"""Gymnasium ids of all that the paper ran, with either reward."""

# Rows of panels in the paper's figures; each is drawn for one kind of reward. Figure 2 shows the double pendulum
# before the single one, unlike Table 1.
FIGURE_ROWS: dict[int, tuple[tuple[str, ...], ...]] = {
    1: (("Ant", "HalfCheetah", "Hopper", "Walker2d"), ("Humanoid", "InvertedDoublePendulum", "InvertedPendulum")),
    2: (("BipedalWalker", "LunarLander", "Pendulum", "MountainCar"),),
}


def expand_env(name: str) -> tuple[str, ...]:
    """Gymnasium ids meant by a name: ``Ant`` is both variants, ``AntDiscrete`` one, any other name itself."""
    if name in ENVIRONMENTS:
        return ENVIRONMENTS[name].discrete, ENVIRONMENTS[name].continuous
    for environment in ENVIRONMENTS.values():
        if name in (f"{environment.name}Discrete", f"{environment.name}Discrete-v0"):
            return (environment.discrete,)
    return (name,)
