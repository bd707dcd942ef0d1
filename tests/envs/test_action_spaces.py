"""The tasks with discrete, on/off and mixed actions."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from softdpg.envs.action_spaces import ACTION_TARGETS
from softdpg.errors import UserError
from softdpg.paper import PAPER_SCORES
from softdpg.runs.config import RunConfig
from softdpg.runs.environments import make_run_env

KINDS = {
    "CartPole-v1": spaces.Discrete(2),
    "Acrobot-v1": spaces.Discrete(3),
    "MountainCar-v0": spaces.Discrete(3),
    "LunarLander-v3": spaces.Discrete(4),
    "softdpg/HalfCheetah2Levels-v0": spaces.MultiDiscrete([2] * 6),
    "softdpg/HalfCheetah3Levels-v0": spaces.MultiDiscrete([3] * 6),
    "softdpg/Hopper2Levels-v0": spaces.MultiDiscrete([2] * 3),
    "softdpg/Hopper3Levels-v0": spaces.MultiDiscrete([3] * 3),
    "examples.thrusters:Thrusters-v0": spaces.Dict(
        on=spaces.MultiBinary(8), power=spaces.Box(0.2, 1, (8,), np.float32)
    ),
}


def test_every_task_has_a_target_score():
    assert {*KINDS, "softdpg/Platform-v0"} == set(ACTION_TARGETS)
    for name in ("HalfCheetah", "Hopper"):
        best = max(PAPER_SCORES[name].continuous_baseline.mean, PAPER_SCORES[name].continuous_method.mean)
        assert {ACTION_TARGETS[f"softdpg/{name}{levels}Levels-v0"] for levels in (2, 3)} == {best}


@pytest.mark.parametrize("env_id", KINDS)
def test_what_the_algorithms_see(env_id):
    env = make_run_env(RunConfig(env_id))
    assert env.action_space == KINDS[env_id]
    env.reset(seed=0)
    env.step(env.action_space.sample())
    relaxed = make_run_env(RunConfig(env_id, "td3-relaxed"))
    assert isinstance(relaxed.action_space, spaces.Box)
    relaxed.reset(seed=0)
    relaxed.step(relaxed.action_space.sample())


def test_levels_of_a_joint():
    env = gym.make("softdpg/Hopper3Levels-v0")
    assert env.spec.max_episode_steps == 1_000
    assert env.unwrapped is not env
    levels = [env.get_wrapper_attr("action")(np.full(3, i)).tolist() for i in range(3)]
    assert levels == [[-1] * 3, [0] * 3, [1] * 3]


def test_platform_without_its_step_counter():
    pytest.importorskip("numba")
    pytest.importorskip("gym_platform")
    env = make_run_env(RunConfig("softdpg/Platform-v0"))
    observation, _ = env.reset(seed=0)
    assert observation.shape == (9,)
    parameters = tuple(np.array([value], np.float32) for value in (10, 20, 30))
    observation, reward, *_ = env.step((0, parameters))
    assert env.observation_space.contains(observation)
    assert 0 < reward < 0.1


def test_platform_without_its_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gym_platform.envs", None)
    with pytest.raises(UserError, match="Platform needs two packages: pip install hybrid-platform numba"):
        make_run_env(RunConfig("softdpg/Platform-v0"))


@pytest.mark.parametrize(
    ("env_id", "algo", "message"),
    [
        ("CartPole-v1", "td3", "CartPole-v1 has a Discrete action space; td3 needs a Box, soft-td3 does not"),
        ("Pendulum-v1", "sb3-dqn", "Pendulum-v1 has a Box action space; sb3-dqn needs a Discrete, soft-td3 does not"),
        ("strange_envs:StrangeMixed-v0", "sb3-ppo", "sb3-ppo needs a Box or Discrete or MultiDiscrete or MultiBinary"),
    ],
)
def test_algorithms_that_cannot_act_are_named(env_id, algo, message):
    with pytest.raises(UserError, match=message):
        make_run_env(RunConfig(env_id, algo))
