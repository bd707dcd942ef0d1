"""Transitions that tests put into replay buffers, and the comparison of two buffers' samples."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

import examples.point_mass  # noqa: F401 (registers PointMassGoal-v0)


def seed(number):
    np.random.seed(number)  # noqa: NPY002 (SB3 samples with it)


def spaces_of(obs_shape=(3,), action_dim=2):
    return spaces.Box(-1, 1, obs_shape, np.float32), spaces.Box(-1, 1, (action_dim,), np.float32)


def transition(t, n_envs=1, obs_shape=(3,), action_dim=2):
    """Transition number ``t``; all its numbers differ from those of other transitions."""
    rng = np.random.default_rng(t)
    obs, next_obs = (rng.normal(size=(n_envs, *obs_shape)).astype(np.float32) for _ in range(2))
    action, reward = rng.normal(size=(n_envs, action_dim)).astype(np.float32), rng.normal(size=n_envs)
    dones = rng.random(n_envs) < 0.3
    infos = [{"TimeLimit.truncated": bool(done and rng.random() < 0.5)} for done in dones]
    return obs, next_obs, action, reward, dones, infos


def goal_env(n_envs=1):
    return DummyVecEnv([lambda: gym.make("PointMassGoal-v0")] * n_envs)


def episodes(n_envs, steps):
    """Transitions of random episodes; the achieved goal is (number of the environment, step)."""
    rng = np.random.default_rng(0)
    for t in range(steps):
        marks = np.stack([np.arange(n_envs), np.full(n_envs, t)], axis=1).astype(np.float32)
        goals = rng.normal(size=(2, n_envs, 2)).astype(np.float32)
        obs = {"observation": marks + 0.5, "achieved_goal": marks - 1, "desired_goal": goals[0]}
        next_obs = {"observation": marks - 0.5, "achieved_goal": marks, "desired_goal": goals[0]}
        done = rng.random(n_envs) < 0.15
        infos = [{"TimeLimit.truncated": bool(rng.random() < 0.5)} for _ in range(n_envs)]
        yield obs, next_obs, rng.uniform(-1, 1, (n_envs, 2)).astype(np.float32), goals[1, :, 0], done, infos


def fill(buffer, transitions):
    for each in transitions:
        buffer.add(*each)
    return buffer


def assert_same_samples(expected_buffer, buffer, number=0, batch_size=64):
    seed(number)
    expected = expected_buffer.sample(batch_size)
    seed(number)
    actual = buffer.sample(batch_size)
    for name, array in expected._asdict().items():
        if array is not None:
            np.testing.assert_array_equal(array.numpy(), getattr(actual, name).numpy(), err_msg=name)
            assert array.dtype == getattr(actual, name).dtype
    seed(number)
    for array, flat in zip(expected[:5], buffer.sample_arrays(batch_size)[:5], strict=True):
        np.testing.assert_array_equal(array.numpy().reshape(flat.shape), flat)
        assert flat.flags.c_contiguous or flat.ndim == 1
        assert flat.dtype == np.float32
