"""Actor and critics, and the critics at N actions of each state from one pass over the state."""

from collections.abc import Callable, Sequence
from functools import cache
from operator import mul
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from softdpg.algorithms.embedding import Embedding
from softdpg.algorithms.layers import Activation, LayerNorm
from softdpg.algorithms.standardization import Standardization
from softdpg.algorithms.types import Array

ActionLayer = Literal["second", "input"]
EMBEDDING = "embedding"  # its parameters among those of the critics
_FUSED_COMPONENTS = 8  # of an action; for 17 a matrix product is faster


def relu(x: jax.Array) -> jax.Array:
    """``max(x, 0)``; a plain function, so that it is the same object after pickling and nothing compiles anew."""
    return nn.relu(x)


class Actor(nn.Module):
    """Deterministic policy ``pi(s)`` in (-1, 1)^m: hidden layers, then tanh.

    :param action_dim: m
    :param net_arch: units of each hidden layer
    :param activation_fn: activation of the hidden layers
    :param layer_norm: normalise each hidden layer before its activation
    :param features_extractor: what comes before the hidden layers, if anything does: observations to features
    :param standardize: standardise observations, see :mod:`softdpg.algorithms.standardization`
    """

    action_dim: int
    net_arch: Sequence[int] = (400, 300)
    activation_fn: Activation = relu
    layer_norm: bool = False
    features_extractor: nn.Module | None = None
    standardize: bool = False

    def __call__(self, observations: jax.Array) -> jax.Array:
        """Observations ``(batch, d)`` to actions ``(batch, m)``."""
        return nn.tanh(self.unsquashed(observations))

    @nn.compact
    def unsquashed(self, observations: jax.Array) -> jax.Array:
        """Observations ``(batch, d)`` to what tanh makes actions of, ``(batch, m)``."""
        x = observations if self.features_extractor is None else self.features_extractor(observations)
        if self.standardize:
            x = Standardization(x.shape[-1], name="observations")(x)
        for units in self.net_arch:
            x = nn.Dense(units)(x)
            if self.layer_norm:
                x = LayerNorm(units)(x)
            x = self.activation_fn(x)
        return nn.Dense(self.action_dim)(x)


