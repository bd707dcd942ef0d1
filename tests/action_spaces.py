"""Action spaces of every kind, and an environment for them."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from softdpg.algorithms.actions import from_env

BOX = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 5.0], np.float32))
MIXED = spaces.Dict(
    go=spaces.Discrete(3, start=1), on=spaces.MultiBinary(2), power=spaces.Box(0.2, 1, (2,), np.float32)
)
SPACES = {
    "discrete": spaces.Discrete(3),
    "two": spaces.Discrete(2),
    "multi_discrete": spaces.MultiDiscrete([3, 2, 4]),
    "multi_binary": spaces.MultiBinary(3),
    "tuple": spaces.Tuple([spaces.Discrete(4), BOX]),
    "dict": MIXED,
    "nested": spaces.Tuple([spaces.Dict(a=spaces.Tuple([spaces.Discrete(2)])), BOX, spaces.MultiDiscrete([2, 5])]),
}


class Acting(gym.Env):
    """Three random numbers to observe; checks that every action is one of the space."""

    observation_space = spaces.Box(-1, 1, (3,), np.float32)

    def __init__(self, space):
        self.action_space, self.left = space, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 7
        return self.np_random.uniform(-1, 1, 3).astype(np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.left -= 1
        reward = float(from_env(self.action_space, [action]).sum())
        return self.np_random.uniform(-1, 1, 3).astype(np.float32), reward, False, self.left == 0, {}
