"""The example environments: Gymnasium's and SB3's checks, motion and rewards by hand, seeds, claims of docstrings."""

import json
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from benchmarks import point_mass as benchmark
from examples.point_mass import RADIUS, PointMass, PointMassGoal, at_goal

ROOT = Path(__file__).parents[2]
IDS = ["PointMass-v0", "PointMassGoal-v0"]
both = pytest.mark.parametrize("env_id", IDS)
points = st.tuples(*2 * [st.floats(-0.5, 0.5, width=32)])


@both
def test_checkers_have_nothing_to_say(env_id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id, render_mode="rgb_array").unwrapped)
        sb3_check_env(gym.make(env_id, render_mode="rgb_array").unwrapped)


def trajectory(env: gym.Env, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    history = [env.reset(seed=seed)]
    for _ in range(60):
        history.append(env.step(rng.uniform(-1, 1, 2).astype(np.float32)))
        if history[-1][2] or history[-1][3]:
            history.append(env.reset())
    return history


@both
def test_a_seed_decides_everything(env_id: str) -> None:
    used = gym.make(env_id)
    for seed in range(3):
        trajectory(used, seed)
    for got, want in zip(trajectory(used, 7), trajectory(gym.make(env_id), 7), strict=True):
        np.testing.assert_equal(got, want)


def test_point_mass_by_hand() -> None:
    env = PointMass()
    env.reset(seed=0)
    env.position = np.array([-0.05, 0.2], np.float32)
    outcomes = [env.step(np.array(action, np.float32)) for action in ((1.0, 0.0), (5.0, 0.5), (1.0, 0.0))]
    np.testing.assert_allclose(
        [outcome[0] for outcome in outcomes], [[0.05, 0.2], [0.15, 0.25], [0.25, 0.25]], atol=1e-6
    )
    assert [outcome[1:] for outcome in outcomes] == [
        (0.0, False, False, {"is_success": False}),
        (0.0, False, False, {"is_success": False}),
        (1.0, False, False, {"is_success": True}),
    ]
    env.position = np.array([0.48, -0.5], np.float32)
    np.testing.assert_array_equal(env.step(np.array([1.0, -1.0], np.float32))[0], [0.5, -0.5])


def test_point_mass_goal_by_hand() -> None:
    env = PointMassGoal()
    env.reset(seed=0)
    env.position, env.goal = np.array([0.0, 0.0], np.float32), np.array([0.14, 0.0], np.float32)
    outcomes = [env.step(np.array([1.0, 0.0], np.float32)) for _ in range(3)]
    assert [(reward, terminated, info["is_success"]) for _, reward, terminated, _, info in outcomes] == [
        (0.0, False, True),  # 4 cm from it
        (-1.0, False, False),  # 6 cm beyond
        (-1.0, False, False),
    ]
    for observation, *_ in outcomes:
        np.testing.assert_array_equal(observation["achieved_goal"], observation["observation"])
        np.testing.assert_array_equal(observation["desired_goal"], env.goal)


@given(st.lists(st.tuples(points, points), min_size=1, max_size=5))
@settings(max_examples=50)
def test_rewards_of_many_goals_are_those_of_each(pairs: list[tuple[Any, Any]]) -> None:
    achieved, desired = (np.array(part, np.float32) for part in zip(*pairs, strict=True))
    rewards = PointMassGoal().compute_reward(achieved, desired, [{}] * len(pairs))
    assert rewards.shape == (len(pairs),)
    for reward, a, b in zip(rewards, achieved, desired, strict=True):
        assert reward == (0.0 if np.hypot(*(a - b)) < RADIUS else -1.0)


@both
def test_time_limit_and_starts(env_id: str) -> None:
    env = gym.make(env_id)
    starts = []
    for seed in range(200):
        env.reset(seed=seed)
        arena: Any = env.unwrapped
        assert not at_goal(arena.position, arena.goal)
        starts.append(arena.position)
    low, high = np.min(starts, axis=0), np.max(starts, axis=0)
    assert (low < -0.45).all()
    assert (high > 0.45).all()
    env.reset(seed=0)
    arena.position = np.array([-0.5, -0.5], np.float32)
    arena.goal = np.array([0.25, 0.25], np.float32)
    lengths = next(step for step in range(1, 100) if env.step(np.array([-1.0, -1.0], np.float32))[3])
    assert lengths == 50


@pytest.mark.extended
def test_how_often_chance_finds_the_goal() -> None:
    """The docstring's 1 of 6."""
    env = gym.make("PointMass-v0")
    env.action_space.seed(1)
    found = 0
    for seed in range(600):
        env.reset(seed=seed)
        touched = truncated = False
        while not truncated:
            _, reward, _, truncated, _ = env.step(env.action_space.sample())
            touched |= reward == 1.0
        found += touched
    assert 1 / 8 < found / 600 < 1 / 4.5


@pytest.mark.parametrize(("env_id", "mean"), [("PointMass-v0", 47), ("PointMassGoal-v0", -4)])
def test_the_shortest_way(env_id: str, mean: float) -> None:
    """The docstring's numbers: straight to the goal and stay."""
    env, returns = gym.make(env_id), []
    for seed in range(300):
        env.reset(seed=seed)
        total, truncated = 0.0, False
        while not truncated:
            arena: Any = env.unwrapped
            way = arena.goal - arena.position
            _, reward, _, truncated, info = env.step(np.clip(way / 0.1, -1, 1))
            total += float(reward)
        assert info["is_success"]
        returns.append(total)
    assert mean - 0.5 < np.mean(returns) < mean + 0.5


def test_a_picture_shows_mass_and_goal() -> None:
    env = PointMass(render_mode="rgb_array")
    env.reset(seed=0)
    env.position = np.array([-0.25, -0.25], np.float32)
    picture = env.render()
    assert picture is not None
    assert picture.shape == (200, 200, 3)
    assert picture[50, 150].tolist() == [40, 160, 80]  # goal: right and up
    assert picture[150, 50].tolist() == [0, 0, 0]  # mass: left and down
    assert picture[100, 100].tolist() == [255, 255, 255]


@pytest.mark.parametrize("goal", [(2.0, 0.0), (0.0,), (np.nan, 0.0)])
def test_bad_goals(goal: Any) -> None:
    with pytest.raises(ValueError, match="goal must be two numbers in"):
        gym.make("PointMass-v0", goal=goal)


def test_the_benchmark_counts_the_solved() -> None:
    runs = [
        {"success": [0.1, 0.96, 0.99], "cpu_seconds": [10.0, 24.0, 31.0]},
        {"success": [0.95, 1.0, 0.9], "cpu_seconds": [12.0, 20.0, 30.0]},
        {"success": [0.1, 0.2, 0.3], "cpu_seconds": [10.0, 20.0, 30.0]},
    ]
    runs = [{"algorithm": "SAC (SBX)", "env": "PointMass-v0", "seed": seed, **run} for seed, run in enumerate(runs)]
    rows = benchmark.table(json.loads(json.dumps(runs))).splitlines()
    (row,) = [row for row in rows if row.startswith("| SAC (SBX)")]
    assert row == "| SAC (SBX) | 1 of 3 | 1,500 steps, 18 CPU s (2 of 3) | 0 of 0 | never |"
    page = (ROOT / "docs" / "environments.md").read_text()
    assert benchmark.table(json.loads(benchmark.RESULTS.read_text())) in page


@both
def test_the_benchmark_measures_success(env_id: str) -> None:
    class Straight:
        """Goes to the goal from the right half of the arena, and nowhere from the left."""

        def predict(self, observation: Any, deterministic: bool) -> tuple[np.ndarray, None]:
            goal = observation["desired_goal"] if env_id == "PointMassGoal-v0" else np.array([0.25, 0.25])
            position = observation["observation"] if env_id == "PointMassGoal-v0" else observation
            action = np.clip((goal - position) / 0.1, -1, 1)
            action[position[:, 0] < 0] = 0.0
            return action.astype(np.float32), None

    envs = [gym.make(env_id) for _ in range(40)]
    rate = benchmark.success_rate(Straight(), envs)
    ends: list[Any] = [env.unwrapped for env in envs]
    assert rate == np.mean([at_goal(end.position, end.goal) for end in ends])
    assert 0.2 < rate < 0.8
