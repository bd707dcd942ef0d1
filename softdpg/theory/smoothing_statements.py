"""Section 3.3: Gaussian smoothing of a function. The functions are critics Q(s, .) of the problems."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from softdpg.theory.check import About, Check, rounding, sum_operations
from softdpg.theory.finite import FiniteProblem
from softdpg.theory.problems import Problem, rule_for
from softdpg.theory.quadrature import (
    finite_difference,
    gauss_legendre_panels,
    limit_at_zero,
    mean_norm,
    quadrature_error,
    smooth,
    smooth_gradient,
)


def score_function_gradient(problem: Problem, sigma: float) -> Check:
    """Check definition 3.2 for f = Q_sigma(s, .): E[f(x + sigma w) w / sigma] against differences of f_sigma."""
    rule = rule_for(problem, sigma)
    critic, actions = problem.critic(problem.theta, sigma, rule), problem.policy(problem.theta)
    claimed, noise = quadrature_error(lambda r: smooth_gradient(critic, actions, sigma, r), rule)
    inexact = rounding(problem.critic_size(sigma), rule.operations)
    measured, blur = finite_difference(
        lambda d: smooth(critic, actions + d, sigma, rule), np.zeros(problem.action_dim), inexact
    )
    about = About("gradient of f_sigma by the score function", "Definition 3.2", problem.family, problem.name, sigma)
    return about.equality(claimed, measured, noise + blur + inexact / sigma)


def smoothed_gradient_limit(problem: Problem, sigma: float = 0.2) -> Check:
    """Check lemma 3.3 for f = Q^pi(s, .): grad f_sigma -> grad f, extrapolated from ``sigma`` and its halves."""
    rule = rule_for(problem, sigma)
    critic, actions = problem.critic(problem.theta, 0.0, rule), problem.policy(problem.theta)
    measured, blur = limit_at_zero(
        lambda s: smooth_gradient(critic, actions, s, rule),
        sigma,
        lambda s: rounding(problem.critic_size(s), rule.operations) / s,
    )
    about = About("grad f_sigma -> grad f for sigma -> 0", "Lemma 3.3", problem.family, problem.name)
    claimed = problem.action_gradient(problem.theta, rule)
    return about.equality(claimed, measured, blur + problem.slope_rounding(rule), kind="limit")


def rough_gradient_limit(sigma: float) -> Check:
    """Check lemma 3.3 at x = 0 for f(x) = x^2 sin(1/x), differentiable with f'(0) = 0 although f' has no limit there.

    |grad f_sigma(0)| = |sigma E[w^3 sin(1 / (sigma w))]| <= sigma E|w|^3, so that a continuous gradient is not needed.
    """
    # The integrand oscillates towards 0; the substitution w = 1 / t turns the oscillations into equal periods.
    # Smooth and negligible at both ends, so that the trapezoidal rule converges beyond all orders.
    end = 100.0
    t = np.arange(1 / 12, end, sigma / 50)
    integrand = 2 * sigma * np.sin(t / sigma) * np.exp(-1 / (2 * t**2)) / np.sqrt(2 * np.pi) / t**5
    measured = abs(float(np.trapezoid(integrand, t)))
    about = About(
        "|grad f_sigma(0) - f'(0)| <= sigma E|w|^3, f' discontinuous", "Lemma 3.3", "function", "x^2 sin(1/x)", sigma
    )
    beyond = 2 * sigma / np.sqrt(2 * np.pi) / (4 * end**4)  # the integrand is at most 2 sigma / sqrt(2 pi) / t^5
    return about.inequality(sigma * 2 * np.sqrt(2 / np.pi), measured, beyond + rounding(sigma, sum_operations(len(t))))


def smoothed_maximum(problem: FiniteProblem, sigma: float, samples: int = 256, seed: int = 0) -> Check:
    """Check section 3.3: max f_sigma <= max f, for f = R(s, .), whose maximum is known; f_sigma at random actions."""
    rule, rng = rule_for(problem, sigma), np.random.default_rng(seed)
    n, m = problem.reward_direction.shape
    actions = rng.normal(scale=2.0, size=(samples, n, m))
    measured = max(float(np.max(problem.smoothed_reward(a, sigma, rule))) for a in actions)
    about = About("max f_sigma <= max f", "Section 3.3", problem.family, problem.name, sigma)
    size = max(abs(problem.reward_min), abs(problem.reward_max))
    return about.inequality(problem.reward_max, measured, rounding(size, rule.operations))


def norm_of_the_noise(dim: int) -> Check:
    """Check the proof of lemma 5.3: E||w|| <= sqrt(m), measured in closed form."""
    about = About("E||w|| <= sqrt(m)", "Proof of Lemma 5.3", "function", f"m={dim}")
    return about.inequality(np.sqrt(dim), mean_norm(dim))


def kinked_gradient(sigma: float, x: float = 0.3) -> Check:
    """Check definition 3.2 for f(x) = |x|, which has no gradient at 0: f_sigma'(x) = 2 Phi(x / sigma) - 1."""
    rule = gauss_legendre_panels((-x / sigma,))
    claimed, noise = quadrature_error(
        lambda r: smooth_gradient(lambda y: np.abs(y[..., 0]), np.array([x]), sigma, r), rule
    )
    about = About("gradient of f_sigma by the score function", "Definition 3.2", "function", "|x|", sigma)
    inexact = rounding(x + sigma, rule.operations) / sigma
    return about.equality(claimed, np.array([2 * ndtr(x / sigma) - 1]), noise + inexact)
