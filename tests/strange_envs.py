"""Environments that go wrong at a given step, or never end, for tests of runs: ``strange_envs:Strange-v0``.

A test chooses the step at which a run is killed, blocked or disturbed, so that it never depends on timing.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np

FAULT: tuple[str | Callable[[], None], int] | None = None
"""What goes wrong, or what is called, and at which step of an environment's life."""


def set_fault(kind: str | Callable[[], None], step: int) -> None:
    global FAULT
    FAULT = (kind, step)


def kill() -> None:
    """End this process at once, as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def block(place: Path) -> None:
    """Say that the run waits here, and wait until the test releases it."""
    (place / "waiting").touch()
    while not (place / "released").exists():
        time.sleep(0.01)


class Strange(gym.Env):
    """A point that drifts; its position also depends on random numbers sampled at every step."""

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
        if callable(fault):
            fault()
        if fault == "raise":
            raise RuntimeError("the motor\nis on fire")
        if fault == "exit":
            sys.exit(0)
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


class StrangeGoal(Strange):
    """The same with goals, for hindsight replay: -1 a step away from a goal that changes with the episode."""

    observation_space = gym.spaces.Dict(
        {
            name: gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
            for name in ("observation", "achieved_goal", "desired_goal")
        }
    )

    def reset(self, *, seed=None, options=None):
        position, info = super().reset(seed=seed)
        self.goal = self.np_random.normal(size=2).astype(np.float32)
        return self._look(position), info

    def step(self, action):
        position, _, terminated, truncated, info = super().step(action)
        reward = float(self.compute_reward(position, self.goal, info))
        return self._look(position), reward, terminated, truncated, info

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.5).astype(np.float32)

    def _look(self, position):
        return {"observation": position, "achieved_goal": position.copy(), "desired_goal": self.goal.copy()}


gym.register("StrangeGoal-v0", StrangeGoal, kwargs={"episode": 37})


class WithoutReward(Strange):
    """Pays NaN at every step."""

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, float("nan"), terminated, truncated, info


gym.register("WithoutReward-v0", WithoutReward, kwargs={"episode": 37})


class StrangeMixed(Strange):
    """The same with mixed actions."""

    action_space = gym.spaces.Dict(
        on=gym.spaces.MultiBinary(2), power=gym.spaces.Box(-1, 1, (1,), np.float32), way=gym.spaces.Discrete(3)
    )

    def step(self, action):
        return super().step(action["on"].sum() * action["power"] + float(action["way"]) - 1)


gym.register("StrangeMixed-v0", StrangeMixed, kwargs={"episode": 37})
