"""Reward rules for balancing: bands of the angle, bonuses for survival and for holding still."""

from bisect import bisect_right
from dataclasses import dataclass, field

from softdpg.envs.rules.base import (
    Rule,
    check_band_rewards,
    check_bonuses,
    check_bounds,
    check_counts,
    check_flag,
    check_penalty,
    check_positive,
)


@dataclass(kw_only=True, slots=True)
class BalanceRule(Rule):
    """A reward for the band of the angle, one-time bonuses for survival; failure overwrites the whole reward.

    Args:
        angle_bounds: increasing bounds of ``|angle|``, > 0; a band includes its lower bound, not its upper.
        angle_rewards: one for each band, one more than ``angle_bounds``; the last is for everything beyond.
        survival_steps: step counts, increasing, at which a bonus is paid.
        survival_rewards: the bonuses, as many as ``survival_steps``.
        failure_reward: the whole reward of a step that ends in failure, <= 0.
    """

    angle_bounds: tuple[float, ...]
    angle_rewards: tuple[float, ...]
    survival_rewards: tuple[float, ...]
    failure_reward: float
    survival_steps: tuple[int, ...] = (500, 1000)
    steps: int = field(init=False, repr=False, default=0)  # in this episode
    survival_bonus: float = field(init=False, repr=False, default=0.0)  # paid in this step
    _bonus_at: dict[int, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.angle_bounds = check_bounds("angle_bounds", self.angle_bounds)
        self.angle_rewards = check_band_rewards("angle_rewards", self.angle_rewards, "angle_bounds", self.angle_bounds)
        self.survival_steps = check_counts("survival_steps", self.survival_steps)
        self.survival_rewards = check_bonuses(
            "survival_rewards", self.survival_rewards, "survival_steps", self.survival_steps
        )
        self.failure_reward = check_penalty("failure_reward", self.failure_reward)
        self._bonus_at = dict(zip(self.survival_steps, self.survival_rewards, strict=True))

    def reset(self) -> None:
        """Start an episode."""
        self.steps = 0
        self.survival_bonus = 0.0

    def step(self, *, angle: float, failed: bool) -> float:
        """Score a step that ended at ``angle`` from upright, in radians; of several joints, the largest."""
        self.steps += 1
        if failed:
            self.survival_bonus = 0.0
            return self.failure_reward
        bonus = self.survival_bonus = self._bonus_at.get(self.steps, 0.0)
        return self.angle_rewards[bisect_right(self.angle_bounds, abs(angle))] + bonus

    def progress_names(self) -> tuple[str, ...]:
        """Name each entry of ``progress()``."""
        return ("min(steps / last of survival_steps, 1)",)

    def progress(self) -> tuple[float, ...]:
        """Return the step count; after the last bonus it has no bearing on the next reward."""
        return (min(self.steps / self.survival_steps[-1], 1.0),)

    def ceiling(self, max_episode_steps: int) -> float:
        """Return the best band's reward in every step and every bonus within reach."""
        bonuses = sum(bonus for step, bonus in self._bonus_at.items() if step <= max_episode_steps)
        return max(max(self.angle_rewards), 0.0) * max_episode_steps + bonuses


@dataclass(kw_only=True, slots=True)
class InvertedPendulumRule(BalanceRule):
    """One narrow band; see ``BalanceRule``."""

    angle_bounds: tuple[float, ...] = (0.02,)
    angle_rewards: tuple[float, ...] = (10.0, 0.0)
    survival_rewards: tuple[float, ...] = (200.0, 200.0)
    failure_reward: float = -20.0


@dataclass(kw_only=True, slots=True)
class InvertedDoublePendulumRule(BalanceRule):
    """Three bands of the larger of the two angles; see ``BalanceRule``."""

    angle_bounds: tuple[float, ...] = (0.05, 0.15, 0.4)
    angle_rewards: tuple[float, ...] = (20.0, 5.0, 1.0, 0.0)
    survival_rewards: tuple[float, ...] = (500.0, 500.0)
    failure_reward: float = -10.0


@dataclass(kw_only=True, slots=True)
class PendulumRule(Rule):
    """A reward for the band of the angle, one for low speed near upright, and bonuses for holding still.

    Bands include their lower bound, not their upper. A step holds when ``|angle| < hold_angle`` and
    ``|angular_velocity| < hold_speed``; one that does not sets the streak back to zero.

    Args:
        angle_bounds: increasing bounds of ``|angle|``, > 0.
        angle_rewards: one for each band, one more than ``angle_bounds``.
        near_angle: the speed rewards are paid where ``|angle| < near_angle``.
        speed_bounds: increasing bounds of ``|angular_velocity|``, > 0.
        speed_rewards: one for each band, one more than ``speed_bounds``.
        hold_angle: see above, > 0.
        hold_speed: see above, > 0.
        hold_steps: increasing lengths of the streak at which a bonus is paid.
        hold_rewards: the bonuses, as many as ``hold_steps``.
        repeat_hold_rewards: pay a bonus each time a streak reaches its length, or only the first time in an episode.
    """

    angle_bounds: tuple[float, ...] = (0.10, 0.25, 0.50, 1.00)
    angle_rewards: tuple[float, ...] = (8.0, 4.0, 2.0, 0.5, 0.0)
    near_angle: float = 0.25
    speed_bounds: tuple[float, ...] = (0.5, 1.0)
    speed_rewards: tuple[float, ...] = (4.0, 2.0, 0.0)
    hold_angle: float = 0.15
    hold_speed: float = 0.7
    hold_steps: tuple[int, ...] = (10, 30, 60)
    hold_rewards: tuple[float, ...] = (20.0, 40.0, 80.0)
    repeat_hold_rewards: bool = True
    streak: int = field(init=False, repr=False, default=0)
    hold_bonus: float = field(init=False, repr=False, default=0.0)  # paid in this step
    _bonus_at: dict[int, float] = field(init=False, repr=False)
    _unpaid: dict[int, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.angle_bounds = check_bounds("angle_bounds", self.angle_bounds)
        self.angle_rewards = check_band_rewards("angle_rewards", self.angle_rewards, "angle_bounds", self.angle_bounds)
        self.near_angle = check_positive("near_angle", self.near_angle)
        self.speed_bounds = check_bounds("speed_bounds", self.speed_bounds)
        self.speed_rewards = check_band_rewards("speed_rewards", self.speed_rewards, "speed_bounds", self.speed_bounds)
        self.hold_angle = check_positive("hold_angle", self.hold_angle)
        self.hold_speed = check_positive("hold_speed", self.hold_speed)
        self.hold_steps = check_counts("hold_steps", self.hold_steps)
        self.hold_rewards = check_bonuses("hold_rewards", self.hold_rewards, "hold_steps", self.hold_steps)
        self.repeat_hold_rewards = check_flag("repeat_hold_rewards", self.repeat_hold_rewards)
        self._bonus_at = dict(zip(self.hold_steps, self.hold_rewards, strict=True))
        self._unpaid = dict(self._bonus_at)

    def reset(self) -> None:
        """Start an episode."""
        self.streak = 0
        self.hold_bonus = 0.0
        self._unpaid = dict(self._bonus_at)

    def step(self, *, angle: float, angular_velocity: float) -> float:
        """Score a step that ended at ``angle`` from upright, in [-pi, pi], and ``angular_velocity`` in rad/s."""
        angle = abs(angle)
        speed = abs(angular_velocity)
        reward = self.angle_rewards[bisect_right(self.angle_bounds, angle)]
        if angle < self.near_angle:
            reward += self.speed_rewards[bisect_right(self.speed_bounds, speed)]
        self.hold_bonus = 0.0
        if angle < self.hold_angle and speed < self.hold_speed:
            self.streak += 1
            if self.streak in self._unpaid:
                self.hold_bonus = self._unpaid[self.streak]
                reward += self.hold_bonus
                if not self.repeat_hold_rewards:
                    del self._unpaid[self.streak]
        else:
            self.streak = 0
        return reward

    def progress_names(self) -> tuple[str, ...]:
        """Name each entry of ``progress()``."""
        names = ("min(streak / last of hold_steps, 1)",)
        return names if self.repeat_hold_rewards else (*names, "share of the hold bonuses paid")

    def progress(self) -> tuple[float, ...]:
        """Return the streak, and which bonuses are left where each is paid once."""
        streak = min(self.streak / self.hold_steps[-1], 1.0)
        if self.repeat_hold_rewards:
            return (streak,)
        return streak, 1.0 - len(self._unpaid) / len(self.hold_steps)

    def ceiling(self, max_episode_steps: int) -> float:
        """Return the exact maximum over all sequences of angles and speeds.

        A bonus that repeats can be worth more than the step lost by breaking the streak, so the maximum is found by
        dynamic programming over the length of the streak.
        """
        hold, broken = self._best_step_rewards()
        if not self.repeat_hold_rewards:
            bonuses = sum(bonus for steps, bonus in self._bonus_at.items() if steps <= max_episode_steps)
            return max(hold, broken) * max_episode_steps + bonuses
        longest = self.hold_steps[-1]
        # best[k]: the largest return of the steps that remain, after a streak of k (capped at the longest).
        best = [0.0] * (longest + 2)
        for _ in range(max_episode_steps):
            restart = broken + best[0]
            best = [
                max(restart, hold + self._bonus_at.get(k + 1, 0.0) + best[min(k + 1, longest + 1)])
                for k in range(longest + 2)
            ]
        return best[0]

    def _best_step_rewards(self) -> tuple[float, float]:
        """Return the largest reward without bonus of a step that holds, and of one that does not.

        All bands include their lower end, so the rule is constant between consecutive bounds and the lower ends
        represent every case.
        """
        best = {True: float("-inf"), False: float("-inf")}
        for angle in (0.0, *self.angle_bounds, self.near_angle, self.hold_angle):
            for speed in (0.0, *self.speed_bounds, self.hold_speed):
                reward = self.angle_rewards[bisect_right(self.angle_bounds, angle)]
                if angle < self.near_angle:
                    reward += self.speed_rewards[bisect_right(self.speed_bounds, speed)]
                holds = angle < self.hold_angle and speed < self.hold_speed
                best[holds] = max(best[holds], reward)
        return best[True], best[False]
