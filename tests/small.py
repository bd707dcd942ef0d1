"""Models of one small size, so that tests share the compiled updates."""

import gymnasium as gym
import numpy as np

from softdpg import DDPG, TD3, SoftDDPG, SoftTD3

NET = dict(net_arch=[16, 16])
SMALL = dict(learning_starts=10, batch_size=16, buffer_size=200, seed=0, policy_kwargs=NET)
ONE_BY_ONE = dict(train_freq=1, gradient_steps=1, n_steps=1)  # as the other algorithms' defaults
FAMILY = {
    DDPG: SMALL,
    TD3: SMALL,
    SoftDDPG: dict(SMALL, n_samples=4),
    SoftTD3: dict(SMALL, n_samples=4, **ONE_BY_ONE),
}
OBSERVATIONS = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)


def make(algorithm, **kwargs):
    """A small model on Pendulum; ``kwargs`` replace its settings."""
    # Gymnasium's checker, interrupted in its first reset, breaks the environment that it wraps.
    env = gym.make("Pendulum-v1", disable_env_checker=True)
    return algorithm("MlpPolicy", env, **FAMILY[algorithm] | kwargs)


class Stretched(gym.Wrapper):
    """Give a single number for an observation of three at one step, or after a reset if the step is 0."""

    def __init__(self, at):
        super().__init__(gym.make("Pendulum-v1"))
        self.at, self.steps = at, 0

    def reset(self, **kwargs):
        observation, info = self.env.reset(**kwargs)
        return observation[:1] if self.at == 0 else observation, info

    def step(self, action):
        observation, *rest = self.env.step(action)
        self.steps += 1
        return (observation[:1] if self.steps == self.at else observation, *rest)
