"""The samples of record buffers equal those of SB3's buffers."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from transitions import assert_same_samples, fill, seed, spaces_of, transition

from softdpg.replay.disk import DiskReplayBuffer
from softdpg.replay.memory import FlatReplayBuffer, RecordReplayBuffer
from softdpg.replay.spaces import flat_observations

ACTIONS = spaces.Box(-1, 1, (2,), np.float32)


@settings(max_examples=40)
@given(
    buffer_size=st.integers(1, 30),
    slack=st.integers(0, 20),
    n_envs=st.integers(1, 3),
    obs_shape=st.sampled_from([(1,), (3,), (2, 2)]),
    added=st.integers(1, 80),
)
def test_samples_are_those_of_sb3(tmp_path_factory, buffer_size, slack, n_envs, obs_shape, added):
    path = tmp_path_factory.mktemp("buffer") / "replay.bin"
    in_memory = ReplayBuffer(buffer_size, *spaces_of(obs_shape), device="cpu", n_envs=n_envs)
    records = RecordReplayBuffer(buffer_size, *spaces_of(obs_shape), device="cpu", n_envs=n_envs)
    on_disk = DiskReplayBuffer(buffer_size, *spaces_of(obs_shape), n_envs=n_envs, path=path, slack=slack)
    for t in range(added):
        for buffer in (in_memory, records, on_disk):
            buffer.add(*transition(t, n_envs, obs_shape))
    for buffer in (records, on_disk):
        assert (buffer.size(), buffer.pos, buffer.full) == (in_memory.size(), in_memory.pos, in_memory.full)
        assert_same_samples(in_memory, buffer)
    on_disk.close()


def test_records_survive_pickling_and_stay_views():
    buffer = RecordReplayBuffer(16, *spaces_of(), device="cpu")
    for t in range(20):
        buffer.add(*transition(t))
    loaded = pickle.loads(pickle.dumps(buffer))
    assert len(pickle.dumps(buffer)) < 16 * buffer.record_dim * 4 + 20_000  # the numbers once
    for one in (buffer, loaded):
        one.add(*transition(20))
    assert_same_samples(buffer, loaded)


def test_records_do_not_support_optimize_memory_usage():
    with pytest.raises(ValueError, match="optimize_memory_usage"):
        RecordReplayBuffer(8, *spaces_of(), optimize_memory_usage=True, handle_timeout_termination=False)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize(("n_envs", "steps"), [(1, 40), (1, 130), (3, 40), (3, 130)])  # not full yet, and wrapped
def test_returns_of_several_steps_are_those_of_sb3(n_envs, steps, normalized):
    normalize = None
    if normalized:
        normalize = VecNormalize(DummyVecEnv([lambda: gym.make("Pendulum-v1")]))
        normalize.obs_rms.mean, normalize.obs_rms.var = np.array([0.5, 0, -0.5]), np.array([1.0, 4.0, 0.25])
        normalize.ret_rms.var = np.array(9.0)
    kwargs = dict(device="cpu", n_envs=n_envs, n_steps=3, gamma=0.9)
    samples = []
    for make in (NStepReplayBuffer, RecordReplayBuffer):
        buffer = fill(make(60 * n_envs, *spaces_of(), **kwargs), (transition(t, n_envs) for t in range(steps)))
        seed(1)
        samples.append(buffer.sample(64, normalize))
    for of_sb3, records in zip(*samples, strict=True):
        np.testing.assert_allclose(records.numpy().reshape(of_sb3.shape), of_sb3.numpy(), rtol=1e-5, atol=1e-6)


def test_flat_observations_are_those_of_sb3s_dict_buffer():
    space = spaces.Dict(
        a=spaces.Box(-1, 1, (2, 2), np.float32), b=spaces.Discrete(3), c=spaces.MultiBinary(2)
    )  # fmt: skip
    records, of_sb3 = (kind(40, space, ACTIONS, n_envs=2) for kind in (FlatReplayBuffer, DictReplayBuffer))
    rng = np.random.default_rng(0)
    for _ in range(50):
        obs, next_obs = (
            {"a": rng.normal(size=(2, 2, 2)).astype(np.float32), "b": rng.integers(0, 3, 2),
             "c": rng.integers(0, 2, (2, 2)).astype(np.int8)} for _ in range(2)
        )  # fmt: skip
        action, reward, done = rng.uniform(-1, 1, (2, 2)).astype(np.float32), rng.normal(size=2), rng.random(2) < 0.1
        for buffer in (records, of_sb3):
            buffer.add(obs, next_obs, action, reward, done, [{}, {}])
    seed(3)
    samples = of_sb3.sample(100)
    seed(3)
    found = records.sample_arrays(100)
    for flat, part in ((found[0], samples.observations), (found[2], samples.next_observations)):
        expected = flat_observations({name: array.numpy() for name, array in part.items()}, space)
        np.testing.assert_array_equal(flat, expected)
    np.testing.assert_array_equal(found[1], samples.actions)
    np.testing.assert_array_equal(found[4], samples.rewards[:, 0])
    with pytest.raises(ValueError, match="FlatReplayBuffer needs a Dict observation space, got Box"):
        FlatReplayBuffer(10, ACTIONS, ACTIONS)
