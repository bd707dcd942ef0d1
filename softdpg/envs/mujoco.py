"""The seven MuJoCo environments with discrete rewards."""

from typing import Any

import numpy as np

from softdpg.envs.discrete_reward import DiscreteReward
from softdpg.envs.rules import (
    AntRule,
    HalfCheetahRule,
    HopperRule,
    HumanoidRule,
    InvertedDoublePendulumRule,
    InvertedPendulumRule,
    Walker2dRule,
)
from softdpg.envs.rules.locomotion import StrideRule


class AntDiscrete(DiscreteReward[AntRule]):
    """``softdpg/AntDiscrete-v0``: ``Ant-v5``, rewarded for six positions on the x axis.

    **Observation** ``Box(-inf, inf, (105,), float64)``: 13 positions and angles (x and y of the torso left out), 14
    velocities, 78 contact forces.

    **Action** ``Box(-1, 1, (8,), float32)``: torques of the joints.

    **Starting state**: upright at x = y = 0, z = 0.75, with noise: uniform in [-0.1, 0.1] on positions, normal with
    standard deviation 0.1 on velocities.

    **Reward**: the sum of

    | where | reward |
    | --- | --- |
    | first x > 0.5, 1.5, 3, 5, 10, 20 | 50 each |
    | termination (not the time limit) | -10 |

    **Episode end**: terminated when the torso's height leaves [0.2, 1] or a number of the state is not finite;
    truncated after 1,000 steps.

    **Memory**: the milestones passed. **Ceiling**: 300.

    **Arguments**: those of ``AntRule``, ``thresholds=(0.5, 1.5, 3, 5, 10, 20)``, ``rewards=(50, 50, 50, 50, 50, 50)``,
    ``failure_reward=-10``; those of ``Ant-v5``; ``observe_progress=False``.

    **Version history**: v0, 0.1.0.
    """

    base_id = "Ant-v5"
    rule_class = AntRule
    summary = "50 once at each x > 0.5, 1.5, 3, 5, 10, 20; -10 on termination"

    def start_rule(self, info: dict[str, Any]) -> None:
        """Start at the x position of the reset."""
        self.rule.reset(position=float(info["x_position"]))

    def apply_rule(self, observation: np.ndarray, terminated: bool, info: dict[str, Any]) -> float:
        """Pass the x position to the rule."""
        rule = self.rule
        reward = rule.step(position=float(info["x_position"]), failed=terminated)
        info["milestones"] = rule.milestones
        info["milestones_passed"] = rule.milestones_passed
        return reward


class HalfCheetahDiscrete(DiscreteReward[HalfCheetahRule]):
    """``softdpg/HalfCheetahDiscrete-v0``: ``HalfCheetah-v5``, rewarded for the bin of its forward velocity.

    v is the base environment's ``x_velocity``, the mean over the step.

    **Observation** ``Box(-inf, inf, (17,), float64)``: 8 positions and angles (x left out), 9 velocities.

    **Action** ``Box(-1, 1, (6,), float32)``: torques of the joints.

    **Starting state**: at rest on its legs, with noise: uniform in [-0.1, 0.1] on positions, normal with standard
    deviation 0.1 on velocities.

    **Reward**

    | where | reward |
    | --- | --- |
    | v <= 0 | 0 |
    | 0 < v <= 1 | 0.5 |
    | 1 < v <= 3 | 1 |
    | 3 < v <= 5 | 2 |
    | v > 5 | 3 |

    **Episode end**: never terminated; truncated after 1,000 steps.

    **Memory** none, so ``observe_progress`` changes nothing. **Ceiling** of the 1,000 steps: 3,000.

    **Arguments**: those of ``HalfCheetahRule``, ``thresholds=(0, 1, 3, 5)``, ``rewards=(0, 0.5, 1, 2, 3)``; those of
    ``HalfCheetah-v5``; ``observe_progress=False``.

    **Version history**: v0, 0.1.0.
    """

    base_id = "HalfCheetah-v5"
    rule_class = HalfCheetahRule
    summary = "0, 0.5, 1, 2, 3 a step for forward velocity up to 0, 1, 3, 5 and above"

    def apply_rule(self, observation: np.ndarray, terminated: bool, info: dict[str, Any]) -> float:
        """Pass the forward velocity to the rule."""
        rule = self.rule
        reward = rule.step(x_velocity=float(info["x_velocity"]))
        info["band"] = rule.band
        return reward


class _StrideReward(DiscreteReward[StrideRule]):
    """What Hopper and Walker2d share: the x position is all their rules need."""

    def start_rule(self, info: dict[str, Any]) -> None:
        """Start at the x position of the reset."""
        self.rule.reset(position=float(info["x_position"]))

    def apply_rule(self, observation: np.ndarray, terminated: bool, info: dict[str, Any]) -> float:
        """Pass the x position to the rule."""
        rule = self.rule
        reward = rule.step(position=float(info["x_position"]), terminated=terminated)
        info["milestones"] = rule.milestones
        info["milestones_passed"] = rule.milestones_passed
        return reward


