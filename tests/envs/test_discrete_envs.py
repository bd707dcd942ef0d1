"""Every discrete-reward environment beside its base: same dynamics, same Gymnasium behaviour, its own reward."""

import dataclasses
import pickle
import subprocess
import sys
import warnings
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import softdpg  # noqa: F401
from softdpg.envs import DISCRETE_ENVS
from softdpg.envs.discrete_reward import constructor_arguments

NAMES = list(DISCRETE_ENVS)
each_env = pytest.mark.parametrize("name", NAMES)
LIGHT = pytest.mark.parametrize("name", ["Hopper", "LunarLander", "Pendulum", "MountainCar"])


def env_id(name: str) -> str:
    return f"softdpg/{name}Discrete-v0"


def rollout(env: gym.Env, steps: int = 60, seed: int = 3) -> list[tuple]:
    """Play random actions from a fixed seed; return every observation, reward and flag, resets included."""
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    result: list[tuple] = [(observation.copy(), 0.0, False, False, {})]
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        result.append((observation.copy(), reward, terminated, truncated, info))
        if terminated or truncated:
            env.reset()
    return result


def assert_same(a: list[tuple], b: list[tuple], rewards: bool = True) -> None:
    for (obs_a, reward_a, *flags_a, _), (obs_b, reward_b, *flags_b, _) in zip(a, b, strict=True):
        np.testing.assert_array_equal(obs_a, obs_b)
        assert flags_a == flags_b
        if rewards:
            assert reward_a == reward_b


@each_env
def test_dynamics_are_the_base_environments(name: str) -> None:
    base, env = gym.make(DISCRETE_ENVS[name][0]), gym.make(env_id(name))
    assert env.observation_space == base.observation_space
    assert env.action_space == base.action_space
    assert env.metadata == base.metadata
    assert env.spec is not None
    assert base.spec is not None
    assert env.spec.max_episode_steps == base.spec.max_episode_steps
    expected, got = rollout(base), rollout(env)
    assert_same(expected, got, rewards=False)
    for (_, dense_reward, *_, base_info), (_, reward, *_, info) in zip(expected[1:], got[1:], strict=True):
        assert info["dense_reward"] == dense_reward
        assert type(reward) is float
        np.testing.assert_equal({key: info[key] for key in base_info}, base_info)
        assert len(info) > len(base_info) + 1


def messages(caught: list[warnings.WarningMessage], name: str) -> set[str]:
    ids = (DISCRETE_ENVS[name][0], env_id(name))
    texts = {str(warning.message) for warning in caught}
    return {text.replace(ids[0], "ID").replace(ids[1], "ID") for text in texts}


@each_env
def test_checkers_give_no_warning_that_the_base_does_not_give(name: str) -> None:
    seen = []
    for make_id in (DISCRETE_ENVS[name][0], env_id(name)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # The environment below the checker's own wrappers; for softdpg that is the wrapper itself.
            env = gym.make(make_id, disable_env_checker=True, max_episode_steps=-1)
            env = env.env if make_id == DISCRETE_ENVS[name][0] else env
            check_env(env, skip_render_check=True)
            try:
                sb3_check_env(gym.make(make_id), skip_render_check=True)
            except AssertionError:
                assert make_id == "BipedalWalker-v3"  # its np.float32 reward is no float to SB3; that of softdpg is
        seen.append(messages(caught, name))
    base_warnings, our_warnings = seen
    # That the wrapper is not its base is the point of it.
    assert {
        text for text in our_warnings - base_warnings if "is different from the unwrapped version" not in text
    } == set()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "HalfCheetah"])
def test_observe_progress_extends_the_observation(name: str) -> None:
    plain, env = gym.make(env_id(name)), gym.make(env_id(name), observe_progress=True)
    assert isinstance(env.observation_space, gym.spaces.Box)
    assert isinstance(plain.observation_space, gym.spaces.Box)
    extra = env.observation_space.shape[0] - plain.observation_space.shape[0]
    rule = env.get_wrapper_attr("rule")
    assert extra == len(rule.progress_names()) > 0
    np.testing.assert_array_equal(env.observation_space.low[-extra:], -1.0)
    np.testing.assert_array_equal(env.observation_space.high[-extra:], 1.0)
    expected, got = rollout(plain), rollout(env)
    for (obs, reward, *_), (extended, same_reward, *_) in zip(expected, got, strict=True):
        assert extended.dtype == obs.dtype
        np.testing.assert_array_equal(extended[:-extra], obs)
        assert np.abs(extended[-extra:]).max() <= 1.0
        assert same_reward == reward
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*obs returned.*")
        sb3_check_env(env, warn=False)


def test_observe_progress_shows_the_memory() -> None:
    env = gym.make(env_id("Pendulum"), observe_progress=True)
    observation, _ = env.reset(seed=0, options={"x_init": 0.0, "y_init": 0.0})
    assert observation[-1] == 0.0
    for step in range(1, 4):
        observation, *_ = env.step(np.zeros(1, dtype=np.float32))
        assert observation[-1] == np.float32(step / 60)


