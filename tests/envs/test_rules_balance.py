"""The balancing rules on hand-made trajectories."""

import math

import pytest

from softdpg.envs.rules import InvertedDoublePendulumRule, InvertedPendulumRule, PendulumRule


def above(x: float) -> float:
    return math.nextafter(x, math.inf)


def below(x: float) -> float:
    return math.nextafter(x, -math.inf)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_inverted_pendulum_band(sign: float) -> None:
    rule = InvertedPendulumRule()
    rule.reset()
    angles = [0.0, below(0.02), 0.02, above(0.02), 0.19]
    assert [rule.step(angle=sign * a, failed=False) for a in angles] == [10, 10, 0, 0, 0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_double_pendulum_bands(sign: float) -> None:
    rule = InvertedDoublePendulumRule()
    rule.reset()
    expected = {
        0.01: 20.0,
        below(0.05): 20.0,
        0.05: 5.0,
        below(0.15): 5.0,
        0.15: 1.0,
        below(0.4): 1.0,
        0.4: 0.0,
        2.0: 0.0,
    }
    assert {angle: rule.step(angle=sign * angle, failed=False) for angle in expected} == expected


@pytest.mark.parametrize(
    ("rule", "best", "bonus", "failure", "ceiling"),
    [
        (InvertedPendulumRule(), 10.0, 200.0, -20.0, 10_400.0),
        (InvertedDoublePendulumRule(), 20.0, 500.0, -10.0, 21_000.0),
    ],
    ids=["single", "double"],
)
def test_survival_bonuses_and_failure(
    rule: InvertedPendulumRule, best: float, bonus: float, failure: float, ceiling: float
) -> None:
    rule.reset()
    rewards = [rule.step(angle=0.0, failed=False) for _ in range(1001)]
    assert {step: r for step, r in enumerate(rewards, start=1) if r != best} == {500: best + bonus, 1000: best + bonus}
    assert sum(rewards[:1000]) == rule.ceiling(1000) == ceiling
    assert rule.ceiling(999) == ceiling - bonus - best

    rule.reset()  # the bonus needs no good angle
    assert [rule.step(angle=1.0, failed=False) for _ in range(500)] == [0.0] * 499 + [bonus]
    assert (rule.steps, rule.survival_bonus) == (500, bonus)

    rule.reset()  # failure overwrites band and bonus
    for _ in range(499):
        rule.step(angle=0.0, failed=False)
    assert rule.step(angle=0.0, failed=True) == failure
    assert rule.survival_bonus == 0.0


def pendulum_reward(angle: float, speed: float) -> float:
    rule = PendulumRule()
    rule.reset()
    return rule.step(angle=angle, angular_velocity=speed)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_pendulum_angle_bands(sign: float) -> None:
    expected = {
        0.0: 8.0,
        below(0.10): 8.0,
        0.10: 4.0,
        below(0.25): 4.0,
        0.25: 2.0,
        below(0.50): 2.0,
        0.50: 0.5,
        below(1.00): 0.5,
        1.00: 0.0,
        math.pi: 0.0,
    }
    fast = 3.0  # beyond the speed bonus
    assert {angle: pendulum_reward(sign * angle, fast) for angle in expected} == expected


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_pendulum_speed_bonus_near_upright(sign: float) -> None:
    expected = {0.0: 4.0, below(0.5): 4.0, 0.5: 2.0, below(1.0): 2.0, 1.0: 0.0, 8.0: 0.0}
    assert {s: pendulum_reward(below(0.25), sign * s) - 4.0 for s in expected} == expected
    assert pendulum_reward(0.25, 0.0) == 2.0  # not near enough: no bonus


def hold(rule: PendulumRule, steps: int) -> list[float]:
    """Hold upright and still; return the hold bonuses of the steps."""
    bonuses = []
    for _ in range(steps):
        reward = rule.step(angle=0.0, angular_velocity=0.0)
        assert reward == 12.0 + rule.hold_bonus
        bonuses.append(rule.hold_bonus)
    return bonuses


def test_pendulum_hold_bonuses() -> None:
    rule = PendulumRule()
    rule.reset()
    bonuses = hold(rule, 200)
    assert {step: b for step, b in enumerate(bonuses, start=1) if b} == {10: 20.0, 30: 40.0, 60: 80.0}
    assert 200 * 12.0 + sum(bonuses) == 2540.0


def test_pendulum_hold_region_is_open() -> None:
    for angle, speed, holds in [
        (below(0.15), below(0.7), True),
        (0.15, 0.0, False),
        (-0.15, 0.0, False),
        (0.0, 0.7, False),
        (0.0, -0.7, False),
        (-below(0.15), -below(0.7), True),
    ]:
        rule = PendulumRule()
        rule.reset()
        rule.step(angle=angle, angular_velocity=speed)
        assert rule.streak == int(holds)


def test_pendulum_streak_broken_one_step_early_pays_nothing_and_then_repeats() -> None:
    rule = PendulumRule()
    rule.reset()
    assert sum(hold(rule, 9)) == 0.0
    rule.step(angle=0.2, angular_velocity=0.0)
    assert rule.streak == 0
    assert hold(rule, 10) == [0.0] * 9 + [20.0]
    rule.step(angle=0.2, angular_velocity=0.0)
    assert hold(rule, 10) == [0.0] * 9 + [20.0]  # each time a streak reaches ten


def test_pendulum_hold_bonuses_once_an_episode() -> None:
    rule = PendulumRule(repeat_hold_rewards=False)
    rule.reset()
    assert sum(hold(rule, 10)) == 20.0
    rule.step(angle=0.2, angular_velocity=0.0)
    assert sum(hold(rule, 30)) == 40.0
    assert rule.progress() == (0.5, pytest.approx(2 / 3))
    rule.reset()
    assert sum(hold(rule, 30)) == 60.0


def test_pendulum_ceilings() -> None:
    assert PendulumRule(repeat_hold_rewards=False).ceiling(200) == 2540.0
    # Three holds of 60 and one of 17, three broken steps at 10 (|angle| < 0.1 and 0.7 <= speed < 1) between them.
    rule = PendulumRule()
    rule.reset()
    total = 0.0
    for steps in (60, 60, 60, 17):
        total += sum(hold(rule, steps)) + 12.0 * steps
        if steps == 60:
            total += rule.step(angle=0.0, angular_velocity=0.7)
    assert total == rule.ceiling(200) == 2834.0


def test_pendulum_ceiling_is_the_maximum_over_all_trajectories() -> None:
    rule = PendulumRule(hold_steps=(2, 3), hold_rewards=(3.0, 1.0))
    points = [(0.0, 0.0), (0.0, 0.7), (0.15, 0.0), (0.3, 0.0), (0.0, 0.5)]

    def best(path: list[tuple[float, float]], steps: int) -> float:
        if steps:
            return max(best([*path, point], steps - 1) for point in points)
        rule.reset()
        return sum(rule.step(angle=angle, angular_velocity=speed) for angle, speed in path)

    for steps in range(1, 6):
        assert rule.ceiling(steps) == best([], steps)
