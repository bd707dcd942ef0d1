"""Problems with finite states and continuous actions, in which every constant of the paper is known exactly.

Reward and transition depend on the action through a bounded 1-Lipschitz shape h: R -> [-1, 1],

    R(s, a)     = offset_s + scale_s * h(u_s . a + b_s)
    P(. | s, a) = (1 - g) low_s + g high_s,   g = (1 + h(v_s . a + c_s)) / 2 in [0, 1],

so that L_R = max |scale_s| ||u_s||, and in the L1 sense L_P = max ||v_s|| ||high_s - low_s||_1 / 2.
The policy is pi_theta(s) = tanh(features_s theta).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from softdpg.theory.check import largest, rounding, solve_operations
from softdpg.theory.quadrature import Quadrature, smooth, smooth_gradient

Array = np.ndarray
Critic = Callable[[Array], Array]
"""Q(s, .) for all n states at once: actions (n, k, m) to values (n, k)."""


class Shape(NamedTuple):
    """A function h and its derivative."""

    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]


SINE = Shape(np.sin, np.cos)
"""A smooth shape: its Gaussian smoothing is exp(-sigma^2 / 2) sin(x)."""

TENT = Shape(lambda x: 1 - np.minimum(np.abs(x), 2), lambda x: np.where(np.abs(x) < 2, -np.sign(x), 0.0))
"""A shape with kinks at -2, 0 and 2: 1 - min(|x|, 2). At the kink the O(sigma) bounds are sharp."""


@dataclass(frozen=True)
class FiniteProblem:
    """An MDP with n states and actions in R^m, and a policy with p parameters.

    :param name: shown in tables
    :param gamma: discount factor
    :param initial: distribution of the first state, (n,)
    :param offset: middle of the rewards, (n,)
    :param scale: half the range of the rewards, (n,)
    :param reward_direction: u, (n, m)
    :param reward_phase: b, (n,)
    :param low: transition probabilities for g = 0, (n, n), rows sum to 1
    :param high: transition probabilities for g = 1, (n, n)
    :param kernel_direction: v, (n, m)
    :param kernel_phase: c, (n,)
    :param features: of the policy, (n, m, p)
    :param theta: parameters of the policy, (p,)
    :param shape: h and its derivative
    :param family: shown in tables
    """

    name: str
    gamma: float
    initial: Array
    offset: Array
    scale: Array
    reward_direction: Array
    reward_phase: Array
    low: Array
    high: Array
    kernel_direction: Array
    kernel_phase: Array
    features: Array
    theta: Array
    shape: Shape = SINE
    family: str = "finite"

    @property
    def action_dim(self) -> int:
        """Return the dimension m of the action."""
        return self.reward_direction.shape[1]

    # The model and the constants the paper's bounds are made of.

    def reward(self, actions: Array) -> Array:
        """Return R(s, a) for actions (n, k, m); shape (n, k)."""
        return self.offset[:, None] + self.scale[:, None] * self.shape.value(self._reward_argument(actions))

    def transition(self, actions: Array) -> Array:
        """Return P(s' | s, a) for actions (n, k, m); shape (n, k, n)."""
        g = (1 + self.shape.value(self._kernel_argument(actions))[..., None]) / 2
        return self.low[:, None, :] + g * (self.high - self.low)[:, None, :]

    def _reward_argument(self, actions: Array) -> Array:
        return np.einsum("nkm,nm->nk", actions, self.reward_direction) + self.reward_phase[:, None]

    def _kernel_argument(self, actions: Array) -> Array:
        return np.einsum("nkm,nm->nk", actions, self.kernel_direction) + self.kernel_phase[:, None]

    @cached_property
    def lipschitz_reward(self) -> float:
        """Return L_R."""
        return float(np.max(np.abs(self.scale) * np.linalg.norm(self.reward_direction, axis=1)))

    @cached_property
    def lipschitz_transition(self) -> float:
        """Return L_P, in the L1 sense: ||P(.|s,a) - P(.|s,a')||_1 <= L_P ||a - a'||_2."""
        change = np.abs(self.high - self.low).sum(axis=1)
        return float(np.max(np.linalg.norm(self.kernel_direction, axis=1) * change) / 2)

    @property
    def reward_min(self) -> float:
        """Return the smallest reward over R^m."""
        return float(np.min(self.offset - np.abs(self.scale)))

    @property
    def reward_max(self) -> float:
        """Return the largest reward over R^m."""
        return float(np.max(self.offset + np.abs(self.scale)))

    @property
    def value_max(self) -> float:
        """Return V_max = R_max / (1 - gamma) with R_max = sup |R|."""
        return max(abs(self.reward_min), abs(self.reward_max)) / (1 - self.gamma)

    @property
    def value_span(self) -> float:
        """Return (sup R - inf R) / (1 - gamma): at most V_max for R >= 0, at most 2 V_max in general."""
        return (self.reward_max - self.reward_min) / (1 - self.gamma)

    # The policy.

    def policy(self, theta: Array) -> Array:
        """Return pi_theta(s), (n, m)."""
        return np.tanh(self.features @ theta)

    def policy_jacobian(self, theta: Array) -> Array:
        """Return d pi_theta(s) / d theta, (n, m, p)."""
        return (1 - self.policy(theta) ** 2)[:, :, None] * self.features

    # The smoothed model and its solution. sigma = 0 gives the original MDP.

    def smoothed_reward(self, actions: Array, sigma: float, rule: Quadrature) -> Array:
        """Return R_sigma(s, a) = E[R(s, a + sigma w)] for actions (n, m); shape (n,)."""
        return smooth(self.reward, actions, sigma, rule)

    def smoothed_transition(self, actions: Array, sigma: float, rule: Quadrature) -> Array:
        """Return P_sigma(s' | s, a) = E[P(s' | s, a + sigma w)] for actions (n, m); shape (n, n)."""
        return np.einsum("nkj,k->nj", self.transition(actions[:, None, :] + sigma * rule.nodes), rule.weights)

    def value(self, theta: Array, sigma: float, rule: Quadrature) -> Array:
        """Return V_sigma^pi, the solution of V = R_sigma(., pi) + gamma P_sigma(., pi) V; shape (n,)."""
        actions = self.policy(theta)
        kernel = self.smoothed_transition(actions, sigma, rule)
        return np.linalg.solve(np.eye(len(kernel)) - self.gamma * kernel, self.smoothed_reward(actions, sigma, rule))

    def backup(self, values: Array) -> Critic:
        """Return equation (9): Q(s, a) = R(s, a) + gamma sum_s' P(s' | s, a) V(s') for V of shape (n,)."""
        return lambda actions: self.reward(actions) + self.gamma * self.transition(actions) @ values

    def critic(self, theta: Array, sigma: float, rule: Quadrature) -> Critic:
        """Return Q_sigma^pi, the fixed point of the smoothed Bellman operator."""
        return self.backup(self.value(theta, sigma, rule))

    def bellman_operator(self, critic: Critic, theta: Array, sigma: float, rule: Quadrature) -> Critic:
        """Apply definition 5.1: (T Q)(s, a) = R(s, a) + gamma E[Q(s', pi(s') + sigma w)]."""
        return self.backup(smooth(critic, self.policy(theta), sigma, rule))

    def occupancy(self, theta: Array, sigma: float, rule: Quadrature) -> Array:
        """Return rho(s) = sum_t gamma^t Pr(s_t = s), unnormalised (it sums to 1 / (1 - gamma)); shape (n,)."""
        kernel = self.smoothed_transition(self.policy(theta), sigma, rule)
        return np.linalg.solve(np.eye(len(kernel)) - self.gamma * kernel.T, self.initial)

    # Objective and gradients.

    def objective(self, theta: Array, sigma: float, rule: Quadrature) -> float:
        """Return J_sigma = E[V_sigma(s_0)]."""
        return float(self.initial @ self.value(theta, sigma, rule))

    def expected_return(self, theta: Array, sigma: float, rule: Quadrature) -> float:
        """Return J(nu) = sum_t gamma^t E[r_t] for a_t ~ N(pi(s_t), sigma^2 I), from the occupancy, not from V."""
        return float(self.occupancy(theta, sigma, rule) @ self.smoothed_reward(self.policy(theta), sigma, rule))

    def next_value(self, theta: Array, values: Array, sigma: float, rule: Quadrature) -> Array:
        """Return sum_s' P_sigma(s' | s, pi_theta(s)) V(s') for V of shape (n,); shape (n,)."""
        return self.smoothed_transition(self.policy(theta), sigma, rule) @ values

    def state_scores(self, theta: Array, sigma: float, rule: Quadrature) -> Array:
        """Return the integrand of theorem 5.7: grad pi(s) E[Q_sigma(s, pi(s) + sigma w) w / sigma]; shape (n, p)."""
        scores = smooth_gradient(self.critic(theta, sigma, rule), self.policy(theta), sigma, rule)
        return np.einsum("nmp,nm->np", self.policy_jacobian(theta), scores)

    def soft_dpg(self, theta: Array, sigma: float, rule: Quadrature) -> Array:
        """Return the gradient of theorem 5.7 with the unnormalised occupancy; shape (p,)."""
        return self.occupancy(theta, sigma, rule) @ self.state_scores(theta, sigma, rule)

    def action_gradient(self, theta: Array, rule: Quadrature) -> Array:
        """Return grad_a Q^pi(s, a) at a = pi(s); shape (n, m)."""
        actions = self.policy(theta)[:, None, :]
        later = self.gamma / 2 * (self.high - self.low) @ self.value(theta, 0.0, rule)
        reward_slope = self.scale[:, None] * self.shape.slope(self._reward_argument(actions))
        kernel_slope = later[:, None] * self.shape.slope(self._kernel_argument(actions))
        return reward_slope * self.reward_direction + kernel_slope * self.kernel_direction

    def dpg(self, theta: Array, rule: Quadrature, occupancy_sigma: float = 0.0) -> Array:
        """Return the deterministic policy gradient, states weighted by the occupancy at ``occupancy_sigma``; (p,)."""
        weights = self.occupancy(theta, occupancy_sigma, rule)
        return np.einsum("n,nmp,nm->p", weights, self.policy_jacobian(theta), self.action_gradient(theta, rule))

    # Suprema over all actions in R^m.

    def largest_expectation(self, values: Array) -> float:
        """Return the supremum over s and a of |sum_s' P(s' | s, a) V(s')|, which is attained at g = 0 or 1."""
        return float(max(np.max(np.abs(self.low @ values)), np.max(np.abs(self.high @ values))))

    def largest_slope(self, values: Array) -> float:
        """Return the supremum over s and a of ||grad_a Q(s, a)|| for Q = R + gamma P V.

        The sum of two ridge functions; where both directions are used, the two phases come arbitrarily close to any
        pair of values on R^m (for m = 1 if the frequencies are incommensurable; otherwise this bounds it above).
        """
        x = self.scale[:, None] * self.reward_direction
        y = self.gamma / 2 * ((self.high - self.low) @ values)[:, None] * self.kernel_direction
        return float(np.max(np.maximum(np.linalg.norm(x + y, axis=1), np.linalg.norm(x - y, axis=1))))

    # Bounds on rounding errors; check.py derives them.

    @property
    def _condition(self) -> float:
        """Bound the condition number of I - gamma P."""
        return 2 / (1 - self.gamma)

    def _operations(self, rule: Quadrature) -> float:
        """Count the roundings of V: R and P are expectations, V solves a linear system."""
        return rule.operations + solve_operations(len(self.initial))

    def value_rounding(self, sigma: float, rule: Quadrature) -> float:
        """Bound the rounding error of V_sigma, J_sigma and the expected return."""
        return rounding(self.value_max, self._operations(rule), self._condition)

    def critic_size(self, sigma: float) -> float:
        """Bound the terms of Q_sigma."""
        return self.value_max

    def slope_rounding(self, rule: Quadrature) -> float:
        """Bound the rounding error of grad_a Q, into which V enters through gamma (high - low) V / 2."""
        steepness = float(np.max(np.linalg.norm(self.kernel_direction, axis=1)))  # at least L_P
        return rounding(self.lipschitz_reward) + self.gamma * steepness * self.value_rounding(0.0, rule)

    def score_rounding(self, sigma: float, rule: Quadrature) -> float:
        """Bound the rounding error of ``state_scores``, or for sigma = 0 of grad pi(s) grad_a Q(s, pi(s))."""
        score = rounding(self.critic_size(sigma), rule.operations) / sigma if sigma else 0.0
        return self._policy_slope * (score + self.slope_rounding(rule))

    def gradient_rounding(self, sigma: float, rule: Quadrature) -> float:
        """Bound the rounding error of ``soft_dpg``, or for sigma = 0 of ``dpg``: an occupancy times scores."""
        scores = self._policy_slope * (self.lipschitz_reward + self.gamma * self.lipschitz_transition * self.value_max)
        occupancy = rounding(1 / (1 - self.gamma), self._operations(rule), self._condition)
        return self.score_rounding(sigma, rule) / (1 - self.gamma) + occupancy * scores

    @property
    def _policy_slope(self) -> float:
        """Bound the change of the action with one parameter, in the L1 norm."""
        return largest(np.abs(self.policy_jacobian(self.theta)).sum(axis=1))
