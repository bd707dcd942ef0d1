"""Pendulum and MountainCar with discrete rewards."""

import math
from typing import Any

import numpy as np

from softdpg.envs.discrete_reward import DiscreteReward
from softdpg.envs.rules import MountainCarRule, PendulumRule


class PendulumDiscrete(DiscreteReward[PendulumRule]):
    """``softdpg/PendulumDiscrete-v0``: ``Pendulum-v1``, rewarded in steps for being upright and still.

    theta is the angle from upright, wrapped to [-pi, pi], theta_dot the angular velocity, both after the step.

    **Observation** ``Box([-1, -1, -8], [1, 1, 8], (3,), float32)``: cos(theta), sin(theta), theta_dot.

    **Action** ``Box(-2, 2, (1,), float32)``: torque.

    **Starting state**: theta uniform in [-pi, pi], theta_dot in [-1, 1].

    **Reward**: the sum of

    | where | reward |
    | --- | --- |
    | \\|theta\\| < 0.10 | 8 |
    | 0.10 <= \\|theta\\| < 0.25 | 4 |
    | 0.25 <= \\|theta\\| < 0.50 | 2 |
    | 0.50 <= \\|theta\\| < 1.00 | 0.5 |
    | \\|theta\\| < 0.25 and \\|theta_dot\\| < 0.5 | 4 |
    | \\|theta\\| < 0.25 and 0.5 <= \\|theta_dot\\| < 1.0 | 2 |
    | \\|theta\\| < 0.15 and \\|theta_dot\\| < 0.7 for 10, 30, 60 steps in a row | 20, 40, 80 |

    **Episode end**: never terminated; truncated after 200 steps.

    **Memory**: the length of the streak of the last row; each time a streak reaches one of the lengths, its bonus is
    paid (``repeat_hold_rewards=False``: once an episode).

    **Ceiling** of the 200 steps: 2,540 in one unbroken hold (200 * 12 + 140), and with ``repeat_hold_rewards=False``.
    As bonuses repeat, breaking the hold for one step and starting anew can earn more; the bound over all trajectories
    is 2,834.

    **Arguments**: those of ``PendulumRule``, ``angle_bounds=(0.1, 0.25, 0.5, 1)``, ``angle_rewards=(8, 4, 2, 0.5, 0)``,
    ``near_angle=0.25``, ``speed_bounds=(0.5, 1)``, ``speed_rewards=(4, 2, 0)``, ``hold_angle=0.15``,
    ``hold_speed=0.7``, ``hold_steps=(10, 30, 60)``, ``hold_rewards=(20, 40, 80)``, ``repeat_hold_rewards=True``; those
    of ``Pendulum-v1``; ``observe_progress=False``.

    **Version history**: v0, 0.1.0.
    """

    base_id = "Pendulum-v1"
    rule_class = PendulumRule
    summary = "8, 4, 2, 0.5 a step by angle, 4 or 2 for low speed near upright; 20, 40, 80 for 10, 30, 60 steps of hold"
    ceiling_note = "2,540 in one hold"

    def apply_rule(self, observation: np.ndarray, terminated: bool, info: dict[str, Any]) -> float:
        """Pass angle and angular velocity to the rule."""
        theta, theta_dot = self.env.state.tolist()  # type: ignore[attr-defined]
        rule = self.rule
        reward = rule.step(angle=math.remainder(theta, math.tau), angular_velocity=theta_dot)
        info["streak"] = rule.streak
        info["hold_bonus"] = rule.hold_bonus
        return reward


class MountainCarDiscrete(DiscreteReward[MountainCarRule]):
    """``softdpg/MountainCarDiscrete-v0``: ``MountainCarContinuous-v0``, rewarded for three stages on the way to 0.5.

    **Observation** ``Box([-1.2, -0.07], [0.6, 0.07], (2,), float32)``: position and velocity of the car.

    **Action** ``Box(-1, 1, (1,), float32)``: force on the car.

    **Starting state**: position uniform in [-0.6, -0.4], velocity 0.

    **Reward**: the sum of

    | where | reward |
    | --- | --- |
    | every step | -0.01 |
    | first position < -0.7 | 10 |
    | first position > -0.1 | 20 |
    | position >= 0.5, which terminates | 100 |

    The base environment stops at 0.45; its goal is moved to ``goal_position``. With the base's argument
    ``goal_velocity`` above its default 0 the car has to arrive that fast to end the episode and to be paid.

    **Episode end**: terminated at the goal; truncated after 999 steps.

    **Memory**: which of the two middle rows were paid. **Ceiling**: 130 less the step costs.

    **Arguments**: those of ``MountainCarRule``, ``backward_position=-0.7``, ``backward_reward=10``,
    ``forward_position=-0.1``, ``forward_reward=20``, ``goal_position=0.5``, ``goal_reward=100``, ``step_reward=-0.01``;
    those of ``MountainCarContinuous-v0``; ``observe_progress=False``.

    **Version history**: v0, 0.1.0.
    """

    base_id = "MountainCarContinuous-v0"
    rule_class = MountainCarRule
    summary = "10 once at x < -0.7, 20 once at x > -0.1, 100 at x >= 0.5; -0.01 a step"
    ceiling_note = "less 0.01 a step"

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.env.goal_position = self.rule.goal_position  # type: ignore[attr-defined]

    def apply_rule(self, observation: np.ndarray, terminated: bool, info: dict[str, Any]) -> float:
        """Pass the position to the rule; the base environment terminates at the goal alone."""
        rule = self.rule
        reward = rule.step(position=observation.item(0), at_goal=terminated)
        info["swung_back"] = rule.swung_back
        info["moved_forward"] = rule.moved_forward
        return reward
