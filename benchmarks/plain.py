"""Algorithm 1 of the paper written plainly, line by line: the oracle of the tests and a contender of the benchmark.

States are repeated N times, both losses are summed over all N samples as the paper writes them, and the actor's
gradient is that of its loss with the samples and the critic's values held constant.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from sbx.common.type_aliases import ReplayBufferSamplesNp, RLTrainState

from softdpg.ddpg import _descend
from softdpg.smoothing import gaussian_perturbations


@partial(jax.jit, static_argnames="n_samples")
def plain_update(
    sigma: float,
    n_samples: int,
    actor_state: RLTrainState,
    qf_state: RLTrainState,
    key: jax.Array,
    batch: ReplayBufferSamplesNp,
    learning_rate: float,
    qf_learning_rate: float,
    tau: float,
) -> tuple[RLTrainState, RLTrainState, jax.Array, dict[str, jax.Array]]:
    """One iteration of Algorithm 1, with the random numbers and the returns of ``softdpg.ddpg.update``."""
    key, target_key, actor_key = jax.random.split(key, 3)
    shape = batch.actions.shape

    def repeat(x: jax.Array) -> jax.Array:  # (batch, ...) -> (N * batch, ...)
        return jnp.tile(x, (n_samples,) + (1,) * (x.ndim - 1))

    def noise(key: jax.Array) -> jax.Array:  # (N * batch, m)
        return gaussian_perturbations(key, n_samples, shape[::-1]).swapaxes(1, 2).reshape(-1, shape[-1])

    # Line 4
    w = noise(target_key)
    next_observations = repeat(batch.next_observations)
    next_actions = actor_state.apply_fn(actor_state.target_params, next_observations)
    next_actions = jnp.clip(next_actions + sigma * w, -1, 1)
    # Line 5
    next_values = qf_state.apply_fn(qf_state.target_params, next_observations, next_actions)
    y = repeat(batch.rewards) + repeat(batch.discounts) * (1 - repeat(batch.dones)) * next_values

    # Line 6
    def critic_loss(params: Any) -> jax.Array:
        values = qf_state.apply_fn(params, repeat(batch.observations), repeat(batch.actions))
        return jnp.sum((y - values) ** 2) / (2 * len(y))

    loss, gradient = jax.value_and_grad(critic_loss)(qf_state.params)
    qf_state = _descend(qf_state, gradient, qf_learning_rate)

    # Line 7
    w = noise(actor_key)
    observations = repeat(batch.observations)
    samples = jnp.clip(actor_state.apply_fn(actor_state.params, observations) + sigma * w, -1, 1)
    values = qf_state.apply_fn(qf_state.params, observations, samples)

    # Line 8
    def actor_loss(params: Any) -> jax.Array:
        distances = jnp.sum((samples - actor_state.apply_fn(params, observations)) ** 2, axis=-1)
        return jnp.sum(distances * values) / (2 * len(values) * sigma**2)

    gradient = jax.grad(actor_loss)(actor_state.params)
    actor_state = _descend(actor_state, gradient, learning_rate)

    # Line 9
    qf_state, actor_state = (
        state.replace(target_params=optax.incremental_update(state.params, state.target_params, tau))
        for state in (qf_state, actor_state)
    )
    return actor_state, qf_state, key, {"critic_loss": loss}
