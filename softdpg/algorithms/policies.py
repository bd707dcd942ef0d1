"""The policy of the family: actor, critics, their targets and optimisers behind SB3's policy interface."""

import warnings
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

from softdpg.algorithms.actions import ActiveIf, flat_space, make_layout, to_env
from softdpg.algorithms.cnn import make_nature_cnn
from softdpg.algorithms.networks import (
    ActionLayer,
    Activation,
    Actor,
    Critic,
    Critics,
    make_actor,
    make_critics,
    relu,
)
from softdpg.algorithms.optimizers import Optimizer, check_optimizer, find_optimizer
from softdpg.algorithms.parameters import Parameters, from_flat, to_flat
from softdpg.algorithms.settings import check_argument, check_flag, check_integer
from softdpg.algorithms.update import TargetedState, make_sigma_state
from softdpg.algorithms.views import ActorView, CriticView, NetworkView, describe
from softdpg.replay.spaces import as_batch, flat_observations

_NETWORKS = ("actor", "actor_target", "critic", "critic_target")  # as SB3 names them


class DDPGPolicy(BasePolicy):
    """A deterministic actor and an ensemble of critics.

    :param observation_space: Box, MultiBinary, Discrete or MultiDiscrete (one-hot), or a Dict of them (its parts are
        flattened and joined)
    :param action_space: bounded Box, Discrete, MultiDiscrete, MultiBinary, or Tuple and Dict of them; the networks
        work in [-1, 1]^m, see :mod:`softdpg.algorithms.actions`
    :param lr_schedule: not used; SB3 passes it to every policy
    :param net_arch: units of each hidden layer, or ``{"pi": [...], "qf": [...]}`` for different ones of actor and
        critics
    :param action_layer: hidden layer of the critics where the action enters, ``"second"`` or ``"input"``; None for
        the second if there is one
    :param activation_fn: activation of the hidden layers, a function of a JAX array
    :param layer_norm: apply layer normalisation to each hidden layer of actor and critics before its activation
    :param batch_norm: apply batch normalisation to each hidden layer of the critics, after its activation, in place of
        layer norm. As in CrossQ, (s, a) and (s', a') are normalised together and there are no target networks, so that
        ``tau`` has no effect
    :param standardize: subtract the mean of each component of an observation and divide by its standard deviation, with
        statistics of the replayed transitions; not for images
    :param n_critics: number of critics in the ensemble; the algorithm combines their values
    :param optimizer_class: an optax optimiser that takes ``learning_rate``; or Adam, AdamW, SGD or RMSprop of
        ``torch.optim``, for the optimiser of that name with PyTorch's defaults
    :param optimizer_kwargs: further arguments of the optimiser, under its own names
    :param normalize_images: divide images of uint8 by 255
    :param share_features_extractor: not supported with ``NatureCNN``; otherwise there is nothing to share
    :param features_extractor_class: ``FlattenExtractor`` or ``CombinedExtractor`` of SB3, which both flatten the
        observations, or ``NatureCNN``, see :class:`CnnPolicy`
    :param features_extractor_kwargs: arguments of ``NatureCNN``
    :param active_if: parts of the action that are parameters of an option, and reach the critics only with it:
        ``{"power": "on"}`` for one bit of ``on`` per number of ``power``, or ``{"angle": ["mode", 2]}`` for option 2 of
        ``mode``. Parts of a Tuple are named by their index, nested ones by a tuple. None for the parameters of
        ``Tuple(Discrete(n), Tuple(Box, ..., Box))``
    """

    qf: Critics
    actor_state: TargetedState
    qf_state: TargetedState
    sigma_state: TrainState | None  # of a learned smoothing scale

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        net_arch: Sequence[int] | dict[str, Sequence[int]] = (400, 300),
        action_layer: ActionLayer | None = None,
        activation_fn: Activation = relu,
        layer_norm: bool = False,
        batch_norm: bool = False,
        standardize: bool = False,
        n_critics: int = 1,
        optimizer_class: Optimizer | type[th.optim.Optimizer] = optax.adam,
        optimizer_kwargs: dict[str, Any] | None = None,
        normalize_images: bool = True,
        share_features_extractor: bool = False,
        features_extractor_class: type = FlattenExtractor,
        features_extractor_kwargs: dict[str, Any] | None = None,
        active_if: ActiveIf | None = None,
    ) -> None:
        cnn = features_extractor_class is NatureCNN
        pi, qf = check_net_arch(net_arch)
        if action_layer is not None:
            check_argument("action_layer", action_layer)
        if action_layer == "second" and len(qf) < 2:
            raise ValueError(f"net_arch of the critic has no second hidden layer for the action: {list(qf)}")
        check_activation(activation_fn)
        check_argument("layer_norm", layer_norm)
        check_argument("batch_norm", batch_norm)
        check_argument("standardize", standardize)
        check_argument("n_critics", n_critics)
        check_optimizer(optimizer_class, optimizer_kwargs)
        check_flag("normalize_images", normalize_images)
        if not cnn:
            check_features_extractor(features_extractor_class, features_extractor_kwargs)
        elif share_features_extractor:
            raise ValueError("share_features_extractor=True is not supported: actor and critics have a CNN each")
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
            batch_norm=batch_norm,
            standardize=standardize,
            n_critics=n_critics,
            optimizer_class=optimizer_class,
            optimizer_kwargs=optimizer_kwargs,
            features_extractor_class=features_extractor_class,
            features_extractor_kwargs=features_extractor_kwargs,
            active_if=active_if,
        )
        # One for the actor and one for each critic
        extractors = [
            make_nature_cnn(observation_space, features_extractor_kwargs or {}, normalize_images) if cnn else None
            for _ in range(2)
        ]
        self.images = (normalize_images and not cnn, cnn)  # divide them by 255, leave them as pixels
        self.layout = make_layout(action_space, active_if)
        action_dim = int(np.prod(flat_space(action_space).shape))
        standardize = bool(standardize) and not cnn
        self._actor = make_actor(action_dim, pi, activation_fn, layer_norm, extractors[0], standardize)
        entry: ActionLayer = action_layer or ("second" if len(qf) > 1 else "input")
        features_dim = spaces.flatdim(observation_space) if extractors[1] is None else extractors[1].features_dim
        critic = Critic(
            *(features_dim, action_dim, qf, entry, activation_fn, layer_norm, extractors[1], standardize),
            batch_norm=bool(batch_norm),
        )
        self.qf = make_critics(critic, n_critics)
        self.net_arch = net_arch  # as in SB3
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
    def critic(self) -> CriticView:
        """The critics with their weights, which are stacked; ``critic.module`` is the flax module of one."""
        return CriticView(self, "critic", self.qf.critic)

    @property
    def critic_target(self) -> CriticView:
        """The critics with the weights of their targets."""
        return CriticView(self, "critic_target", self.qf.critic)

    def state_dict(self, *args: Any, **kwargs: Any) -> Parameters:  # type: ignore[override]
        """The weights of actor, critics and targets by name, and ``log_sigma`` if it is learned."""
        return to_flat(self._weights())

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> None:
        """Set the weights from arrays with the names of :meth:`state_dict`.

        Raises ``RuntimeError`` and leaves all weights unchanged if a shape differs.

        :param state_dict: arrays by name
        :param strict: require all names and no others
        :param assign: ignored
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
        """Set all weights from an array like that of :meth:`parameters_to_vector`."""
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
    ) -> tuple[Any, tuple[np.ndarray, ...] | None]:
        """Actions of the environment for one observation or a batch of them; see SB3.

        A batch of Tuple or Dict actions is a list of tuples or dicts.
        """
        if isinstance(observation, tuple) and len(observation) == 2 and isinstance(observation[1], dict):
            raise ValueError(
                "observation is a tuple. You are probably mixing Gym API and VecEnv API: a Gymnasium environment "
                "returns `observation, info = env.reset()`, a VecEnv `observations = vec_env.reset()`. Give the "
                "observation alone"
            )
        observations, vectorized = self.prepare_obs(observation)
        actions: Any = np.asarray(self._predict(observations, deterministic))
        if self.layout is not None:
            actions = to_env(self.action_space, self.layout.execute(actions))
        else:
            assert self.action_space.shape is not None
            actions = self.unscale_action(np.clip(actions.reshape(-1, *self.action_space.shape), -1, 1))
        return actions if vectorized else actions[0], state

    def prepare_obs(self, observation: np.ndarray | dict[str, np.ndarray]) -> tuple[np.ndarray, bool]:
        """A batch of observations as one array ``(batch, d)``, and whether it came as a batch."""
        observations, vectorized = as_batch(observation, self.observation_space)
        return flat_observations(observations, self.observation_space, *self.images), vectorized

    def __repr__(self) -> str:
        """The networks, layer by layer, with the number of their parameters."""
        return describe(self)

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


def check_net_arch(net_arch: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the hidden units of actor and critic; raise ``ValueError`` for an invalid ``net_arch``."""
    by_network = isinstance(net_arch, dict)
    if by_network and net_arch.keys() != {"pi", "qf"}:
        raise ValueError(f"net_arch must be a list, or a dict with lists for pi and qf, got {net_arch!r}")
    lists = (net_arch["pi"], net_arch["qf"]) if by_network else (net_arch, net_arch)
    for units in lists:
        if not isinstance(units, list | tuple):
            raise ValueError(f"net_arch must be a list, or a dict with lists for pi and qf, got {net_arch!r}")
        for layer in units:
            check_integer("each layer of net_arch", layer, 1)
    return tuple(lists[0]), tuple(lists[1])