def test_observe_progress_of_a_rule_without_memory_changes_nothing() -> None:
    env = gym.make(env_id("HalfCheetah"), observe_progress=True)
    assert env.observation_space == gym.make("HalfCheetah-v5").observation_space


@each_env
def test_spec_rebuilds_the_environment(name: str) -> None:
    env = gym.make(env_id(name), observe_progress=True, max_episode_steps=20)
    assert env.spec is not None
    expected = rollout(env)
    assert_same(rollout(gym.make(env.spec)), expected)
    assert_same(rollout(gym.make(EnvSpec.from_json(env.spec.to_json()))), expected)
    changed = gym.make(env.spec, observe_progress=False)
    assert changed.observation_space == gym.make(DISCRETE_ENVS[name][0]).observation_space


def test_spec_keeps_the_arguments_of_rule_and_base() -> None:
    env = gym.make(env_id("Ant"), thresholds=[1, 2], rewards=[3, 4], frame_skip=2, render_mode="rgb_array")
    assert env.spec is not None
    for spec in (env.spec, EnvSpec.from_json(env.spec.to_json())):
        rebuilt = gym.make(spec)
        assert rebuilt.get_wrapper_attr("rule").thresholds == (1.0, 2.0)
        assert rebuilt.get_wrapper_attr("rule").rewards == (3.0, 4.0)
        assert rebuilt.unwrapped.frame_skip == 2
        assert rebuilt.render_mode == "rgb_array"


@LIGHT
@pytest.mark.parametrize("mode", ["sync", pytest.param("async", marks=pytest.mark.extended)])
def test_make_vec(name: str, mode: str) -> None:
    # Not by fork: other tests of the same process may have started JAX's threads.
    arguments = {"context": "forkserver"} if mode == "async" else {}
    vec = gym.make_vec(env_id(name), num_envs=2, vectorization_mode=mode, vector_kwargs=arguments)
    singles = [gym.make(env_id(name)) for _ in range(2)]
    try:
        observations, _ = vec.reset(seed=5)
        expected = [env.reset(seed=5 + i)[0] for i, env in enumerate(singles)]
        np.testing.assert_array_equal(observations, np.stack(expected))
        vec.action_space.seed(0)
        for _ in range(5):
            actions = vec.action_space.sample()
            observations, rewards, *_, infos = vec.step(actions)
            outcomes = [env.step(action) for env, action in zip(singles, actions, strict=True)]
            np.testing.assert_array_equal(observations, np.stack([o[0] for o in outcomes]))
            np.testing.assert_array_equal(rewards, [o[1] for o in outcomes])
            for key in set(outcomes[0][4]) & {"milestones", "streak", "approached", "swung_back"}:
                np.testing.assert_array_equal(infos[key], [o[4][key] for o in outcomes])
    finally:
        vec.close()


@each_env
def test_pickling_gives_an_equal_environment(name: str) -> None:
    env = gym.make(env_id(name), observe_progress=True)
    expected = rollout(env)
    for pickler in (pickle, cloudpickle):
        copy = pickler.loads(pickler.dumps(env))
        assert copy.get_wrapper_attr("rule").progress() == env.get_wrapper_attr("rule").progress()
        assert_same(rollout(copy), expected)


@pytest.mark.parametrize("name", [pytest.param("Hopper", marks=pytest.mark.extended), "LunarLander", "Pendulum"])
def test_rendering(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "egl")
    frames: list[Any] = []
    for make_id in (DISCRETE_ENVS[name][0], env_id(name)):
        env = gym.make(make_id, render_mode="rgb_array")
        with pytest.raises(gym.error.ResetNeeded):
            env.render()
        env.reset(seed=0)
        frames.append(env.render())
        env.close()
    np.testing.assert_array_equal(frames[0], frames[1])
    assert frames[0].ndim == 3


def test_render_collection_is_applied_as_for_the_base() -> None:
    env = gym.make(env_id("Pendulum"), render_mode="rgb_array_list")
    env.reset(seed=0)
    env.step(np.zeros(1, dtype=np.float32))
    assert len(env.render()) == 2
    env.close()


@each_env
def test_stepping_before_reset_raises_as_for_the_base(name: str) -> None:
    for make_id in (DISCRETE_ENVS[name][0], env_id(name)):
        env = gym.make(make_id)
        with pytest.raises(gym.error.ResetNeeded):
            env.step(env.action_space.sample())


