"""The environments of the package, registered with Gymnasium under ``softdpg/``: the paper's, the toy, and others."""

from typing import NamedTuple

import gymnasium as gym

from softdpg.envs import action_spaces


class DiscreteEnv(NamedTuple):
    """One environment of the paper: ``softdpg/<name>Discrete-v0`` is the class ``<name>Discrete``.

    Registering and listing import no simulator: the class is found when one is made, and the sizes are written down.
    """

    base_id: str
    module: str  # of softdpg.envs
    observation_size: int
    action_size: int


# By the paper's name in one word, in the order of its tables.
DISCRETE_ENVS = {
    "Ant": DiscreteEnv("Ant-v5", "mujoco", 105, 8),
    "HalfCheetah": DiscreteEnv("HalfCheetah-v5", "mujoco", 17, 6),
    "Hopper": DiscreteEnv("Hopper-v5", "mujoco", 11, 3),
    "Walker2d": DiscreteEnv("Walker2d-v5", "mujoco", 17, 6),
    "Humanoid": DiscreteEnv("Humanoid-v5", "mujoco", 348, 17),
    "InvertedPendulum": DiscreteEnv("InvertedPendulum-v5", "mujoco", 4, 1),
    "InvertedDoublePendulum": DiscreteEnv("InvertedDoublePendulum-v5", "mujoco", 9, 1),
    "BipedalWalker": DiscreteEnv("BipedalWalker-v3", "box2d", 24, 4),
    "LunarLander": DiscreteEnv("LunarLanderContinuous-v3", "box2d", 8, 2),
    "Pendulum": DiscreteEnv("Pendulum-v1", "classic_control", 3, 1),
    "MountainCar": DiscreteEnv("MountainCarContinuous-v0", "classic_control", 2, 1),
}


def register_envs() -> None:
    """Register every environment of the package with Gymnasium."""
    for name, env in DISCRETE_ENVS.items():
        gym.register(
            id=f"softdpg/{name}Discrete-v0",
            entry_point=f"softdpg.envs.{env.module}:{name}Discrete",
            max_episode_steps=gym.spec(env.base_id).max_episode_steps,
            order_enforce=False,  # DiscreteReward is an OrderEnforcing
        )
    gym.register(id="softdpg/Toy-v0", entry_point="softdpg.envs.toy:Toy")
    action_spaces.register_envs()
