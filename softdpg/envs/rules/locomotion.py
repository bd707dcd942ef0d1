"""Reward rules for walking: one-time milestones, strides, velocity bins and sustained speed."""

import math
from bisect import bisect_left
from dataclasses import dataclass, field

from softdpg.envs.rules.base import (
    Rule,
    check_band_rewards,
    check_bonus,
    check_bonuses,
    check_count,
    check_flag,
    check_increasing,
    check_number,
    check_penalty,
    check_positive,
    squash,
)


@dataclass(kw_only=True, slots=True)
class MilestoneRule(Rule):
    """A reward for each position exceeded for the first time in the episode, and a penalty added on failure.

    Args:
        thresholds: increasing positions; milestone k is passed when ``position > thresholds[k]``.
        rewards: what each is worth, as many as ``thresholds``. Several may be paid in one step.
        failure_reward: added to the reward of a step that ends in failure, <= 0.
    """

    thresholds: tuple[float, ...]
    rewards: tuple[float, ...]
    failure_reward: float = -10.0
    milestones: int = field(init=False, repr=False, default=0)  # passed in this step
    milestones_passed: int = field(init=False, repr=False, default=0)  # in this episode
    _position: float = field(init=False, repr=False, default=0.0)

    def __post_init__(self) -> None:
        self.thresholds = check_increasing("thresholds", self.thresholds)
        self.rewards = check_bonuses("rewards", self.rewards, "thresholds", self.thresholds)
        self.failure_reward = check_penalty("failure_reward", self.failure_reward)

    def reset(self, *, position: float) -> None:
        """Start an episode at ``position``; a milestone already behind it is paid in the first step."""
        self.milestones = self.milestones_passed = 0
        self._position = position

    def step(self, *, position: float, failed: bool) -> float:
        """Score a step that ended at ``position``."""
        self._position = position
        passed_before = self.milestones_passed
        # bisect_left counts the thresholds below the position: a position on a threshold has not exceeded it.
        passed = max(passed_before, bisect_left(self.thresholds, position))
        self.milestones = passed - passed_before
        self.milestones_passed = passed
        reward = sum(self.rewards[passed_before:passed], 0.0)
        if failed:
            reward += self.failure_reward
        return reward

    def progress_names(self) -> tuple[str, ...]:
        """Name each entry of ``progress()``."""
        return "milestones passed / number of milestones", "squash(position / last threshold)"

    def progress(self) -> tuple[float, ...]:
        """Return the share of milestones passed and the position, which the observation does not show."""
        return self.milestones_passed / len(self.thresholds), squash(self._position / abs(self.thresholds[-1]))

    def ceiling(self, max_episode_steps: int) -> float:
        """Return the sum of the milestones: all passed, no failure."""
        return sum(self.rewards)


@dataclass(kw_only=True, slots=True)
class AntRule(MilestoneRule):
    """Milestones on the x position; see ``MilestoneRule``."""

    thresholds: tuple[float, ...] = (0.5, 1.5, 3.0, 5.0, 10.0, 20.0)
    rewards: tuple[float, ...] = (50.0, 50.0, 50.0, 50.0, 50.0, 50.0)


@dataclass(kw_only=True, slots=True)
class BipedalWalkerRule(MilestoneRule):
    """Milestones on the distance from the start of the episode; see ``MilestoneRule``."""

    thresholds: tuple[float, ...] = (0.5, 1.0, 5.0, 10.0)
    rewards: tuple[float, ...] = (1.0, 2.0, 10.0, 20.0)


@dataclass(kw_only=True, slots=True)
class StrideRule(Rule):
    """A reward for each whole stride by which the episode's farthest position exceeds its start, and one for survival.

    After n paid strides the last rewarded position is ``start + n * stride``; what lies beyond it counts towards the
    next. A stride is passed when the displacement exceeds it, so exactly one stride is not yet paid.

    Args:
        stride: distance between milestones, > 0.
        stride_reward: paid for each, >= 0. Several may be passed in one step.
        survival_reward: paid each step, >= 0.
        survival_at_termination: whether the step that terminates the episode pays ``survival_reward`` too.
    """

    stride: float
    stride_reward: float
    survival_reward: float = 0.01
    survival_at_termination: bool = True
    milestones: int = field(init=False, repr=False, default=0)  # passed in this step
    milestones_passed: int = field(init=False, repr=False, default=0)  # in this episode
    _start: float = field(init=False, repr=False, default=0.0)
    _position: float = field(init=False, repr=False, default=0.0)
    _next: float = field(init=False, repr=False, default=0.0)

    def __post_init__(self) -> None:
        self.stride = check_positive("stride", self.stride)
        self.stride_reward = check_bonus("stride_reward", self.stride_reward)
        self.survival_reward = check_bonus("survival_reward", self.survival_reward)
        self.survival_at_termination = check_flag("survival_at_termination", self.survival_at_termination)

    def reset(self, *, position: float) -> None:
        """Start an episode at ``position``."""
        self.milestones = self.milestones_passed = 0
        self._start = self._position = position
        self._next = position + self.stride

    def step(self, *, position: float, terminated: bool) -> float:
        """Score a step that ended at ``position``."""
        self._position = position
        self.milestones = 0
        if position > self._next:
            # Counted from the start, so that rounding does not add up over an episode; at least the next one is passed.
            passed = max(self.milestones_passed + 1, math.ceil((position - self._start) / self.stride) - 1)
            self.milestones = passed - self.milestones_passed
            self.milestones_passed = passed
            self._next = self._start + (passed + 1) * self.stride
        reward = self.milestones * self.stride_reward
        if self.survival_at_termination or not terminated:
            reward += self.survival_reward
        return reward

    def progress_names(self) -> tuple[str, ...]:
        """Name each entry of ``progress()``."""
        return ("squash((position - last rewarded position) / stride)",)

    def progress(self) -> tuple[float, ...]:
        """Return how far the next milestone is; how many were passed before has no bearing on the next reward."""
        return (squash((self._position - self._start) / self.stride - self.milestones_passed),)


