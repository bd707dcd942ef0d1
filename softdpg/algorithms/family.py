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

from softdpg.algorithms.actions import Layout
from softdpg.algorithms.networks import Array, Critics
from softdpg.algorithms.smoothing import (
    Scale,
    centered_gradient,
    choice_gradient,
    gate_gradient,
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
    :param layout: how actions decode; then ``Q(s, decode(u))`` is a function of the actor's output u. None for a Box
    """

    critics: Critics
    reduction: CriticReduction
    params: Any
    observations: Array
    layout: Layout | None = None

    @property
    def bound(self) -> float:
        """Bound of a perturbed action. A layout clips numbers itself, and clipped options would tie."""
        return 1 if self.layout is None else jnp.inf

    def __call__(self, actions: Array) -> jax.Array:
        """``Q(s, a)`` for one action per state: ``(batch, m)`` to ``(batch,)``."""
        if self.layout is not None:
            actions = self.layout.decode(actions)
        return self._reduced(self.critics.apply(self.params, self.observations, actions))

    def at_samples(self, actions: Array) -> jax.Array:
        """``Q(s, a_i)`` for N actions per state: ``(N, m, batch)`` to ``(N, batch)``."""
        return self.at_executed(actions if self.layout is None else self.layout.execute(actions, axis=-2))

    def at_executed(self, actions: Array) -> jax.Array:
        """``Q(s, a_i)`` for N executed actions per state: ``(N, m, batch)`` to ``(N, batch)``."""
        if self.layout is not None:
            actions = self.layout.masked(actions, axis=-2)
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
        return smoothed_value(q.at_samples(perturbed(actions.T, w, sigma, low=-q.bound, high=q.bound)))


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
        samples = perturbed(actions.T, w, sigma, low=-q.bound, high=q.bound)
        values = q.at_samples(samples)
        if self.estimator == "paper":
            gradient = paper_gradient(actions.T, samples, values, sigma)
        else:
            gradient = centered_gradient(w, values, sigma, self.antithetic)
        by_log_sigma = log_sigma_gradient(w, values) if self.antithetic and self.n_samples > 2 else None
        return ActionGradient(gradient.T, smoothed_value(values), by_log_sigma)


@dataclass(frozen=True)
class DecodedGradient:
    """``grad_u E[Q(s, decode(u + sigma w))]`` at ``u = pi(s)``: exact in each gate's and each option's own noise.

    This is Theorem 1 with one expectation in closed form (:func:`~softdpg.algorithms.smoothing.gate_gradient`,
    :func:`~softdpg.algorithms.smoothing.choice_gradient`). N samples average over the noise of the other entries.
    Gates and choices need only values of the critic. Numbers follow the critic's derivative at the samples.

    :param n_samples: N
    :param antithetic: sample the noise in pairs (w, -w)
    """

    n_samples: int
    antithetic: bool = True

    def __call__(self, q: ActionValue, actions: jax.Array, key: jax.Array, sigma: Scale) -> ActionGradient:
        """Evaluate each gate and each option with the other entries at their samples."""
        layout = q.layout
        assert layout is not None
        u, m = actions.T, layout.size
        w = gaussian_perturbations(key, self.n_samples, u.shape, self.antithetic)
        samples = perturbed(u, w, sigma)
        executed = layout.execute(samples, axis=-2)
        scales = jnp.broadcast_to(jnp.asarray(sigma), (m,))
        gates = [i for block in layout.of_kind("gate") for i in range(block.start, block.stop)]
        choices = layout.of_kind("choice")
        # Besides the samples: the samples with one gate flipped, or with one option of one choice taken.
        variants = [executed.at[:, i].multiply(-1) for i in gates]
        for _, start, stop in choices:
            options = jnp.eye(stop - start, dtype=executed.dtype)
            variants += [executed.at[:, start:stop].set(option[:, None]) for option in options]
        values = q.at_executed(jnp.concatenate([executed, *variants])).reshape(-1, self.n_samples, len(actions))
        gradient = self._numbers(q, u, w, sigma) if layout.of_kind("box") else jnp.zeros_like(u)
        for value, i in zip(values[1:], gates, strict=False):
            gain = executed[:, i] * (values[0] - value)  # Q(on) - Q(off)
            gradient = gradient.at[i].set(gate_gradient(u[i], gain, scales[i]))
        first = 1 + len(gates)
        for _, start, stop in choices:
            ascent = choice_gradient(
                u[start:stop], samples[:, start:stop], values[first : first + stop - start], scales[start:stop]
            )
            gradient = gradient.at[start:stop].set(ascent)
            first += stop - start
        return ActionGradient(gradient.T, smoothed_value(values[0]))

    @staticmethod
    def _numbers(q: ActionValue, u: jax.Array, w: jax.Array, sigma: Scale) -> jax.Array:
        """Derivative of the mean value by u, ``(m, batch)``: that of numbers, and 0 for gates and choices."""
        values, pullback = jax.vjp(lambda u: smoothed_value(q.at_samples(perturbed(u, w, sigma))), u)
        return pullback(jnp.ones_like(values))[0]


@dataclass(frozen=True)
class StraightThroughGradient:
    """The critic's derivative at N decoded samples, as if decoding were the identity. A rival of Theorem 1.

    :param n_samples: N
    :param antithetic: sample the noise in pairs (w, -w)
    """

    n_samples: int
    antithetic: bool = True

    def __call__(self, q: ActionValue, actions: jax.Array, key: jax.Array, sigma: Scale) -> ActionGradient:
        """Differentiate the critic at the executed actions."""
        layout = q.layout
        assert layout is not None
        w = gaussian_perturbations(key, self.n_samples, actions.shape[::-1], self.antithetic)

        def value(u: jax.Array) -> jax.Array:
            samples = perturbed(u, w, sigma)
            executed = layout.execute(samples, axis=-2)
            decoded = jnp.asarray(layout.decoded)[:, None]
            through = samples + jax.lax.stop_gradient(executed - samples)
            return smoothed_value(q.at_executed(jnp.where(decoded, through, executed)))

        values, pullback = jax.vjp(value, actions.T)
        return ActionGradient(pullback(jnp.ones_like(values))[0].T, values)


@dataclass(frozen=True)
class Row:
    """One algorithm of the family.

    :param next_value: how the value of the next state is computed
    :param action_gradient: how the gradient with respect to the action is computed
    :param critic_reduction: how the critics are combined, ``"min"`` or ``"mean"``
    :param layout: how the actor's output decodes into actions; None for a Box
    """

    next_value: NextValue
    action_gradient: GradientRule
    critic_reduction: CriticReduction
    layout: Layout | None = None


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
