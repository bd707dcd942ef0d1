"""Statements that fail as written, each on the smallest problem found, beside the form that holds.

Each function returns two checks: the paper's form, which does not hold, and the corrected one, which does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import norm

from softdpg.theory.bellman_statements import (
    q_lipschitz,
    q_sigma_is_not_smoothed_q,
    sharp_value_error_bound,
    simulation_lemma,
    value_error,
    value_error_bound,
    weighted_contraction,
)
from softdpg.theory.check import About, Check, rounding
from softdpg.theory.gradient_statements import deterministic_limit, deterministic_policy_gradient, soft_dpg_theorem
from softdpg.theory.problems import paid_outside, random_finite, random_lqr, rule_for, sharp_transition
from softdpg.theory.quadrature import (
    finite_difference,
    gauss_legendre_panels,
    limit_at_zero,
    mean_norm,
    quadrature_error,
    smooth_gradient,
)
from softdpg.theory.smoothing_statements import norm_of_the_noise, rough_gradient_limit

Array = np.ndarray
Pair = tuple[Check, Check]


def _truncated(f: Callable[[Array], Array], limit: float) -> float:
    """E[f(w); |w| <= limit] for w ~ N(0, 1)."""
    rule = gauss_legendre_panels((-limit, limit))
    inside = np.abs(rule.nodes[:, 0]) <= limit
    return float(rule.weights[inside] @ f(rule.nodes[inside, 0]))


def smoothing_of_any_function() -> Pair:
    """Definition 3.2 says "any function"; for f(x) = exp(x^2) and sigma >= 1/sqrt(2) the integral is infinite.

    Shown by truncation at |w| <= 4 and 5, which agree to 6e-5 for an integrand as small as 1. For sigma < 1/sqrt(2)
    the gradient exists: f_sigma(x) = exp(x^2 / (1 - 2 sigma^2)) / sqrt(1 - 2 sigma^2).
    """
    name = "exp(x^2)"
    about = About("f_sigma exists for any f: E cut at |w|<=4 equals cut at 5", "Definition 3.2", "function", name, 1.0)
    claimed, measured = (_truncated(lambda w: np.exp(w**2), c) for c in (4.0, 5.0))
    wrong = about.equality(claimed, measured, tolerance=1e-3)
    x, sigma, rule = 0.3, 0.5, gauss_legendre_panels()
    narrow = 1 - 2 * sigma**2
    score, noise = quadrature_error(
        lambda r: smooth_gradient(lambda y: np.exp(y[..., 0] ** 2), np.array([x]), sigma, r), rule
    )
    about = About(
        "gradient of f_sigma if |f(y)| <= C exp(c|y|^2), 2 c sigma^2 < 1", "Definition 3.2", "function", name, sigma,
        as_written=False,
    )  # fmt: skip
    exact = 2 * x / narrow * np.exp(x**2 / narrow) / np.sqrt(narrow)
    size = 10.0  # bounds E[|w| exp((x + sigma w)^2)]
    return wrong, about.equality(score, np.array([exact]), noise + rounding(size, rule.operations) / sigma)


def limit_for_any_differentiable_function() -> Pair:
    """Lemma 3.3 asks for differentiability alone; f(x) = exp(x^4) is smooth, and f_sigma infinite for each sigma > 0.

    What is needed is growth below exp(c x^2), and a derivative at x alone: it need not be continuous.
    """
    about = About(
        "f_sigma exists for differentiable f: cut at |w|<=4 equals cut at 6", "Lemma 3.3", "function", "exp(x^4)", 0.5
    )
    claimed, measured = (_truncated(lambda w: np.exp((0.5 * w) ** 4), c) for c in (4.0, 6.0))
    return about.equality(claimed, measured, tolerance=1e-3), rough_gradient_limit(0.1)


def objective_under_visitation() -> Pair:
    """Equations (1) and (2): for J = E_{s ~ d^pi}[Q(s, pi(s))] the gradient is not E_{s ~ d^pi}[grad pi grad_a Q].

    One state: J = R(pi) / (1 - gamma), but E_d[grad_a Q] = R'(pi): the factor 1 / (1 - gamma) is missing. Taking d
    unnormalised multiplies both sides by 1 / (1 - gamma). Both hold for J = E[V(s_0)] and rho = sum_t gamma^t Pr(s_t).
    """
    problem = random_finite(0, states=1, parameters=1)
    rule, theta = rule_for(problem, 0.0), problem.theta
    visitation = 1 - problem.gamma

    def objective(t: Array) -> float:
        return float(visitation * problem.occupancy(t, 0.0, rule) @ problem.value(t, 0.0, rule))

    measured, blur = finite_difference(objective, theta, 2 * problem.value_rounding(0.0, rule))
    about = About("DPG theorem for J = E_d[Q(s, pi(s))]", "Equations (1), (2)", "finite", problem.name)
    return about.equality(visitation * problem.dpg(theta, rule), measured, blur), deterministic_policy_gradient(problem)


def objective_under_visitation_turns() -> Pair:
    """With two states the gradient of E_{s ~ d^pi}[Q(s, pi(s))] can point against the DPG: their cosine.

    The seed is the worst of 300; the median cosine is above 0.999.
    """
    problem = random_finite(117, states=2, gamma=0.5, parameters=2)
    rule, theta = rule_for(problem, 0.0), problem.theta
    dpg = problem.dpg(theta, rule)

    def cosine(about: About, objective: Callable[[Array], float]) -> Check:
        gradient, blur = finite_difference(objective, theta, 2 * problem.value_rounding(0.0, rule))
        length = float(np.linalg.norm(gradient))
        return about.equality(1.0, float(gradient @ dpg) / (length * float(np.linalg.norm(dpg))), 2 * blur / length)

    def visited(t: Array) -> float:
        return float((1 - problem.gamma) * problem.occupancy(t, 0.0, rule) @ problem.value(t, 0.0, rule))

    about = About("grad E_d[Q(s, pi(s))] is parallel to the DPG (cosine)", "Equations (1), (2)", "finite", problem.name)
    better = About("grad E[V(s_0)] is parallel to the DPG (cosine)", "Equation (2)", "finite", problem.name, 0.0, False)
    return cosine(about, visited), cosine(better, lambda t: problem.objective(t, 0.0, rule))


def limit_with_d_nu(sigma: float = 0.5) -> Pair:
    """Equation (8) keeps d^nu on the side of the limit, which depends on sigma. With d^pi it is the DPG.

    Two states are the fewest: with one, d^nu = d^pi.
    """
    problem = random_finite(0, states=2)
    rule, theta = rule_for(problem, sigma), problem.theta
    limit, blur = limit_at_zero(
        lambda s: problem.soft_dpg(theta, s, rule), 0.2, lambda s: problem.gradient_rounding(s, rule)
    )
    about = About("limit of the Gaussian gradient, s ~ d^nu", "Lemma 3.4", "finite", problem.name, sigma)
    claimed = problem.dpg(theta, rule, occupancy_sigma=sigma)
    return about.equality(claimed, limit, blur, kind="limit"), deterministic_limit(problem)


def simulation_lemma_signed(gamma: float = 0.9, leak: float = 0.01) -> Pair:
    """Lemma A.1 needs R >= 0. Two absorbing states with rewards 1 and -1; the model leaks from the first.

    |V - V^| = 2 gamma leak V_max / (1 - gamma + gamma leak) against the claimed gamma leak V_max / (1 - gamma):
    twice as much for a small leak. With (max R - min R) / (1 - gamma) for V_max it holds, and is sharp.
    """
    rewards, kernel = np.array([1.0, -1.0]), np.eye(2)
    leaking = np.array([[1 - leak, leak], [0.0, 1.0]])
    name = f"n=2 gamma={gamma:g} R=(1,-1) leak={leak:g}"
    wrong, right = (simulation_lemma(rewards, kernel, rewards, leaking, gamma, name, span) for span in (False, True))
    return wrong, right


def value_error_bound_signed(sigma: float = 0.01) -> Pair:
    """Lemma 5.3 inherits that: two states, rewards 1 and -1, the first left with probability min(|a|, 1), pi = 0."""
    problem = sharp_transition(other_reward=-1.0)
    return value_error_bound(problem, sigma), sharp_value_error_bound(problem, sigma)


def value_error_bound_pointwise(sigma: float = 0.01) -> Pair:
    """Lemma 5.3 with L_P the Lipschitz constant of P(s'|s, .) for each s', as its text reads; the proof uses L1.

    Two states, rewards 1 and 0: the L1 constant is twice the pointwise one. With n states it can be n times it, and
    a deterministic transition has no finite L1 constant at all.
    """
    problem = sharp_transition(other_reward=0.0)
    measured, noise = value_error(problem, sigma)
    slope = problem.lipschitz_reward + problem.gamma / 2 * problem.lipschitz_transition / 2 * problem.value_max
    about = About("bound on |V - V_sigma|, L_P pointwise in s'", "Lemma 5.3", "finite", problem.name, sigma)
    return about.inequality(sigma / (1 - problem.gamma) * slope, measured, noise), value_error_bound(problem, sigma)


def norm_of_the_noise_as_equality(dim: int = 1) -> Pair:
    """The proof of lemma 5.3 ends its second estimate with E||w|| = sqrt(m); it is smaller for each m."""
    about = About("E||w|| = sqrt(m)", "Proof of Lemma 5.3", "function", f"m={dim}")
    return about.equality(np.sqrt(dim), mean_norm(dim)), norm_of_the_noise(dim)


def proof_without_absolute_value() -> Pair:
    """The proof of lemma 5.4 uses |sum V (P - P')| <= sum V |P - P'|, false for V < 0. The lemma itself holds.

    Two states, R = -1, gamma = 0.9: V = -10 in both; P and P' put all weight on one state each.
    """
    values, difference = np.array([-10.0, -10.0]), np.array([1.0, -1.0])
    name = "n=2 gamma=0.9 R=-1"
    left = abs(float(values @ difference))
    about = About("|sum V (P - P')| <= sum V |P - P'|", "Proof of Lemma 5.4", "finite", name)
    better = About("|sum V (P - P')| <= sum |V| |P - P'|", "Proof of Lemma 5.4", "finite", name, as_written=False)
    return (
        about.inequality(float(values @ np.abs(difference)), left),
        better.inequality(float(np.abs(values) @ np.abs(difference)), left),
    )


def reward_bound_on_the_box(sigma: float = 1.0) -> Pair:
    """Lemma 5.4 with R_max over the action space [-1, 1]: smoothed actions leave it, so R_max must hold on R^m.

    R = 0 on [-1, 1], so V_max would be 0 and L_Q = L_R; but V_sigma > 0, and Q_sigma is steeper.
    """
    problem = paid_outside()
    right = q_lipschitz(problem, sigma)
    about = About("Lipschitz constant of Q_sigma, R_max on [-1, 1]", "Lemma 5.4", "finite", problem.name, sigma)
    return about.inequality(problem.lipschitz_reward, right.measured, right.tolerance), right


def unbounded_fixed_points() -> Pair:
    """Lemma 5.2 gives a unique fixed point among bounded functions only.

    s' = 2 s, R = 0, gamma = 1/4, any policy and sigma: both Q = 0 and Q(s, a) = s^2 solve Q = T_sigma Q. For a stable
    closed loop a weighted norm takes the place of the supremum.
    """
    gamma, state = 0.25, 1.0
    second = state**2
    after = gamma * (2 * state) ** 2
    about = About("the fixed point of T_sigma is unique among all Q", "Lemma 5.2", "lqr", "s'=2s R=0 gamma=1/4", 0.2)
    # Q = 0 is a fixed point; claimed: so is no other. Measured: Q(1, a) of the second one.
    wrong = about.equality(0.0, second, tolerance=abs(after - second))
    return wrong, weighted_contraction(random_lqr(0), 0.2)


def equal_at_one_half(sigma: float = 0.2) -> Pair:
    """Q_sigma is "in general" not the smoothed Q; on every LQR problem with gamma = 1/2 it is.

    There Q - Q_sigma = gamma / (1 - gamma) sigma^2 tr(D + gamma B' M B), and Q minus the smoothed Q is the same
    without the factor gamma / (1 - gamma).
    """
    wrong = q_sigma_is_not_smoothed_q(random_lqr(0, 1, 1, gamma=0.5), sigma)
    problem = random_lqr(0, 1, 1, gamma=0.9)
    bend = np.trace(problem.D + problem.gamma * problem.B.T @ problem.value_matrix(problem.theta) @ problem.B)
    about = About(
        "|Q_sigma - smoothed Q| = |2 gamma - 1| / (1 - gamma) sigma^2 tr(D + gamma B'MB)", "Section 5.1", "lqr",
        problem.name, sigma, as_written=False,
    )  # fmt: skip
    right = q_sigma_is_not_smoothed_q(problem, sigma)
    claimed = abs(2 * problem.gamma - 1) / (1 - problem.gamma) * sigma**2 * float(bend)
    tolerance = right.measured + right.error  # the numerical error that the difference had to exceed
    return wrong, about.equality(claimed, right.measured, tolerance)


def theorem_with_a_distribution(sigma: float = 0.2) -> Pair:
    """Theorem 5.7 calls rho a distribution; normalised, the gradient is too small by 1 - gamma. One state."""
    problem = random_finite(0, states=1, parameters=1)
    right = soft_dpg_theorem(problem, sigma)
    rule, theta = rule_for(problem, sigma), problem.theta
    claimed = (1 - problem.gamma) * problem.soft_dpg(theta, sigma, rule)
    measured, blur = finite_difference(
        lambda t: problem.objective(t, sigma, rule), theta, problem.value_rounding(sigma, rule)
    )
    about = About("Soft-DPG theorem, rho a distribution", "Theorem 5.7", "finite", problem.name, sigma)
    return about.equality(claimed, measured, blur), right


def clipped_score(sigma: float = 0.2, gamma: float = 0.99) -> Pair:
    """Algorithm 1 uses the clipped action in the score. One state, R = 1: V does not depend on pi, the estimate does.

    At pi = 1, E[clip(pi + sigma w) - pi] = E[min(sigma w, 0)] = -sigma phi(0), so the estimate is
    -phi(0) V / sigma. With the unclipped sample in the score, and Q at the clipped action, it is 0.
    """
    value = 1 / (1 - gamma)
    rule = gauss_legendre_panels((0.0,))
    samples = sigma * rule.nodes[:, 0]
    clipped = np.array(rule.weights @ np.minimum(samples, 0.0) * value / sigma**2)
    unclipped = np.array(rule.weights @ samples * value / sigma**2)
    closed_form = -norm.pdf(0.0) * value / sigma
    name = f"n=1 R=1 gamma={gamma:g} pi=1"
    about = About("actor gradient with the clipped score", "Algorithm 1, line 8", "finite", name, sigma)
    better = About("actor gradient, unclipped score, Q clipped", "Algorithm 1, line 8", "finite", name, sigma, False)
    noise = abs(float(clipped) - closed_form)
    inexact = rounding(value / sigma, rule.operations)
    return about.equality(clipped, 0.0, noise + inexact), better.equality(unclipped, 0.0, inexact)


COUNTEREXAMPLES: tuple[Callable[[], Pair], ...] = (
    smoothing_of_any_function,
    limit_for_any_differentiable_function,
    objective_under_visitation,
    objective_under_visitation_turns,
    limit_with_d_nu,
    unbounded_fixed_points,
    equal_at_one_half,
    simulation_lemma_signed,
    value_error_bound_signed,
    value_error_bound_pointwise,
    norm_of_the_noise_as_equality,
    proof_without_absolute_value,
    reward_bound_on_the_box,
    theorem_with_a_distribution,
    clipped_score,
)
