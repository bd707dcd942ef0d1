"""The policy of the family: actor, critics, their targets and optimisers behind SB3's policy interface."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch as th
from flax.training.train_state import TrainState
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import FlattenExtractor, NatureCNN
from stable_baselines3.common.type_aliases import Schedule

from softdpg.algorithms.arguments import (
    check_activation,
    check_choice,
    check_dropout,
    check_features_extractor,
    check_flag,
    check_net_arch,
    check_whole,
)
from softdpg.algorithms.cnn import make_nature_cnn
from softdpg.algorithms.embedding import Embedding
from softdpg.algorithms.layers import Activation
from softdpg.algorithms.networks import ActionLayer, Actor, Critic, Critics, make_actor, make_critics, relu
from softdpg.algorithms.optimizers import Optimizer, check_optimizer, find_optimizer
from softdpg.algorithms.parameters import Parameters, from_flat, to_flat
from softdpg.algorithms.sigma import make_sigma_state
from softdpg.algorithms.spaces import as_batch, flat_observations
from softdpg.algorithms.types import TargetedState
from softdpg.algorithms.views import ActorView, NetworkView

_NETWORKS = ("actor", "actor_target", "critic", "critic_target")  # as SB3 names them


class DDPGPolicy(BasePolicy):
    """A deterministic actor and an ensemble of critics.

    :param observation_space: Box, MultiBinary, Discrete or MultiDiscrete (one-hot), or a Dict of them (its parts are
        flattened and joined)
    :param action_space: bounded Box; the networks work in actions scaled to [-1, 1]
    :param lr_schedule: not used, the update takes the learning rate; SB3 gives it to every policy
    :param net_arch: units of each hidden layer, or ``{"pi": [...], "qf": [...]}``; no hidden layer at all is an
        empty list
    :param action_layer: hidden layer of the critics where the action enters, ``"second"`` or ``"input"``; None for
        the second where there is one, and for the first with an ``embedding``
    :param activation_fn: activation of the hidden layers, a function of a JAX array
    :param layer_norm: normalise each hidden layer of actor and critics before its activation
    :param actor_layer_norm: whether the actor's, if it differs from ``layer_norm``
    :param standardize: actor and critics see each component of an observation less its mean and over its standard
        deviation, both from what has been replayed so far; of no effect with a ``NatureCNN``
    :param embedding: the critics also see an embedding of state and action that foretells the next state, see
        :mod:`softdpg.algorithms.embedding`; of no effect with a ``NatureCNN`` or without hidden layers
    :param n_critics: critics in the ensemble; of their values the least counts
    :param optimizer_class: an optax optimiser that takes ``learning_rate``; or Adam, AdamW, SGD or RMSprop of
        ``torch.optim``, for the optimiser of that name with PyTorch's defaults
    :param optimizer_kwargs: further arguments of the optimiser, under its own names
    :param normalize_images: divide images of uint8 by 255
    :param share_features_extractor: of no effect where there is nothing to share; not supported with ``NatureCNN``
    :param features_extractor_class: one of SB3's: ``FlattenExtractor`` or ``CombinedExtractor``, for which observations
        are flattened, or ``NatureCNN``, see :class:`CnnPolicy`
    :param features_extractor_kwargs: those of ``NatureCNN``; those of the others have no effect
    :param dropout_rate: not supported, SBX has it
    """

    action_space: spaces.Box
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
        action_layer: ActionLayer | None = None,
        activation_fn: Activation = relu,
        layer_norm: bool = False,
        actor_layer_norm: bool | None = None,
        standardize: bool = False,
        embedding: bool = False,
        n_critics: int = 1,
        optimizer_class: Optimizer | type[th.optim.Optimizer] = optax.adam,
        optimizer_kwargs: dict[str, Any] | None = None,
        normalize_images: bool = True,
        share_features_extractor: bool = False,
        features_extractor_class: type = FlattenExtractor,
        features_extractor_kwargs: dict[str, Any] | None = None,
        dropout_rate: float | None = None,
    ) -> None:
        cnn = features_extractor_class is NatureCNN
        pi, qf = check_net_arch(net_arch)
        if action_layer is not None:
            check_choice("action_layer", action_layer, ("second", "input"))
        if action_layer == "second" and len(qf) < 2:
            raise ValueError(f"net_arch of the critic has no second hidden layer for the action: {list(qf)}")
        check_activation(activation_fn)
        check_flag("layer_norm", layer_norm)
        if actor_layer_norm is not None:
            check_flag("actor_layer_norm", actor_layer_norm)
        check_flag("standardize", standardize)
        check_flag("embedding", embedding)
        check_whole("n_critics", n_critics, 1)
        check_optimizer(optimizer_class, optimizer_kwargs)
        check_flag("normalize_images", normalize_images)
        if not cnn:
            check_features_extractor(features_extractor_class, features_extractor_kwargs)
        elif share_features_extractor:
            raise ValueError("share_features_extractor=True is not supported: actor and critics have a CNN each")
        check_dropout(dropout_rate)
        super().__init__(
            observation_space,
            action_space,
            optimizer_class=optimizer_class,
            optimizer_kwargs=optimizer_kwargs,
            normalize_images=normalize_images,
            squash_output=True,
        )
        self._arguments = dict(
            net_arch=net_arch,
            action_layer=action_layer,
            activation_fn=activation_fn,
            layer_norm=layer_norm,
            actor_layer_norm=actor_layer_norm,
            standardize=standardize,
            embedding=embedding,
            n_critics=n_critics,
            optimizer_class=optimizer_class,
            optimizer_kwargs=optimizer_kwargs,
            features_extractor_class=features_extractor_class,
            features_extractor_kwargs=features_extractor_kwargs,
        )
        # One for the actor and one for each critic
        extractors = [
            make_nature_cnn(observation_space, features_extractor_kwargs or {}, normalize_images) if cnn else None
            for _ in range(2)
        ]
        self.images = (normalize_images and not cnn, cnn)  # divide them by 255, leave them as pixels
        action_dim = int(np.prod(action_space.shape))
        standardize, embedding = bool(standardize) and not cnn, bool(embedding and qf) and not cnn
        actor_layer_norm = layer_norm if actor_layer_norm is None else actor_layer_norm
        self._actor = make_actor(action_dim, pi, activation_fn, actor_layer_norm, extractors[0], standardize)
        # With the embedding the critic's part that depends on the action is deep anyway.
        entry: ActionLayer = action_layer or ("second" if len(qf) > 1 and not embedding else "input")
        features_dim = spaces.flatdim(observation_space) if extractors[1] is None else extractors[1].features_dim
        critic = Critic(
            features_dim, action_dim, qf, entry, activation_fn, layer_norm, extractors[1], standardize, embedding
        )
        embeds = Embedding(features_dim, qf[0], activation_fn, standardize) if embedding else None
        self.qf = make_critics(critic, n_critics, embeds)
        self.sigma_state = None

    def build(self, key: jax.Array) -> jax.Array:
        """Initialise networks, targets and optimisers; return the key that is left."""
        key, actor_key, qf_key = jax.random.split(key, 3)
        observations = jax.ShapeDtypeStruct((1, spaces.flatdim(self.observation_space)), jnp.float32)
        actions = jax.ShapeDtypeStruct((1, self.qf.critic.action_dim), jnp.float32)
        optimizer = find_optimizer(self.optimizer_class, self.optimizer_kwargs)
        self.actor_state = _train_state(self._actor, self._actor.lazy_init(actor_key, observations), optimizer)
        self.qf_state = _train_state(self.qf, self.qf.init(qf_key, observations, actions), optimizer)
        return key

    @property
    def actor(self) -> ActorView:
        """The actor with its weights; ``actor.module`` is its flax module."""
        return ActorView(self, "actor", self._actor)

    @property
    def actor_target(self) -> NetworkView:
        """The actor with the weights of its target."""
        return NetworkView(self, "actor_target", self._actor)

    @property
    def critic(self) -> NetworkView:
        """The critics with their weights, which are stacked; ``critic.module`` is the flax module of one."""
        return NetworkView(self, "critic", self.qf.critic)

    @property
    def critic_target(self) -> NetworkView:
        """The critics with the weights of their targets."""
        return NetworkView(self, "critic_target", self.qf.critic)

    def state_dict(self, *args: Any, **kwargs: Any) -> Parameters:  # type: ignore[override]
        """The weights of actor, critics and targets by name, and ``log_sigma`` if it is learned."""
        return to_flat(self._weights())

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> None:
        """Take weights over from arrays with the names of :meth:`state_dict`.

        ``RuntimeError``, with all weights left as they were, if an array has another shape, or if ``strict`` and the
        names are not the same.
        """
        if not hasattr(self, "actor_state"):  # SB3's load makes a policy, and then fills it
            self.build(jax.random.PRNGKey(0))
            if "log_sigma" in state_dict:
                self.sigma_state = make_sigma_state(self._actor.action_dim)
        weights = from_flat(self._weights(), state_dict, strict)
        actor, actor_target, critic, critic_target = ({"params": weights[name]} for name in _NETWORKS)
        states: dict[str, Any] = dict(
            actor_state=self.actor_state.replace(params=actor, target_params=actor_target),
            qf_state=self.qf_state.replace(params=critic, target_params=critic_target),
        )
        if self.sigma_state is not None:
            states["sigma_state"] = self.sigma_state.replace(params=weights["log_sigma"])
        self.__dict__.update(states)

    def _weights(self) -> dict[str, Any]:
        states = (self.actor_state, self.qf_state)
        networks = [params["params"] for state in states for params in (state.params, state.target_params)]
        weights = dict(zip(_NETWORKS, networks, strict=True))
        return weights if self.sigma_state is None else weights | {"log_sigma": self.sigma_state.params}

    def _get_constructor_parameters(self) -> dict[str, Any]:
        data = super()._get_constructor_parameters()
        return data | self._arguments | {"lr_schedule": self._dummy_schedule}

    def parameters_to_vector(self) -> np.ndarray:
        """All weights in one array, in the order of :meth:`state_dict`."""
        return np.concatenate([np.ravel(array) for array in self.state_dict().values()])

    def load_from_vector(self, vector: np.ndarray) -> None:
        """Take all weights over from an array like that of :meth:`parameters_to_vector`."""
        weights = self.state_dict()
        ends = np.cumsum([array.size for array in weights.values()])
        if np.shape(vector) != (ends[-1],):
            raise ValueError(f"vector must have {ends[-1]} numbers, not the shape {np.shape(vector)}")
        parts = np.split(np.asarray(vector), ends[:-1])
        self.load_state_dict(
            {name: part.reshape(old.shape) for (name, old), part in zip(weights.items(), parts, strict=True)}
        )

    def forward(self, obs: np.ndarray, deterministic: bool = True) -> jax.Array:
        """Actions scaled to [-1, 1] for a batch of observations, ``(batch, d)``."""
        return self._predict(obs, deterministic=deterministic)

    def _predict(self, observation: np.ndarray, deterministic: bool = True) -> jax.Array:  # type: ignore[override]
        return _select_action(self._actor, self.actor_state.params, observation)

    def predict(
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """Actions of the environment for one observation or a batch of them; see SB3."""
        if isinstance(observation, tuple) and len(observation) == 2 and isinstance(observation[1], dict):
            raise ValueError("observation is a tuple: of `observation, info = env.reset()` give the observation alone")
        observations, vectorized = self.prepare_obs(observation)
        actions = np.asarray(self._predict(observations, deterministic)).reshape(-1, *self.action_space.shape)
        actions = self.unscale_action(np.clip(actions, -1, 1))
        return actions if vectorized else actions[0], state

    def prepare_obs(self, observation: np.ndarray | dict[str, np.ndarray]) -> tuple[np.ndarray, bool]:
        """A batch of observations as one array ``(batch, d)``, and whether it came as a batch."""
        observations, vectorized = as_batch(observation, self.observation_space)
        return flat_observations(observations, self.observation_space, *self.images), vectorized

    def set_training_mode(self, mode: bool) -> None:
        """Note whether the policy is training; nothing in it depends on that."""
        self.training = mode


class CnnPolicy(DDPGPolicy):
    """:class:`DDPGPolicy` for images: actor and each critic have a :class:`~softdpg.algorithms.cnn.NatureCNN` in front.

    Its parameters are those of :class:`DDPGPolicy`, with another default.

    :param observation_space: images: Box of uint8 with three axes, from 0 to 255; any other Box with three axes, the
        channels first, if ``normalize_images`` is False
    :param features_extractor_kwargs: ``features_dim``, units of the layer after the convolutions
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"features_extractor_class": NatureCNN} | kwargs)


@partial(jax.jit, static_argnames="actor")
def _select_action(actor: Actor, params: Any, observations: jax.Array) -> jax.Array:
    return actor.apply(params, observations)


def _train_state(network: Actor | Critics, params: Any, optimizer: optax.GradientTransformation) -> TargetedState:
    opt_state = _initial(optimizer, params)
    return TargetedState(0, network.apply, params, optimizer, opt_state, target_params=params)


@partial(jax.jit, static_argnames="optimizer")  # one compilation, where that of each array's zeros would take longer
def _initial(optimizer: optax.GradientTransformation, params: Any) -> optax.OptState:
    return optimizer.init(params)