class HopperDiscrete(_StrideReward):
    """``softdpg/HopperDiscrete-v0``: ``Hopper-v5``, rewarded for every half metre forward.

    **Observation** ``Box(-inf, inf, (11,), float64)``: 5 positions and angles (x left out), 6 velocities, clipped to
    [-10, 10].

    **Action** ``Box(-1, 1, (3,), float32)``: torques of the joints.

    **Starting state**: standing at z = 1.25, with noise: uniform in [-0.005, 0.005] on positions and velocities.

    **Reward**: the sum of

    | where | reward |
    | --- | --- |
    | every stride of 0.5 by which x exceeds the last rewarded position | 5 |
    | every step that does not terminate | 0.01 |

    The last rewarded position starts at the x of the reset and moves on by whole strides; the remainder counts towards
    the next.

    **Episode end**: terminated when the height is not above 0.7, the torso's angle not in (-0.2, 0.2) or another number
    of the state not in (-100, 100); truncated after 1,000 steps.

    **Memory**: the last rewarded position. **Ceiling** none.

    **Arguments**: those of ``HopperRule``, ``stride=0.5``, ``stride_reward=5``, ``survival_reward=0.01``,
    ``survival_at_termination=False``; those of ``Hopper-v5``; ``observe_progress=False``.

    **Version history**: v0, 0.1.0.
    """

    base_id = "Hopper-v5"
    rule_class = HopperRule
    summary = "5 for each 0.5 forward; 0.01 a non-terminal step"


class Walker2dDiscrete(_StrideReward):
    """``softdpg/Walker2dDiscrete-v0``: ``Walker2d-v5``, rewarded for every 0.2 metres forward.

    **Observation** ``Box(-inf, inf, (17,), float64)``: 8 positions and angles (x left out), 9 velocities, clipped to
    [-10, 10].

    **Action** ``Box(-1, 1, (6,), float32)``: torques of the joints.

    **Starting state**: standing at z = 1.25, with noise: uniform in [-0.005, 0.005] on positions and velocities.

    **Reward**: the sum of

    | where | reward |
    | --- | --- |
    | every stride of 0.2 by which x exceeds the last rewarded position | 2 |
    | every step | 0.01 |

    The last rewarded position starts at the x of the reset and moves on by whole strides; the remainder counts towards
    the next.

    **Episode end**: terminated when the height is not in (0.8, 2) or the torso's angle not in (-1, 1); truncated after
    1,000 steps.

    **Memory**: the last rewarded position. **Ceiling** none.

    **Arguments**: those of ``Walker2dRule``, ``stride=0.2``, ``stride_reward=2``, ``survival_reward=0.01``,
    ``survival_at_termination=True``; those of ``Walker2d-v5``; ``observe_progress=False``.

    **Version history**: v0, 0.1.0.
    """

    base_id = "Walker2d-v5"
    rule_class = Walker2dRule
    summary = "2 for each 0.2 forward; 0.01 a step"


class HumanoidDiscrete(DiscreteReward[HumanoidRule]):
    """``softdpg/HumanoidDiscrete-v0``: ``Humanoid-v5``, rewarded for standing, and more for sustained speed.

    z is the height of the torso, v_x and v_y the base environment's ``x_velocity`` and ``y_velocity``.
    Upright means z > 1.18 and \\|v_y\\| < 0.18.

    **Observation** ``Box(-inf, inf, (348,), float64)``: 22 positions and angles (x and y of the torso left out), 23
    velocities, 303 inertias, body velocities, actuator and contact forces.

    **Action** ``Box(-0.4, 0.4, (17,), float32)``: torques of the joints.

    **Starting state**: standing at z = 1.4, with noise: uniform in [-0.01, 0.01] on positions and velocities.

    **Reward**

    | where | reward |
    | --- | --- |
    | upright and v_x < 0.12 (backwards included) | 3 |
    | upright and v_x > 1.6, from the sixth such step in a row on | 20 |
    | otherwise | 0 |

    **Episode end**: terminated when the torso's height is not in (1, 2); truncated after 1,000 steps.

    **Memory**: the length of the streak of the second row, which any other step sets back to zero.
    **Ceiling** of the 1,000 steps: 19,900.

    **Arguments**: those of ``HumanoidRule``, ``min_height=1.18``, ``max_lateral_speed=0.18``, ``low_velocity=0.12``,
    ``low_reward=3``, ``high_velocity=1.6``, ``high_steps=6``, ``high_reward=20``; those of ``Humanoid-v5``;
    ``observe_progress=False``.

    **Version history**: v0, 0.1.0.
    """

    base_id = "Humanoid-v5"
    rule_class = HumanoidRule
    summary = "upright: 3 a step below 0.12 forward velocity, 20 from the 6th step in a row above 1.6"

    def apply_rule(self, observation: np.ndarray, terminated: bool, info: dict[str, Any]) -> float:
        """Pass torso height and velocities to the rule."""
        rule = self.rule
        reward = rule.step(
            height=self.env.data.qpos.item(2),  # type: ignore[attr-defined]
            x_velocity=float(info["x_velocity"]),
            y_velocity=float(info["y_velocity"]),
        )
        info["upright"] = rule.upright
        info["streak"] = rule.streak
        return reward


