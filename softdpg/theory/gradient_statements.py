"""Sections 3.4 and 5.2: policy gradients, against finite differences of the objective."""

from __future__ import annotations

import numpy as np

from softdpg.theory.check import About, Check
from softdpg.theory.lqr import LQRProblem
from softdpg.theory.problems import Problem, rule_for
from softdpg.theory.quadrature import finite_difference, limit_at_zero, quadrature_error

Array = np.ndarray


def gaussian_policy_gradient(problem: Problem, sigma: float) -> Check:
    """Check lemma 3.4, equation (7): 1 / (1 - gamma) E_d[grad pi(s) Q(s, pi(s) + sigma w) w / sigma] against J(nu).

    d = (1 - gamma) rho is normalised here. J(nu) is the return under the state occupancy, so that neither V nor the
    gradient Bellman equation enters the measured side.
    """
    rule, theta = rule_for(problem, sigma), problem.theta
    claimed, noise = quadrature_error(lambda r: problem.soft_dpg(theta, sigma, r), rule)
    measured, blur = finite_difference(
        lambda t: problem.expected_return(t, sigma, rule), theta, problem.value_rounding(sigma, rule)
    )
    about = About("stochastic gradient of a Gaussian policy", "Lemma 3.4", problem.family, problem.name, sigma)
    return about.equality(claimed, measured, noise + blur + problem.gradient_rounding(sigma, rule))


def deterministic_limit(problem: Problem, sigma: float = 0.2) -> Check:
    """Check lemma 3.4, equation (8), with d^pi: the gradient of the Gaussian policy tends to the deterministic one.

    The paper writes d^nu under the limit, which depends on sigma; see ``counterexamples.limit_with_d_nu``.
    """
    rule, theta = rule_for(problem, sigma), problem.theta
    measured, blur = limit_at_zero(
        lambda s: problem.soft_dpg(theta, s, rule), sigma, lambda s: problem.gradient_rounding(s, rule)
    )
    about = About(
        "the limit of the Gaussian gradient is the DPG, s ~ d^pi",
        "Lemma 3.4",
        problem.family,
        problem.name,
        as_written=False,
    )
    return about.equality(problem.dpg(theta, rule), measured, blur + problem.gradient_rounding(0.0, rule), kind="limit")


def deterministic_policy_gradient(problem: Problem) -> Check:
    """Check equation (2) for J = E[V(s_0)] and the unnormalised occupancy: the DPG theorem itself."""
    rule, theta = rule_for(problem, 0.0), problem.theta
    measured, blur = finite_difference(
        lambda t: problem.objective(t, 0.0, rule), theta, problem.value_rounding(0.0, rule)
    )
    about = About(
        "DPG theorem, J = E[V(s_0)], rho unnormalised", "Equation (2)", problem.family, problem.name, as_written=False
    )
    return about.equality(problem.dpg(theta, rule), measured, blur + problem.gradient_rounding(0.0, rule))


def gradient_bellman_equation(problem: Problem, sigma: float) -> Check:
    """Check lemma 5.6: grad V_sigma(s) = gamma E[grad V_sigma(s')] + grad E[Q_sigma^pi(s, pi_theta(s) + sigma w)].

    The superscript pi is fixed: the last gradient acts on the action alone, so it is grad pi(s) E[Q_sigma w / sigma].
    """
    rule, theta = rule_for(problem, sigma), problem.theta
    inexact = problem.value_rounding(sigma, rule)
    measured, blur = finite_difference(lambda t: problem.value(t, sigma, rule), theta, inexact)

    def next_value(t: Array) -> Array:
        # V of the perturbed policy, the next state from the unperturbed one.
        if isinstance(problem, LQRProblem):
            return problem.next_quadratic(theta, problem.value_matrix(t), problem.value_constant(t, sigma), sigma)
        return problem.next_value(theta, problem.value(t, sigma, rule), sigma, rule)

    later, blur_later = finite_difference(next_value, theta, inexact)
    now, noise = quadrature_error(lambda r: problem.state_scores(theta, sigma, r), rule)
    about = About("gradient Bellman equation", "Lemma 5.6", problem.family, problem.name, sigma)
    tolerance = noise + blur + blur_later + problem.score_rounding(sigma, rule)
    return about.equality(problem.gamma * later + now, measured, tolerance)


def soft_dpg_theorem(problem: Problem, sigma: float) -> Check:
    """Check theorem 5.7 with rho = sum_t gamma^t rho_t, as in the appendix, against differences of J_sigma.

    The main text calls rho a distribution; see ``counterexamples.theorem_with_a_distribution``.
    """
    rule, theta = rule_for(problem, sigma), problem.theta
    claimed, noise = quadrature_error(lambda r: problem.soft_dpg(theta, sigma, r), rule)
    measured, blur = finite_difference(
        lambda t: problem.objective(t, sigma, rule), theta, problem.value_rounding(sigma, rule)
    )
    about = About("Soft-DPG theorem", "Theorem 5.7", problem.family, problem.name, sigma)
    return about.equality(claimed, measured, noise + blur + problem.gradient_rounding(sigma, rule))
