"""Problems to evaluate the statements on: random ones, and ones on which a bound is sharp."""

from __future__ import annotations

import numpy as np

from softdpg.theory.finite import TENT, FiniteProblem
from softdpg.theory.lqr import LQRProblem
from softdpg.theory.quadrature import Quadrature, gauss_hermite, gauss_legendre_panels

Problem = FiniteProblem | LQRProblem


def random_finite(
    seed: int, states: int = 3, action_dim: int = 1, gamma: float = 0.9, signed: bool = False, parameters: int = 3
) -> FiniteProblem:
    """Make a smooth finite problem at random, with frequencies in [0.5, 2.5].

    :param seed: of the random numbers
    :param states: number of states n
    :param action_dim: dimension m of the action
    :param gamma: discount factor
    :param signed: rewards in [-2, 2] instead of [0, 2]
    :param parameters: number of parameters p of the policy
    """
    rng = np.random.default_rng(seed)
    scale = rng.uniform(0.2, 1.0, states)
    offset = rng.uniform(-1, 1, states) if signed else rng.uniform(scale, 1)
    return FiniteProblem(
        name=f"finite n={states} m={action_dim} gamma={gamma:g} {'R in [-2,2]' if signed else 'R >= 0'} seed={seed}",
        gamma=gamma,
        initial=rng.dirichlet(np.ones(states)),
        offset=offset,
        scale=scale,
        reward_direction=_directions(rng, states, action_dim),
        reward_phase=rng.uniform(-np.pi, np.pi, states),
        low=rng.dirichlet(np.ones(states), states),
        high=rng.dirichlet(np.ones(states), states),
        kernel_direction=_directions(rng, states, action_dim),
        kernel_phase=rng.uniform(-np.pi, np.pi, states),
        features=rng.normal(size=(states, action_dim, parameters)),
        theta=rng.normal(scale=0.5, size=parameters),
    )


def _directions(rng: np.random.Generator, states: int, action_dim: int) -> np.ndarray:
    x = rng.normal(size=(states, action_dim))
    return x / np.linalg.norm(x, axis=1, keepdims=True) * rng.uniform(0.5, 2.5, (states, 1))


def random_lqr(seed: int, state_dim: int = 2, action_dim: int = 1, gamma: float = 0.9) -> LQRProblem:
    """Make a linear-quadratic problem at random, whose closed loop has spectral radius 0.8.

    :param seed: of the random numbers
    :param state_dim: dimension d of the state
    :param action_dim: dimension m of the action
    :param gamma: discount factor
    """
    rng = np.random.default_rng(seed)
    loop = rng.normal(size=(state_dim, state_dim))
    loop *= 0.8 / np.max(np.abs(np.linalg.eigvals(loop)))
    B = rng.normal(size=(state_dim, action_dim))
    gain = rng.normal(scale=0.5, size=(action_dim, state_dim))
    return LQRProblem(
        name=f"lqr d={state_dim} m={action_dim} gamma={gamma:g} seed={seed}",
        gamma=gamma,
        A=loop - B @ gain,
        B=B,
        C=_covariance(rng, state_dim),
        D=_covariance(rng, action_dim),
        W=0.1 * _covariance(rng, state_dim),
        initial=_covariance(rng, state_dim),
        theta=gain.reshape(-1),
    )


def _covariance(rng: np.random.Generator, dim: int) -> np.ndarray:
    x = rng.normal(size=(dim, dim))
    return x @ x.T / dim + 0.1 * np.eye(dim)


def sharp_reward(gamma: float = 0.9) -> FiniteProblem:
    """Make one state with R(a) = max(2 - |a|, 0), pi = 0.

    For small sigma |V - V_sigma| = sigma E|w| L_R / (1 - gamma).
    """
    return _at_the_kink(
        f"sharp-reward n=1 m=1 gamma={gamma:g}", gamma, offset=[1.0], scale=[1.0], slope=0.0, low=[[1.0]], high=[[1.0]]
    )


def sharp_transition(gamma: float = 0.9, other_reward: float = 0.0, slope: float = 1.0) -> FiniteProblem:
    """Make two states: 0 pays 1 and is left with probability min(slope |a|, 1), 1 pays ``other_reward`` forever.

    pi = 0 never leaves. To first order V(0) - V_sigma(0) = sigma E|w| slope gamma (V(0) - V(1)) / (1 - gamma).
    """
    return _at_the_kink(
        f"sharp-transition n=2 m=1 gamma={gamma:g} R in {{1, {other_reward:g}}}",
        gamma,
        offset=[1.0, other_reward],
        scale=[0.0, 0.0],
        slope=slope,
        low=[[0.0, 1.0], [0.0, 1.0]],
        high=[[1.0, 0.0], [0.0, 1.0]],
    )


def _at_the_kink(
    name: str,
    gamma: float,
    offset: list[float],
    scale: list[float],
    slope: float,
    low: list[list[float]],
    high: list[list[float]],
    reward_phase: float = 0.0,
) -> FiniteProblem:
    n = len(offset)
    return FiniteProblem(
        name=name,
        gamma=gamma,
        initial=np.eye(n)[0],
        offset=np.array(offset),
        scale=np.array(scale),
        reward_direction=np.ones((n, 1)),
        reward_phase=np.full(n, reward_phase),
        low=np.array(low),
        high=np.array(high),
        kernel_direction=np.full((n, 1), 2 * slope),
        kernel_phase=np.zeros(n),
        features=np.ones((n, 1, 1)),
        theta=np.zeros(1),
        shape=TENT,
    )


def paid_outside(gamma: float = 0.9, slope: float = 10.0) -> FiniteProblem:
    """Make three states, pi = 0. State 1 pays max(2 - |a - 3|, 0) forever: nothing for a <= 1. State 2 pays nothing.

    State 0 pays nothing and leads to state 1 with probability min(slope |a|, 1), else to state 2.
    """
    return _at_the_kink(
        f"paid-outside n=3 m=1 gamma={gamma:g}",
        gamma,
        offset=[0.0, 1.0, 0.0],
        scale=[0.0, 1.0, 0.0],
        slope=slope,
        low=[[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        high=[[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        reward_phase=-3.0,
    )


def rule_for(problem: Problem, sigma: float) -> Quadrature:
    """Choose a rule: Gauss-Hermite for smooth problems, panels between the kinks of ``TENT`` (pi = 0, m = 1)."""
    if isinstance(problem, LQRProblem) or problem.shape is not TENT:
        return gauss_hermite(problem.action_dim)
    if sigma == 0:
        return gauss_hermite(1)
    ridges = ((problem.reward_direction, problem.reward_phase), (problem.kernel_direction, problem.kernel_phase))
    kinks = [
        (corner - phase) / frequency
        for directions, phases in ridges
        for frequency, phase in zip(directions[:, 0], phases, strict=True)
        if frequency != 0
        for corner in (-2.0, 0.0, 2.0)
    ]
    return gauss_legendre_panels(tuple(kink / sigma for kink in kinks))