def check_activation(activation_fn: Any) -> None:
    """Raise ``ValueError`` unless ``activation_fn`` is a function of a JAX array."""
    if isinstance(activation_fn, type) or not callable(activation_fn):
        raise ValueError(
            f"activation_fn must be a function of a JAX array, such as flax.linen.relu or jax.numpy.tanh, "
            f"got {activation_fn!r} (PyTorch modules do not work in JAX)"
        )


def check_features_extractor(features_extractor_class: Any, features_extractor_kwargs: dict[str, Any] | None) -> None:
    """Raise ``ValueError`` for a features extractor other than flattening."""
    if getattr(features_extractor_class, "__name__", "") not in ("FlattenExtractor", "CombinedExtractor"):
        raise ValueError(
            f"features_extractor_class={features_extractor_class!r} is not supported: it is a PyTorch module. "
            "Observations are flattened and concatenated; compute features in a Gymnasium wrapper instead"
        )
    for name in features_extractor_kwargs or {}:
        if name not in ("cnn_output_dim", "normalized_image"):
            raise ValueError(f"features_extractor_kwargs has {name!r}, which a flattened observation does not use")
        warnings.warn(
            f"{name} in features_extractor_kwargs has no effect: there is no CNN, images are flattened", stacklevel=5
        )


@partial(jax.jit, static_argnames="actor")
def _select_action(actor: Actor, params: Any, observations: jax.Array) -> jax.Array:
    return actor.apply(params, observations)


def _train_state(network: Actor | Critics, params: Any, optimizer: optax.GradientTransformation) -> TargetedState:
    opt_state = _initial(optimizer, params)
    return TargetedState(0, network.apply, params, optimizer, opt_state, target_params=params)


@partial(jax.jit, static_argnames="optimizer")  # one compilation instead of one per array
def _initial(optimizer: optax.GradientTransformation, params: Any) -> optax.OptState:
    return optimizer.init(params)
