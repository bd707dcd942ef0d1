"""Observation spaces other than a flat Box: what the networks see of them, and the shapes that are refused."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env

from softdpg import DDPG, TD3, SoftDDPG, SoftTD3
from softdpg.algorithms.buffers import RecordReplayBuffer
from softdpg.algorithms.spaces import as_batch, flat_observations

ACTIONS = spaces.Box(-1, 1, (2,), np.float32)
IMAGE = spaces.Box(0, 255, (3, 8, 8), np.uint8)
MIXED = spaces.Dict(
    image=IMAGE,
    vector=spaces.Box(-1, 1, (2,), np.float64),
    matrix=spaces.Box(-1, 1, (2, 3), np.float32),
    which=spaces.Discrete(4),
    bits=spaces.MultiBinary(3),
    dice=spaces.MultiDiscrete([2, 3]),
)
SMALL = dict(learning_starts=10, batch_size=8, buffer_size=100, seed=0, policy_kwargs=dict(net_arch=[8]))
SMALL |= dict(train_freq=1, gradient_steps=1, n_steps=1)


class Sampled(gym.Env):
    """Observations drawn from the space; an episode has five steps."""

    action_space = ACTIONS

    def __init__(self, observation_space):
        self.observation_space = observation_space
        observation_space.seed(0)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        return self.observation_space.sample(), 1.0, False, self.steps == 5, {}


@pytest.mark.parametrize(
    ("space", "n_envs"),
    [
        (spaces.Discrete(6), 1),
        (spaces.Discrete(6, start=-2), 2),
        (spaces.MultiDiscrete([4, 2]), 2),
        (spaces.MultiBinary((3, 2)), 1),
        (IMAGE, 1),
        (MIXED, 2),
        (spaces.Dict(position=spaces.Box(-1, 1, (2,)), grid=spaces.Box(-1, 1, (2, 2))), 1),
    ],
)
def test_learning_and_predicting(space, n_envs):
    env = make_vec_env(lambda: Sampled(space), n_envs=n_envs)
    policy = "MultiInputPolicy" if isinstance(space, spaces.Dict) else "MlpPolicy"
    model = SoftDDPG(policy, env, n_samples=4, **SMALL)
    model.learn(20)
    assert model._n_updates > 0
    batch = model._sample_batch(6)
    assert batch.observations.shape == batch.next_observations.shape == (6, spaces.flatdim(space))
    assert model.predict(space.sample())[0].shape == (2,)
    assert model.predict(env.reset())[0].shape == (n_envs, 2)


@pytest.mark.parametrize("algorithm", [DDPG, TD3, SoftTD3])
def test_mixed_dict_with_each_algorithm(algorithm):
    model = algorithm("MultiInputPolicy", Sampled(MIXED), **SMALL)
    model.learn(20)
    assert model._n_updates == 10


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


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-3, 3)), min_size=1, max_size=4), st.integers(0, 2**31))
def test_one_hot_is_gymnasiums(categories, seed):
    sizes, start = np.array(categories).T
    space = spaces.MultiDiscrete(sizes, start=start, seed=seed)
    values = np.stack([space.sample() for _ in range(7)])
    expected = [spaces.flatten(space, value) for value in values]
    np.testing.assert_array_equal(flat_observations(values, space), expected)


@pytest.mark.parametrize("value", [-1, 5])
def test_discrete_observation_outside_its_space(value):
    with pytest.raises(ValueError, match=r"outside its space of \[5\] values"):
        flat_observations(np.array([value]), spaces.Discrete(5))


def test_images_are_seen_alike_whichever_axis_has_the_channels():
    last = spaces.Box(0, 255, (8, 8, 3), np.uint8)
    model = DDPG("MlpPolicy", Sampled(last), **SMALL)
    assert model.observation_space.shape == (3, 8, 8)  # SB3 puts channels first
    image = last.sample()
    np.testing.assert_array_equal(model.predict(image)[0], model.predict(image.transpose(2, 0, 1))[0])


class Stretched(gym.Wrapper):
    """Gives a single number for an observation of three at one step, or after a reset."""

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


@pytest.mark.parametrize("at", [0, 3])
def test_observation_of_the_environment_with_another_shape_is_not_broadcast(at):
    model = DDPG("MlpPolicy", Stretched(at), **SMALL)
    with pytest.raises(ValueError, match=r"an observation has shape \(1,\), the observation space \(3,\)"):
        model.learn(10)
    assert model.replay_buffer.size() == max(at - 1, 0)


@pytest.mark.parametrize("shape", [(), (1,), (2,), (4,), (5, 1), (5, 2), (2, 2, 3)])
def test_predict_refuses_another_shape(shape):
    model = DDPG("MlpPolicy", "Pendulum-v1", **SMALL)
    with pytest.raises(ValueError, match="shape"):
        model.predict(np.zeros(shape, np.float32))


def test_predict_refuses_dicts_that_do_not_fit():
    one = MIXED.sample()
    many = {name: np.stack([part, part]) for name, part in one.items()}
    assert as_batch(one, MIXED)[1] is False
    assert as_batch(many, MIXED)[1] is True
    with pytest.raises(ValueError, match="shape"):
        as_batch(one | {"matrix": np.zeros(6)}, MIXED)
    with pytest.raises(ValueError, match="either every part must be a batch, or none"):
        as_batch(one | {"vector": many["vector"]}, MIXED)
    with pytest.raises(ValueError, match="must be a dict with the parts"):
        as_batch({"vector": one["vector"]}, MIXED)
    with pytest.raises(ValueError, match="must be a dict with the parts"):
        as_batch(one["vector"], MIXED)


def test_predict_tells_of_the_tuple_of_reset():
    model = DDPG("MlpPolicy", "Pendulum-v1", **SMALL)
    with pytest.raises(ValueError, match="observation is a tuple"):
        model.predict(gym.make("Pendulum-v1").reset())


def test_updates_see_images_from_records_as_the_actor_does():
    """SB3's buffer keeps bytes, ours numbers of float32; either way the networks see pixels over 255."""
    batches = []
    for buffer_class in (ReplayBuffer, RecordReplayBuffer):
        model = DDPG("MlpPolicy", Sampled(IMAGE), replay_buffer_class=buffer_class, **SMALL).learn(20)
        model.replay_buffer.observations[:] = 51
        np.random.seed(0)  # noqa: NPY002
        batches.append(model._sample_batch(6))
    np.testing.assert_allclose(batches[1].observations, 0.2, rtol=1e-6)
    np.testing.assert_allclose(batches[1].observations, batches[0].observations, rtol=1e-6)
    assert 0.5 < batches[1].next_observations.max() <= 1
