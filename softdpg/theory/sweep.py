"""All statements over a sweep of problems and smoothing parameters."""

from __future__ import annotations

from collections.abc import Iterator

from softdpg.theory import bellman_statements as bellman
from softdpg.theory import gradient_statements as gradient
from softdpg.theory import smoothing_statements as smoothing
from softdpg.theory.check import Check
from softdpg.theory.counterexamples import COUNTEREXAMPLES
from softdpg.theory.finite import FiniteProblem
from softdpg.theory.lqr import LQRProblem
from softdpg.theory.problems import Problem, random_finite, random_lqr, sharp_reward, sharp_transition
from softdpg.theory.toy import Toy, soft_dpg_on_the_toy

SIGMAS = (0.01, 0.03, 0.1, 0.3, 1.0)
SIZES = ((1, 1, 0.9), (2, 1, 0.6), (3, 1, 0.9), (5, 1, 0.99), (2, 2, 0.9), (4, 2, 0.99))
"""States, action dimension, discount factor."""

# Statements about any problem, about finite states only, and about linear-quadratic control only.
SHARED = (
    smoothing.score_function_gradient,
    gradient.gaussian_policy_gradient,
    bellman.q_sigma_is_not_smoothed_q,
    gradient.gradient_bellman_equation,
    gradient.soft_dpg_theorem,
)
SHARED_LIMITS = (
    smoothing.smoothed_gradient_limit,
    gradient.deterministic_policy_gradient,
    gradient.deterministic_limit,
)
FINITE = (
    bellman.contraction,
    bellman.fixed_point,
    bellman.simulation_lemma_smoothed,
    bellman.value_error_bound,
    bellman.sharp_value_error_bound,
    bellman.smoothed_mdp_value,
    bellman.q_lipschitz,
    bellman.sharp_q_lipschitz,
    bellman.q_error_bound,
    bellman.sharp_q_error_bound,
)
LQR = (bellman.weighted_contraction, bellman.smoothed_lqr_value, bellman.lqr_value_error)


def finite_problems() -> list[FiniteProblem]:
    """Return smooth finite problems with rewards >= 0, the paper's setting."""
    return [random_finite(seed, n, m, gamma) for seed, (n, m, gamma) in enumerate(SIZES)]


def sharp_problems() -> list[FiniteProblem]:
    """Return finite problems with a kink at the policy's action, where the bounds are (nearly) attained."""
    return [sharp_reward(), sharp_transition()]


def lqr_problems() -> list[LQRProblem]:
    """Return linear-quadratic problems."""
    return [random_lqr(seed, d, m, gamma) for seed, (d, m, gamma) in enumerate(SIZES)]


def run_statements() -> Iterator[Check]:
    """Evaluate the statements in the form that holds, on problems that satisfy their assumptions."""
    smooth_problems: list[Problem] = [*finite_problems(), *lqr_problems()]
    for problem in smooth_problems:
        for limit in SHARED_LIMITS:
            yield limit(problem)
        for statement in SHARED:
            for sigma in SIGMAS:
                yield statement(problem, sigma)
    for finite in finite_problems():
        for sigma in SIGMAS:
            yield smoothing.smoothed_maximum(finite, sigma)
    for finite in [*finite_problems(), *sharp_problems()]:
        for bound in FINITE:
            for sigma in SIGMAS:
                yield bound(finite, sigma)
    for lqr in lqr_problems():
        for closed_form in LQR:
            for sigma in SIGMAS:
                yield closed_form(lqr, sigma)
    for sigma in SIGMAS:
        yield smoothing.kinked_gradient(sigma)
        yield smoothing.rough_gradient_limit(sigma)
    for sigma in (0.1, 0.2, 0.5):
        for policy in (0.0, 0.3, 0.45):
            yield soft_dpg_on_the_toy(Toy(), policy, sigma)
    for dim in (1, 2, 8, 64):
        yield smoothing.norm_of_the_noise(dim)


def run_counterexamples() -> Iterator[tuple[Check, Check]]:
    """Yield pairs of a statement that fails as written and its corrected form."""
    for counterexample in COUNTEREXAMPLES:
        yield counterexample()
