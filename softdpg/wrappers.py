"""Wrappers of environments: actuators that know only some values, and a Box in place of other action spaces."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from softdpg.algorithms.actions import flat_space, make_layout, to_env


class Quantize(gym.ActionWrapper):
    """Let each number of a Box action take only some values; the action space becomes ``MultiDiscrete``.

    :param env: environment with a bounded Box action space
    :param levels: number of equally spaced values from the lower to the upper bound, at least 2; or the values
        themselves, the same for all numbers
    """

    def __init__(self, env: gym.Env, levels: int | Sequence[float]) -> None:
        super().__init__(env)
        space = env.action_space
        if not isinstance(space, spaces.Box) or not space.is_bounded():
            raise ValueError(f"Quantize needs a bounded Box action space, got {space}")
        low, high = space.low.ravel(), space.high.ravel()
        if isinstance(levels, int):
            if levels < 2:
                raise ValueError(f"levels must be at least 2, got {levels}")
            self._values = np.linspace(low, high, levels, axis=1)
        else:
            values = np.asarray(levels, np.float64)
            if values.ndim != 1 or len(values) < 2 or values.min() < low.max() or values.max() > high.min():
                raise ValueError(f"levels must be at least two values within the bounds {space}, got {levels}")
            self._values = np.broadcast_to(values, (len(low), len(values)))
        self._box = space
        self.action_space = spaces.MultiDiscrete([self._values.shape[1]] * len(low))

    def action(self, action: Any) -> np.ndarray:
        """Return the values of the options taken, in the shape of the Box."""
        values = np.take_along_axis(self._values, np.asarray(action).reshape(-1, 1), axis=1)
        return values.reshape(self._box.shape).astype(self._box.dtype)


def quantized(base_id: str, levels: int, **kwargs: Any) -> gym.Env:
    """Make an environment whose motors know only some torques.

    :param base_id: Gymnasium id of an environment with Box actions
    :param levels: number of torques of each motor, equally spaced between its bounds
    :param kwargs: arguments of the environment's constructor
    """
    return Quantize(gym.make(base_id, **kwargs).unwrapped, levels)


class Relax(gym.ActionWrapper):
    """Let an algorithm for Box actions act in any action space; the action space becomes ``Box(-1, 1, (m,))``.

    A bit is on where its number is positive, and a choice is the largest of its numbers. The algorithm learns values
    of these numbers, not of the action that is executed. ``SoftTD3`` needs no such wrapper.

    :param env: environment with an action space that ``SoftTD3`` takes
    """

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self._layout = make_layout(env.action_space)
        self.action_space = flat_space(env.action_space)

    def action(self, action: Any) -> Any:
        """Return the action of the environment that the numbers stand for."""
        if self._layout is None:
            return action
        executed = self._layout.execute(np.asarray(action)[None])
        return to_env(self.env.action_space, executed)[0]
