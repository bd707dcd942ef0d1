"""Linear-quadratic control: Q, Q_sigma, V_sigma and the policy gradient in closed form.

    s' = A s + B a + e,  e ~ N(0, W),     R(s, a) = -(s' C s + a' D a),     pi_K(s) = K s,  theta = K flattened.

The value is V_sigma(s) = -s' M s - c_sigma, where M solves a Lyapunov equation that does not contain sigma:
smoothing lowers the value by the same constant in each state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from softdpg.theory.check import FORMULA, largest, rounding, solve_operations
from softdpg.theory.quadrature import Quadrature, smooth_gradient

Array = np.ndarray


@dataclass(frozen=True)
class LQRProblem:
    """A stable linear-quadratic problem with d state and m action dimensions, reported at n = d states.

    :param name: shown in tables
    :param gamma: discount factor
    :param A: (d, d)
    :param B: (d, m)
    :param C: state cost, (d, d), positive definite
    :param D: action cost, (m, m), positive definite
    :param W: covariance of the process noise, (d, d)
    :param initial: second moment E[s_0 s_0'] of the first state, (d, d)
    :param theta: gain K, row by row, (m * d,)
    :param family: shown in tables
    """

    name: str
    gamma: float
    A: Array
    B: Array
    C: Array
    D: Array
    W: Array
    initial: Array
    theta: Array
    family: str = "lqr"

    @property
    def action_dim(self) -> int:
        """Return the dimension m of the action."""
        return self.B.shape[1]

    @property
    def states(self) -> Array:
        """Return the states at which values, critics and scores are reported: the unit vectors, (n, d) with n = d."""
        return np.eye(len(self.A))

    def gain(self, theta: Array) -> Array:
        """Return K, (m, d)."""
        return theta.reshape(self.action_dim, len(self.A))

    def closed_loop(self, theta: Array) -> Array:
        """Return A + B K, (d, d)."""
        return self.A + self.B @ self.gain(theta)

    def policy(self, theta: Array) -> Array:
        """Return pi(s) at the reported states, (n, m)."""
        return self.states @ self.gain(theta).T

    def value_matrix(self, theta: Array) -> Array:
        """Return M with M = C + K' D K + gamma (A + B K)' M (A + B K), (d, d)."""
        gain, loop = self.gain(theta), self.closed_loop(theta)
        return solve_discrete_lyapunov(np.sqrt(self.gamma) * loop.T, self.C + gain.T @ self.D @ gain)

    def value_constant(self, theta: Array, sigma: float) -> float:
        """Return c_sigma = (sigma^2 tr(D + gamma B' M B) + gamma tr(M W)) / (1 - gamma)."""
        matrix = self.value_matrix(theta)
        bend = np.trace(self.D + self.gamma * self.B.T @ matrix @ self.B)
        return float((sigma**2 * bend + self.gamma * np.trace(matrix @ self.W)) / (1 - self.gamma))

    def value(self, theta: Array, sigma: float, rule: Quadrature) -> Array:
        """Return V_sigma at the reported states, (n,)."""
        matrix = self.value_matrix(theta)
        return -np.einsum("nd,de,ne->n", self.states, matrix, self.states) - self.value_constant(theta, sigma)

    def critic(self, theta: Array, sigma: float, rule: Quadrature) -> Callable[[Array], Array]:
        """Return Q_sigma(s, .) at the reported states: actions (n, k, m) to values (n, k)."""
        matrix, constant = self.value_matrix(theta), self.value_constant(theta, sigma)

        def critic(actions: Array) -> Array:
            following = (self.states @ self.A.T)[:, None, :] + actions @ self.B.T
            cost = np.einsum("nd,de,ne->n", self.states, self.C, self.states)[:, None]
            cost = cost + np.einsum("nkm,ml,nkl->nk", actions, self.D, actions)
            later = np.einsum("nkd,de,nke->nk", following, matrix, following) + np.trace(matrix @ self.W) + constant
            return -cost - self.gamma * later

        return critic

    def occupancy(self, theta: Array, sigma: float) -> Array:
        """Return S = sum_t gamma^t E[s_t s_t'] under a_t ~ N(K s_t, sigma^2 I), unnormalised; (d, d)."""
        noise = self.W + sigma**2 * self.B @ self.B.T
        loop = self.closed_loop(theta)
        return solve_discrete_lyapunov(np.sqrt(self.gamma) * loop, self.initial + self.gamma / (1 - self.gamma) * noise)

    def objective(self, theta: Array, sigma: float, rule: Quadrature) -> float:
        """Return J_sigma = E[V_sigma(s_0)]."""
        return float(-np.trace(self.value_matrix(theta) @ self.initial) - self.value_constant(theta, sigma))

    def expected_return(self, theta: Array, sigma: float, rule: Quadrature) -> float:
        """Return J(nu) = sum_t gamma^t E[r_t] for a_t ~ N(K s_t, sigma^2 I), from the state moments, not from V."""
        gain = self.gain(theta)
        stage = self.C + gain.T @ self.D @ gain
        noise = sigma**2 * np.trace(self.D) / (1 - self.gamma)
        return float(-np.trace(stage @ self.occupancy(theta, sigma)) - noise)

    def next_quadratic(self, theta: Array, matrix: Array, constant: float, sigma: float) -> Array:
        """Return E[V(s')] for V(s) = -s' M s - c and s' ~ P_sigma(. | s, pi_theta(s)) at the reported states, (n,)."""
        means = self.states @ self.closed_loop(theta).T
        spread = np.trace(matrix @ (self.W + sigma**2 * self.B @ self.B.T))
        return -np.einsum("nd,de,ne->n", means, matrix, means) - spread - constant

    def state_scores(self, theta: Array, sigma: float, rule: Quadrature) -> Array:
        """Return the integrand of theorem 5.7: grad pi(s) E[Q_sigma(s, pi(s) + sigma w) w / sigma]; shape (n, p)."""
        scores = smooth_gradient(self.critic(theta, sigma, rule), self.policy(theta), sigma, rule)
        return np.einsum("nm,nd->nmd", scores, self.states).reshape(len(self.states), -1)

    def soft_dpg(self, theta: Array, sigma: float, rule: Quadrature) -> Array:
        """Return the gradient of theorem 5.7 with the unnormalised occupancy; shape (p,).

        E[Q_sigma(s, K s + sigma w) w / sigma] is linear in s; its values at the unit vectors are its matrix.
        """
        scores = smooth_gradient(self.critic(theta, sigma, rule), self.policy(theta), sigma, rule)
        return (scores.T @ self.occupancy(theta, sigma)).reshape(-1)

    def action_gradient(self, theta: Array, rule: Quadrature) -> Array:
        """Return grad_a Q^pi(s, a) at a = K s: -2 (D K + gamma B' M (A + B K)) s; shape (n, m)."""
        later = self.gamma * self.B.T @ self.value_matrix(theta) @ self.closed_loop(theta)
        return -2 * self.states @ (self.D @ self.gain(theta) + later).T

    def dpg(self, theta: Array, rule: Quadrature, occupancy_sigma: float = 0.0) -> Array:
        """Return the deterministic policy gradient, states weighted by the occupancy at ``occupancy_sigma``; (p,)."""
        return (self.action_gradient(theta, rule).T @ self.occupancy(theta, occupancy_sigma)).reshape(-1)

    # Bounds on rounding errors; check.py derives them. Sizes are the formulas above with absolute values of the terms.

    @property
    def _loop_size(self) -> float:
        """Bound the terms of A + B K: closed loops can be small differences of large matrices."""
        return float(np.max((np.abs(self.A) + np.abs(self.B) @ np.abs(self.gain(self.theta))).sum(axis=1)))

    @property
    def _condition(self) -> float:
        """Bound the condition number of M - gamma (A + B K)' M (A + B K) = ..., a linear system for M."""
        loop = self.closed_loop(self.theta)
        system = np.eye(loop.size) - self.gamma * np.kron(loop, loop)
        inverse = np.abs(np.linalg.inv(system))
        amplification = max(float(np.max(inverse.sum(axis=axis))) for axis in (0, 1))
        return amplification * (1 + self.gamma * self._loop_size**2)

    @property
    def _operations(self) -> float:
        """Count the roundings of M and S: d * d unknowns."""
        return FORMULA + solve_operations(self.A.size)

    def _value_size(self, sigma: float) -> float:
        """Bound the terms of V_sigma, J_sigma and the expected return."""
        theta, horizon = self.theta, 1 / (1 - self.gamma)
        gain = np.abs(self.gain(theta))
        first = max(1.0, float(np.abs(self.initial).sum()))
        noise = (
            self.gamma * horizon * float(np.abs(self.W).sum() + sigma**2 * (np.abs(self.B) @ np.abs(self.B.T)).sum())
        )
        cost = sigma**2 * horizon * float(np.trace(self.D))
        stage = float((np.abs(self.C) + gain.T @ np.abs(self.D) @ gain).sum())
        from_values = largest(self.value_matrix(theta)) * (first + noise)
        from_moments = stage * largest(self.occupancy(theta, sigma))
        return max(from_values, from_moments) + cost

    def value_rounding(self, sigma: float, rule: Quadrature) -> float:
        """Bound the rounding error of V_sigma, J_sigma and the expected return."""
        return rounding(self._value_size(sigma), self._operations, self._condition)

    def critic_size(self, sigma: float) -> float:
        """Bound the terms of Q_sigma(s, K s + sigma w), w of a few standard deviations."""
        actions = np.abs(self.gain(self.theta)) + 2 * sigma
        following = np.abs(self.A) + np.abs(self.B) @ actions
        cost = largest(self.C) + float((actions.T @ np.abs(self.D) @ actions).max())
        later = largest(self.value_matrix(self.theta)) * float(following.sum(axis=0).max()) ** 2
        return cost + self.gamma * later + self._value_size(sigma)

    def slope_rounding(self, rule: Quadrature) -> float:
        """Bound the rounding error of grad_a Q = -2 (D a + gamma B' M (A s + B a))."""
        matrix = largest(self.value_matrix(self.theta))
        later = self.gamma * float(np.abs(self.B).sum(axis=0).max()) * self._loop_size * len(self.A)
        cost = largest(self.D) * float(np.abs(self.gain(self.theta)).sum())
        return 2 * (rounding(cost) + later * rounding(matrix, self._operations, self._condition))

    def score_rounding(self, sigma: float, rule: Quadrature) -> float:
        """Bound the rounding error of ``state_scores``, or for sigma = 0 of grad pi(s) grad_a Q(s, pi(s))."""
        score = rounding(self.critic_size(sigma), rule.operations) / sigma if sigma else 0.0
        return score + self.slope_rounding(rule)

    def gradient_rounding(self, sigma: float, rule: Quadrature) -> float:
        """Bound the rounding error of ``soft_dpg``, or for sigma = 0 of ``dpg``: scores times the moments S."""
        moments = largest(self.occupancy(self.theta, sigma))
        scores = largest(self.action_gradient(self.theta, rule))
        inexact = rounding(moments, self._operations, self._condition)
        return len(self.A) * (self.score_rounding(sigma, rule) * moments + scores * inexact)
