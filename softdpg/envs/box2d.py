"""BipedalWalker and LunarLander with discrete rewards."""

from typing import Any

import gymnasium as gym
import numpy as np

from softdpg.envs.discrete_reward import DiscreteReward
from softdpg.envs.rules import BipedalWalkerRule, LunarLanderRule


def replace_world(walker: Any) -> None:
    """Give a ``BipedalWalker-v3`` a new Box2D world before it is reset.

    The environment reuses one world, whose collision tree keeps traces of earlier episodes: the same seed and actions
    then end in other bits than in a new environment.
    """
    walker._destroy()
    walker.world = type(walker.world)()


class NewWorld(gym.Wrapper):
    """``BipedalWalker-v3`` with a new Box2D world in every episode, as :class:`BipedalWalkerDiscrete` has by itself."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Replace the world, then reset."""
        replace_world(self.unwrapped)
        return self.env.reset(seed=seed, options=options)


class BipedalWalkerDiscrete(DiscreteReward[BipedalWalkerRule]):
    """``softdpg/BipedalWalkerDiscrete-v0``: ``BipedalWalker-v3``, rewarded for four distances from its start.

    x is the hull's distance from where the episode began.

    **Observation** ``Box(low, high, (24,), float32)``: angle (within pi) and angular velocity of the hull, its velocity
    in x and y (within 5), for each leg the angles (pi) and speeds (5) of its two joints and its ground contact (0 to
    5), ten lidar ranges (within 1).

    **Action** ``Box(-1, 1, (4,), float32)``: torques of hips and knees.

    **Starting state**: standing at the left end of random, slightly uneven terrain, with a random push on the hull.

    **Reward**: the sum of

    | where | reward |
    | --- | --- |
    | first x > 0.5, 1, 5, 10 | 1, 2, 10, 20 |
    | termination by a fall | -10 |

    A fall is what the base environment punishes: the hull touches the ground, or leaves the terrain on the left.
    Reaching the right end of the terrain also terminates, and is no fall.

    **Episode end**: terminated by a fall or at the right end of the terrain; truncated after 1,600 steps.

    **Memory**: the milestones passed. **Ceiling**: 33.

    **Arguments**: those of ``BipedalWalkerRule``, ``thresholds=(0.5, 1, 5, 10)``, ``rewards=(1, 2, 10, 20)``,
    ``failure_reward=-10``; those of ``BipedalWalker-v3``; ``observe_progress=False``.

    **Version history**: v0, 0.1.0; since 0.2.0 every episode has a Box2D world of its own, so that the same seed and
    actions give the same bits whatever was played before.
    """

    base_id = "BipedalWalker-v3"
    rule_class = BipedalWalkerRule
    summary = "1, 2, 10, 20 once at distance > 0.5, 1, 5, 10; -10 on a fall"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode in a new Box2D world."""
        replace_world(self.env)
        return super().reset(seed=seed, options=options)

    def start_rule(self, info: dict[str, Any]) -> None:
        """Remember where the hull starts."""
        self._start = self.env.hull.position[0]  # type: ignore[attr-defined]
        self.rule.reset(position=0.0)

    def apply_rule(self, observation: np.ndarray, terminated: bool, info: dict[str, Any]) -> float:
        """Pass the distance from the start to the rule."""
        x = self.env.hull.position[0]  # type: ignore[attr-defined]
        fell = terminated and (self.env.game_over or x < 0.0)  # type: ignore[attr-defined]
        rule = self.rule
        reward = rule.step(position=x - self._start, failed=fell)
        info["milestones"] = rule.milestones
        info["milestones_passed"] = rule.milestones_passed
        return reward


class LunarLanderDiscrete(DiscreteReward[LunarLanderRule]):
    """``softdpg/LunarLanderDiscrete-v0``: ``LunarLanderContinuous-v3``, rewarded for the stages of a landing.

    x and y are relative to the pad and scaled as the observation shows them; so are the leg contacts.

    **Observation**
    ``Box([-2.5, -2.5, -10, -10, -6.2831855, -10, 0, 0], [2.5, 2.5, 10, 10, 6.2831855, 10, 1, 1], (8,), float32)``: x,
    y, their velocities, angle, angular velocity, contact of the left and of the right leg.

    **Action** ``Box(-1, 1, (2,), float32)``: throttle of the main engine (off below 0), and of the side engines (off
    within 0.5).

    **Starting state**: at the top in the middle, with a random push, above random terrain with a flat pad.

    **Reward**: the sum of

    | where | reward |
    | --- | --- |
    | first \\|x\\| < 0.2 (approach) | 5 |
    | first y < 0.3 in or after the step of the approach (hover) | 10 |
    | termination, both legs down, \\|x\\| < 0.2 | 100 |
    | termination, not both legs down | -50 |

    Termination with both legs down outside the zone is worth nothing; inside it, it is a landing, even where the base
    environment counts a crash because the body touched the ground.

    **Episode end**: terminated when the body touches the ground, \\|x\\| >= 1, or the lander has come to rest;
    truncated after 1,000 steps.

    **Memory**: which of the first two rows were paid. **Ceiling**: 115.

    **Arguments**: those of ``LunarLanderRule``, ``zone=0.2``, ``approach_reward=5``, ``hover_height=0.3``,
    ``hover_reward=10``, ``success_reward=100``, ``crash_reward=-50``; those of ``LunarLanderContinuous-v3``;
    ``observe_progress=False``.

    **Version history**: v0, 0.1.0.
    """

    base_id = "LunarLanderContinuous-v3"
    rule_class = LunarLanderRule
    summary = "5 once for |x| < 0.2, then 10 once for y < 0.3; at the end 100 for a landing or -50 for a crash"

    def apply_rule(self, observation: np.ndarray, terminated: bool, info: dict[str, Any]) -> float:
        """Pass position and leg contacts to the rule."""
        x, y, _, _, _, _, left_leg, right_leg = observation.tolist()
        rule = self.rule
        reward = rule.step(x=x, y=y, legs_down=left_leg == right_leg == 1.0, terminated=terminated)
        info["approached"] = rule.approached
        info["hovered"] = rule.hovered
        info["landed"] = rule.landed
        return reward
