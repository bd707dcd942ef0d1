"""Each statement on random problems. A ``Check`` has its own tolerance; ``softdpg/theory/check.py`` derives it."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from softdpg.theory import bellman_statements as bellman
from softdpg.theory import gradient_statements as gradient
from softdpg.theory import smoothing_statements as smoothing
from softdpg.theory.check import About, rounding, sum_operations
from softdpg.theory.finite import FiniteProblem
from softdpg.theory.problems import random_finite, random_lqr, rule_for, sharp_reward, sharp_transition
from softdpg.theory.quadrature import smooth
from softdpg.theory.report import relative_error

seeds = st.integers(0, 2**32 - 1)
sigmas = st.floats(0.01, 1.0)
gammas = st.floats(0.05, 0.99)
dims = st.integers(1, 2)


@st.composite
def finite_problems(draw, signed=None):
    both_signs = draw(st.booleans()) if signed is None else signed
    return random_finite(draw(seeds), draw(st.integers(1, 5)), draw(dims), draw(gammas), both_signs)


@st.composite
def lqr_problems(draw):
    return random_lqr(draw(seeds), draw(st.integers(1, 3)), draw(dims), draw(gammas))


problems = finite_problems() | lqr_problems()


def examples(count):
    return settings(max_examples=count)


@pytest.mark.parametrize(
    "statement",
    [
        smoothing.score_function_gradient,
        gradient.gaussian_policy_gradient,
        gradient.gradient_bellman_equation,
        gradient.soft_dpg_theorem,
    ],
)
@given(problem=problems, sigma=sigmas)
@examples(25)
def test_equalities(statement, problem, sigma):
    check = statement(problem, sigma)
    assert check.holds, check


@pytest.mark.parametrize(
    "statement",
    [smoothing.smoothed_gradient_limit, gradient.deterministic_limit, gradient.deterministic_policy_gradient],
)
@given(problem=problems)
@examples(20)
def test_limits(statement, problem):
    check = statement(problem)
    assert check.holds, check


@pytest.mark.parametrize(
    "statement",
    [
        smoothing.smoothed_maximum,
        bellman.contraction,
        bellman.fixed_point,
        bellman.smoothed_mdp_value,
        bellman.sharp_value_error_bound,
        bellman.q_lipschitz,
        bellman.sharp_q_lipschitz,
        bellman.q_error_bound,
        bellman.sharp_q_error_bound,
    ],
)
@given(problem=finite_problems(), sigma=sigmas)
@examples(15)
def test_rewards_of_any_sign(statement, problem, sigma):
    check = statement(problem, sigma)
    assert check.holds, check


@pytest.mark.parametrize("statement", [bellman.simulation_lemma_smoothed, bellman.value_error_bound])
@given(problem=finite_problems(signed=False), sigma=sigmas)
@examples(25)
def test_rewards_of_one_sign(statement, problem, sigma):
    check = statement(problem, sigma)
    assert check.holds, check


@pytest.mark.parametrize(
    "statement", [bellman.weighted_contraction, bellman.smoothed_lqr_value, bellman.lqr_value_error]
)
@given(problem=lqr_problems(), sigma=sigmas)
@examples(25)
def test_linear_quadratic(statement, problem, sigma):
    check = statement(problem, sigma)
    assert check.holds, check


# With one state the bound is attained, so that both sides differ by their roundings alone.
@example(seed=1057124, states=1, gamma=0.125, signed=False, size=0.03125)
@example(seed=972, states=1, gamma=0.81, signed=False, size=0.001584893192461114)
@example(seed=446, states=1, gamma=0.33, signed=False, size=0.0012589254117941675)
@given(seed=seeds, states=st.integers(1, 5), gamma=gammas, signed=st.booleans(), size=st.floats(1e-3, 1))
@examples(100)
def test_simulation_lemma_on_arbitrary_pairs(seed, states, gamma, signed, size):
    rng = np.random.default_rng(seed)
    low = -1.0 if signed else 0.0
    rewards, other = rng.uniform(low, 1, (2, states))
    other = (1 - size) * rewards + size * other
    kernel, towards = rng.dirichlet(np.full(states, 0.3), (2, states))
    models = rewards, kernel, other, (1 - size) * kernel + size * towards
    if not signed:
        assert bellman.simulation_lemma(*models, gamma, "pair").holds
    assert bellman.simulation_lemma(*models, gamma, "pair", span=True).holds


@given(seed=seeds, dim=dims, sigma=st.floats(0.05, 1.0), gamma=st.floats(0.6, 0.99))
@examples(20)
def test_q_sigma_is_not_smoothed_q(seed, dim, sigma, gamma):
    assert bellman.q_sigma_is_not_smoothed_q(random_lqr(seed, 2, dim, gamma), sigma).holds
    assert bellman.q_sigma_is_not_smoothed_q(random_finite(seed, 3, dim, gamma), sigma).holds


@pytest.mark.parametrize("family", [random_finite, random_lqr])
@given(seed=seeds, dim=dims, sigma=sigmas)
@examples(30)
def test_soft_dpg_theorem_to_five_digits(family, seed, dim, sigma):
    check = gradient.soft_dpg_theorem(family(seed, 3, dim), sigma)
    assume(abs(check.measured) < 1e5)  # near instability differences of the objective lose digits
    assert relative_error(check) < 1e-5, check


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.7])
def test_functions_without_a_gradient(sigma):
    assert smoothing.kinked_gradient(sigma).holds
    assert smoothing.rough_gradient_limit(sigma).holds


def test_operator_contracts_by_its_definition():
    """T_sigma applied to two critics, at many actions, against the claimed factor."""
    problem, sigma, rng = random_finite(5, 3, 1), 0.5, np.random.default_rng(5)
    rule, shift = rule_for(problem, sigma), rng.normal(size=(3, 1))
    first = problem.critic(problem.theta, sigma, rule)

    def second(actions):
        return first(actions) + shift * np.cos(actions[..., 0])

    actions = rng.uniform(-5, 5, size=(3, 500, 1))
    after = [problem.bellman_operator(q, problem.theta, sigma, rule)(actions) for q in (first, second)]
    assert np.abs(after[0] - after[1]).max() <= problem.gamma * np.abs(shift).max()
    # The only difference that reaches the backup is the smoothed one.
    gap = smooth(lambda a: second(a) - first(a), problem.policy(problem.theta), sigma, rule)
    np.testing.assert_allclose(after[1] - after[0], problem.gamma * problem.transition(actions) @ gap, atol=1e-12)


class HalvedReward(FiniteProblem):
    lipschitz_reward = property(lambda self: FiniteProblem.lipschitz_reward.func(self) / 2)


class HalvedTransition(FiniteProblem):
    lipschitz_transition = property(lambda self: FiniteProblem.lipschitz_transition.func(self) / 2)


@pytest.mark.parametrize(
    ("problem", "halved"), [(sharp_reward(), HalvedReward), (sharp_transition(gamma=0.5), HalvedTransition)]
)
@pytest.mark.parametrize("statement", [bellman.value_error_bound, bellman.sharp_value_error_bound])
def test_half_of_a_tight_bound_does_not_hold(problem, halved, statement):
    wrong = halved(**{name: getattr(problem, name) for name in problem.__dataclass_fields__})
    assert statement(problem, 0.01).holds
    check = statement(wrong, 0.01)
    assert not check.holds
    assert check.ratio > 1.5


@pytest.mark.parametrize("gamma", [0.5, 0.99])
def test_a_tolerance_follows_the_values_and_not_their_difference(gamma):
    rewards, kernel = np.array([1.0, 0.25]), np.array([[0.5, 0.5], [0.25, 0.75]])

    def tolerance(scale, difference):
        other = scale * rewards + np.array([difference, 0.0])
        return bellman.simulation_lemma(scale * rewards, kernel, other, kernel, gamma, "pair").tolerance

    assert tolerance(1.0, 1e-3) == pytest.approx(tolerance(1.0, 1e-9), rel=0.02)
    assert tolerance(100.0, 0.1) == pytest.approx(100 * tolerance(1.0, 1e-3))
    assert tolerance(1.0, 1e-3) < 1e-11 / (1 - gamma)  # eleven digits of V_max = 1 / (1 - gamma)


def test_rounding_by_hand():
    """One unit in the last place of 100 is 2^-46; a hundred roundings amplified by 20 are 2,000 times 2^-52 * 100."""
    assert rounding(100.0, operations=100, condition=20) == pytest.approx(2_000 * 2.0**-52 * 100)
    assert sum_operations(9) == 9  # a short sum: each rounding counts
    assert sum_operations(1024) == 128


def test_a_bound_is_not_saved_by_its_tolerance():
    about = About("bound", "here", "finite", "by hand")
    assert about.inequality(1.0, 1.0).holds
    assert not about.inequality(1.0, 1.0 + 1e-9).holds
    assert not about.equality([1.0, 2.0], [1.0, 2.0 + 1e-9]).holds
    assert not about.inequality(1.0, float("nan")).holds
    assert not about.distinct(1e-12, 1e-11).holds
    assert about.distinct(1e-10, 1e-11).holds