class InvertedPendulumDiscrete(DiscreteReward[InvertedPendulumRule]):
    """``softdpg/InvertedPendulumDiscrete-v0``: ``InvertedPendulum-v5``, rewarded for precision and survival.

    theta is the angle of the pole from upright.

    **Observation** ``Box(-inf, inf, (4,), float64)``: position of the cart, angle of the pole, and both velocities.

    **Action** ``Box(-3, 3, (1,), float32)``: force on the cart.

    **Starting state**: upright at rest, with noise: uniform in [-0.01, 0.01] on positions and velocities.

    **Reward**: the sum of

    | where | reward |
    | --- | --- |
    | \\|theta\\| < 0.02 | 10 |
    | step 500 and step 1,000 of the episode | 200 each |

    Termination (not the time limit) overwrites it with -20. The bonus of step 1,000 is paid though the time limit ends
    the episode there.

    **Episode end**: terminated when \\|theta\\| > 0.2 or a number of the state is not finite; truncated after 1,000
    steps.

    **Memory**: the step count. **Ceiling** of the 1,000 steps: 10,400.

    **Arguments**: those of ``InvertedPendulumRule``, ``angle_bounds=(0.02,)``, ``angle_rewards=(10, 0)``,
    ``survival_rewards=(200, 200)``, ``failure_reward=-20``, ``survival_steps=(500, 1000)``; those of
    ``InvertedPendulum-v5``; ``observe_progress=False``.

    **Version history**: v0, 0.1.0.
    """

    base_id = "InvertedPendulum-v5"
    rule_class = InvertedPendulumRule
    summary = "10 a step within 0.02 rad; 200 at steps 500 and 1,000; -20 instead on termination"

    def apply_rule(self, observation: np.ndarray, terminated: bool, info: dict[str, Any]) -> float:
        """Pass the pole's angle to the rule."""
        rule = self.rule
        reward = rule.step(angle=observation.item(1), failed=terminated)
        info["steps"] = rule.steps
        info["survival_bonus"] = rule.survival_bonus
        return reward


class InvertedDoublePendulumDiscrete(DiscreteReward[InvertedDoublePendulumRule]):
    """``softdpg/InvertedDoublePendulumDiscrete-v0``: ``InvertedDoublePendulum-v5``, rewarded for precision.

    m is the larger of the magnitudes of the two hinge joints' angles.

    **Observation** ``Box(-inf, inf, (9,), float64)``: position of the cart, sines and cosines of the two angles, 3
    velocities clipped to [-10, 10], the constraint force on the cart.

    **Action** ``Box(-1, 1, (1,), float32)``: force on the cart.

    **Starting state**: upright at rest, with noise: uniform in [-0.1, 0.1] on positions, normal with standard deviation
    0.1 on velocities.

    **Reward**: the sum of

    | where | reward |
    | --- | --- |
    | m < 0.05 | 20 |
    | 0.05 <= m < 0.15 | 5 |
    | 0.15 <= m < 0.4 | 1 |
    | step 500 and step 1,000 of the episode | 500 each |

    Termination (not the time limit) overwrites it with -10. The bonus of step 1,000 is paid though the time limit ends
    the episode there.

    **Episode end**: terminated when the tip of the upper pole is not above 1 (it reaches 1.2); truncated after 1,000
    steps.

    **Memory**: the step count. **Ceiling** of the 1,000 steps: 21,000.

    **Arguments**: those of ``InvertedDoublePendulumRule``, ``angle_bounds=(0.05, 0.15, 0.4)``,
    ``angle_rewards=(20, 5, 1, 0)``, ``survival_rewards=(500, 500)``, ``failure_reward=-10``,
    ``survival_steps=(500, 1000)``; those of ``InvertedDoublePendulum-v5``; ``observe_progress=False``.

    **Version history**: v0, 0.1.0.
    """

    base_id = "InvertedDoublePendulum-v5"
    rule_class = InvertedDoublePendulumRule
    summary = "20, 5, 1 a step within 0.05, 0.15, 0.4 rad; 500 at steps 500 and 1,000; -10 instead on termination"

    def apply_rule(self, observation: np.ndarray, terminated: bool, info: dict[str, Any]) -> float:
        """Pass the larger of the two hinge angles to the rule."""
        _, angle_1, angle_2 = self.env.data.qpos.tolist()  # type: ignore[attr-defined]
        rule = self.rule
        reward = rule.step(angle=max(abs(angle_1), abs(angle_2)), failed=terminated)
        info["steps"] = rule.steps
        info["survival_bonus"] = rule.survival_bonus
        return reward
