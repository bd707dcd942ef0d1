"""Section 5.1 and appendix A.2-A.6: the smoothed Bellman operator, its fixed point, and the error bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import eigh, solve_discrete_lyapunov

from softdpg.theory.check import FORMULA, About, Check, largest, rounding, solve_operations
from softdpg.theory.finite import FiniteProblem
from softdpg.theory.lqr import LQRProblem
from softdpg.theory.problems import Problem, rule_for
from softdpg.theory.quadrature import Quadrature, mean_norm, quadrature_error, smooth

Array = np.ndarray


def contraction(problem: FiniteProblem, sigma: float, seed: int = 0) -> Check:
    """Check lemma 5.2: ||T Q - T Q'|| <= gamma ||Q - Q'|| in the supremum norm, for a random bounded Q - Q'.

    Q - Q' = c_s + k_s sin(f_s . a): the supremum over R^m is max(|c_s| + |k_s|).
    """
    rng = np.random.default_rng(seed)
    n, m = problem.reward_direction.shape
    constant, amplitude = rng.normal(size=(n,)), rng.normal(scale=0.3, size=(n,))
    frequency = rng.normal(size=(n, m))
    rule = rule_for(problem, sigma)

    def difference(actions: Array) -> Array:
        return constant[:, None] + amplitude[:, None] * np.sin(np.einsum("nkm,nm->nk", actions, frequency))

    def after(r: Quadrature) -> float:
        return problem.gamma * problem.largest_expectation(smooth(difference, problem.policy(problem.theta), sigma, r))

    measured, noise = quadrature_error(after, rule)
    about = About("T_sigma is a gamma-contraction", "Lemma 5.2", problem.family, problem.name, sigma)
    before = float(np.max(np.abs(constant) + np.abs(amplitude)))
    return about.inequality(problem.gamma * before, float(measured), noise + rounding(before, rule.operations))


def weighted_contraction(problem: LQRProblem, sigma: float, seed: int = 0) -> Check:
    """Check lemma 5.2 where critics are unbounded: a contraction in the norm sup |Q(z)| / (1 + z' G z), z = (s, a).

    z' = F z + E e + [0; I] sigma w is the next state and action. With G = eps L, L = I + (gamma / beta) F' L F, and eps
    so small that gamma (1 + eps sigma^2 tr(noise)) <= beta, the modulus is beta < 1. Q - Q' is a random quadratic.
    """
    rng = np.random.default_rng(seed)
    gain, loop = problem.gain(problem.theta), np.hstack([problem.A, problem.B])
    step = np.vstack([loop, gain @ loop])  # (s, a) -> mean of (s', a')
    entry = np.vstack([np.eye(len(problem.A)), gain])
    noise = entry @ problem.W @ entry.T
    noise[len(problem.A) :, len(problem.A) :] += sigma**2 * np.eye(problem.action_dim)
    radius = problem.gamma * max(1.0, float(np.max(np.abs(np.linalg.eigvals(step)))) ** 2)
    beta = (1 + radius) / 2
    lyapunov = solve_discrete_lyapunov(np.sqrt(problem.gamma / beta) * step.T, np.eye(len(step)))
    weight = lyapunov * (beta / problem.gamma - 1) / max(np.trace(lyapunov @ noise), 1.0)

    def norm(matrix: Array, constant: float) -> float:
        # |z' X z + x| / (1 + z' G z) lies between |x| (at z = 0) and the generalised eigenvalues (for large z).
        return max(abs(constant), largest(eigh(matrix, weight, eigvals_only=True)))

    x = rng.normal(size=step.shape)
    matrix, constant = x + x.T, float(rng.normal())
    after = norm(problem.gamma * step.T @ matrix @ step, problem.gamma * (constant + float(np.trace(matrix @ noise))))
    # Generalised eigenvalues are as exact as the larger matrix is beside the smallest eigenvalue of the weight.
    terms = largest(matrix) * max(1.0, largest(step)) ** 2 * step.size
    inexact = rounding(terms / float(np.linalg.eigvalsh(weight)[0]), solve_operations(len(step)))
    about = About(
        "T_sigma is a contraction in a weighted norm",
        "Lemma 5.2",
        problem.family,
        problem.name,
        sigma,
        as_written=False,
    )
    return about.inequality(beta * norm(matrix, constant), after, inexact)


def fixed_point(problem: FiniteProblem, sigma: float, seed: int = 0) -> Check:
    """Check section 5.1: Q_sigma = T_sigma Q_sigma, at random actions.

    The residual of a linear system is free of its condition number, so that none enters the tolerance.
    """
    rng = np.random.default_rng(seed)
    n, m = problem.reward_direction.shape
    actions, rule = rng.normal(size=(n, 16, m)), rule_for(problem, sigma)
    critic = problem.critic(problem.theta, sigma, rule)
    after = problem.bellman_operator(critic, problem.theta, sigma, rule)
    about = About("Q_sigma = T_sigma Q_sigma", "Section 5.1", problem.family, problem.name, sigma)
    operations = 2 * rule.operations + solve_operations(n)
    return about.equality(critic(actions), after(actions), rounding(problem.value_max, operations))


def simulation_lemma(
    rewards: Array,
    kernel: Array,
    other_rewards: Array,
    other_kernel: Array,
    gamma: float,
    name: str,
    span: bool = False,
    sigma: float = 0.0,
    operations: float = FORMULA,
) -> Check:
    """Check lemma A.1: ||V^ - V|| <= eps_R / (1 - gamma) + gamma eps_P V_max / (2 (1 - gamma)).

    :param rewards: of the first MDP under a policy, (n,)
    :param kernel: transition probabilities of the first MDP, (n, n)
    :param other_rewards: of the second MDP, (n,)
    :param other_kernel: transition probabilities of the second MDP, (n, n)
    :param gamma: discount factor
    :param name: of the problem, shown in tables
    :param span: replace V_max by (max R - min R) / (1 - gamma), which also holds for rewards of both signs
    :param sigma: smoothing parameter between the two MDPs, shown in tables
    :param operations: roundings in each reward and transition probability
    """
    identity = np.eye(len(rewards))
    values = np.linalg.solve(identity - gamma * kernel, rewards)
    others = np.linalg.solve(identity - gamma * other_kernel, other_rewards)
    eps_reward = largest(other_rewards - rewards)
    eps_kernel = float(np.max(np.abs(other_kernel - kernel).sum(axis=1)))
    value_max = largest(np.concatenate([rewards, other_rewards])) / (1 - gamma)
    value_range = float(np.ptp(rewards)) / (1 - gamma) if span else value_max
    claimed = eps_reward / (1 - gamma) + gamma * eps_kernel * value_range / (2 * (1 - gamma))
    statement = "simulation lemma, V_max -> (max R - min R) / (1 - gamma)" if span else "simulation lemma"
    about = About(statement, "Lemma A.1", "finite", name, sigma, as_written=not span)
    operations += solve_operations(len(rewards))
    return about.inequality(claimed, largest(others - values), 2 * rounding(value_max, operations, 2 / (1 - gamma)))


def simulation_lemma_smoothed(problem: FiniteProblem, sigma: float) -> Check:
    """Check lemma A.1 as the proof of lemma 5.3 uses it: for the MDP and the smoothed MDP, under pi. Needs R >= 0."""
    rule, actions = rule_for(problem, sigma), problem.policy(problem.theta)
    reward, smoothed_reward = (problem.smoothed_reward(actions, s, rule) for s in (0.0, sigma))
    kernel, smoothed_kernel = (problem.smoothed_transition(actions, s, rule) for s in (0.0, sigma))
    return simulation_lemma(
        reward, kernel, smoothed_reward, smoothed_kernel, problem.gamma, problem.name,
        sigma=sigma, operations=rule.operations,
    )  # fmt: skip


def value_error(problem: FiniteProblem, sigma: float) -> tuple[float, float]:
    """Return ||V - V_sigma|| and its numerical error."""
    rule = rule_for(problem, sigma)
    gap, noise = quadrature_error(
        lambda r: problem.value(problem.theta, 0.0, r) - problem.value(problem.theta, sigma, r), rule
    )
    return largest(gap), noise + 2 * problem.value_rounding(sigma, rule)


def value_error_bound(problem: FiniteProblem, sigma: float) -> Check:
    """Check lemma 5.3: ||V - V_sigma|| <= sigma sqrt(m) / (1 - gamma) (L_R + gamma / 2 L_P V_max)."""
    measured, noise = value_error(problem, sigma)
    slope = problem.lipschitz_reward + problem.gamma / 2 * problem.lipschitz_transition * problem.value_max
    about = About("bound on |V - V_sigma|", "Lemma 5.3", problem.family, problem.name, sigma)
    return about.inequality(sigma * np.sqrt(problem.action_dim) / (1 - problem.gamma) * slope, measured, noise)


def sharp_value_error_bound(problem: FiniteProblem, sigma: float) -> Check:
    """Check lemma 5.3 with E||w|| for sqrt(m) and the span of the values for V_max: holds for rewards of both signs."""
    measured, noise = value_error(problem, sigma)
    slope = problem.lipschitz_reward + problem.gamma / 2 * problem.lipschitz_transition * problem.value_span
    about = About(
        "bound on |V - V_sigma|, E||w|| and span", "Lemma 5.3", problem.family, problem.name, sigma, as_written=False
    )
    return about.inequality(sigma * mean_norm(problem.action_dim) / (1 - problem.gamma) * slope, measured, noise)


def lipschitz_constant(problem: FiniteProblem) -> float:
    """Return L_Q = L_R + gamma L_P V_max (lemma 5.4)."""
    return problem.lipschitz_reward + problem.gamma * problem.lipschitz_transition * problem.value_max


def q_lipschitz(problem: FiniteProblem, sigma: float) -> Check:
    """Check lemma 5.4: Q_sigma(s, .) is Lipschitz with L_Q = L_R + gamma L_P V_max."""
    rule = rule_for(problem, sigma)
    measured, noise = quadrature_error(lambda r: problem.largest_slope(problem.value(problem.theta, sigma, r)), rule)
    about = About("Lipschitz constant of Q_sigma", "Lemma 5.4", problem.family, problem.name, sigma)
    return about.inequality(lipschitz_constant(problem), float(measured), noise + problem.slope_rounding(rule))


def sharp_q_lipschitz(problem: FiniteProblem, sigma: float) -> Check:
    """Check lemma 5.4 with L_R + gamma / 2 L_P span: |sum V (P - P')| is at most half the span times ||P - P'||_1."""
    check = q_lipschitz(problem, sigma)
    claimed = problem.lipschitz_reward + problem.gamma / 2 * problem.lipschitz_transition * problem.value_span
    about = About(
        "Lipschitz constant of Q_sigma, span", "Lemma 5.4", problem.family, problem.name, sigma, as_written=False
    )
    return about.inequality(claimed, check.measured, check.tolerance)


def q_error(problem: FiniteProblem, sigma: float) -> tuple[float, float]:
    """Return ||Q - Q_sigma|| over all actions, and its numerical error. Q - Q_sigma = gamma P (V - V_sigma)."""
    rule = rule_for(problem, sigma)
    measured, noise = quadrature_error(
        lambda r: (
            problem.gamma
            * problem.largest_expectation(problem.value(problem.theta, 0.0, r) - problem.value(problem.theta, sigma, r))
        ),
        rule,
    )
    return float(measured), noise + 2 * problem.value_rounding(sigma, rule)


def q_error_bound(problem: FiniteProblem, sigma: float) -> Check:
    """Check lemma 5.5: ||Q - Q_sigma|| <= gamma L_Q sigma sqrt(m) / (1 - gamma)."""
    measured, noise = q_error(problem, sigma)
    claimed = problem.gamma * lipschitz_constant(problem) * sigma * np.sqrt(problem.action_dim) / (1 - problem.gamma)
    about = About("bound on |Q - Q_sigma|", "Lemma 5.5", problem.family, problem.name, sigma)
    return about.inequality(claimed, measured, noise)


def sharp_q_error_bound(problem: FiniteProblem, sigma: float) -> Check:
    """Check lemma 5.5 from lemma 5.3: Q - Q_sigma = gamma P (V - V_sigma), so gamma times its sharp bound."""
    measured, noise = q_error(problem, sigma)
    claimed = problem.gamma * sharp_value_error_bound(problem, sigma).claimed
    about = About(
        "bound on |Q - Q_sigma|, E||w|| and span", "Lemma 5.5", problem.family, problem.name, sigma, as_written=False
    )
    return about.inequality(claimed, measured, noise)


def q_sigma_is_not_smoothed_q(problem: Problem, sigma: float) -> Check:
    """Check section 5.1: Q_sigma(s, a) differs from E[Q(s, a + sigma w)]; the largest difference at a = pi(s)."""
    rule, actions = rule_for(problem, sigma), problem.policy(problem.theta)
    critic = problem.critic(problem.theta, 0.0, rule)

    own = problem.critic(problem.theta, sigma, rule)(actions[:, None, :])[:, 0]
    smoothed, noise = quadrature_error(lambda r: smooth(critic, actions, sigma, r), rule)
    about = About("Q_sigma is not the smoothed Q", "Section 5.1", problem.family, problem.name, sigma)
    inexact = 2 * problem.value_rounding(sigma, rule) + rounding(problem.critic_size(sigma), rule.operations)
    return about.distinct(largest(own - smoothed), noise + inexact)


def smoothed_mdp_value(problem: FiniteProblem, sigma: float, iterations: int = 60) -> Check:
    """Check the proof of lemma 5.3: V_sigma is the value function of the MDP (R_sigma, P_sigma).

    Measured: V_sigma from its definition, E[Q_sigma(s, pi(s) + sigma w)] with Q_sigma = lim T_sigma^k 0, where the
    limit is taken by successive squaring of the affine map V -> E[(T V)(s, pi(s) + sigma w)].
    """
    rule, actions, n = rule_for(problem, sigma), problem.policy(problem.theta), len(problem.initial)

    def smoothed_backup(values: Array) -> Array:
        return smooth(problem.backup(values), actions, sigma, rule)

    constant = smoothed_backup(np.zeros(n))
    linear = np.stack([smoothed_backup(unit) - constant for unit in np.eye(n)], axis=1)
    for _ in range(iterations):
        constant, linear = constant + linear @ constant, linear @ linear
    reward = problem.smoothed_reward(actions, sigma, rule)
    kernel = problem.smoothed_transition(actions, sigma, rule)
    claimed = np.linalg.solve(np.eye(n) - problem.gamma * kernel, reward)
    about = About("V_sigma is the value of the smoothed MDP", "Proof of Lemma 5.3", problem.family, problem.name, sigma)
    # The linear part is a difference of backups; V multiplies its rounding, of the size of the rewards.
    operations = 2 * rule.operations + solve_operations(n) + iterations
    reward_max = (1 - problem.gamma) * problem.value_max
    inexact = rounding(problem.value_max, operations, (2 + reward_max) / (1 - problem.gamma))
    return about.equality(claimed, constant, problem.value_rounding(sigma, rule) + inexact)


def smoothed_lqr_value(problem: LQRProblem, sigma: float) -> Check:
    """Check the same for LQR: E[Q_sigma(s, K s + sigma w)] against the value of (R_sigma, P_sigma).

    R_sigma = R - sigma^2 tr D and P_sigma = N(A s + B a, W + sigma^2 B B'); its value at s is the discounted sum of
    the state moments started from s s'.
    """
    rule, theta = rule_for(problem, sigma), problem.theta
    started = [replace(problem, initial=np.outer(s, s)) for s in problem.states]
    claimed = np.array([start.expected_return(theta, sigma, rule) for start in started])
    measured, noise = quadrature_error(
        lambda r: smooth(problem.critic(theta, sigma, r), problem.policy(theta), sigma, r), rule
    )
    inexact = 2 * max(start.value_rounding(sigma, rule) for start in started)
    inexact += rounding(problem.critic_size(sigma), rule.operations)
    about = About("V_sigma is the value of the smoothed MDP", "Proof of Lemma 5.3", problem.family, problem.name, sigma)
    return about.equality(claimed, measured, noise + inexact)


def lqr_value_error(problem: LQRProblem, sigma: float) -> Check:
    """Check for LQR that V - V_sigma = sigma^2 tr(D + gamma B' M B) / (1 - gamma), the same in each state: O(sigma^2).

    Lemmas 5.3 to 5.5 say nothing here: R is unbounded, so R_max is infinite. Measured from the returns.
    """
    rule, theta = rule_for(problem, sigma), problem.theta
    matrix = problem.value_matrix(theta)
    bend = np.trace(problem.D + problem.gamma * problem.B.T @ matrix @ problem.B)
    returns = [problem.expected_return(theta, s, rule) for s in (0.0, sigma)]
    about = About(
        "V - V_sigma = sigma^2 tr(D + gamma B'MB) / (1 - gamma)", "instead of Lemma 5.3", problem.family, problem.name,
        sigma, as_written=False,
    )  # fmt: skip
    inexact = 2 * problem.value_rounding(sigma, rule)
    return about.equality(sigma**2 * bend / (1 - problem.gamma), returns[0] - returns[1], inexact)