@dataclass(kw_only=True, slots=True)
class HopperRule(StrideRule):
    """Strides of 0.5; survival pays on non-terminal steps; see ``StrideRule``."""

    stride: float = 0.5
    stride_reward: float = 5.0
    survival_at_termination: bool = False


@dataclass(kw_only=True, slots=True)
class Walker2dRule(StrideRule):
    """Strides of 0.2; survival pays on every step; see ``StrideRule``."""

    stride: float = 0.2
    stride_reward: float = 2.0


@dataclass(kw_only=True, slots=True)
class HalfCheetahRule(Rule):
    """A reward for the bin of the forward velocity. No memory.

    Args:
        thresholds: increasing velocities; bin k is ``thresholds[k-1] < x_velocity <= thresholds[k]``.
        rewards: one for each bin, one more than ``thresholds``.
    """

    thresholds: tuple[float, ...] = (0.0, 1.0, 3.0, 5.0)
    rewards: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0, 3.0)
    band: int = field(init=False, repr=False, default=0)

    def __post_init__(self) -> None:
        self.thresholds = check_increasing("thresholds", self.thresholds)
        self.rewards = check_band_rewards("rewards", self.rewards, "thresholds", self.thresholds)

    def reset(self) -> None:
        """Start an episode."""
        self.band = 0

    def step(self, *, x_velocity: float) -> float:
        """Score a step of this forward velocity."""
        self.band = bisect_left(self.thresholds, x_velocity)
        return self.rewards[self.band]

    def ceiling(self, max_episode_steps: int) -> float:
        """Return the best bin's reward in every step."""
        return max(self.rewards) * max_episode_steps


@dataclass(kw_only=True, slots=True)
class HumanoidRule(Rule):
    """Upright and slow pays a little; upright and fast pays much, from the ``high_steps``-th step in a row on.

    Upright is ``height > min_height`` and ``|y_velocity| < max_lateral_speed``. Anything that is not upright and fast
    breaks the streak.

    Args:
        min_height: torso height to exceed.
        max_lateral_speed: bound of the lateral speed, > 0.
        low_velocity: below this forward velocity (backwards included) an upright step pays ``low_reward``.
        low_reward: see ``low_velocity``, >= 0.
        high_velocity: above this forward velocity an upright step counts towards the streak; > ``low_velocity``.
        high_steps: length of the streak from which on each step pays ``high_reward``.
        high_reward: see ``high_steps``, >= 0.
    """

    min_height: float = 1.18
    max_lateral_speed: float = 0.18
    low_velocity: float = 0.12
    low_reward: float = 3.0
    high_velocity: float = 1.6
    high_steps: int = 6
    high_reward: float = 20.0
    upright: bool = field(init=False, repr=False, default=False)
    streak: int = field(init=False, repr=False, default=0)

    def __post_init__(self) -> None:
        self.min_height = check_number("min_height", self.min_height)
        self.max_lateral_speed = check_positive("max_lateral_speed", self.max_lateral_speed)
        self.low_velocity = check_number("low_velocity", self.low_velocity)
        self.low_reward = check_bonus("low_reward", self.low_reward)
        self.high_velocity = check_number("high_velocity", self.high_velocity)
        if self.high_velocity <= self.low_velocity:
            raise ValueError(f"high_velocity must be > low_velocity={self.low_velocity}, got {self.high_velocity}")
        self.high_steps = check_count("high_steps", self.high_steps)
        self.high_reward = check_bonus("high_reward", self.high_reward)

    def reset(self) -> None:
        """Start an episode."""
        self.upright = False
        self.streak = 0

    def step(self, *, height: float, x_velocity: float, y_velocity: float) -> float:
        """Score a step from the torso height and the velocities of the centre of mass."""
        self.upright = height > self.min_height and -self.max_lateral_speed < y_velocity < self.max_lateral_speed
        reward = 0.0
        if self.upright and x_velocity > self.high_velocity:
            self.streak += 1
            if self.streak >= self.high_steps:
                reward = self.high_reward
        else:
            self.streak = 0
            if self.upright and x_velocity < self.low_velocity:
                reward = self.low_reward
        return reward

    def progress_names(self) -> tuple[str, ...]:
        """Name each entry of ``progress()``."""
        return ("min(streak / high_steps, 1)",)

    def progress(self) -> tuple[float, ...]:
        """Return the streak; beyond ``high_steps`` its length has no bearing on the next reward."""
        return (min(self.streak / self.high_steps, 1.0),)

    def ceiling(self, max_episode_steps: int) -> float:
        """Return the better of always fast (the first ``high_steps - 1`` steps pay nothing) and always slow.

        Slow steps before the fast run each replace a step of it, so that the return is linear in their number and its
        maximum is at one of the two ends; a second run would lose its first steps once more.
        """
        fast_steps = max(max_episode_steps - (self.high_steps - 1), 0)
        return max(self.high_reward * fast_steps, self.low_reward * max_episode_steps)
