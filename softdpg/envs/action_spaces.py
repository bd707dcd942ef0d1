"""Tasks with discrete, on/off and mixed actions: the task set ``actions`` of the benchmark.

``register_envs`` registers those that are not in Gymnasium:

| id | environment |
| --- | --- |
| ``softdpg/HalfCheetah2Levels-v0`` and ``3Levels`` | HalfCheetah-v5 with two and three torques per joint |
| ``softdpg/Hopper2Levels-v0`` and ``3Levels`` | Hopper-v5 in the same way |
| ``softdpg/Platform-v0`` | Platform of ``hybrid-platform``, observed without its step counter |
"""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from softdpg.errors import UserError

# Target scores by id, set before the first run of the benchmark: where the task counts as solved (CartPole, Acrobot,
# MountainCar, LunarLander), the target with continuous actions (HalfCheetah, Hopper: the better of the paper's two mean
# scores), or nine tenths of the ceiling (Platform 1; Thrusters 46, rounded down to 40).
ACTION_TARGETS: dict[str, float] = {
    "CartPole-v1": 475.0,
    "Acrobot-v1": -100.0,
    "MountainCar-v0": -110.0,
    "LunarLander-v3": 200.0,
    "softdpg/Platform-v0": 0.9,
    "softdpg/HalfCheetah2Levels-v0": 4275.58,
    "softdpg/HalfCheetah3Levels-v0": 4275.58,
    "softdpg/Hopper2Levels-v0": 1243.69,
    "softdpg/Hopper3Levels-v0": 1243.69,
    "examples.thrusters:Thrusters-v0": 40.0,
}
_STEPS = {"HalfCheetah": 1_000, "Hopper": 1_000}
# Of the environments that register_envs registers, by id.
SUMMARIES: dict[str, str] = {
    f"softdpg/{name}{levels}Levels-v0": f"{name}-v5 with {levels} torques for each joint"
    for name in _STEPS
    for levels in (2, 3)
} | {"softdpg/Platform-v0": "run, hop or leap over gaps and enemies; each move has a parameter"}


def register_envs() -> None:
    """Register the tasks with Gymnasium."""
    for name, steps in _STEPS.items():
        for levels in (2, 3):
            gym.register(
                id=f"softdpg/{name}{levels}Levels-v0",
                entry_point="softdpg.wrappers:quantized",
                kwargs={"base_id": f"{name}-v5", "levels": levels},
                max_episode_steps=steps,
            )
    gym.register(id="softdpg/Platform-v0", entry_point="softdpg.envs.action_spaces:Platform", max_episode_steps=200)


class Platform(gym.ObservationWrapper):
    """Platform (Masson, Ranchod and Konidaris, 2016): run, hop or leap over gaps and enemies, each with a parameter.

    **Observation** ``Box(9,)``: position and speed of player and enemy, and sizes of platforms and gap, without the
    number of simulation steps that ``hybrid-platform`` adds.

    **Action** ``Tuple(Discrete(3), Tuple(Box(1), Box(1), Box(1)))``: the move, and one parameter for each.

    **Reward**: the distance covered, as a fraction of the whole; at most 1 in an episode.
    """

    def __init__(self, **kwargs: Any) -> None:
        try:
            from gym_platform.envs import PlatformEnv
        except ImportError as error:
            raise UserError(f"Platform needs two packages: pip install hybrid-platform numba ({error})") from None
        super().__init__(PlatformEnv(**kwargs))
        state: Any = self.env.observation_space[0]  # type: ignore[index]
        self.observation_space = spaces.Box(-np.inf, np.inf, state.shape, np.float32)

    def observation(self, observation: Any) -> np.ndarray:
        """Return the state without the step counter."""
        return np.asarray(observation[0], np.float32)
