"""Environments of a run: an episode depends on its seed alone, and unknown names get near matches."""

import gymnasium as gym
import numpy as np
import pytest

import softdpg  # noqa: F401 (registers the environments)
from softdpg.errors import UserError
from softdpg.paper import ENVIRONMENTS
from softdpg.runs.environments import SeededEpisodes, episode_seed, make_env

ALL = [env_id for environment in ENVIRONMENTS.values() for env_id in (environment.discrete, environment.continuous)]


def play(env, seed, steps=150):
    generator = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    history = [observation.tobytes()]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(
            generator.uniform(env.action_space.low, env.action_space.high).astype(np.float32)
        )
        history.append(observation.tobytes() + np.float64(reward).tobytes())
        if terminated or truncated:
            break
    return history


@pytest.mark.parametrize("env_id", ALL)
def test_an_episode_is_the_same_in_a_new_and_in_a_used_environment(env_id):
    """What exact resume rests on: nothing of earlier episodes is left in the simulators."""
    used = make_env(env_id)
    for seed in range(8):
        play(used, seed)
    for seed in range(100, 103):
        assert play(used, seed) == play(make_env(env_id), seed)


def test_episodes_are_numbered_and_do_not_repeat():
    env = SeededEpisodes(make_env("Pendulum-v1"), seed=3)
    starts = [env.reset(seed=0)[0] for _ in range(4)]
    assert env.episode == 4
    assert len({start.tobytes() for start in starts}) == 4
    again = SeededEpisodes(make_env("Pendulum-v1"), seed=3)
    again.episode = 2
    np.testing.assert_array_equal(again.reset()[0], starts[2])
    assert len({episode_seed(seed, stream, n) for seed in range(5) for stream in range(3) for n in range(100)}) == 1500


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("AntDiscrete-v0", "no environment 'AntDiscrete-v0'; did you mean softdpg/AntDiscrete-v0"),
        ("softdpg/PendulmDiscrete-v0", "did you mean softdpg/PendulumDiscrete-v0"),
        ("halfcheetah-v5", "did you mean HalfCheetah-v"),
        ("Pendulum-v9", "did you mean Pendulum-v1"),
        ("qwertyuiop", r"no environment 'qwertyuiop' \(an environment of your own"),
        ("not an id!", "cannot make environment 'not an id!': Malformed environment ID"),
        ("CartPole-v1", "CartPole-v1 has a Discrete action space; softdpg needs a Box"),
        ("FrozenLake-v1", "FrozenLake-v1 has a Discrete observation space; softdpg needs a Box"),
    ],
)
def test_environments_that_cannot_be_used(env_id, message):
    with pytest.raises(UserError, match=message) as error:
        make_env(env_id)
    assert "\n" not in str(error.value)


def test_unbounded_actions_are_refused():
    gym.register("Unbounded-v0", entry_point=lambda **_: _Unbounded())
    with pytest.raises(UserError, match="Unbounded-v0 has an unbounded action space"):
        make_env("Unbounded-v0")


class _Unbounded(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Box(-np.inf, np.inf, (1,))
