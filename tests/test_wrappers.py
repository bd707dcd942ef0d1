"""Quantised actuators, and a Box in place of other action spaces."""

import gymnasium as gym
import numpy as np
import pytest
from action_spaces import MIXED, SPACES, Acting

from softdpg.algorithms.actions import from_env, make_layout
from softdpg.wrappers import Quantize, Relax


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


@pytest.mark.parametrize("name", SPACES)
def test_a_relaxed_action_is_what_soft_td3_would_execute(name):
    env = Relax(Acting(SPACES[name]))
    env.reset(seed=0)
    layout = make_layout(SPACES[name])
    assert env.action_space == gym.spaces.Box(-1, 1, (layout.size,), np.float32)
    u = np.random.default_rng(0).uniform(-1, 1, layout.size).astype(np.float32)
    action = env.action(u)
    assert SPACES[name].contains(action)
    np.testing.assert_allclose(from_env(SPACES[name], [action])[0], layout.execute(u), atol=1e-6)
    env.step(env.action_space.sample())


def test_a_relaxed_action_by_hand():
    action = Relax(Acting(MIXED)).action(np.array([0.1, 0.3, -0.2, 0.01, -0.5, 1.0, 0.0], np.float32))
    assert action["go"] == 2
    assert action["on"].tolist() == [1, 0]
    np.testing.assert_allclose(action["power"], [1, 0.6])


def test_a_box_stays_as_it_is():
    env = Relax(gym.make("Pendulum-v1"))
    assert env.action_space == gym.make("Pendulum-v1").action_space
    assert env.action(np.array([1.5])) == 1.5
