"""The staged rules on hand-made trajectories."""

import math

import pytest

from softdpg.envs.rules import LunarLanderRule, MountainCarRule


def above(x: float) -> float:
    return math.nextafter(x, math.inf)


def below(x: float) -> float:
    return math.nextafter(x, -math.inf)


def lander(*steps: tuple, **end: bool) -> list[float]:
    """Score positions (x, y), the last with the given ``legs_down`` and ``terminated``."""
    rule = LunarLanderRule()
    rule.reset()
    rewards = [rule.step(x=x, y=y, legs_down=False, terminated=False) for x, y in steps[: -1 if end else None]]
    if end:
        x, y = steps[-1]
        rewards.append(rule.step(x=x, y=y, **{"legs_down": False, "terminated": False, **end}))
    return rewards


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_lander_approach_once(sign: float) -> None:
    xs = [0.5, above(0.2), 0.2, below(0.2), 0.0, 0.5, 0.1]
    assert lander(*[(sign * x, 1.0) for x in xs]) == [0, 0, 0, 5, 0, 0, 0]


def test_lander_hover_needs_the_approach_and_is_paid_once() -> None:
    assert lander((0.5, 0.1), (0.5, 0.1)) == [0, 0]
    assert lander((0.1, 1.0), (0.1, 0.3), (0.1, below(0.3)), (0.1, 1.0), (0.1, 0.1)) == [5, 0, 10, 0, 0]
    assert lander((0.1, 1.0), (0.9, 0.1)) == [5, 10]  # outside the zone, after the approach
    assert lander((0.1, 0.1)) == [15]  # both in one step


def test_lander_terminal_rewards_are_added_to_milestones() -> None:
    assert lander((0.1, 1.0), (0.1, 0.0), legs_down=True, terminated=True) == [5, 110]
    assert lander((0.1, 1.0), (0.1, 0.0), terminated=True) == [5, -40]
    assert lander((0.5, 0.0), (0.5, 0.0), terminated=True) == [0, -50]


def test_lander_zone_at_the_end() -> None:
    for x, reward in ((below(0.2), 115.0), (0.2, 0.0), (-0.2, 0.0), (0.6, 0.0)):
        assert lander((x, 0.0), legs_down=True, terminated=True) == [reward]
    assert LunarLanderRule().ceiling(1000) == 115.0


def test_lander_legs_down_without_termination_is_no_landing() -> None:
    assert lander((0.1, 1.0), (0.1, 0.0), (0.1, 0.0), legs_down=True) == [5, 10, 0]


def car(*positions: float) -> list[float]:
    rule = MountainCarRule()
    rule.reset()
    return [round(rule.step(position=x, at_goal=x >= 0.5), 10) for x in positions]


def test_car_backswing_once() -> None:
    assert car(-0.5, -0.7, below(-0.7), -0.5, -0.9) == [-0.01, -0.01, 9.99, -0.01, -0.01]


def test_car_forward_once_with_or_without_backswing() -> None:
    assert car(-0.1, above(-0.1), -0.5, 0.2) == [-0.01, 19.99, -0.01, -0.01]


def test_car_goal_is_added() -> None:
    assert car(-0.8, 0.0, below(0.5)) == [9.99, 19.99, -0.01]
    assert car(-0.8, 0.0, 0.5) == [9.99, 19.99, 99.99]
    assert car(-0.5, 0.5) == [-0.01, 119.99]  # the way up and the goal in one step
    assert MountainCarRule().ceiling(999) == 130.0


@pytest.mark.parametrize("goal", [-0.1, 0.61, float("nan")])
def test_car_goal_has_to_be_on_the_track(goal: float) -> None:
    with pytest.raises(ValueError, match="goal_position"):
        MountainCarRule(goal_position=goal)
