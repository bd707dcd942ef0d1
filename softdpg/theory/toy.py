"""The toy of section 4 in closed form: one state, r(a) = 1 if |a - 0.5| < epsilon, else 0.

With one state, Q(a) = r(a) + gamma V. For the deterministic policy V = r(pi) / (1 - gamma); with smoothing
V_sigma = r_sigma(pi) / (1 - gamma), where r_sigma(x) = Pr(|x + sigma w - 0.5| < epsilon) by the normal cdf. So Q and
Q_sigma have the same shape, the step r, and differ by a constant: smoothing the backup does not smooth Q_sigma(s, .).

Clipping the smoothed action to [-1, 1], as algorithm 1 does, changes nothing while epsilon <= 0.5: actions beyond
the bounds and the bounds themselves are unrewarded alike. For a larger epsilon the bound 1 lies inside the rewarded
interval, and all samples beyond it are rewarded, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr
from scipy.stats import norm

from softdpg.theory.check import About, Check, rounding
from softdpg.theory.quadrature import finite_difference, gauss_legendre_panels, quadrature_error, smooth_gradient

CENTER = 0.5
Array = np.ndarray


@dataclass(frozen=True)
class Toy:
    """The toy problem: rewarded interval (0.5 - epsilon, 0.5 + epsilon), infinite horizon (time limits bootstrap).

    :param epsilon: half-width of the rewarded interval
    :param gamma: discount factor
    :param clipped: clip smoothed actions to [-1, 1], as algorithm 1 does
    """

    epsilon: float = 0.05
    gamma: float = 0.99
    clipped: bool = True

    def reward(self, action: Array | float) -> Array:
        """Return r(a), any shape."""
        return (np.abs(np.asarray(action) - CENTER) < self.epsilon).astype(np.float64)

    @property
    def _interval(self) -> tuple[float, float]:
        """Return the samples that are rewarded: the interval, extended beyond a bound that lies inside it."""
        low, high = CENTER - self.epsilon, CENTER + self.epsilon
        if self.clipped:
            low, high = (-np.inf if low < -1 else low), (np.inf if high > 1 else high)
        return low, high

    def smoothed_reward(self, action: Array | float, sigma: float) -> Array:
        """Return r_sigma(a) = Phi((high - a) / sigma) - Phi((low - a) / sigma), any shape; r for sigma = 0."""
        if sigma == 0:
            return self.reward(np.clip(action, -1, 1) if self.clipped else action)
        low, high = self._interval
        return ndtr((high - action) / sigma) - ndtr((low - action) / sigma)

    def value(self, policy: float, sigma: float) -> float:
        """Return V_sigma = r_sigma(pi) / (1 - gamma); sigma = 0: V of the deterministic policy."""
        return float(self.smoothed_reward(policy, sigma) / (1 - self.gamma))

    def critic(self, action: Array | float, policy: float, sigma: float) -> Array:
        """Return Q_sigma(a) = r(a) + gamma V_sigma, any shape; sigma = 0: Q."""
        return self.reward(action) + self.gamma * self.value(policy, sigma)

    def gradient(self, policy: float, sigma: float) -> float:
        """Return dV_sigma / dpi = (phi((low - pi) / sigma) - phi((high - pi) / sigma)) / (sigma (1 - gamma)).

        The deterministic policy gradient is 0 wherever it exists.
        """
        low, high = self._interval
        slope = norm.pdf((low - policy) / sigma) - norm.pdf((high - policy) / sigma)
        return float(slope / (sigma * (1 - self.gamma)))

    def jumps(self, policy: float, sigma: float) -> tuple[float, ...]:
        """Return where the reward jumps, as values of w with a = pi + sigma w: the breaks of a quadrature rule."""
        edges = (CENTER - self.epsilon, CENTER + self.epsilon, *((-1.0, 1.0) if self.clipped else ()))
        return tuple((edge - policy) / sigma for edge in edges)


def soft_dpg_on_the_toy(toy: Toy, policy: float, sigma: float) -> Check:
    """Check theorem 5.7 where Q_sigma has jumps: the score form by quadrature against differences of V_sigma."""

    def critic(actions: Array) -> Array:
        executed = np.clip(actions, -1, 1) if toy.clipped else actions
        return toy.critic(executed, policy, sigma)[..., 0]

    rule = gauss_legendre_panels(toy.jumps(policy, sigma))
    score, noise = quadrature_error(lambda r: smooth_gradient(critic, np.array([policy]), sigma, r), rule)
    horizon = 1 / (1 - toy.gamma)  # one state: rho = 1 / (1 - gamma); also the largest value
    measured, blur = finite_difference(
        lambda x: toy.value(float(x[0]), sigma), np.array([policy]), rounding(horizon), step=sigma / 50
    )
    about = About("Soft-DPG theorem", "Theorem 5.7", "toy", f"toy epsilon={toy.epsilon:g} pi={policy:g}", sigma)
    inexact = rounding(horizon, rule.operations) / sigma
    return about.equality(horizon * score, measured, horizon * (noise + inexact) + blur)
