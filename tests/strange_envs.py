"""Environments that go wrong at a given step, or never end, for tests of runs: ``strange_envs:Strange-v0``.

A test chooses the step at which a run is killed, blocked or disturbed, so that it never depends on timing.
"""

import asyncio
import contextlib
import functools
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

FAULT: tuple[str | Callable[[], None], int] | None = None
"""What goes wrong, or what is called, and at which step, or reset, of an environment's life."""


class UnspeakableError(Exception):
    """Has no message."""

    def __str__(self):
        raise RuntimeError("no message")


def _raise(error: BaseException) -> Any:
    raise error


def _recurse(depth: int) -> int:
    return _recurse(depth + 1) + 1


STEPS: dict[str, Callable[..., Any]] = {
    "raise": lambda *_: _raise(RuntimeError("the motor\nis on fire")),
    "exit": lambda *_: sys.exit(0),
    "recursion": lambda *_: _recurse(0),
    "no memory": lambda *_: _raise(MemoryError()),
    "stop iteration": lambda *_: _raise(StopIteration()),
    "cancelled": lambda *_: _raise(asyncio.CancelledError()),
    "generator exit": lambda *_: _raise(GeneratorExit()),
    "long message": lambda *_: _raise(RuntimeError("x" * 2**21)),
    "lone surrogate": lambda *_: _raise(RuntimeError("\ud800")),
    "unspeakable": lambda *_: _raise(UnspeakableError()),
    "reward": lambda o, r, t, info: (o, np.nan, t, False, info),
    "infinite reward": lambda o, r, t, info: (o, -np.inf, t, False, info),
    "no reward": lambda o, r, t, info: (o, None, t, False, info),
    "text reward": lambda o, r, t, info: (o, "high", t, False, info),
    "two rewards": lambda o, r, t, info: (o, np.ones(2), t, False, info),
    "complex reward": lambda o, r, t, info: (o, 1j, t, False, info),
    "observation": lambda o, r, t, info: (np.array([np.inf, 0], np.float32), r, t, False, info),
    "shape": lambda o, r, t, info: (o[:1], r, t, False, info),
    "no observation": lambda o, r, t, info: (None, r, t, False, info),
    "text observation": lambda o, r, t, info: (np.array(["a", "b"]), r, t, False, info),
    "other numbers": lambda o, r, t, info: (o.astype(np.float64), np.float32(r), np.bool_(t), np.bool_(False), info),
    "a list": lambda o, r, t, info: (o.tolist(), r, t, False, info),
    "no info": lambda o, r, t, info: (o, r, t, False, None),
    "odd info": lambda o, r, t, info: (
        *(o, r, t, False),
        {"episode": 5, "terminal_observation": None, "TimeLimit.truncated": "x", "is_success": "x"},
    ),
    "four values": lambda o, r, t, info: (o, r, t, info),
    "nothing": lambda *_: None,
    "odd end": lambda o, r, t, info: (o, r, "no", False, info),
}
"""What a step returns, or raises, instead of its result ``(observation, reward, terminated, info)``."""

RESETS: dict[str, Callable[..., Any]] = {
    "reset raises": lambda *_: _raise(RuntimeError("no start")),
    "reset without info": lambda o: o,
    "reset to nothing": lambda o: None,
    "reset to NaN": lambda o: (o * np.nan, {}),
    "reset to another shape": lambda o: (o[:1], {}),
}
"""What a reset returns, or raises, instead of the observation and the info."""


def set_fault(kind: str | Callable[[], None], step: int) -> None:
    global FAULT
    FAULT = (kind, step)


def kill() -> None:
    """End this process at once, as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def fill(place: Path) -> None:
    """Fill the file system that holds a directory."""
    with (place / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:  # until there is no space left
            filler.write(bytes(4096))


def raise_signals(*numbers: int) -> None:
    """Send signals to this process; each one has been handled when the next is sent."""
    for number in numbers:
        signal.raise_signal(number)


def note_memory(file: Path, later: int) -> None:
    """Append the resident size of this process, in bytes, to a file, and do so again at a later step."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    with file.open("a") as lines:
        print(pages * os.sysconf("SC_PAGE_SIZE"), file=lines)
    set_fault(functools.partial(note_memory, file, 0), later)


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
        self.steps = self.resets = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = self.np_random.normal(size=2).astype(np.float32)
        if self.remembers:
            self.position += self.steps
        self.left = self.episode
        self.resets += 1
        kind, number = FAULT or ("", 0)
        if kind in RESETS and self.resets == number:
            return RESETS[kind](self.position.copy())
        return self.position.copy(), {}

    def step(self, action):
        self.steps += 1
        kind, step = FAULT or ("", 0)
        fault = kind if self.steps == step else ""
        if callable(fault):
            fault()
        noise = 0.1 * self.np_random.normal(size=2)
        self.position = (0.9 * self.position + [0.1 * float(action[0]), 0] + noise).astype(np.float32)
        reward = -float(np.square(self.position).sum())
        if self.left is not None:
            self.left -= 1
        result = self.position.copy(), reward, self.left == 0, {}
        return STEPS[fault](*result) if fault in STEPS else (*result[:3], False, result[3])


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


class Meddling(Strange):
    """Changes whatever it can reach: the action, the arrays that it has returned, the generators, the directory."""

    def __init__(self, where: str = ".") -> None:
        super().__init__(37)
        self.where = where

    def reset(self, *, seed=None, options=None):
        self.returned, info = super().reset(seed=seed)
        return self.returned, info

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self.returned[:] = observation  # the same array at every step
        action[:] = np.nan
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        os.chdir(self.where)
        return self.returned, reward, terminated, truncated, info

    def close(self):
        raise RuntimeError("stuck")


class Swapping(Strange):
    """Has other spaces after its first step."""

    def step(self, action):
        result = super().step(action)
        self.observation_space, self.action_space = gym.spaces.Discrete(2), gym.spaces.Text(3)
        return result


class Momentary(Strange):
    """Every episode ends at its first step."""

    def __init__(self) -> None:
        super().__init__(1)


class Spaceless(gym.Env):
    """Has no spaces."""


gym.register("Meddling-v0", Meddling)
gym.register("Swapping-v0", Swapping, kwargs={"episode": 37})
gym.register("Momentary-v0", Momentary)
gym.register("Spaceless-v0", Spaceless)
gym.register("Nothing-v0", lambda: None)
gym.register("Unmade-v0", lambda: sys.exit("no licence"))
gym.register("Unspeakable-v0", lambda: _raise(UnspeakableError()))


class StrangeMixed(Strange):
    """The same with mixed actions."""

    action_space = gym.spaces.Dict(
        on=gym.spaces.MultiBinary(2), power=gym.spaces.Box(-1, 1, (1,), np.float32), way=gym.spaces.Discrete(3)
    )

    def step(self, action):
        return super().step(action["on"].sum() * action["power"] + float(action["way"]) - 1)


gym.register("StrangeMixed-v0", StrangeMixed, kwargs={"episode": 37})
