"""Actor and critics; the critics evaluate N actions of each state with one pass over the state."""

from collections.abc import Callable, Sequence
from functools import cache
from operator import mul
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

Activation = Callable[[jax.Array], jax.Array]
ActionLayer = Literal["second", "input"]
Array = jax.Array | np.ndarray
LAYER_NORM_EPSILON = 1e-6  # as in flax
BATCH_NORM_EPSILON = 1e-3
STANDARDIZE_EPSILON = 1e-4  # added to a variance, so that a nearly constant component is not amplified
STANDARDIZE_LIMIT = 5.0  # bound of a standardised component
_FUSED_COMPONENTS = 8  # largest action for which XLA's fused sums beat a matrix product


def relu(x: jax.Array) -> jax.Array:
    """Return ``max(x, 0)``. A plain function stays the same object after pickling, so that nothing compiles again."""
    return nn.relu(x)


class LayerNorm(nn.Module):
    """Layer normalisation over h hidden units, the function and parameters of ``flax.linen.LayerNorm``.

    :param units: h
    """

    units: int

    def setup(self) -> None:
        """Parameters ``scale`` and ``bias``, ``(h,)``."""
        self.scale = self.param("scale", nn.initializers.ones_init(), (self.units,))
        self.bias = self.param("bias", nn.initializers.zeros_init(), (self.units,))

    def __call__(self, x: jax.Array) -> jax.Array:
        """Hidden units as the last axis: ``(batch, h)`` to ``(batch, h)``."""
        return _standardized(x) * self.scale + self.bias

    def columns(self, x: jax.Array) -> jax.Array:
        """Hidden units as the first axis: ``(h, batch)`` to ``(h, batch)``."""
        x = x - x.mean(axis=0)
        return x * jax.lax.rsqrt((x * x).mean(axis=0) + LAYER_NORM_EPSILON) * self.scale[:, None] + self.bias[:, None]


class BatchNorm(nn.Module):
    """Batch normalisation of h hidden units: ``scale (x - mean) / sqrt(variance + epsilon) + bias``.

    The joint pass over (s, a) and (s', a') uses the statistics of its own batch and reports them in the collection
    ``"batch"``. Every other pass uses the running statistics, which the update sets and the gradient does not change.

    :param units: h
    """

    units: int

    def setup(self) -> None:
        """Parameters ``scale`` and ``bias``, and among them the running ``mean`` and ``variance``, ``(h,)``."""
        self.scale = self.param("scale", nn.initializers.ones_init(), (self.units,))
        self.bias = self.param("bias", nn.initializers.zeros_init(), (self.units,))
        self.mean = self.param("mean", nn.initializers.zeros_init(), (self.units,))
        self.variance = self.param("variance", nn.initializers.ones_init(), (self.units,))

    def __call__(self, x: jax.Array) -> jax.Array:
        """Hidden units as the last axis: ``(batch, h)`` to ``(batch, h)``."""
        slope, offset = self._line()
        return x * slope + offset

    def columns(self, x: jax.Array) -> jax.Array:
        """Hidden units as the first axis: ``(h, batch)`` to ``(h, batch)``."""
        slope, offset = self._line()
        return x * slope[:, None] + offset[:, None]

    def joint(self, x: jax.Array, size: int) -> jax.Array:
        """Normalise the hidden units of a joint pass, ``(rows, h)``, with its own statistics.

        :param size: number of rows that belong to (s, a); the others belong to (s', a'). Both count for one half,
            however many samples of a' there are
        """
        mean, square = (jnp.mean(y[:size], axis=0) / 2 + jnp.mean(y[size:], axis=0) / 2 for y in (x, x * x))
        variance = jnp.maximum(square - mean**2, 0)
        self.sow("batch", "mean", mean, reduce_fn=_last)
        self.sow("batch", "variance", variance, reduce_fn=_last)
        return (x - mean) * (self.scale * jax.lax.rsqrt(variance + BATCH_NORM_EPSILON)) + self.bias

    def _line(self) -> tuple[jax.Array, jax.Array]:
        mean, variance = jax.lax.stop_gradient((self.mean, self.variance))
        slope = self.scale * jax.lax.rsqrt(variance + BATCH_NORM_EPSILON)
        return slope, self.bias - mean * slope


def _last(_: jax.Array, new: jax.Array) -> jax.Array:
    return new


class Standardization(nn.Module):
    """``(s - mean) / sqrt(variance + epsilon)``, clipped to [-5, 5].

    The update, not the gradient, changes the statistics: they follow the transitions in the replay buffer. Without
    them, layer norm would lose a component with small numbers, such as a velocity of 0.07, beside a large one.

    :param dim: d, components of an observation
    """

    dim: int

    def setup(self) -> None:
        """Keep ``mean`` and ``variance``, ``(d,)``, among the parameters, so that they are saved with them."""
        self.mean = self.param("mean", nn.initializers.zeros_init(), (self.dim,))
        self.variance = self.param("variance", nn.initializers.ones_init(), (self.dim,))

    def __call__(self, observations: jax.Array) -> jax.Array:
        """``(batch, d)`` to ``(batch, d)``."""
        mean, variance = jax.lax.stop_gradient((self.mean, self.variance))
        return jnp.clip(
            (observations - mean) * jax.lax.rsqrt(variance + STANDARDIZE_EPSILON), -STANDARDIZE_LIMIT, STANDARDIZE_LIMIT
        )