@each_env
def test_nan_actions_do_what_they_do_to_the_base(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log file
    outcomes = []
    for make_id in (DISCRETE_ENVS[name][0], env_id(name)):
        env = gym.make(make_id, disable_env_checker=True)
        env.reset(seed=0)
        try:
            observation, reward, terminated, truncated, _ = env.step(
                np.full(env.action_space.shape, np.nan, np.float32)
            )
            outcomes.append((observation.tolist(), terminated, truncated))
            assert make_id == DISCRETE_ENVS[name][0] or np.isfinite(reward)
        except Exception as error:
            outcomes.append((type(error), str(error)))
    np.testing.assert_equal(outcomes[1], outcomes[0])


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        (
            "Ant",
            {"colour": 1},
            "AntDiscrete got an unknown argument 'colour'. Accepted: its reward rule: failure_reward",
        ),
        ("Ant", {"observation_space": None}, "unknown argument 'observation_space'"),
        ("Pendulum", {"frame_skip": 2}, "unknown argument 'frame_skip'.*Pendulum-v1: g, render_mode"),
        (
            "Ant",
            {"thresholds": (1.0, 1.0)},
            r"thresholds must be one or more strictly increasing numbers, got \(1.0, 1.0",
        ),
        ("Ant", {"thresholds": (2.0, 1.0)}, "thresholds must be"),
        ("Ant", {"thresholds": 3}, "thresholds must be a sequence of finite numbers, got 3"),
        ("Ant", {"thresholds": "12"}, "thresholds must be a sequence of finite numbers, got '12'"),
        ("Ant", {"thresholds": ()}, "thresholds must be one or more"),
        ("Ant", {"thresholds": (1.0, float("nan"))}, "thresholds must be a sequence of finite numbers"),
        ("Ant", {"rewards": (1.0, 2.0)}, r"rewards must be as long as thresholds \(6\), got 2 entries"),
        ("Ant", {"rewards": (1.0, 2.0, 3.0, 4.0, 5.0, -1.0)}, r"rewards\[5\] must be a finite number >= 0, got -1.0"),
        ("Ant", {"failure_reward": 10.0}, "failure_reward must be a finite number <= 0"),
        ("BipedalWalker", {"rewards": (1.0,)}, "rewards must be as long as thresholds"),
        ("HalfCheetah", {"rewards": (0.0, 1.0)}, "rewards must have one entry for each band, 5 for thresholds=.*got 2"),
        ("Hopper", {"stride": 0.0}, "stride must be a finite number > 0, got 0.0"),
        ("Walker2d", {"survival_reward": -0.1}, "survival_reward must be a finite number >= 0"),
        ("Walker2d", {"survival_at_termination": 1}, "survival_at_termination must be True or False, got 1"),
        ("Humanoid", {"high_velocity": 0.1}, "high_velocity must be > low_velocity=0.12, got 0.1"),
        ("Humanoid", {"high_steps": 2.5}, "high_steps must be a whole number >= 1, got 2.5"),
        ("Humanoid", {"min_height": None}, "min_height must be a finite number, got None"),
        ("InvertedPendulum", {"angle_bounds": (0.0,)}, r"angle_bounds\[0\] must be a finite number > 0"),
        ("InvertedPendulum", {"survival_steps": (500,)}, r"survival_rewards must be as long as survival_steps \(1\)"),
        ("InvertedPendulum", {"survival_steps": (0.5, 2)}, r"survival_steps\[0\] must be a whole number"),
        ("Pendulum", {"hold_steps": (10, 60, 30)}, "hold_steps must be one or more strictly increasing"),
        ("Pendulum", {"repeat_hold_rewards": "no"}, "repeat_hold_rewards must be True or False"),
        ("LunarLander", {"zone": -1}, "zone must be a finite number > 0, got -1"),
        ("MountainCar", {"goal_position": 0.7}, "goal_position at most 0.6"),
        ("MountainCar", {"step_reward": 1.0}, "step_reward must be a finite number <= 0"),
        ("Pendulum", {"observe_progress": "yes"}, "observe_progress must be True or False, got 'yes'"),
    ],
)
def test_bad_arguments_are_named_at_make(name: str, kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gym.make(env_id(name), **kwargs)


@each_env
def test_arguments_of_rule_and_base_do_not_overlap(name: str) -> None:
    wrapper: Any = gym.make(env_id(name), disable_env_checker=True, max_episode_steps=-1)
    rule_arguments = {field.name for field in dataclasses.fields(wrapper.rule) if field.init}
    assert not rule_arguments & constructor_arguments(wrapper.base_class())


def test_arguments_of_the_base_pass_through() -> None:
    assert gym.make(env_id("Pendulum"), g=9.81).unwrapped.g == 9.81
    assert gym.make(env_id("BipedalWalker"), hardcore=True).unwrapped.hardcore
    assert gym.make(env_id("Hopper"), frame_skip=2, width=64).unwrapped.frame_skip == 2


@each_env
def test_same_seed_and_actions_give_equal_bits_after_other_episodes(name: str) -> None:
    """Trajectories from ``gym.make`` can be compared without the wrappers of the runs."""
    used = gym.make(env_id(name))
    # Only the world of Box2D has a memory of its own, whose traces need some episodes to show.
    episodes, steps = (6, 150) if DISCRETE_ENVS[name].module == "box2d" else (2, 60)
    for seed in range(episodes):
        rollout(used, steps, seed)
    for seed in (100, 101):
        for got, want in zip(rollout(used, steps, seed), rollout(gym.make(env_id(name)), steps, seed), strict=True):
            assert got[0].tobytes() == want[0].tobytes()
            assert got[1:4] == want[1:4]


def test_importing_the_package_loads_no_simulator() -> None:
    code = "import softdpg, sys; print(sorted({'mujoco', 'Box2D', 'pygame', 'jax', 'torch'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
