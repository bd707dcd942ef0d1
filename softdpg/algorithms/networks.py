"""Actor and critic, and the critic at N actions of each state from one pass over the state."""

from collections.abc import Callable, Sequence
from operator import mul
from typing import Literal

import flax.linen as nn
import jax

ActionLayer = Literal["second", "input"]
Activation = Callable[[jax.Array], jax.Array]
_FUSED_COMPONENTS = 8  # of an action; for 17 a matrix product is faster


def relu(x: jax.Array) -> jax.Array:
    """``max(x, 0)``; a plain function, so that it is the same object after pickling and nothing compiles anew."""
    return nn.relu(x)


class Actor(nn.Module):
    """Deterministic policy ``pi(s)`` in (-1, 1)^m: hidden layers, then tanh.

    :param action_dim: m
    :param net_arch: units of each hidden layer
    :param activation_fn: activation of the hidden layers
    """

    action_dim: int
    net_arch: Sequence[int] = (400, 300)
    activation_fn: Activation = relu

    @nn.compact
    def __call__(self, observations: jax.Array) -> jax.Array:
        """Observations ``(batch, d)`` to actions ``(batch, m)``."""
        x = observations
        for units in self.net_arch:
            x = self.activation_fn(nn.Dense(units)(x))
        return nn.tanh(nn.Dense(self.action_dim)(x))


class Critic(nn.Module):
    """Action value ``Q(s, a)``, in two parts so that many actions of one state share the work on the state.

    ``features(s)`` is all that depends on the state alone, up to the pre-activation of the layer where the action
    enters; ``head(z, a)`` is the rest. With the action at the second hidden layer, as in the original DDPG, the head
    is one small product and one sum over hidden units, so that N actions of a state cost little more than one.

    :param observation_dim: d
    :param action_dim: m
    :param net_arch: units of each hidden layer
    :param action_layer: the hidden layer where the action enters: ``"second"``, or ``"input"`` for the first
    :param activation_fn: activation of the hidden layers
    """

    observation_dim: int
    action_dim: int
    net_arch: Sequence[int] = (400, 300)
    action_layer: ActionLayer = "second"
    activation_fn: Activation = relu

    def setup(self) -> None:
        """Layers ``hidden_i`` and ``value``; ``action`` adds the action's part to its hidden layer."""
        self.entry = 0 if self.action_layer == "input" else 1
        widths = (self.observation_dim, *self.net_arch)
        # State and action enter one layer through two kernels, drawn as the two parts of one kernel would be.
        state_share = widths[self.entry] / (widths[self.entry] + self.action_dim)
        self.hidden = [
            nn.Dense(units, kernel_init=_lecun_normal(state_share if i == self.entry else 1.0))
            for i, units in enumerate(self.net_arch)
        ]
        self.action = nn.Dense(self.net_arch[self.entry], use_bias=False, kernel_init=_lecun_normal(1 - state_share))
        self.value = nn.Dense(1)

    def __call__(self, observations: jax.Array, actions: jax.Array) -> jax.Array:
        """``Q(s, a)`` for observations ``(batch, d)`` and actions ``(batch, m)``; returns ``(batch,)``."""
        return self.head(self.features(observations), actions)

    def at_actions(self, observations: jax.Array, actions: jax.Array) -> jax.Array:
        """``Q(s, a_i)`` for observations ``(batch, d)`` and N actions of each ``(N, m, batch)``: ``(N, batch)``."""
        return jax.lax.platform_dependent(
            self.features(observations).T, actions, cpu=self._one_by_one, default=self._all_at_once
        )

    def features(self, observations: jax.Array) -> jax.Array:
        """All that depends on the state alone: ``(batch, d)`` to ``(batch, h)``, h units of the action's layer."""
        x = observations
        for layer in self.hidden[: self.entry]:
            x = self.activation_fn(layer(x))
        return self.hidden[self.entry](x)

    def head(self, features: jax.Array, actions: jax.Array) -> jax.Array:
        """Value of one action of each state: features ``(batch, h)``, actions ``(batch, m)``; returns ``(batch,)``."""
        x = self.activation_fn(features + self.action(actions))
        for layer in self.hidden[self.entry + 1 :]:
            x = self.activation_fn(layer(x))
        return self.value(x)[:, 0]

    # Below, states are columns: wide rows of states vectorise where the few components of an action would not.

    def _head_of_columns(self, x: jax.Array) -> jax.Array:
        """Value from the pre-activation of the layer where state and action meet: ``(h, batch)`` to ``(batch,)``."""
        x = self.activation_fn(x)
        for layer in self.hidden[self.entry + 1 :]:
            x = self.activation_fn(_kernel(layer).T @ x + _bias(layer)[:, None])
        return (_kernel(self.value).T @ x)[0] + _bias(self.value)

    def _all_at_once(self, features: jax.Array, actions: jax.Array) -> jax.Array:
        """Values of features ``(h, batch)`` and actions ``(N, m, batch)``: ``(N, batch)``."""
        kernel = _kernel(self.action)
        return jax.vmap(lambda a: self._head_of_columns(features + kernel.T @ a))(actions)

    def _one_by_one(self, features: jax.Array, actions: jax.Array) -> jax.Array:
        """:meth:`_all_at_once`, one sample at a time: on a CPU its hidden units stay in the cache."""
        kernel = _kernel(self.action)
        if self.action_dim > _FUSED_COMPONENTS:
            return jax.lax.map(lambda a: self._head_of_columns(features + kernel.T @ a), actions)
        # XLA fuses these sums with the activation, but vectorises them only if each component is an array of its own.
        weights = [row[:, None] for row in kernel]
        components = tuple(actions[:, i] for i in range(self.action_dim))
        return jax.lax.map(lambda a: self._head_of_columns(sum(map(mul, weights, a), features)), components)


def _kernel(layer: nn.Dense) -> jax.Array:
    return layer.variables["params"]["kernel"]


def _bias(layer: nn.Dense) -> jax.Array:
    return layer.variables["params"]["bias"]


def _lecun_normal(share: float) -> nn.initializers.Initializer:
    """LeCun's initialisation for a kernel that takes ``share`` of the inputs of its layer."""
    return nn.initializers.variance_scaling(share, "fan_in", "truncated_normal")