class Critic(nn.Module):
    """Action value ``Q(s, a)``, in two parts so that many actions of one state share the work on the state.

    ``features(s)`` is all that depends on the state alone, up to the pre-activation of the layer where the action
    enters; ``head(z, a)`` is the rest. With the action at the second hidden layer, as in the original DDPG, the head
    is one small product and one sum over hidden units, so that N actions of a state cost little more than one.
    Without hidden layers ``Q`` is linear in state and action.

    :param observation_dim: d, or the number of features
    :param action_dim: m
    :param net_arch: units of each hidden layer
    :param action_layer: the hidden layer where the action enters: ``"second"``, or ``"input"`` for the first
    :param activation_fn: activation of the hidden layers
    :param layer_norm: normalise each hidden layer before its activation
    :param features_extractor: what comes before the hidden layers, if anything does: observations to features
    :param standardize: standardise observations
    :param embedded: an embedding of state and action enters where the action does
    """

    observation_dim: int
    action_dim: int
    net_arch: Sequence[int] = (400, 300)
    action_layer: ActionLayer = "second"
    activation_fn: Activation = relu
    layer_norm: bool = False
    features_extractor: nn.Module | None = None
    standardize: bool = False
    embedded: bool = False

    def setup(self) -> None:
        """Layers ``hidden_i`` (``norm_i``) and ``value``; ``action`` adds the action's part to its hidden layer.

        So does ``joint`` with that of the embedding.
        """
        self.entry = 0 if self.action_layer == "input" else 1
        widths = (self.observation_dim, *self.net_arch)
        # State and action enter one layer through two kernels, drawn as the two parts of one kernel would be.
        # An embedding is the third; then each counts as much as the others, however many inputs it has.
        state_share = 1.0 if self.embedded else widths[self.entry] / (widths[self.entry] + self.action_dim)
        action_share = 1.0 if self.embedded else 1 - state_share
        self.hidden = [
            nn.Dense(units, kernel_init=_lecun_normal(state_share if i == self.entry else 1.0))
            for i, units in enumerate(self.net_arch)
        ]
        self.observations = Standardization(self.observation_dim) if self.standardize else None
        self.norm = [LayerNorm(units) for units in self.net_arch] if self.layer_norm else []
        units = (*self.net_arch, 1)[self.entry]
        self.action = nn.Dense(units, use_bias=False, kernel_init=_lecun_normal(action_share))
        self.joint = nn.Dense(units, use_bias=False) if self.embedded else None
        self.value = nn.Dense(1, kernel_init=_lecun_normal(1.0 if self.net_arch else state_share))

    def __call__(self, observations: jax.Array, actions: jax.Array, embedded: jax.Array | None = None) -> jax.Array:
        """``Q(s, a)`` for observations ``(batch, d)`` and actions ``(batch, m)``; returns ``(batch,)``.

        :param embedded: ``z_sa``, ``(batch, h)``, of a critic that has an embedding
        """
        return self.head(self.features(observations), actions, embedded)

    def at_actions(self, observations: jax.Array, actions: jax.Array) -> jax.Array:
        """``Q(s, a_i)`` for observations ``(batch, d)`` and N actions of each ``(N, m, batch)``: ``(N, batch)``."""
        return jax.lax.platform_dependent(
            self.features(observations).T, actions, cpu=self._one_by_one, default=self._all_at_once
        )

    def features(self, observations: jax.Array) -> jax.Array:
        """All that depends on the state alone: ``(batch, d)`` to ``(batch, h)``, h units of the action's layer."""
        x = observations if self.features_extractor is None else self.features_extractor(observations)
        if self.observations is not None:
            x = self.observations(x)
        for i in range(self.entry):
            x = self._activated(i, self.hidden[i](x))
        return (self.hidden[self.entry] if self.net_arch else self.value)(x)

    def head(self, features: jax.Array, actions: jax.Array, embedded: jax.Array | None = None) -> jax.Array:
        """Value of one action of each state: features ``(batch, h)``, actions ``(batch, m)``; returns ``(batch,)``."""
        x = features + self.action(actions)
        if self.joint is not None:
            x = x + self.joint(embedded)
        if not self.net_arch:
            return x[:, 0]
        x = self._activated(self.entry, x)
        for i in range(self.entry + 1, len(self.net_arch)):
            x = self._activated(i, self.hidden[i](x))
        return self.value(x)[:, 0]

    def _activated(self, layer: int, x: jax.Array) -> jax.Array:
        return self.activation_fn(self.norm[layer](x) if self.layer_norm else x)

    # Below, states are columns: wide rows of states vectorise where the few components of an action would not.

    def _head_of_columns(self, x: jax.Array) -> jax.Array:
        """Value from the pre-activation of the layer where state and action meet: ``(h, batch)`` to ``(batch,)``."""
        if not self.net_arch:
            return x[0]
        x = self._activated_columns(self.entry, x)
        for i in range(self.entry + 1, len(self.net_arch)):
            x = self._activated_columns(i, _kernel(self.hidden[i]).T @ x + _bias(self.hidden[i])[:, None])
        return (_kernel(self.value).T @ x)[0] + _bias(self.value)

    def _activated_columns(self, layer: int, x: jax.Array) -> jax.Array:
        return self.activation_fn(self.norm[layer].columns(x) if self.layer_norm else x)

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


