"""The scale of the smoothing noise: a number, a schedule of the progress remaining, or learned."""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

from softdpg.algorithms.smoothing import assert_ranks
from softdpg.algorithms.types import Array

Sigma = float | Callable[[float], float] | Literal["auto"]
SIGMA_START = 0.2
SIGMA_BOUNDS = (0.05, 0.5)  # of a learned sigma
_LEARNING_RATE = 3e-4  # of log sigma: from one bound to the other in about 8,000 updates


def as_sigma(sigma: Any) -> Sigma:
    """A positive number, a schedule of the progress remaining or ``"auto"``.

    ``ValueError`` for anything else.
    """
    if callable(sigma) or (isinstance(sigma, str) and sigma == "auto"):
        return sigma
    number = isinstance(sigma, int | float | np.number) and not isinstance(sigma, bool)
    if not number or not 0 < sigma < np.inf:
        raise ValueError(
            f'sigma must be a number > 0, not {sigma!r} (or a schedule of the progress remaining, or "auto")'
        )
    return float(sigma)


def make_sigma_state(action_dim: int, start: float = SIGMA_START) -> TrainState:
    """``log sigma`` of each of the m action components and its optimiser."""
    log_sigma = jnp.full(action_dim, np.log(start), jnp.float32)
    return TrainState.create(apply_fn=None, params=log_sigma, tx=_optimizer)


def ascend_log_sigma(state: TrainState, gradient: jax.Array | None) -> TrainState:
    """Move ``log sigma`` up the derivative of the smoothed value, ``(m,)``, within the bounds."""
    if gradient is None:
        raise ValueError('sigma="auto" needs the smoothed actor gradient, whose draws it learns from')
    low, high = np.log(SIGMA_BOUNDS)
    step, opt_state = state.tx.update(-gradient, state.opt_state, state.params)
    return state.replace(step=state.step + 1, params=jnp.clip(state.params + step, low, high), opt_state=opt_state)


def log_sigma_gradient(w: Array, values: Array) -> jax.Array:
    """Estimate ``d/d log sigma_j E[f(x + sigma w)] = E[f(x + sigma w) (w_j^2 - 1)]`` from antithetic pairs.

    Both halves of a pair have the same ``w_j^2``, so their mean counts, less that of the other pairs: a baseline that
    does not depend on the pair leaves the expectation as it is.

    :param w: the draws, ``(N, m, ...)``, in the order of :func:`~softdpg.algorithms.smoothing.gaussian_perturbations`
    :param values: ``f`` at the perturbed points, ``(N, ...)``
    :return: ``(m,)``, the mean over all further axes
    """
    assert_ranks(w=(w, max(jnp.ndim(w), 2)), values=(values, jnp.ndim(w) - 1))
    pairs = len(values) // 2
    means = (values[:pairs] + values[pairs:]) / 2
    advantages = (means - means.mean(axis=0)) * (pairs / (pairs - 1))
    terms = advantages[:, None] * (w[:pairs] ** 2 - 1)
    return terms.mean(axis=(0, *range(2, terms.ndim)))


_optimizer = optax.adam(_LEARNING_RATE)
