import numpy as np
import pytest

from softdpg.theory.lqr import LQRProblem
from softdpg.theory.problems import random_lqr, rule_for


def scalar(sigma_noise: float = 0.0) -> LQRProblem:
    """s' = s + a, cost s^2 + a^2, K = -1/2, gamma = 0.8: M = (1 + 1/4) / (1 - 0.8 / 4) = 1.5625."""
    one = np.ones((1, 1))
    return LQRProblem("scalar", 0.8, one, one, one, one, sigma_noise * one, one, np.array([-0.5]))


def test_scalar_problem_by_hand():
    problem, rule = scalar(), rule_for(scalar(), 0.1)
    assert problem.value_matrix(problem.theta)[0, 0] == pytest.approx(1.5625)
    # c = sigma^2 (D + gamma B M B) / (1 - gamma) = 0.01 * (1 + 1.25) / 0.2
    np.testing.assert_allclose(problem.value(problem.theta, 0.1, rule), [-1.5625 - 0.1125])
    # Q(1, a) = -(1 + a^2 + 0.8 * (1.5625 (1 + a)^2 + 0.1125)) at a = 0.5
    np.testing.assert_allclose(
        problem.critic(problem.theta, 0.1, rule)(np.array([[[0.5]]])), [[-(1.25 + 0.8 * (1.5625 * 2.25 + 0.1125))]]
    )
    # grad_a Q(1, a) at a = -1/2: -2 a - 1.6 * 1.5625 (1 + a) = 1 - 1.25
    np.testing.assert_allclose(problem.action_gradient(problem.theta, rule), [[-0.25]])


def test_value_agrees_with_simulated_moments():
    problem, sigma = random_lqr(3, 3, 2, gamma=0.9), 0.5
    loop, gain = problem.closed_loop(problem.theta), problem.gain(problem.theta)
    moment, total = problem.initial.copy(), 0.0
    for t in range(500):
        stage = np.trace(problem.C @ moment) + np.trace(problem.D @ (gain @ moment @ gain.T + sigma**2 * np.eye(2)))
        total -= problem.gamma**t * stage
        moment = loop @ moment @ loop.T + problem.W + sigma**2 * problem.B @ problem.B.T
    rule = rule_for(problem, sigma)
    assert problem.objective(problem.theta, sigma, rule) == pytest.approx(total, rel=1e-9)
    assert problem.expected_return(problem.theta, sigma, rule) == pytest.approx(total, rel=1e-9)


def test_soft_dpg_is_minus_two_e_s():
    """The score form by quadrature equals the closed form -2 (D K + gamma B' M (A + B K)) S_sigma."""
    problem, sigma = random_lqr(4, 3, 2), 0.3
    theta = problem.theta
    later = problem.gamma * problem.B.T @ problem.value_matrix(theta) @ problem.closed_loop(theta)
    closed_form = -2 * (problem.D @ problem.gain(theta) + later) @ problem.occupancy(theta, sigma)
    np.testing.assert_allclose(
        problem.soft_dpg(theta, sigma, rule_for(problem, sigma)), closed_form.reshape(-1), rtol=1e-9
    )
