"""The policy of DDPG and Soft DDPG: actor, critic, their targets and optimisers behind SB3's policy interface."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium import spaces
from sbx.common.policies import BaseJaxPolicy
from sbx.common.type_aliases import RLTrainState
from stable_baselines3.common.type_aliases import Schedule

from softdpg.algorithms.networks import ActionLayer, Activation, Actor, Critic, relu


class DDPGPolicy(BaseJaxPolicy):
    """A deterministic actor and one critic.

    :param observation_space: Box or MultiBinary, or a Dict of them (its parts are flattened and joined)
    :param action_space: bounded Box; the networks work in actions scaled to [-1, 1]
    :param lr_schedule: not used, the update takes the learning rate; SB3 gives it to every policy
    :param net_arch: units of each hidden layer, or ``{"pi": [...], "qf": [...]}``
    :param action_layer: hidden layer of the critic where the action enters, ``"second"`` or ``"input"``
    :param activation_fn: activation of the hidden layers
    :param optimizer_class: an optax optimiser that takes ``learning_rate``
    :param optimizer_kwargs: further arguments of the optimiser
    """

    action_space: spaces.Box
    actor: Actor
    qf: Critic
    actor_state: RLTrainState
    qf_state: RLTrainState

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Box,
        lr_schedule: Schedule,
        net_arch: Sequence[int] | dict[str, Sequence[int]] = (400, 300),
        action_layer: ActionLayer = "second",
        activation_fn: Activation = relu,
        optimizer_class: Callable[..., optax.GradientTransformation] = optax.adam,
        optimizer_kwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            observation_space,
            action_space,
            optimizer_class=optimizer_class,
            optimizer_kwargs=optimizer_kwargs,
            squash_output=True,
        )
        pi, qf = (net_arch["pi"], net_arch["qf"]) if isinstance(net_arch, dict) else (net_arch, net_arch)
        if action_layer not in ("second", "input"):
            raise ValueError(f'action_layer must be "second" or "input", not {action_layer!r}')
        if len(qf) < (2 if action_layer == "second" else 1):
            raise ValueError(f"net_arch of the critic has no {action_layer} hidden layer for the action: {list(qf)}")
        action_dim = int(np.prod(action_space.shape))
        self.actor = Actor(action_dim, tuple(pi), activation_fn)
        self.qf = Critic(spaces.flatdim(observation_space), action_dim, tuple(qf), action_layer, activation_fn)

    def build(self, key: jax.Array, lr_schedule: Schedule, qf_learning_rate: float) -> jax.Array:
        """Initialise networks, targets and optimisers; return the key that is left. The signature is SBX's."""
        key, actor_key, qf_key = jax.random.split(key, 3)
        observations = jnp.zeros((1, self.qf.observation_dim))
        actions = jnp.zeros((1, self.qf.action_dim))
        optimizer = _optimizer(self.optimizer_class, tuple(sorted(self.optimizer_kwargs.items())))
        self.actor_state = _train_state(self.actor, self.actor.init(actor_key, observations), optimizer)
        self.qf_state = _train_state(self.qf, self.qf.init(qf_key, observations, actions), optimizer)
        return key

    def forward(self, obs: np.ndarray, deterministic: bool = True) -> jax.Array:
        """Actions scaled to [-1, 1] for a batch of observations."""
        return self._predict(obs, deterministic=deterministic)

    def _predict(self, observation: np.ndarray, deterministic: bool = True) -> jax.Array:
        observations = observation.reshape(len(observation), -1).astype(np.float32, copy=False)
        return _select_action(self.actor, self.actor_state.params, observations)


@partial(jax.jit, static_argnames="actor")
def _select_action(actor: Actor, params: Any, observations: jax.Array) -> jax.Array:
    return actor.apply(params, observations)


@cache
def _optimizer(optimizer_class: Callable[..., optax.GradientTransformation], kwargs: tuple) -> Any:
    """One object for each optimiser, so that models with the same settings share one compiled update."""
    # Steps of size 1; the update multiplies them by the learning rate that SB3's schedule gives at the time.
    return optimizer_class(learning_rate=1.0, **dict(kwargs))


def _train_state(network: nn.Module, params: Any, optimizer: optax.GradientTransformation) -> RLTrainState:
    # The target is a copy of its own: the update reuses the memory of its arguments.
    target_params = jax.tree.map(jnp.copy, params)
    return RLTrainState.create(apply_fn=network.apply, params=params, target_params=target_params, tx=optimizer)
