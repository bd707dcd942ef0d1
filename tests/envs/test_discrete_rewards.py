"""The rewards in the simulators: the rules get the right quantities, and good policies reach the ceilings."""

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.box2d.lunar_lander import heuristic

import softdpg  # noqa: F401


def act(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def play(env: gym.Env, observation: np.ndarray, policy: Callable[[np.ndarray], np.ndarray]) -> list[tuple]:
    """Run one episode; reward, terminated, truncated and info of each step."""
    steps = []
    while True:
        observation, reward, terminated, truncated, info = env.step(policy(observation))
        steps.append((reward, terminated, truncated, info))
        if terminated or truncated:
            return steps


def random_policy(env: gym.Env) -> Callable[[np.ndarray], np.ndarray]:
    env.action_space.seed(1)
    return lambda _: env.action_space.sample()


def ceiling(env: gym.Env) -> float:
    assert env.spec is not None
    return env.get_wrapper_attr("rule").ceiling(env.spec.max_episode_steps)


def test_ant_milestones_from_the_simulator() -> None:
    env: Any = gym.make("softdpg/AntDiscrete-v0")
    env.reset(seed=0)
    base = env.unwrapped

    def reward_at(x: float) -> float:
        position = base.init_qpos.copy()
        position[0] = x
        base.set_state(position, np.zeros_like(base.init_qvel))
        return env.step(np.zeros(8, dtype=np.float32))[1]

    assert [reward_at(x) for x in (0.0, 0.6, 0.2, 3.2, 25.0)] == [0.0, 50.0, 0.0, 100.0, 150.0]
    assert sum((50.0, 100.0, 150.0)) == ceiling(env) == 300.0
    position = base.init_qpos.copy()
    position[2] = 1.5  # above the healthy height
    base.set_state(position, np.zeros_like(base.init_qvel))
    _, reward, terminated, *_ = env.step(np.zeros(8, dtype=np.float32))
    assert (reward, terminated) == (-10.0, True)


def test_half_cheetah_uses_the_x_velocity_of_info() -> None:
    env = gym.make("softdpg/HalfCheetahDiscrete-v0")
    observation, _ = env.reset(seed=0)
    steps = play(env, observation, random_policy(env))
    assert len(steps) == 1000
    bands = [(0.0, 0.0), (1.0, 0.5), (3.0, 1.0), (5.0, 2.0), (math.inf, 3.0)]
    for reward, *_, info in steps:
        assert reward == next(value for upper, value in bands if info["x_velocity"] <= upper)
    assert len({reward for reward, *_ in steps}) >= 3
    assert ceiling(env) == 3000.0


@pytest.mark.parametrize(("name", "stride", "value"), [("Hopper", 0.5, 5.0), ("Walker2d", 0.2, 2.0)])
def test_strides_count_from_the_x_of_the_reset(name: str, stride: float, value: float) -> None:
    env: Any = gym.make(f"softdpg/{name}Discrete-v0")
    _, info = env.reset(seed=0)
    start = info["x_position"]
    base = env.unwrapped
    position = base.data.qpos.copy()
    position[0] = start + 2.5 * stride
    base.set_state(position, np.zeros_like(base.init_qvel))
    *_, info = outcome = env.step(np.zeros(env.action_space.shape, dtype=np.float32))
    assert outcome[1] == pytest.approx(2 * value + 0.01)
    assert (info["milestones"], info["milestones_passed"]) == (2, 2)


@pytest.mark.parametrize(("name", "last"), [("Hopper", 0.0), ("Walker2d", 0.01)])
def test_survival_reward_at_a_fall(name: str, last: float) -> None:
    env = gym.make(f"softdpg/{name}Discrete-v0", stride=100.0)
    observation, _ = env.reset(seed=0)
    steps = play(env, observation, random_policy(env))
    assert steps[-1][1]  # fell
    assert [reward for reward, *_ in steps] == [0.01] * (len(steps) - 1) + [last]


def test_humanoid_quantities() -> None:
    env: Any = gym.make("softdpg/HumanoidDiscrete-v0")
    env.reset(seed=0)
    base = env.unwrapped

    def step_with(x_velocity: float, y_velocity: float = 0.0, height: float = 1.4) -> tuple[float, int]:
        velocity = np.zeros_like(base.init_qvel)
        velocity[:2] = x_velocity, y_velocity
        position = base.init_qpos.copy()
        position[2] = height
        base.set_state(position, velocity)
        _, reward, *_, info = env.step(np.zeros(17, dtype=np.float32))
        return reward, info["streak"]

    assert step_with(-1.0) == (3.0, 0)
    assert step_with(0.5) == (0.0, 0)
    assert step_with(0.0, y_velocity=1.0) == (0.0, 0)
    assert step_with(0.0, height=1.15) == (0.0, 0)
    assert [step_with(3.0) for _ in range(7)] == [
        (0.0, 1),
        (0.0, 2),
        (0.0, 3),
        (0.0, 4),
        (0.0, 5),
        (20.0, 6),
        (20.0, 7),
    ]
    assert ceiling(env) == 19_900.0


def test_balancing_reaches_the_ceiling_and_the_bonus_is_paid_at_the_time_limit() -> None:
    env = gym.make("softdpg/InvertedPendulumDiscrete-v0", reset_noise_scale=1e-4)
    observation, _ = env.reset(seed=0)
    gains = np.array([0.5, 10.0, 0.8, 1.5])
    steps = play(env, observation, lambda obs: np.clip([gains @ obs], -3, 3).astype(np.float32))
    rewards = [reward for reward, *_ in steps]
    assert {t: r for t, r in enumerate(rewards, start=1) if r != 10.0} == {500: 210.0, 1000: 210.0}
    assert steps[-1][1:3] == (False, True)  # truncated, not terminated: no failure
    assert sum(rewards) == ceiling(env) == 10_400.0


def test_a_falling_pole_overwrites_the_reward() -> None:
    env = gym.make("softdpg/InvertedPendulumDiscrete-v0")
    observation, _ = env.reset(seed=0)
    steps = play(env, observation, lambda _: act(3.0))
    assert [reward for reward, terminated, *_ in steps if terminated] == [-20.0]


def test_double_pendulum_uses_both_hinges() -> None:
    env: Any = gym.make("softdpg/InvertedDoublePendulumDiscrete-v0")
    env.reset(seed=0)
    base = env.unwrapped

    def reward_at(angle_1: float, angle_2: float) -> float:
        base.set_state(np.array([0.0, angle_1, angle_2]), np.zeros(3))
        return env.step(act(0.0))[1]

    assert [reward_at(*angles) for angles in ((0.0, 0.0), (0.1, 0.0), (0.0, -0.1), (-0.1, 0.25), (0.0, 0.5))] == [
        20.0,
        5.0,
        5.0,
        1.0,
        0.0,
    ]
    base.set_state(np.array([0.0, 1.5, 0.0]), np.zeros(3))
    assert env.step(act(0.0))[1:3] == (-10.0, True)
    assert ceiling(env) == 21_000.0


def move_walker(base: Any, distance: float) -> None:
    for body in (base.hull, *base.legs):
        body.position = (body.position[0] + distance, body.position[1] + 0.3)


def test_bipedal_walker_successful_end_is_no_fall() -> None:
    env: Any = gym.make("softdpg/BipedalWalkerDiscrete-v0")
    env.reset(seed=0)
    move_walker(env.unwrapped, 84.5)  # beyond the end of the terrain
    _, reward, terminated, *_ = env.step(np.zeros(4, dtype=np.float32))
    assert (reward, terminated) == (33.0, True)
    assert ceiling(env) == 33.0


def test_bipedal_walker_distance_counts_from_the_start() -> None:
    env: Any = gym.make("softdpg/BipedalWalkerDiscrete-v0")
    env.reset(seed=0)
    rewards = []
    for distance in (0.45, 0.1, -0.5, 0.6, 5.0):  # 0.45, 0.55, 0.05, 0.65, 5.65 from the start, give or take a step
        move_walker(env.unwrapped, distance)
        rewards.append(env.step(np.zeros(4, dtype=np.float32))[1])
    assert rewards == [0.0, 1.0, 0.0, 0.0, 12.0]


def test_bipedal_walker_fall_and_leaving_to_the_left() -> None:
    env: Any = gym.make("softdpg/BipedalWalkerDiscrete-v0")
    env.reset(seed=0)
    env.unwrapped.game_over = True  # what the contact listener sets when the hull touches the ground
    assert env.step(np.zeros(4, dtype=np.float32))[1:3] == (-10.0, True)
    env.reset(seed=0)
    move_walker(env.unwrapped, -5.0)
    assert env.step(np.zeros(4, dtype=np.float32))[1:3] == (-10.0, True)


def test_landing_reaches_the_ceiling() -> None:
    env = gym.make("softdpg/LunarLanderDiscrete-v0")
    observation, _ = env.reset(seed=0)
    steps = play(env, observation, lambda obs: heuristic(env.unwrapped, obs))
    assert steps[-1][1]
    assert steps[-1][3]["landed"]
    assert sorted(reward for reward, *_ in steps if reward) == [5.0, 10.0, 100.0]
    assert ceiling(env) == 115.0


def test_a_lander_without_engines_crashes() -> None:
    env = gym.make("softdpg/LunarLanderDiscrete-v0")
    observation, _ = env.reset(seed=0)
    steps = play(env, observation, lambda _: act(0.0, 0.0))
    assert steps[-1][1]
    # approach, hover, and a crash on the body or with one leg in the air
    assert sum(reward for reward, *_ in steps) == 5.0 + 10.0 - 50.0


def pendulum_episode(gains: Callable[[float, float, int], float], **kwargs: Any) -> float:
    """Start upright at rest; the torque is a function of angle, angular velocity and the streak so far."""
    env: Any = gym.make("softdpg/PendulumDiscrete-v0", **kwargs)
    env.reset(seed=0, options={"x_init": 0.0, "y_init": 0.0})
    total, streak, truncated = 0.0, 0, False
    while not truncated:
        torque = gains(*env.unwrapped.state, streak)
        _, reward, _, truncated, info = env.step(act(max(-2.0, min(2.0, torque))))
        total += reward
        streak = info["streak"]
    return total


def test_pendulum_angle_is_wrapped() -> None:
    env: Any = gym.make("softdpg/PendulumDiscrete-v0")
    env.reset(seed=0)
    for turns, reward in ((-3, 12.0), (2, 12.0), (0.5, 0.0)):
        env.unwrapped.state = np.array([turns * math.tau, 0.0])
        assert env.step(act(0.0))[1] == reward


def test_pendulum_held_upright() -> None:
    assert pendulum_episode(lambda angle, speed, streak: -(8.0 * angle + 4.0 * speed)) == 2540.0


def test_pendulum_breaking_the_hold_on_purpose_earns_more() -> None:
    """After each 60 steps, kick for three steps and brake for three: from one side of upright to the other."""

    class Kick:
        side, left = -1.0, 0

        def __call__(self, angle: float, speed: float, streak: int) -> float:
            if streak == 60:
                self.left = 6
            if not self.left:
                return (-15.0 * math.sin(angle) - 25.0 * (angle - 0.065 * self.side) - 10.0 * speed) / 3.0
            self.left -= 1
            torque = 2.0 * self.side * (1.0 if self.left < 3 else -1.0)
            if not self.left:
                self.side = -self.side
            return torque

    env = gym.make("softdpg/PendulumDiscrete-v0")
    assert 2540.0 < pendulum_episode(Kick()) <= ceiling(env) == 2834.0
    assert pendulum_episode(Kick(), repeat_hold_rewards=False) < 2540.0


def car_step(position: float, velocity: float, action: float = 0.0, **kwargs: Any) -> tuple[float, bool, float]:
    """Step from a state; reward, terminated and the new position."""
    env: Any = gym.make("softdpg/MountainCarDiscrete-v0", **kwargs)
    env.reset(seed=0)
    env.unwrapped.state = np.array([position, velocity], dtype=np.float32)
    observation, reward, terminated, *_ = env.step(act(action))
    return reward, terminated, float(observation[0])


def test_mountain_car_goal_is_at_one_half() -> None:
    # The velocity changes by -0.0025 cos(3 x) before the car moves; start so that it arrives on either side of 0.5.
    velocity = 0.04 - 0.0025 * math.cos(3 * 0.46)
    reward, terminated, position = car_step(0.46 - 1e-4, 0.04)
    assert 0.45 < position < 0.5
    assert not terminated
    assert reward == pytest.approx(20.0 - 0.01)
    reward, terminated, position = car_step(0.5 - velocity + 1e-4, 0.04)
    assert position >= 0.5
    assert terminated
    assert reward == pytest.approx(20.0 + 100.0 - 0.01)


def test_mountain_car_exactly_at_the_goal() -> None:
    env: Any = gym.make("softdpg/MountainCarDiscrete-v0")
    env.reset(seed=0)
    # The base environment caps the velocity at 0.07, so that this is how far the car moves, without rounding.
    assert 0.43 + 0.07 == 0.5 > 0.4299999999999999 + 0.07
    for position, terminates in ((0.4299999999999999, False), (0.43, True)):
        env.unwrapped.state = np.array([position, 0.1])
        _, reward, terminated, *_ = env.step(act(0.0))
        assert terminated == terminates
        assert (reward > 90.0) == terminates


def test_mountain_car_goal_can_be_moved() -> None:
    assert car_step(0.46, 0.01, goal_position=0.45)[1]
    assert not car_step(0.52, 0.02, goal_position=0.6)[1]


def test_mountain_car_energy_pumping_collects_every_stage() -> None:
    env = gym.make("softdpg/MountainCarDiscrete-v0")
    observation, _ = env.reset(seed=0)
    steps = play(env, observation, lambda obs: act(1.0 if obs[1] >= 0 else -1.0))
    assert steps[-1][1]
    assert sum(reward for reward, *_ in steps) == pytest.approx(ceiling(env) - 0.01 * len(steps))
    assert ceiling(env) == 130.0
