"""The policy of the family: actor, critics, their targets and optimisers behind SB3's policy interface."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.preprocessing import is_image_space, maybe_transpose
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.utils import is_vectorized_observation

from softdpg.algorithms.networks import ActionLayer, Activation, Actor, Critic, Critics, make_critics, relu
from softdpg.algorithms.types import TargetedState


class DDPGPolicy(BasePolicy):
    """A deterministic actor and an ensemble of critics.

    :param observation_space: Box or MultiBinary, or a Dict of them (its parts are flattened and joined)
    :param action_space: bounded Box; the networks work in actions scaled to [-1, 1]
    :param lr_schedule: not used, the update takes the learning rate; SB3 gives it to every policy
    :param net_arch: units of each hidden layer, or ``{"pi": [...], "qf": [...]}``
    :param action_layer: hidden layer of the critics where the action enters, ``"second"`` or ``"input"``
    :param activation_fn: activation of the hidden layers, a function of a JAX array
    :param layer_norm: normalise each hidden layer of actor and critics before its activation
    :param actor_layer_norm: whether the actor's, if it differs from ``layer_norm``
    :param n_critics: critics in the ensemble; of their values the least counts
    :param optimizer_class: an optax optimiser that takes ``learning_rate``
    :param optimizer_kwargs: further arguments of the optimiser
    """

    action_space: spaces.Box
    actor: Actor
    qf: Critics
    actor_state: TargetedState
    qf_state: TargetedState
    sigma_state: TrainState | None  # of a learned smoothing scale

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Box,
        lr_schedule: Schedule,
        net_arch: Sequence[int] | dict[str, Sequence[int]] = (400, 300),
        action_layer: ActionLayer = "second",
        activation_fn: Activation = relu,
        layer_norm: bool = False,
        actor_layer_norm: bool | None = None,
        n_critics: int = 1,
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
        if not isinstance(n_critics, int) or n_critics < 1:
            raise ValueError(f"n_critics must be a whole number >= 1, not {n_critics}")
        _check_activation(activation_fn)
        action_dim = int(np.prod(action_space.shape))
        actor_layer_norm = layer_norm if actor_layer_norm is None else actor_layer_norm
        self.actor = Actor(action_dim, tuple(pi), activation_fn, actor_layer_norm)
        critic = Critic(
            spaces.flatdim(observation_space), action_dim, tuple(qf), action_layer, activation_fn, layer_norm
        )
        self.qf = make_critics(critic, n_critics)
        self.sigma_state = None

    def build(self, key: jax.Array) -> jax.Array:
        """Initialise networks, targets and optimisers; return the key that is left."""
        key, actor_key, qf_key = jax.random.split(key, 3)
        observations = jnp.zeros((1, self.qf.critic.observation_dim))
        actions = jnp.zeros((1, self.qf.critic.action_dim))
        optimizer_class: Any = self.optimizer_class
        optimizer = _optimizer(optimizer_class, tuple(sorted(self.optimizer_kwargs.items())))
        self.actor_state = _train_state(self.actor, self.actor.init(actor_key, observations), optimizer)
        self.qf_state = _train_state(self.qf, self.qf.init(qf_key, observations, actions), optimizer)
        return key

    def forward(self, obs: np.ndarray, deterministic: bool = True) -> jax.Array:
        """Actions scaled to [-1, 1] for a batch of observations."""
        return self._predict(obs, deterministic=deterministic)

    def _predict(self, observation: np.ndarray, deterministic: bool = True) -> jax.Array:  # type: ignore[override]
        observations = observation.reshape(len(observation), -1).astype(np.float32, copy=False)
        return _select_action(self.actor, self.actor_state.params, observations)

    def predict(
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """Actions of the environment for one observation or a batch of them; see SB3."""
        observations, vectorized = self.prepare_obs(observation)
        actions = np.asarray(self._predict(observations, deterministic)).reshape(-1, *self.action_space.shape)
        actions = self.unscale_action(np.clip(actions, -1, 1))
        return actions if vectorized else actions[0], state

    def prepare_obs(self, observation: np.ndarray | dict[str, np.ndarray]) -> tuple[np.ndarray, bool]:
        """A batch of observations as one array, and whether it came as a batch."""
        if isinstance(observation, dict):
            assert isinstance(self.observation_space, spaces.Dict)
            parts = self.observation_space.spaces
            name = next(iter(parts))
            vectorized = is_vectorized_observation(observation[name], parts[name])
            flat = [observation[key].reshape(-1, spaces.flatdim(part)) for key, part in parts.items()]
            return np.concatenate(flat, axis=1), vectorized
        if is_image_space(self.observation_space):
            observation = maybe_transpose(observation, self.observation_space)
        observation = np.asarray(observation)
        vectorized = is_vectorized_observation(observation, self.observation_space)
        assert self.observation_space.shape is not None
        return observation.reshape(-1, *self.observation_space.shape), vectorized

    def set_training_mode(self, mode: bool) -> None:
        """Note whether the policy is training; nothing in it depends on that."""
        self.training = mode


@partial(jax.jit, static_argnames="actor")
def _select_action(actor: Actor, params: Any, observations: jax.Array) -> jax.Array:
    return actor.apply(params, observations)


def _check_activation(activation_fn: Any) -> None:
    if isinstance(activation_fn, type) or not callable(activation_fn):
        raise ValueError(
            f"activation_fn must be a function of a JAX array, such as flax.linen.relu or jax.numpy.tanh, "
            f"not {activation_fn!r} (a PyTorch module has no meaning here)"
        )


@cache
def _optimizer(optimizer_class: Callable[..., optax.GradientTransformation], kwargs: tuple) -> Any:
    """One object for each optimiser, so that models with the same settings share one compiled update."""
    # Steps of size 1; the update multiplies them by the learning rate that SB3's schedule gives at the time.
    return optimizer_class(learning_rate=1.0, **dict(kwargs))


def _train_state(network: Actor | Critics, params: Any, optimizer: optax.GradientTransformation) -> TargetedState:
    target_params = jax.tree.map(jnp.copy, params)
    return TargetedState.create(apply_fn=network.apply, params=params, target_params=target_params, tx=optimizer)
