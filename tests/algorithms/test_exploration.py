"""Exploration with the smoothing's noise, with coloured noise, and before learning starts."""

import warnings

import numpy as np
import pytest
from small import FAMILY
from stable_baselines3.common.env_util import make_vec_env

from softdpg import SoftTD3
from softdpg.algorithms.exploration import ColoredNoise, noises, with_noise

TINY = FAMILY[SoftTD3] | dict(learning_starts=20)


def test_exploring_with_sigma_has_its_scale():
    model = SoftTD3("MlpPolicy", "Pendulum-v1", **{**TINY, "learning_starts": 0}, sigma=0.3, action_noise="sigma")
    model._setup_learn(10)
    mean = model.policy._predict(model._last_obs)
    actions = np.array([model._sample_action(0, model.action_noise)[1] - mean for _ in range(2_000)])
    assert actions.std() == pytest.approx(0.3, rel=0.06)
    model.sigma = 0.1
    actions = np.array([model._sample_action(0, model.action_noise)[1] - mean for _ in range(2_000)])
    assert actions.std() == pytest.approx(0.1, rel=0.06)


@pytest.mark.parametrize("beta", [0.0, 1.0, 2.0])
def test_power_of_coloured_noise_falls_with_its_color(beta):
    np.random.seed(0)  # noqa: NPY002
    noise = ColoredNoise((3,), 0.3, beta, period=256)
    sequences = []
    for _ in range(200):
        sequences.append([noise() for _ in range(256)])
    x = np.array(sequences)  # (200, 256, 3)
    assert x.std() == pytest.approx(0.3, rel=0.05)
    power = (np.abs(np.fft.rfft(x, axis=1)) ** 2).mean(axis=(0, 2))
    expected = np.arange(1, 128.0) ** -beta
    ratios = power[1:128] / expected / (power[1:128] / expected).mean()
    np.testing.assert_allclose(ratios, 1, atol=0.25)  # 600 series: a standard deviation of 4 %


def test_coloured_noise_continues_from_its_state():
    np.random.seed(0)  # noqa: NPY002
    noise = ColoredNoise((2,), 0.3, 1.0, period=10)
    for _ in range(7):
        noise()
    state = noise.get_state()
    rest = [noise() for _ in range(3)]
    other = ColoredNoise((2,), 0.3, 1.0, period=10)
    other.set_state(state)
    np.testing.assert_array_equal([other() for _ in range(3)], rest)


@pytest.mark.parametrize("n_envs", [1, 2])
def test_before_learning_starts_actions_are_uniform_except_in_episodes_of_pure_noise(n_envs):
    env = make_vec_env("Pendulum-v1", n_envs, seed=0)
    model = SoftTD3("MlpPolicy", env, **{**TINY, "learning_starts": 3_000}, action_noise=0.2, random_episodes=0.5)
    model._setup_learn(10)
    noise = noises(model.action_noise)
    kinds = set()
    for _ in range(8):
        model.action_noise.reset()
        states = [each.get_state() for each in noise]
        taken = [model._sample_action(3_000, model.action_noise, n_envs) for _ in range(500)]
        for each, state in zip(noise, states, strict=True):
            each.set_state(state)
        sampled = np.array([model.action_noise() for _ in range(500)]).reshape(500, n_envs) / 0.2
        scaled = np.array([pair[1] for pair in taken])[..., 0]
        np.testing.assert_allclose([pair[0][..., 0] for pair in taken], 2 * scaled, rtol=1e-6)  # torques in [-2, 2]
        for i, each in enumerate(noise):
            kinds.add(each.is_pure)
            if each.is_pure:
                np.testing.assert_allclose(scaled[:, i], np.clip(sampled[:, i], -1, 1), rtol=1e-6)
            else:  # uniform samples and the noise, as in SB3
                free = np.abs(scaled[:, i]) < 1
                uniform = (scaled[:, i] - 0.2 * sampled[:, i])[free]
                assert np.abs(uniform).max() <= 1 + 1e-6
                assert uniform.std() == pytest.approx(3**-0.5, abs=0.1)
    assert kinds == {True, False}


def test_a_fraction_of_the_sequences_is_pure_noise():
    np.random.seed(0)  # noqa: NPY002
    noise = ColoredNoise((2,), 0.2, 1.0, period=4, pure=0.1)
    policy, driven = np.full((1, 2), 0.5), 0
    for _ in range(2_000):
        noise.reset()
        state = noise.get_state()
        taken = [with_noise(policy, noise) for _ in range(4)]
        noise.set_state(state)
        sampled = np.array([noise() for _ in range(4)])[:, None]
        expected = sampled / 0.2 if noise.is_pure else 0.5 + sampled
        np.testing.assert_allclose(taken, np.clip(expected, -1, 1), rtol=1e-12)
        driven += noise.is_pure
    assert driven == pytest.approx(200, abs=45)  # 3 standard deviations
    assert ColoredNoise((2,), 0.2, 1.0).is_pure is False


def test_coloured_noise_of_scale_zero_leaves_the_warm_up_uniform():
    model = SoftTD3("MlpPolicy", "Pendulum-v1", **TINY, action_noise=ColoredNoise((1,), 0.0, 1.0))
    model._setup_learn(10)
    scaled = np.array([model._sample_action(20, model.action_noise)[1] for _ in range(2_000)])
    assert scaled.std() == pytest.approx(3**-0.5, rel=0.05)


def test_white_noise_leaves_the_warm_up_uniform():
    white = dict(noise_color=0.0, random_episodes=0.0, action_noise=0.0)
    model = SoftTD3("MlpPolicy", "Pendulum-v1", **{**TINY, "learning_starts": 3_000}, **white)
    model._setup_learn(10)
    scaled = np.array([model._sample_action(3_000, model.action_noise)[1] for _ in range(2_000)])
    assert scaled.std() == pytest.approx(3**-0.5, rel=0.05)


def test_a_run_that_ends_before_learning_starts_says_so():
    model = SoftTD3("MlpPolicy", "Pendulum-v1", **TINY)
    with pytest.warns(UserWarning, match=r"nothing will be learned in 20 steps: the first 20 are random") as told:
        model.learn(20)
    assert told[0].filename == __file__  # that is where the number stands
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model._setup_learn(21)  # which learn begins with
        model._setup_learn(10, reset_num_timesteps=False)
