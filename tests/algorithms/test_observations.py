"""Learning from observation spaces other than a flat Box, and the shapes that are refused."""

import gymnasium as gym
import numpy as np
import pytest
import small
from gymnasium import spaces
from small import ONE_BY_ONE, Stretched
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env

from softdpg import DDPG, TD3, SoftDDPG, SoftTD3
from softdpg.replay.memory import RecordReplayBuffer

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
SMALL = small.SMALL | ONE_BY_ONE


class Sampled(gym.Env):
    """Observations sampled from the space; an episode has five steps."""

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
        pytest.param(IMAGE, 1, marks=pytest.mark.extended),
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


@pytest.mark.extended
@pytest.mark.parametrize("algorithm", [DDPG, TD3, SoftTD3])
def test_mixed_dict_with_each_algorithm(algorithm):
    model = algorithm("MultiInputPolicy", Sampled(MIXED), **SMALL)
    model.learn(20)
    assert model._n_updates == 10


def test_images_are_seen_alike_whichever_axis_has_the_channels():
    last = spaces.Box(0, 255, (8, 8, 3), np.uint8)
    model = DDPG("MlpPolicy", Sampled(last), **SMALL)
    assert model.observation_space.shape == (3, 8, 8)  # SB3 puts channels first
    image = last.sample()
    np.testing.assert_array_equal(model.predict(image)[0], model.predict(image.transpose(2, 0, 1))[0])


@pytest.mark.parametrize("at", [0, 3])
def test_observation_of_the_environment_with_another_shape_is_not_broadcast(at):
    model = DDPG("MlpPolicy", Stretched(at), **SMALL | dict(learning_starts=5))
    with pytest.raises(ValueError, match=r"the observation must have shape \(3,\), got \(1,\)"):
        model.learn(10)
    assert model.replay_buffer.size() == max(at - 1, 0)


@pytest.mark.parametrize("shape", [(), (1,), (2,), (4,), (5, 1), (5, 2), (2, 2, 3)])
def test_predict_refuses_another_shape(shape):
    model = DDPG("MlpPolicy", "Pendulum-v1", **SMALL)
    with pytest.raises(ValueError, match="shape"):
        model.predict(np.zeros(shape, np.float32))


def test_predict_tells_of_the_tuple_of_reset():
    model = DDPG("MlpPolicy", "Pendulum-v1", **SMALL)
    with pytest.raises(ValueError, match=r"observation is a tuple. You are probably mixing Gym API and VecEnv API"):
        model.predict(gym.make("Pendulum-v1").reset())


def test_updates_see_images_from_records_as_the_actor_does():
    """SB3's buffer stores bytes, softdpg's float32; with both, the networks see pixels divided by 255."""
    batches = []
    for buffer_class in (ReplayBuffer, RecordReplayBuffer):
        model = DDPG("MlpPolicy", Sampled(IMAGE), replay_buffer_class=buffer_class, **SMALL).learn(20)
        model.replay_buffer.observations[:] = 51
        np.random.seed(0)  # noqa: NPY002
        batches.append(model._sample_batch(6))
    np.testing.assert_allclose(batches[1].observations, 0.2, rtol=1e-6)
    np.testing.assert_allclose(batches[1].observations, batches[0].observations, rtol=1e-6)
    assert 0.5 < batches[1].next_observations.max() <= 1
