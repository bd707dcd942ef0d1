"""The shape of observations as the environment gives them."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


def check_shape(observation: Any, space: spaces.Space) -> None:
    """``ValueError`` unless an observation has its space's shape; NumPy would stretch some others to fit."""
    if isinstance(space, spaces.Dict):
        for name, part in space.items():
            check_shape(observation[name], part)
    elif np.shape(observation) != space.shape:
        raise ValueError(f"an observation has shape {np.shape(observation)}, the observation space {space.shape}")


class CheckedShape(gym.Wrapper):
    """Checks the shape of every observation before SB3 copies it into an array, which would broadcast it."""

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """As the environment does, which may know no options."""
        observation, info = self.env.reset(**kwargs)
        check_shape(observation, self.observation_space)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """As the environment does."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        check_shape(observation, self.observation_space)
        return observation, reward, terminated, truncated, info
