"""Environments that go wrong at a given step, or never end, for tests of runs: ``strange_envs:Strange-v0``."""

import sys
import time

import gymnasium as gym
import numpy as np

FAULT: tuple[str, int] | None = None
"""What goes wrong, and at which step of an environment's life."""


def set_fault(kind: str, step: int) -> None:
    global FAULT
    FAULT = (kind, step)


class Strange(gym.Env):
    """A point that drifts; its position also depends on random numbers drawn at every step."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, episode: int | None = None, remembers: bool = False) -> None:
        self.episode, self.remembers = episode, remembers
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = self.np_random.normal(size=2).astype(np.float32)
        if self.remembers:
            self.position += self.steps
        self.left = self.episode
        return self.position.copy(), {}

    def step(self, action):
        self.steps += 1
        kind, step = FAULT or ("", 0)
        fault = kind if self.steps == step else ""
        if fault == "raise":
            raise RuntimeError("the motor\nis on fire")
        if fault == "exit":
            sys.exit(0)
        if fault == "hang":
            time.sleep(1000)
        noise = 0.1 * self.np_random.normal(size=2)
        self.position = (0.9 * self.position + [0.1 * float(action[0]), 0] + noise).astype(np.float32)
        reward = -float(np.square(self.position).sum())
        observation = self.position.copy()
        if fault == "observation":
            observation[0] = np.inf
        if fault == "shape":
            observation = observation[:1]
        if self.left is not None:
            self.left -= 1
        return observation, np.nan if fault == "reward" else reward, self.left == 0, False, {}


gym.register("Strange-v0", Strange, kwargs={"episode": 37})
gym.register("Endless-v0", Strange, max_episode_steps=None)
gym.register("Timed-v0", Strange, max_episode_steps=70)
gym.register("Remembering-v0", Strange, kwargs={"episode": 37, "remembers": True})


class WithoutReward(Strange):
    """Pays NaN at every step."""

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, float("nan"), terminated, truncated, info


gym.register("WithoutReward-v0", WithoutReward, kwargs={"episode": 37})
