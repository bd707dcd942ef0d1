"""The walking rules on hand-made trajectories: each row of the paper's description, from both sides and on the edge."""

import math

import pytest

from softdpg.envs.rules import AntRule, BipedalWalkerRule, HalfCheetahRule, HopperRule, HumanoidRule, Walker2dRule

UP, DOWN = math.inf, -math.inf


def above(x: float) -> float:
    return math.nextafter(x, UP)


def below(x: float) -> float:
    return math.nextafter(x, DOWN)


@pytest.mark.parametrize("threshold", [0.5, 1.5, 3.0, 5.0, 10.0, 20.0])
def test_ant_pays_50_above_each_threshold_and_not_on_it(threshold: float) -> None:
    rule = AntRule()
    passed = [0.5, 1.5, 3.0, 5.0, 10.0, 20.0].index(threshold)
    for x in (below(threshold), threshold):
        rule.reset(position=0.0)
        assert rule.step(position=x, failed=False) == 50.0 * passed
    assert rule.step(position=above(threshold), failed=False) == 50.0
    assert (rule.milestones, rule.milestones_passed) == (1, passed + 1)


def test_ant_trajectory_pays_each_milestone_once() -> None:
    rule = AntRule()
    rule.reset(position=0.05)
    xs = [0.3, 0.6, 0.4, 0.7, 3.1, 2.0, 1.0, 6.0, 6.0, 25.0, 30.0]
    rewards = [rule.step(position=x, failed=False) for x in xs]
    # 0.6 passes the first; back and over it again pays nothing; 3.1 passes 1.5 and 3; 6.0 passes 5; 25 passes 10 and 20
    assert rewards == [0, 50, 0, 0, 100, 0, 0, 50, 0, 100, 0]
    assert sum(rewards) == rule.ceiling(1000) == 300.0


def test_ant_all_milestones_in_one_step_and_failure_is_added() -> None:
    rule = AntRule()
    rule.reset(position=0.0)
    assert rule.step(position=21.0, failed=True) == 300.0 - 10.0
    assert rule.milestones == 6


def test_ant_failure_without_milestone_and_no_survival_reward() -> None:
    rule = AntRule()
    rule.reset(position=0.0)
    assert rule.step(position=0.2, failed=False) == 0.0
    assert rule.step(position=0.2, failed=True) == -10.0


def test_bipedal_walker_rows() -> None:
    rule = BipedalWalkerRule()
    rule.reset(position=0.0)
    xs = [0.5, above(0.5), 1.0, above(1.0), 0.2, 1.1, 5.0, above(5.0), 10.0, above(10.0), 12.0]
    assert [rule.step(position=x, failed=False) for x in xs] == [0, 1, 0, 2, 0, 0, 0, 10, 0, 20, 0]
    assert rule.ceiling(1600) == 33.0
    rule.reset(position=0.0)
    assert rule.step(position=1.2, failed=True) == 3.0 - 10.0


def test_half_cheetah_bins_include_their_upper_end() -> None:
    rule = HalfCheetahRule()
    rule.reset()
    expected = {
        -3.0: 0.0,
        below(0.0): 0.0,
        0.0: 0.0,
        above(0.0): 0.5,
        1.0: 0.5,
        above(1.0): 1.0,
        3.0: 1.0,
        above(3.0): 2.0,
        5.0: 2.0,
        above(5.0): 3.0,
        50.0: 3.0,
        math.nan: 0.0,
    }
    assert {v: rule.step(x_velocity=v) for v in expected} == expected
    assert rule.step(x_velocity=4.0) == 2.0
    assert rule.band == 3
    assert rule.ceiling(1000) == 3000.0


@pytest.mark.parametrize(
    ("rule", "stride", "reward"), [(HopperRule(), 0.5, 5.0), (Walker2dRule(), 0.25, 2.0)], ids=["Hopper", "Walker2d"]
)
def test_strides(rule: HopperRule, stride: float, reward: float) -> None:
    # Positions are multiples of 1/8, exact in binary: Walker2d's 0.2 is not, so it is tested with 0.25 here.
    rule = type(rule)(stride=stride, survival_reward=0.0)
    rule.reset(position=1.0)
    start = 1.0
    assert rule.step(position=start + stride, terminated=False) == 0.0  # on the threshold: not exceeded
    assert rule.step(position=above(start + stride), terminated=False) == reward
    assert rule.step(position=start, terminated=False) == 0.0  # back
    assert rule.step(position=start + 1.5 * stride, terminated=False) == 0.0  # passed before: not again
    # from 1.5 to 4.75 strides: the second, third and fourth fall in one step
    assert rule.step(position=start + 4.75 * stride, terminated=False) == 3 * reward
    assert (rule.milestones, rule.milestones_passed) == (3, 4)
    # the remainder of 0.75 strides counts: a further half stride passes the fifth
    assert rule.step(position=start + 5.25 * stride, terminated=False) == reward
    assert rule.ceiling(1000) is None


