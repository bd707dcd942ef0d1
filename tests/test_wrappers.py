"""Quantised actuators."""

import gymnasium as gym
import numpy as np
import pytest

from softdpg.wrappers import Quantize


def test_levels_are_equally_spaced_or_given():
    env = Quantize(gym.make("Pendulum-v1"), 3)
    assert env.action_space == gym.spaces.MultiDiscrete([3])
    assert [env.action(np.array([i])).tolist() for i in range(3)] == [[-2], [0], [2]]
    env = Quantize(gym.make("Pendulum-v1"), [-1.5, 0.5])
    assert [env.action(np.array([i])).tolist() for i in range(2)] == [[-1.5], [0.5]]
    env.reset(seed=0)
    env.step(env.action_space.sample())


@pytest.mark.parametrize(
    ("levels", "message"),
    [(1, "levels must be at least 2, got 1"), ([0, 3], "levels must be at least two values within the bounds")],
)
def test_bad_levels_are_named(levels, message):
    with pytest.raises(ValueError, match=message):
        Quantize(gym.make("Pendulum-v1"), levels)
