import numpy as np
import pytest

from softdpg.theory.problems import random_finite, rule_for, sharp_reward, sharp_transition


@pytest.fixture(params=[(0, 3, 1), (1, 4, 2)], ids=["m=1", "m=2"])
def problem(request):
    seed, states, dim = request.param
    return random_finite(seed, states, dim)


def test_transition_is_a_distribution(problem):
    actions = np.random.default_rng(0).normal(size=(len(problem.initial), 50, problem.action_dim))
    kernel = problem.transition(actions)
    assert np.all(kernel >= 0)
    np.testing.assert_allclose(kernel.sum(axis=-1), 1)


def test_lipschitz_constants_are_attained_and_not_exceeded(problem):
    rng = np.random.default_rng(1)
    n, m = problem.reward_direction.shape
    a = rng.uniform(-4, 4, size=(n, 20_000, m))
    step = 1e-4 * np.stack([u / np.linalg.norm(u) for u in problem.reward_direction])[:, None, :]
    slopes = np.abs(problem.reward(a + step) - problem.reward(a)) / 1e-4
    assert slopes.max() == pytest.approx(problem.lipschitz_reward, rel=1e-3)
    assert slopes.max() <= problem.lipschitz_reward * (1 + 1e-9)
    step = 1e-4 * np.stack([v / np.linalg.norm(v) for v in problem.kernel_direction])[:, None, :]
    slopes = np.abs(problem.transition(a + step) - problem.transition(a)).sum(axis=-1) / 1e-4
    assert slopes.max() == pytest.approx(problem.lipschitz_transition, rel=1e-3)
    assert slopes.max() <= problem.lipschitz_transition * (1 + 1e-9)


def test_smoothed_reward_closed_form(problem):
    sigma, actions = 0.7, problem.policy(problem.theta)
    damping = np.exp(-(sigma**2) * (problem.reward_direction**2).sum(axis=1) / 2)
    phase = (actions * problem.reward_direction).sum(axis=1) + problem.reward_phase
    expected = problem.offset + problem.scale * damping * np.sin(phase)
    np.testing.assert_allclose(problem.smoothed_reward(actions, sigma, rule_for(problem, sigma)), expected, rtol=1e-12)


def test_value_is_the_discounted_sum_of_rewards(problem):
    """V_sigma by pushing the state distribution forward, step by step."""
    sigma = 0.4
    rule, actions = rule_for(problem, sigma), problem.policy(problem.theta)
    reward = problem.smoothed_reward(actions, sigma, rule)
    kernel = problem.smoothed_transition(actions, sigma, rule)
    distribution, total = np.eye(len(reward)), np.zeros(len(reward))
    for t in range(400):
        total += problem.gamma**t * distribution @ reward
        distribution = distribution @ kernel
    np.testing.assert_allclose(problem.value(problem.theta, sigma, rule), total, rtol=1e-10)
    assert problem.objective(problem.theta, sigma, rule) == pytest.approx(problem.initial @ total)
    assert problem.expected_return(problem.theta, sigma, rule) == pytest.approx(problem.initial @ total)


def test_policy_jacobian(problem):
    step = 1e-6 * np.array([1.0, 0.0, 0.0])
    numeric = (problem.policy(problem.theta + step) - problem.policy(problem.theta - step)) / 2e-6
    np.testing.assert_allclose(problem.policy_jacobian(problem.theta)[:, :, 0], numeric, atol=1e-9)


def test_suprema_over_actions(problem):
    rng = np.random.default_rng(2)
    n, m = problem.reward_direction.shape
    values = rng.normal(size=n)
    actions = rng.uniform(-60, 60, size=(n, 100_000, m))
    sampled = np.abs(problem.transition(actions) @ values).max()
    assert sampled <= problem.largest_expectation(values) * (1 + 1e-12)
    assert sampled == pytest.approx(problem.largest_expectation(values), rel=0.02)
    critic = problem.backup(values)
    slope = np.linalg.norm(
        [(critic(actions + 1e-5 * e) - critic(actions - 1e-5 * e)) / 2e-5 for e in np.eye(m)], axis=0
    ).max()
    assert slope <= problem.largest_slope(values) * (1 + 1e-6)
    assert slope == pytest.approx(problem.largest_slope(values), rel=0.05)


def test_sharp_problems_by_hand():
    """One state: V = 2 / (1 - gamma). Two states: leaving has probability E[min(sigma |w|, 1)]."""
    sigma = 0.1
    one = sharp_reward(gamma=0.5)
    rule = rule_for(one, sigma)
    np.testing.assert_allclose(one.value(one.theta, 0.0, rule), [4.0])
    np.testing.assert_allclose(one.value(one.theta, sigma, rule), [4.0 - 2 * sigma * np.sqrt(2 / np.pi)], rtol=1e-12)
    two = sharp_transition(gamma=0.5, other_reward=-1.0)
    leave = sigma * np.sqrt(2 / np.pi)  # the cut at |a| = 1 is ten standard deviations away
    first = (1 + 0.5 * leave * -2.0) / (1 - 0.5 * (1 - leave))
    np.testing.assert_allclose(two.value(two.theta, sigma, rule_for(two, sigma)), [first, -2.0], rtol=1e-12)