def test_walker_stride_of_the_paper() -> None:
    rule = Walker2dRule()
    rule.reset(position=0.0)
    assert rule.step(position=0.2, terminated=False) == 0.01
    assert rule.step(position=0.2001, terminated=False) == 2.01
    assert rule.step(position=0.9, terminated=False) == pytest.approx(3 * 2.0 + 0.01)


def test_stride_starts_at_the_position_of_the_reset() -> None:
    rule = HopperRule()
    rule.reset(position=-0.25)
    assert rule.step(position=0.25, terminated=False) == 0.01
    assert rule.step(position=above(0.25), terminated=False) == 5.01


def test_hopper_survival_pays_on_non_terminal_steps_alone_walker_on_all() -> None:
    for rule, at_termination in ((HopperRule(), 0.0), (Walker2dRule(), 0.01)):
        rule.reset(position=0.0)
        assert rule.step(position=0.1, terminated=False) == 0.01
        assert rule.step(position=0.1, terminated=True) == at_termination
    hopper = HopperRule()
    hopper.reset(position=0.0)
    assert hopper.step(position=0.6, terminated=True) == 5.0  # the milestone of a terminal step is paid


def humanoid_rewards(*steps: tuple[float, float, float]) -> list[float]:
    rule = HumanoidRule()
    rule.reset()
    return [rule.step(height=z, x_velocity=vx, y_velocity=vy) for z, vx, vy in steps]


FAST, SLOW = (1.3, 2.0, 0.0), (1.3, 0.0, 0.0)


def test_humanoid_posture() -> None:
    assert humanoid_rewards((above(1.18), 0.0, 0.0), (1.18, 0.0, 0.0), (below(1.18), 0.0, 0.0)) == [3.0, 0.0, 0.0]
    lateral = [(1.3, 0.0, vy) for vy in (below(0.18), 0.18, above(0.18), -0.18, above(-0.18))]
    assert humanoid_rewards(*lateral) == [3.0, 0.0, 0.0, 0.0, 3.0]


def test_humanoid_low_speed_includes_backwards() -> None:
    velocities = [-5.0, 0.0, below(0.12), 0.12, above(0.12), 1.0, 1.6]
    assert humanoid_rewards(*[(1.3, v, 0.0) for v in velocities]) == [3.0, 3.0, 3.0, 0.0, 0.0, 0.0, 0.0]


def test_humanoid_pays_from_the_sixth_fast_step_on() -> None:
    assert humanoid_rewards(*[FAST] * 9) == [0, 0, 0, 0, 0, 20, 20, 20, 20]
    assert humanoid_rewards(*[(1.3, 1.6, 0.0)] * 9) == [0] * 9
    assert humanoid_rewards(*[(1.3, above(1.6), 0.0)] * 6)[-1] == 20


@pytest.mark.parametrize(
    ("breaker", "reward"),
    [(SLOW, 3.0), ((1.3, 1.0, 0.0), 0.0), ((1.1, 2.0, 0.0), 0.0), ((1.3, 2.0, 0.2), 0.0)],
    ids=["slow", "medium", "low", "sideways"],
)
def test_humanoid_streak_broken_one_step_early_starts_anew(breaker: tuple, reward: float) -> None:
    rewards = humanoid_rewards(*[FAST] * 5, breaker, *[FAST] * 6)
    assert rewards == [0] * 5 + [reward] + [0] * 5 + [20]


def test_humanoid_ceiling() -> None:
    rule = HumanoidRule()
    assert rule.ceiling(1000) == 20.0 * 995 == sum(humanoid_rewards(*[FAST] * 1000))
    assert rule.ceiling(5) == 15.0 == sum(humanoid_rewards(*[SLOW] * 5))
