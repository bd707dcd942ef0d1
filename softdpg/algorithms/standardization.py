"""Observations standardised inside the networks, by statistics that follow what the replay buffer holds.

With layer norm a network sees of an observation its direction, and its length only as far as the biases of the first
layer say; and a component with small numbers, such as a velocity of 0.07, is lost beside one with large ones.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from softdpg.algorithms.types import Array, TargetedState

EPSILON = 1e-4  # added to a variance: what varies by less than 0.01 is not blown up
LIMIT = 5.0  # of a standardised component
RATE = 1e-3  # least weight of a batch in the running statistics, which are those of the last 1,000 or so


class Standardization(nn.Module):
    """``(s - mean) / sqrt(variance + epsilon)``, clipped. Gradients do not change the statistics, :func:`follow` does.

    :param dim: d, components of an observation
    """

    dim: int

    def setup(self) -> None:
        """``mean`` and ``variance``, ``(d,)``, among the parameters, so that they are kept wherever those are."""
        self.mean = self.param("mean", nn.initializers.zeros_init(), (self.dim,))
        self.variance = self.param("variance", nn.initializers.ones_init(), (self.dim,))

    def __call__(self, observations: jax.Array) -> jax.Array:
        """``(batch, d)`` to ``(batch, d)``."""
        mean, variance = jax.lax.stop_gradient((self.mean, self.variance))
        return jnp.clip((observations - mean) * jax.lax.rsqrt(variance + EPSILON), -LIMIT, LIMIT)


def follow(actor: TargetedState, critics: TargetedState, observations: Array) -> dict[str, jax.Array] | None:
    """The statistics after one more batch ``(batch, d)``; None if the networks do not standardise.

    The first batch counts as a whole, the k-th as 1 / k, and never less than :data:`RATE`.
    """
    old = actor.params["params"].get("observations")
    if old is None:
        return None
    rate = jnp.maximum(1 / (critics.step + 1), RATE)
    change = jnp.mean(observations, axis=0) - old["mean"]
    within, between = jnp.var(observations, axis=0), rate * change**2
    return {
        "mean": old["mean"] + rate * change,
        "variance": (1 - rate) * (old["variance"] + between) + rate * within,
    }


def with_statistics(state: TargetedState, statistics: dict[str, jax.Array] | None) -> TargetedState:
    """Networks and targets with these statistics, all alike."""
    if statistics is None:
        return state

    def put(tree: Any) -> Any:
        old = tree["observations"]  # (d,), or (n, d) of n critics
        new = {name: jnp.broadcast_to(statistics[name], array.shape) for name, array in old.items()}
        embedding = {"embedding": put(tree["embedding"])} if "observations" in tree.get("embedding", ()) else {}
        return tree | {"observations": new} | embedding

    params, target_params = ({"params": put(params["params"])} for params in (state.params, state.target_params))
    return state.replace(params=params, target_params=target_params)
