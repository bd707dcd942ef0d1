"""What holds for every trajectory: returns stay below the ceiling, one-time rewards are paid once, resets forget."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softdpg.envs import rules
from softdpg.envs.rules import Rule

RESETS: dict[type[Rule], Callable[[Any], None]] = {
    rules.AntRule: lambda rule: rule.reset(position=0.0),
    rules.BipedalWalkerRule: lambda rule: rule.reset(position=0.0),
    rules.HopperRule: lambda rule: rule.reset(position=0.0),
    rules.Walker2dRule: lambda rule: rule.reset(position=0.0),
}


def near(*values: float, low: float, high: float) -> st.SearchStrategy[float]:
    """Anything in [low, high], the values where a rule changes among them."""
    return st.one_of(st.sampled_from(values), st.floats(low, high))


angle = near(0.02, 0.05, 0.1, 0.15, 0.25, 0.4, 0.5, 1.0, 0.0, low=-3.2, high=3.2)
QUANTITIES: dict[type[Rule], dict[str, st.SearchStrategy]] = {
    rules.AntRule: {"position": near(0.5, 1.5, 3, 5, 10, 20, low=-30, high=30)},
    rules.BipedalWalkerRule: {"position": near(0.5, 1, 5, 10, low=-5, high=100)},
    rules.HopperRule: {"position": near(0.5, 1.0, 7.5, low=-20, high=40)},
    rules.Walker2dRule: {"position": near(0.2, 0.4, 0.6, low=-20, high=40)},
    rules.HalfCheetahRule: {"x_velocity": near(0, 1, 3, 5, low=-20, high=20)},
    rules.HumanoidRule: {
        "height": near(1.18, 1.4, low=1, high=2),
        "x_velocity": near(0.12, 1.6, 1.7, 0.0, low=-5, high=5),
        "y_velocity": near(0.18, -0.18, 0.0, low=-1, high=1),
    },
    rules.InvertedPendulumRule: {"angle": angle},
    rules.InvertedDoublePendulumRule: {"angle": angle},
    rules.PendulumRule: {"angle": angle, "angular_velocity": near(0, 0.5, 0.7, 1.0, low=-8, high=8)},
    rules.LunarLanderRule: {
        "x": near(0.2, -0.2, 0.0, low=-1, high=1),
        "y": near(0.3, 0.0, low=-0.2, high=1.5),
        "legs_down": st.booleans(),
    },
    rules.MountainCarRule: {"position": near(-0.7, -0.1, 0.5, low=-1.2, high=0.6)},
}
END = {
    rules.AntRule: "failed",
    rules.BipedalWalkerRule: "failed",
    rules.HopperRule: "terminated",
    rules.Walker2dRule: "terminated",
    rules.InvertedPendulumRule: "failed",
    rules.InvertedDoublePendulumRule: "failed",
    rules.LunarLanderRule: "terminated",
    rules.MountainCarRule: "at_goal",
}
# Bonuses within reach of short trajectories.
SHORT: dict[type[Rule], dict[str, Any]] = {
    rules.InvertedPendulumRule: {"survival_steps": (3, 8)},
    rules.InvertedDoublePendulumRule: {"survival_steps": (3, 8)},
    rules.PendulumRule: {"hold_steps": (1, 2, 4)},
    rules.HumanoidRule: {"high_steps": 2},
}
RULES = list(QUANTITIES)
each_rule = pytest.mark.parametrize("rule_class", RULES, ids=lambda cls: cls.__name__)


def draw_steps(data: st.DataObject, rule_class: type[Rule], max_size: int = 15) -> list[dict[str, Any]]:
    """Draw an episode: the quantities of each step, ended or not by the last."""
    steps = data.draw(st.lists(st.fixed_dictionaries(QUANTITIES[rule_class]), min_size=1, max_size=max_size))
    if rule_class in END:
        steps = [{**step, END[rule_class]: False} for step in steps]
        steps[-1][END[rule_class]] = data.draw(st.booleans())
    return steps


def run(rule: Any, steps: list[dict[str, Any]]) -> list[float]:
    RESETS.get(type(rule), lambda rule: rule.reset())(rule)
    return [rule.step(**step) for step in steps]


def test_every_rule_is_covered() -> None:
    assert {cls.__name__ for cls in RULES} | {"Rule"} == set(rules.__all__)


@each_rule
@settings(max_examples=40)
@given(data=st.data())
def test_return_never_passes_the_ceiling(rule_class: type[Rule], data: st.DataObject) -> None:
    rule = rule_class(**SHORT.get(rule_class, {}))
    steps = draw_steps(data, rule_class)
    ceiling = rule.ceiling(len(steps))
    total = sum(run(rule, steps))
    if ceiling is None:
        assert isinstance(rule, (rules.HopperRule, rules.Walker2dRule))
        farthest = max(step["position"] for step in steps)
        assert total <= max(farthest, 0.0) / rule.stride * rule.stride_reward + len(steps) * rule.survival_reward + 1e-9
    else:
        assert total <= ceiling + 1e-9


@each_rule
@settings(max_examples=20)
@given(data=st.data())
def test_reset_forgets_everything(rule_class: type[Rule], data: st.DataObject) -> None:
    used, fresh = (rule_class(**SHORT.get(rule_class, {})) for _ in range(2))
    run(used, draw_steps(data, rule_class))
    steps = draw_steps(data, rule_class)
    run(used, [])
    run(fresh, [])
    assert used == fresh  # every field, memory included
    assert used.progress() == fresh.progress()
    assert run(used, steps) == run(fresh, steps)


@each_rule
@settings(max_examples=20)
@given(data=st.data())
def test_progress_is_bounded_and_named(rule_class: type[Rule], data: st.DataObject) -> None:
    rule: Any = rule_class(**SHORT.get(rule_class, {}))
    run(rule, [])
    for step in draw_steps(data, rule_class):
        rule.step(**step)
        assert len(rule.progress()) == len(rule.progress_names())
        assert all(-1.0 <= value <= 1.0 for value in rule.progress())


@pytest.mark.parametrize("rule_class", [rules.AntRule, rules.BipedalWalkerRule])
@settings(max_examples=50)
@given(data=st.data())
def test_milestones_are_paid_once_for_the_farthest_position(rule_class: type[Rule], data: st.DataObject) -> None:
    rule: Any = rule_class(failure_reward=0.0)
    steps = draw_steps(data, rule_class)
    farthest = max(step["position"] for step in steps)
    paid = [reward for x, reward in zip(rule.thresholds, rule.rewards, strict=True) if farthest > x]
    assert sum(run(rule, steps)) == sum(paid)
    assert rule.milestones_passed == len(paid)


@pytest.mark.parametrize("rule_class", [rules.HopperRule, rules.Walker2dRule])
@settings(max_examples=50)
@given(data=st.data())
def test_strides_do_not_depend_on_the_path(rule_class: type[Rule], data: st.DataObject) -> None:
    # Multiples of 1/16 with a stride of 3/8 are exact, so that counting needs no tolerance.
    rule: Any = rule_class(stride=0.375, survival_reward=0.0)
    positions = data.draw(st.lists(st.integers(-100, 600).map(lambda i: i / 16), min_size=1, max_size=30))
    run(rule, [{"position": x, "terminated": False} for x in positions])
    assert rule.milestones_passed == sum(0.375 * k < max(positions) for k in range(1, 200))


@settings(max_examples=50)
@given(data=st.data())
def test_stages_are_paid_once(data: st.DataObject) -> None:
    lander = rules.LunarLanderRule(success_reward=0.0, crash_reward=0.0)
    steps = draw_steps(data, rules.LunarLanderRule)
    entered = next((i for i, step in enumerate(steps) if abs(step["x"]) < 0.2), None)
    low = entered is not None and any(step["y"] < 0.3 for step in steps[entered:])
    assert sum(run(lander, steps)) == 5.0 * (entered is not None) + 10.0 * low

    car = rules.MountainCarRule(step_reward=0.0, goal_reward=0.0)
    steps = draw_steps(data, rules.MountainCarRule)
    back, forward = (any(f(step["position"]) for step in steps) for f in (lambda x: x < -0.7, lambda x: x > -0.1))
    assert sum(run(car, steps)) == 10.0 * back + 20.0 * forward


@settings(max_examples=40)
@given(data=st.data())
def test_streaks_against_a_plain_count(data: st.DataObject) -> None:
    steps = draw_steps(data, rules.HumanoidRule, max_size=20)
    held = [s["height"] > 1.18 and abs(s["y_velocity"]) < 0.18 and s["x_velocity"] > 1.6 for s in steps]
    rewards = run(rules.HumanoidRule(high_steps=3, low_reward=0.0), steps)
    assert rewards == [20.0 * (i >= 2 and all(held[i - 2 : i + 1])) for i in range(len(steps))]
