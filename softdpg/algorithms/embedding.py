"""Embeddings of state and action that foretell the embedding of the next state, as a further input of the critics.

After SALE (Fujimoto and others, 2023, "For SALE: State-Action Representation Learning for Deep Reinforcement
Learning"). Two small networks are trained beside the critics,

    z_s = f(s),    z_sa = g(z_s, a),    minimise mean (z_sa - f(s'))^2, with f(s') a constant,

and each critic sees z_sa beside state and action. What it sees are the embeddings of the target networks, which move
slowly; the critics' own loss does not change them. Where rewards are rare or come in steps, what follows an action
teaches more about it than the reward does.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp

from softdpg.algorithms.layers import Activation, LayerNorm, row_means
from softdpg.algorithms.standardization import Standardization

_EPSILON = 1e-8


class Embedding(nn.Module):
    """``f`` and ``g``, each with one hidden layer.

    :param observation_dim: d
    :param units: h, of hidden layers and embeddings
    :param activation_fn: activation of the hidden layers
    :param standardize: standardise observations
    """

    observation_dim: int
    units: int
    activation_fn: Activation
    standardize: bool = False

    def setup(self) -> None:
        """``state_0``, ``state_1`` are the layers of f; ``joint``, ``action`` and ``embedded`` those of g."""
        self.observations = Standardization(self.observation_dim) if self.standardize else None
        self.state = [nn.Dense(self.units) for _ in range(2)]
        self.joint = nn.Dense(self.units)
        self.action = nn.Dense(self.units, use_bias=False)
        self.embedded = nn.Dense(self.units)
        self.norm = [LayerNorm(self.units) for _ in range(2)]

    def __call__(self, observations: jax.Array, actions: jax.Array) -> jax.Array:
        """``z_sa`` for observations ``(batch, d)`` and actions ``(batch, m)``; returns ``(batch, h)``."""
        joint = self.joint(self.of_states(observations)) + self.action(actions)
        return self.embedded(self.activation_fn(self.norm[1](joint)))

    def of_states(self, observations: jax.Array) -> jax.Array:
        """``z_s`` with a mean absolute value of 1, so that it cannot shrink: ``(batch, d)`` to ``(batch, h)``."""
        x = observations if self.observations is None else self.observations(observations)
        x = self.state[1](self.activation_fn(self.norm[0](self.state[0](x))))
        return x / jnp.maximum(row_means(jnp.abs(x)), _EPSILON)

    def prediction_loss(self, observations: jax.Array, actions: jax.Array, successors: jax.Array) -> jax.Array:
        """``mean (z_sa - f(s'))^2`` with the successors ``s'``, ``(batch, d)``."""
        return jnp.mean((self(observations, actions) - jax.lax.stop_gradient(self.of_states(successors))) ** 2)