class Critics:
    """An ensemble of n critics of one kind: their parameters are stacked, the first axis is the critic.

    The parameters of their embedding, if they have one, are beside them, under ``embedding``.

    :param critic: the kind
    :param n_critics: n
    :param embedding: what all of them see of state and action together
    """

    def __init__(self, critic: Critic, n_critics: int, embedding: Embedding | None = None) -> None:
        self.critic = critic
        self.n_critics = n_critics
        self.embedding = embedding

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickled, it is the object that every model with these settings shares."""
        return make_critics, (self.critic, self.n_critics, self.embedding)

    def init(self, key: jax.Array, observations: jax.ShapeDtypeStruct, actions: jax.ShapeDtypeStruct) -> Any:
        """Parameters of all critics, each drawn on its own; of observations and actions the shapes are enough."""
        if self.embedding is None:
            return self._init_critics(key, observations, actions)
        key, embedding_key = jax.random.split(key)
        embedded = jax.ShapeDtypeStruct((1, self.embedding.units), jnp.float32)
        params = self._init_critics(key, observations, actions, embedded)
        embedding = self.embedding.lazy_init(embedding_key, observations, actions)
        return {"params": params["params"] | {EMBEDDING: embedding["params"]}}

    def _init_critics(self, key: jax.Array, *shapes: jax.ShapeDtypeStruct) -> Any:
        keys = key[None] if self.n_critics == 1 else jax.random.split(key, self.n_critics)
        return _stack([self.critic.lazy_init(key, *shapes) for key in keys])

    def apply(self, params: Any, observations: Array, actions: Array) -> jax.Array:
        """``Q_j(s, a)`` for observations ``(batch, d)`` and actions ``(batch, m)``; returns ``(n, batch)``."""
        embedded = []
        if self.embedding is not None:
            embedded = [self.embedding.apply({"params": params["params"][EMBEDDING]}, observations, actions)]
        return self._stacked(params, lambda one: self.critic.apply(one, observations, actions, *embedded))

    def at_actions(self, params: Any, observations: Array, actions: Array) -> jax.Array:
        """``Q_j(s, a_i)`` for observations ``(batch, d)`` and actions ``(N, m, batch)``; returns ``(n, N, batch)``."""
        if self.embedding is not None:
            return jnp.stack([self.apply(params, observations, a.T) for a in actions], axis=1)
        return self._stacked(params, lambda one: self.critic.apply(one, observations, actions, method="at_actions"))

    def with_embedding_of(self, params: Any, target_params: Any) -> Any:
        """Critics that see the embedding of the target networks."""
        if self.embedding is None:
            return params
        return {"params": params["params"] | {EMBEDDING: target_params["params"][EMBEDDING]}}

    def prediction_loss(self, params: Any, observations: Array, actions: Array, successors: Array) -> jax.Array | float:
        """That of the embedding, see :class:`Embedding`; 0 without one."""
        if self.embedding is None:
            return 0.0
        own = {"params": params["params"][EMBEDDING]}
        return self.embedding.apply(own, observations, actions, successors, method="prediction_loss")

    def _stacked(self, params: Any, values: Callable[[Any], Any]) -> jax.Array:
        stacked = {"params": {name: tree for name, tree in params["params"].items() if name != EMBEDDING}}
        # One critic after the other: XLA's batched products are slower on a CPU than plain ones.
        return jnp.stack([values(jax.tree.map(lambda leaf: leaf[j], stacked)) for j in range(self.n_critics)])  # noqa: B023


@cache
def make_actor(
    action_dim: int,
    net_arch: tuple[int, ...],
    activation_fn: Activation,
    layer_norm: bool,
    features_extractor: nn.Module | None,
    standardize: bool,
) -> Actor:
    """One object for each kind of actor, so that models with the same settings share a compiled update."""
    return Actor(action_dim, net_arch, activation_fn, layer_norm, features_extractor, standardize)


@cache
def make_critics(critic: Critic, n_critics: int, embedding: Embedding | None = None) -> Critics:
    """One object for each kind and number of critics, so that models with the same settings share a compiled update."""
    return Critics(critic, n_critics, embedding)


@jax.jit  # one compilation for all arrays
def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def _kernel(layer: nn.Dense) -> jax.Array:
    return layer.variables["params"]["kernel"]


def _bias(layer: nn.Dense) -> jax.Array:
    return layer.variables["params"]["bias"]


def _lecun_normal(share: float) -> nn.initializers.Initializer:
    """LeCun's initialisation for a kernel that takes ``share`` of the inputs of its layer."""
    return nn.initializers.variance_scaling(share, "fan_in", "truncated_normal")