class Actor(nn.Module):
    """Deterministic policy ``pi(s)`` in (-1, 1)^m: hidden layers, then tanh.

    :param action_dim: m
    :param net_arch: units of each hidden layer
    :param activation_fn: activation of the hidden layers
    :param layer_norm: normalise each hidden layer before its activation
    :param features_extractor: network before the hidden layers, from observations to features; None for none
    :param standardize: standardise observations by running statistics, see :class:`Standardization`
    """

    action_dim: int
    net_arch: Sequence[int] = (400, 300)
    activation_fn: Activation = relu
    layer_norm: bool = False
    features_extractor: nn.Module | None = None
    standardize: bool = False

    def __call__(self, observations: jax.Array) -> jax.Array:
        """Map observations ``(batch, d)`` to actions ``(batch, m)``."""
        return nn.tanh(self.unsquashed(observations))

    @nn.compact
    def unsquashed(self, observations: jax.Array) -> jax.Array:
        """Map observations ``(batch, d)`` to the pre-tanh output, ``(batch, m)``."""
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
    :param features_extractor: network before the hidden layers, from observations to features; None for none
    :param standardize: standardise observations
    :param batch_norm: normalise each hidden layer over the batch, after its activation, in place of layer norm
    """

    observation_dim: int
    action_dim: int
    net_arch: Sequence[int] = (400, 300)
    action_layer: ActionLayer = "second"
    activation_fn: Activation = relu
    layer_norm: bool = False
    features_extractor: nn.Module | None = None
    standardize: bool = False
    batch_norm: bool = False

    def setup(self) -> None:
        """Layers ``hidden_i`` (``norm_i``) and ``value``; ``action`` adds the action's part to its hidden layer."""
        self.entry = 0 if self.action_layer == "input" else 1
        widths = (self.observation_dim, *self.net_arch)
        # State and action enter one layer through two kernels, initialised as the two parts of one kernel.
        state_share = widths[self.entry] / (widths[self.entry] + self.action_dim)
        self.hidden = [
            nn.Dense(units, kernel_init=_lecun_normal(state_share if i == self.entry else 1.0))
            for i, units in enumerate(self.net_arch)
        ]
        self.observations = Standardization(self.observation_dim) if self.standardize else None
        norm = BatchNorm if self.batch_norm else LayerNorm
        self.norm = [norm(units) for units in self.net_arch] if self.batch_norm or self.layer_norm else []
        units = (*self.net_arch, 1)[self.entry]
        self.action = nn.Dense(units, use_bias=False, kernel_init=_lecun_normal(1 - state_share))
        self.value = nn.Dense(1, kernel_init=_lecun_normal(1.0 if self.net_arch else state_share))

    def __call__(self, observations: jax.Array, actions: jax.Array) -> jax.Array:
        """``Q(s, a)`` for observations ``(batch, d)`` and actions ``(batch, m)``; returns ``(batch,)``."""
        return self.head(self.features(observations), actions)

    def at_actions(self, observations: jax.Array, actions: jax.Array) -> jax.Array:
        """``Q(s, a_i)`` for observations ``(batch, d)`` and N actions of each ``(N, m, batch)``: ``(N, batch)``."""
        return jax.lax.platform_dependent(
            self.features(observations).T, actions, cpu=self._one_by_one, default=self._all_at_once
        )

    def joint(
        self, observations: jax.Array, actions: jax.Array, next_observations: jax.Array, samples: jax.Array
    ) -> jax.Array:
        """Values of (s, a) and (s', a'_i) in one pass that normalises over all of them: ``(1 + N, batch)``.

        :param observations: s, ``(batch, d)``
        :param actions: a, ``(batch, m)``
        :param next_observations: s', ``(batch, d)``
        :param samples: N actions of each next state, ``(N, m, batch)``
        """
        size = len(observations)
        features = self.features(jnp.concatenate([observations, next_observations]), size)
        repeated = jnp.broadcast_to(features[size:], (len(samples), *features[size:].shape))
        rows = jnp.concatenate([features[:size], repeated.reshape(-1, features.shape[-1])])
        executed = jnp.concatenate([actions, samples.transpose(0, 2, 1).reshape(-1, self.action_dim)])
        return self.head(rows, executed, size).reshape(1 + len(samples), size)

    def features(self, observations: jax.Array, joint: int = 0) -> jax.Array:
        """All that depends on the state alone: ``(batch, d)`` to ``(batch, h)``, h units of the action's layer."""
        x = observations if self.features_extractor is None else self.features_extractor(observations)
        if self.observations is not None:
            x = self.observations(x)
        for i in range(self.entry):
            x = self._activated(i, self.hidden[i](x), joint)
        return (self.hidden[self.entry] if self.net_arch else self.value)(x)

    def head(self, features: jax.Array, actions: jax.Array, joint: int = 0) -> jax.Array:
        """Value of one action of each state: features ``(batch, h)``, actions ``(batch, m)``; returns ``(batch,)``."""
        x = features + self.action(actions)
        if not self.net_arch:
            return x[:, 0]
        x = self._activated(self.entry, x, joint)
        for i in range(self.entry + 1, len(self.net_arch)):
            x = self._activated(i, self.hidden[i](x), joint)
        return self.value(x)[:, 0]

    def _activated(self, layer: int, x: jax.Array, joint: int) -> jax.Array:
        if self.batch_norm:
            x, norm = self.activation_fn(x), self.norm[layer]
            return norm.joint(x, joint) if joint else norm(x)
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
        if self.batch_norm:
            return self.norm[layer].columns(self.activation_fn(x))
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
    """An ensemble of n critics of one architecture; their parameters are stacked along the first axis.

    :param critic: the architecture
    :param n_critics: n
    """

    def __init__(self, critic: Critic, n_critics: int) -> None:
        self.critic = critic
        self.n_critics = n_critics

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickle to the object that all models with these settings share."""
        return make_critics, (self.critic, self.n_critics)

    def init(self, key: jax.Array, observations: jax.ShapeDtypeStruct, actions: jax.ShapeDtypeStruct) -> Any:
        """Initialise the parameters of each critic independently; only the shapes of the inputs matter."""
        keys = key[None] if self.n_critics == 1 else jax.random.split(key, self.n_critics)
        return _stack([self.critic.lazy_init(key, observations, actions) for key in keys])

    def apply(self, params: Any, observations: Array, actions: Array) -> jax.Array:
        """``Q_j(s, a)`` for observations ``(batch, d)`` and actions ``(batch, m)``; returns ``(n, batch)``."""
        return self._stacked(params, lambda one: self.critic.apply(one, observations, actions))

    def at_actions(self, params: Any, observations: Array, actions: Array) -> jax.Array:
        """``Q_j(s, a_i)`` for observations ``(batch, d)`` and actions ``(N, m, batch)``; returns ``(n, N, batch)``."""
        return self._stacked(params, lambda one: self.critic.apply(one, observations, actions, method="at_actions"))

    def joint(
        self, params: Any, observations: Array, actions: Array, next_observations: Array, samples: Array
    ) -> tuple[jax.Array, Any]:
        """Evaluate (s, a) and (s', a'_i) in one pass; see :meth:`Critic.joint`.

        :return: values ``(n, 1 + N, batch)``, and the statistics of every batch norm, stacked along the first axis
        """
        passes = [
            self.critic.apply(
                jax.tree.map(lambda leaf: leaf[j], params),  # noqa: B023
                *(observations, actions, next_observations, samples),
                method="joint",
                mutable=["batch"],
            )
            for j in range(self.n_critics)
        ]
        values, statistics = zip(*passes, strict=True)
        return jnp.stack(values), jax.tree.map(lambda *leaves: jnp.stack(leaves), *statistics)["batch"]

    def _stacked(self, params: Any, values: Callable[[Any], Any]) -> jax.Array:
        # One critic after the other: XLA's batched products are slower on a CPU than plain ones.
        return jnp.stack([values(jax.tree.map(lambda leaf: leaf[j], params)) for j in range(self.n_critics)])  # noqa: B023


@cache
def make_actor(
    action_dim: int,
    net_arch: tuple[int, ...],
    activation_fn: Activation,
    layer_norm: bool,
    features_extractor: nn.Module | None,
    standardize: bool,
) -> Actor:
    """Return one object per architecture, so that models with the same settings share a compiled update."""
    return Actor(action_dim, net_arch, activation_fn, layer_norm, features_extractor, standardize)


@cache
def make_critics(critic: Critic, n_critics: int) -> Critics:
    """Return one object per architecture and number, so that models with the same settings share a compiled update."""
    return Critics(critic, n_critics)


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


@jax.custom_vjp
def _standardized(x: jax.Array) -> jax.Array:
    """Rows ``(batch, h)`` less their mean and over their standard deviation."""
    return _standardized_forward(x)[0]


def _standardized_forward(x: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    x = x - _row_means(x)
    inverse = jax.lax.rsqrt(_row_means(x * x) + LAYER_NORM_EPSILON)
    return x * inverse, (x * inverse, inverse)


def _standardized_backward(residuals: tuple[jax.Array, jax.Array], gradient: jax.Array) -> tuple[jax.Array]:
    y, inverse = residuals
    return (inverse * (gradient - _row_means(gradient) - y * _row_means(gradient * y)),)


def _row_means(x: jax.Array) -> jax.Array:
    """``(batch, h)`` to ``(batch, 1)``; as a product, since XLA sums along the last axis one number at a time."""
    return (x @ jnp.full(x.shape[-1], 1 / x.shape[-1], x.dtype))[:, None]


# By hand: the derivative that JAX finds takes three times as long.
_standardized.defvjp(_standardized_forward, _standardized_backward)
