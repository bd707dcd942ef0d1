"""Reward rules made of stages, each paid once: landing and climbing the hill."""

from dataclasses import dataclass, field

from softdpg.envs.rules.base import (
    Rule,
    check_bonus,
    check_number,
    check_penalty,
    check_positive,
)


@dataclass(kw_only=True, slots=True)
class LunarLanderRule(Rule):
    """Approach, then hover, once each; a terminal reward for landing in the zone or for a crash.

    Args:
        zone: the landing zone is ``|x| < zone``, > 0.
        approach_reward: paid once, on entering the zone, >= 0.
        hover_height: height to get below.
        hover_reward: paid once, below ``hover_height`` and after the approach (the same step counts), >= 0.
        success_reward: added on termination with both legs down inside the zone, >= 0.
        crash_reward: added on termination without both legs down, <= 0.
    """

    zone: float = 0.2
    approach_reward: float = 5.0
    hover_height: float = 0.3
    hover_reward: float = 10.0
    success_reward: float = 100.0
    crash_reward: float = -50.0
    approached: bool = field(init=False, repr=False, default=False)
    hovered: bool = field(init=False, repr=False, default=False)
    landed: bool = field(init=False, repr=False, default=False)

    def __post_init__(self) -> None:
        self.zone = check_positive("zone", self.zone)
        self.approach_reward = check_bonus("approach_reward", self.approach_reward)
        self.hover_height = check_number("hover_height", self.hover_height)
        self.hover_reward = check_bonus("hover_reward", self.hover_reward)
        self.success_reward = check_bonus("success_reward", self.success_reward)
        self.crash_reward = check_penalty("crash_reward", self.crash_reward)

    def reset(self) -> None:
        """Start an episode."""
        self.approached = self.hovered = self.landed = False

    def step(self, *, x: float, y: float, legs_down: bool, terminated: bool) -> float:
        """Score a step that ended at (x, y), relative to the pad; ``legs_down`` means both."""
        reward = 0.0
        in_zone = -self.zone < x < self.zone
        if in_zone and not self.approached:
            self.approached = True
            reward += self.approach_reward
        if self.approached and not self.hovered and y < self.hover_height:
            self.hovered = True
            reward += self.hover_reward
        self.landed = terminated and legs_down and in_zone
        if self.landed:
            reward += self.success_reward
        elif terminated and not legs_down:
            reward += self.crash_reward
        return reward

    def progress_names(self) -> tuple[str, ...]:
        """Name each entry of ``progress()``."""
        return "approached (0 or 1)", "hovered (0 or 1)"

    def progress(self) -> tuple[float, ...]:
        """Return which stages were paid."""
        return float(self.approached), float(self.hovered)

    def ceiling(self, max_episode_steps: int) -> float:
        """Return the sum of the stages."""
        return self.approach_reward + self.hover_reward + self.success_reward


@dataclass(kw_only=True, slots=True)
class MountainCarRule(Rule):
    """Backswing, way up and goal, and a cost for each step.

    Args:
        backward_position: the backswing is ``position < backward_position``.
        backward_reward: paid once for it, >= 0.
        forward_position: the way up is ``position > forward_position``; > ``backward_position``.
        forward_reward: paid once for it, >= 0.
        goal_position: the goal is ``position >= goal_position``, where the base environment terminates;
            > ``forward_position`` and at most 0.6, the end of the track.
        goal_reward: added on reaching it, >= 0.
        step_reward: added to every step, <= 0.
    """

    backward_position: float = -0.7
    backward_reward: float = 10.0
    forward_position: float = -0.1
    forward_reward: float = 20.0
    goal_position: float = 0.5
    goal_reward: float = 100.0
    step_reward: float = -0.01
    swung_back: bool = field(init=False, repr=False, default=False)
    moved_forward: bool = field(init=False, repr=False, default=False)

    def __post_init__(self) -> None:
        self.backward_position = check_number("backward_position", self.backward_position)
        self.backward_reward = check_bonus("backward_reward", self.backward_reward)
        self.forward_position = check_number("forward_position", self.forward_position)
        self.forward_reward = check_bonus("forward_reward", self.forward_reward)
        self.goal_position = check_number("goal_position", self.goal_position)
        if not self.backward_position < self.forward_position < self.goal_position <= 0.6:
            raise ValueError(
                "backward_position, forward_position, goal_position must be increasing and goal_position at most 0.6, "
                f"got {self.backward_position}, {self.forward_position}, {self.goal_position}"
            )
        self.goal_reward = check_bonus("goal_reward", self.goal_reward)
        self.step_reward = check_penalty("step_reward", self.step_reward)

    def reset(self) -> None:
        """Start an episode."""
        self.swung_back = self.moved_forward = False

    def step(self, *, position: float, at_goal: bool) -> float:
        """Score a step that ended at ``position``; ``at_goal`` is the base environment's termination there."""
        reward = self.step_reward
        if position < self.backward_position:
            if not self.swung_back:
                self.swung_back = True
                reward += self.backward_reward
        elif position > self.forward_position and not self.moved_forward:
            self.moved_forward = True
            reward += self.forward_reward
        if at_goal:
            reward += self.goal_reward
        return reward

    def progress_names(self) -> tuple[str, ...]:
        """Name each entry of ``progress()``."""
        return "backswing paid (0 or 1)", "way up paid (0 or 1)"

    def progress(self) -> tuple[float, ...]:
        """Return which stages were paid."""
        return float(self.swung_back), float(self.moved_forward)

    def ceiling(self, max_episode_steps: int) -> float:
        """Return the sum of the stages; every step taken costs ``-step_reward``, which comes off it."""
        return self.backward_reward + self.forward_reward + self.goal_reward
