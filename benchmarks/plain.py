"""Algorithm 1 of the paper written plainly, line by line: the oracle of the tests and a contender of the benchmark.

The critic sees every state N times, once for each sample; both losses are sums over all N samples as the paper writes
them; the actor's gradient is that of its loss with the samples and the critic's values held constant.
"""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import optax
from sbx.common.type_aliases import ReplayBufferSamplesNp, RLTrainState

from softdpg.algorithms.compilation import compiler_options
from softdpg.algorithms.ddpg import _descend
from softdpg.algorithms.smoothing import gaussian_perturbations


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
    """One iteration of Algorithm 1, with the random numbers and the returns of ``softdpg.algorithms.ddpg.update``."""
    key, target_key, actor_key = jax.random.split(key, 3)
    batch_size, m = batch.actions.shape

    def noise(key: jax.Array) -> jax.Array:  # (N, batch, m)
        return gaussian_perturbations(key, n_samples, (m, batch_size)).swapaxes(1, 2)

    def q_values(params: Any, observations: jax.Array, actions: jax.Array) -> jax.Array:  # (N, batch)
        repeated = jnp.tile(observations, (n_samples, 1))
        return qf_state.apply_fn(params, repeated, actions.reshape(-1, m)).reshape(n_samples, -1)

    # Line 4
    next_actions = actor_state.apply_fn(actor_state.target_params, batch.next_observations)
    next_actions = jnp.clip(next_actions + sigma * noise(target_key), -1, 1)
    # Line 5
    next_values = q_values(qf_state.target_params, batch.next_observations, next_actions)
    y = batch.rewards + batch.discounts * (1 - batch.dones) * next_values

    # Line 6
    def critic_loss(params: Any) -> jax.Array:
        values = qf_state.apply_fn(params, batch.observations, batch.actions)
        return jnp.sum((y - values) ** 2) / (2 * y.size)

    loss, gradient = jax.value_and_grad(critic_loss)(qf_state.params)
    qf_state = _descend(qf_state, gradient, qf_learning_rate)

    # Line 7
    actions = actor_state.apply_fn(actor_state.params, batch.observations)
    samples = jnp.clip(actions + sigma * noise(actor_key), -1, 1)
    values = q_values(qf_state.params, batch.observations, samples)

    # Line 8
    def actor_loss(params: Any) -> jax.Array:
        distances = jnp.sum((samples - actor_state.apply_fn(params, batch.observations)) ** 2, axis=-1)
        return jnp.sum(distances * values) / (2 * values.size * sigma**2)

    gradient = jax.grad(actor_loss)(actor_state.params)
    actor_state = _descend(actor_state, gradient, learning_rate)

    # Line 9
    qf_state, actor_state = (
        state.replace(target_params=optax.incremental_update(state.params, state.target_params, tau))
        for state in (qf_state, actor_state)
    )
    return actor_state, qf_state, key, {"critic_loss": loss}


@cache
def compiled_plain_update() -> Any:
    """:func:`plain_update` compiled as ``softdpg.algorithms.ddpg.update`` is."""
    return jax.jit(plain_update, static_argnames="n_samples", compiler_options=compiler_options())
