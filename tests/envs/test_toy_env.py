"""The toy environment against its definition."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import softdpg  # noqa: F401
from softdpg.envs.toy import Toy


def reward_of(action: float, **kwargs: float) -> float:
    env = gym.make("softdpg/Toy-v0", **kwargs)
    env.reset(seed=0)
    return float(env.step(np.array([action], dtype=np.float32))[1])


@pytest.mark.parametrize(
    ("action", "reward"),
    [(0.5, 1), (0.451, 1), (0.549, 1), (0.449, 0), (0.551, 0), (-0.5, 0), (1.0, 0), (-1.0, 0), (float("nan"), 0)],
)
def test_reward_is_one_inside_the_interval_alone(action: float, reward: float) -> None:
    assert reward_of(action) == reward


def test_the_interval_is_open() -> None:
    # 0.25 and 0.75 are exact in float32, so that these actions lie exactly on the ends.
    assert reward_of(0.75, epsilon=0.25) == reward_of(0.25, epsilon=0.25) == 0.0
    inside = float(np.nextafter(np.float32(0.75), np.float32(0.0)))
    assert reward_of(inside, epsilon=0.25) == 1.0


def test_episode_is_truncated_after_length_steps_and_starts_anew() -> None:
    env = gym.make("softdpg/Toy-v0", length=7)
    for _ in range(2):
        observation, _ = env.reset(seed=0)
        np.testing.assert_array_equal(observation, [1.0])
        total = 0.0
        for step in range(1, 8):
            observation, reward, terminated, truncated, _ = env.step(np.array([0.5], dtype=np.float32))
            total += float(reward)
            assert not terminated
            assert truncated == (step == 7)
            np.testing.assert_array_equal(observation, [1.0])
        assert total == env.unwrapped.ceiling() == 7.0


def test_center_moves_the_interval() -> None:
    assert reward_of(-0.5, center=-0.5) == 1.0
    assert reward_of(0.5, center=-0.5) == 0.0


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number > 0, got 0.0"),
        ({"epsilon": -1}, "epsilon must be a finite number > 0"),
        ({"epsilon": float("nan")}, "epsilon must be a finite number > 0"),
        ({"epsilon": "wide"}, "epsilon must be a finite number > 0, got 'wide'"),
        ({"length": 0}, "length must be a whole number >= 1, got 0"),
        ({"length": 1.5}, "length must be a whole number >= 1, got 1.5"),
        ({"center": 1.5}, r"center must be in \[-1, 1\], got 1.5"),
        ({"width": 1}, "unknown argument 'width'. Accepted: Toy: center, epsilon, length, render_mode"),
    ],
)
def test_bad_arguments_are_named(kwargs: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gym.make("softdpg/Toy-v0", **kwargs)


@pytest.mark.filterwarnings("error")
def test_checkers_of_gymnasium_and_sb3_are_silent() -> None:
    check_env(gym.make("softdpg/Toy-v0").unwrapped)
    sb3_check_env(gym.make("softdpg/Toy-v0"))


def test_stepping_before_reset_raises() -> None:
    with pytest.raises(gym.error.ResetNeeded):
        gym.make("softdpg/Toy-v0").step(np.zeros(1, dtype=np.float32))


def test_rendering() -> None:
    """White, green from 0.448 to 0.552 in steps of 0.005, and black where the last action was."""
    env = gym.make("softdpg/Toy-v0", epsilon=0.052, render_mode="rgb_array")
    env.reset()
    picture = np.asarray(env.render())
    assert picture.shape == (40, 401, 3)
    green = (picture == (40, 160, 80)).all(axis=2)
    assert np.flatnonzero(green.all(axis=0)).tolist() == list(range(290, 311))
    assert (picture[~green] == 255).all()
    env.step(np.array([-0.5], np.float32))
    assert np.flatnonzero((np.asarray(env.render()) == 0).all(axis=(0, 2))).tolist() == [100]
    with pytest.raises(ValueError, match="render_mode must be None or 'rgb_array', got 'human'"):
        Toy(render_mode="human")
