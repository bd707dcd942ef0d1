"""Observations as the networks see them, and the spaces and shapes that are refused."""

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from small import Stretched

from softdpg.replay.spaces import CheckedShape, as_batch, flat_observations

IMAGE = spaces.Box(0, 255, (3, 8, 8), np.uint8)
MIXED = spaces.Dict(
    image=IMAGE,
    vector=spaces.Box(-1, 1, (2,), np.float64),
    matrix=spaces.Box(-1, 1, (2, 3), np.float32),
    which=spaces.Discrete(4),
    bits=spaces.MultiBinary(3),
    dice=spaces.MultiDiscrete([2, 3]),
)


def test_the_networks_see_one_hot_joined_parts_and_scaled_images():
    observation = dict(
        image=np.full((1, 3, 8, 8), 51, np.uint8),
        vector=np.array([[0.5, -0.5]]),
        matrix=np.arange(6.0).reshape(1, 2, 3),
        which=np.array([2]),
        bits=np.array([[1, 0, 1]], np.int8),
        dice=np.array([[1, 2]]),
    )
    flat = flat_observations(observation, MIXED)
    parts = dict(
        image=[0.2] * 192,
        vector=[0.5, -0.5],
        matrix=[0, 1, 2, 3, 4, 5],
        which=[0, 0, 1, 0],
        bits=[1, 0, 1],
        dice=[0, 1, 0, 0, 1],
    )
    expected = np.concatenate([parts[name] for name in MIXED.spaces])
    assert flat.dtype == np.float32
    np.testing.assert_allclose(flat, expected[None], rtol=1e-6)
    raw = flat_observations(observation["image"], IMAGE, normalize_images=False)
    np.testing.assert_array_equal(raw, np.full((1, 192), 51))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-3, 3)), min_size=1, max_size=4), st.integers(0, 2**31))
def test_one_hot_is_gymnasiums(categories, seed):
    sizes, start = np.array(categories).T
    space = spaces.MultiDiscrete(sizes, start=start, seed=seed)
    values = np.stack([space.sample() for _ in range(7)])
    expected = [spaces.flatten(space, value) for value in values]
    np.testing.assert_array_equal(flat_observations(values, space), expected)


@pytest.mark.parametrize("value", [-1, 5])
def test_discrete_observation_outside_its_space(value):
    with pytest.raises(ValueError, match=r"outside its space: \[5\] values from 0 on"):
        flat_observations(np.array([value]), spaces.Discrete(5))


def test_dicts_that_do_not_match_their_space_are_refused():
    one = MIXED.sample()
    many = {name: np.stack([part, part]) for name, part in one.items()}
    assert as_batch(one, MIXED)[1] is False
    assert as_batch(many, MIXED)[1] is True
    with pytest.raises(ValueError, match="shape"):
        as_batch(one | {"matrix": np.zeros(6)}, MIXED)
    with pytest.raises(ValueError, match="either every part of a Dict observation must be a batch"):
        as_batch(one | {"vector": many["vector"]}, MIXED)
    with pytest.raises(ValueError, match="must be a dict with the parts"):
        as_batch({"vector": one["vector"]}, MIXED)
    with pytest.raises(ValueError, match="must be a dict with the parts"):
        as_batch(one["vector"], MIXED)


def test_an_observation_with_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"the observation must have shape \(3,\), got \(1,\)"):
        CheckedShape(Stretched(0)).reset()
    env = CheckedShape(Stretched(2))
    env.reset(seed=0)
    env.step(env.action_space.sample())
    with pytest.raises(ValueError, match=r"the observation must have shape \(3,\), got \(1,\)"):
        env.step(env.action_space.sample())
