"""The family of algorithms as a table of three choices.

DDPG, TD3, Soft DDPG, Soft TD3 and oCPG share one update (:mod:`softdpg.algorithms.update`). They differ in how the
value of the next state is computed, how the action gradient is computed, and how several critics are combined.

:data:`FAMILY`, at the end of this file, is the table. An algorithm's arguments replace parts of its row, and an
ablation is another row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from softdpg.algorithms.networks import Array, Critics
from softdpg.algorithms.smoothing import (
    Scale,
    centered_gradient,
    gaussian_perturbations,
    log_sigma_gradient,
    paper_gradient,
    perturbed,
    smoothed_value,
)

CriticReduction = Literal["min", "mean"]
Estimator = Literal["paper", "centered"]


@dataclass(frozen=True)
class ActionValue:
    """``Q(s, .)`` of a batch of states: the critics combined, as a function of the action in [-1, 1]^m.

    :param critics: the ensemble
    :param reduction: how its values are combined, ``"min"`` or ``"mean"``
    :param params: parameters of the ensemble
    :param observations: s, ``(batch, d)``
    """

    critics: Critics
    reduction: CriticReduction
    params: Any
    observations: Array

    def __call__(self, actions: Array) -> jax.Array:
        """``Q(s, a)`` for one action per state: ``(batch, m)`` to ``(batch,)``."""
        return self._reduced(self.critics.apply(self.params, self.observations, actions))

    def at_samples(self, actions: Array) -> jax.Array:
        """``Q(s, a_i)`` for N actions per state: ``(N, m, batch)`` to ``(N, batch)``."""
        return self._reduced(self.critics.at_actions(self.params, self.observations, actions))

    def _reduced(self, values: jax.Array) -> jax.Array:
        return values.min(axis=0) if self.reduction == "min" else values.mean(axis=0)


class ActionGradient(NamedTuple):
    """Direction in which the actor moves the actions.

    :param gradient: of the value with respect to the action, ``(batch, m)``
    :param values: ``(batch,)``
    :param log_sigma_gradient: derivative of the mean value by ``log sigma``, ``(m,)``, if the samples provide one
    """

    gradient: jax.Array
    values: jax.Array
    log_sigma_gradient: jax.Array | None = None


# Both take Q, actions (batch, m), a random key and sigma; a rule of your own must be hashable, like the ones below.
NextValue = Callable[[ActionValue, jax.Array, jax.Array, Scale], jax.Array]
GradientRule = Callable[[ActionValue, jax.Array, jax.Array, Scale], ActionGradient]


@dataclass(frozen=True)
class ExactTarget:
    """``V(s') = Q(s', pi(s'))``."""

    def __call__(self, q: ActionValue, actions: jax.Array, key: jax.Array, sigma: Scale) -> jax.Array:
        """Evaluate the target actor's action without noise."""
        return q(actions)


@dataclass(frozen=True)
class ClippedNoise:
    """``V(s') = Q(s', clip(pi(s') + clip(noise)))``: TD3's target, one sample of clipped noise per state.

    :param scale: standard deviation of the noise
    :param bound: bound of the noise
    """

    scale: float
    bound: float

    def __call__(self, q: ActionValue, actions: jax.Array, key: jax.Array, sigma: Scale) -> jax.Array:
        """Evaluate one noisy action per state."""
        noise = jnp.clip(jax.random.normal(key, actions.shape) * self.scale, -self.bound, self.bound)
        return q(jnp.clip(actions + noise, -1, 1))


@dataclass(frozen=True)
class SmoothedTarget:
    """``V_sigma(s') = mean_i Q(s', clip(pi(s') + sigma w_i))``: lines 4-5 of Algorithm 1.

    The critic's loss over the N targets ``y_i`` has the gradient of the loss over their mean, so the mean is enough.

    :param n_samples: N
    :param antithetic: sample the noise in pairs (w, -w)
    """

    n_samples: int
    antithetic: bool = True

    def __call__(self, q: ActionValue, actions: jax.Array, key: jax.Array, sigma: Scale) -> jax.Array:
        """Average over N perturbed actions per state."""
        w = gaussian_perturbations(key, self.n_samples, actions.shape[::-1], self.antithetic)
        return smoothed_value(q.at_samples(perturbed(actions.T, w, sigma, low=-1, high=1)))


@dataclass(frozen=True)
class CriticGradient:
    """``grad_a Q(s, a)`` at ``a = pi(s)``: the deterministic policy gradient."""

    def __call__(self, q: ActionValue, actions: jax.Array, key: jax.Array, sigma: Scale) -> ActionGradient:
        """Differentiate the critic."""
        values, pullback = jax.vjp(q, actions)
        return ActionGradient(pullback(jnp.ones_like(values))[0], values)


@dataclass(frozen=True)
class SmoothedGradient:
    """``grad_a E[Q(s, a + sigma w)]`` at ``a = pi(s)``, from values of the critic alone: lines 7-8 of Algorithm 1.

    Line 8 minimises ``mean_i ||a_i - pi(s)||^2 Q(s, a_i) / (2 sigma^2)`` over theta with ``a_i`` and ``Q`` held
    constant. Its gradient with respect to ``pi(s)`` is minus what ``paper_gradient`` returns.

    :param n_samples: N
    :param estimator: ``"paper"``, Algorithm 1 to the letter, or ``"centered"``, without clip bias and with a baseline
    :param antithetic: sample the noise in pairs (w, -w)
    """

    n_samples: int
    estimator: Estimator = "centered"
    antithetic: bool = True

    def __call__(self, q: ActionValue, actions: jax.Array, key: jax.Array, sigma: Scale) -> ActionGradient:
        """Estimate the gradient from N perturbed actions per state."""
        w = gaussian_perturbations(key, self.n_samples, actions.shape[::-1], self.antithetic)
        samples = perturbed(actions.T, w, sigma, low=-1, high=1)
        values = q.at_samples(samples)
        if self.estimator == "paper":
            gradient = paper_gradient(actions.T, samples, values, sigma)
        else:
            gradient = centered_gradient(w, values, sigma, self.antithetic)
        by_log_sigma = log_sigma_gradient(w, values) if self.antithetic and self.n_samples > 2 else None
        return ActionGradient(gradient.T, smoothed_value(values), by_log_sigma)


@dataclass(frozen=True)
class Row:
    """One algorithm of the family.

    :param next_value: how the value of the next state is computed
    :param action_gradient: how the gradient with respect to the action is computed
    :param critic_reduction: how the critics are combined, ``"min"`` or ``"mean"``
    """

    next_value: NextValue
    action_gradient: GradientRule
    critic_reduction: CriticReduction


# fmt: off
FAMILY = {
    #               next value               action gradient       critics
    "DDPG":     Row(ExactTarget(),           CriticGradient(),     "min"),
    "TD3":      Row(ClippedNoise(0.2, 0.5),  CriticGradient(),     "min"),
    "SoftDDPG": Row(SmoothedTarget(50),      SmoothedGradient(50), "min"),
    "SoftTD3":  Row(SmoothedTarget(4),       CriticGradient(),     "mean"),
    "oCPG":     Row(ExactTarget(),           SmoothedGradient(2),  "min"),
}
# fmt: on
