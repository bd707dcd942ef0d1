"""SB3's off-policy loop around the compiled update: what DDPG, TD3 and the soft algorithms share."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import gymnasium as gym
import jax
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule
from stable_baselines3.common.utils import FloatSchedule
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from softdpg.algorithms.actions import Layout, flat_space, make_layout, per_entry, to_env
from softdpg.algorithms.compilation import keep_compiled
from softdpg.algorithms.exploration import (
    Exploration,
    SmoothingNoise,
    check_exploration,
    make_action_noise,
    noises,
    with_noise,
)
from softdpg.algorithms.family import Row
from softdpg.algorithms.policies import CnnPolicy, DDPGPolicy
from softdpg.algorithms.saving import SavedAlgorithm
from softdpg.algorithms.settings import HYPERPARAMETERS, check_argument, check_choice, check_flag, check_integer
from softdpg.algorithms.update import Learned, Rates, compiled_updates, make_sigma_state, no_metrics
from softdpg.algorithms.views import ActorView, CriticView, NetworkView
from softdpg.replay.batches import Batch, flat_batch, make_replay_buffer
from softdpg.replay.memory import RecordReplayBuffer
from softdpg.replay.spaces import CheckedShape, SpaceError, all_finite, check_spaces

Sigma = float | Sequence[float] | Callable[[float], float] | Literal["auto"]
DISCRETE_SIGMA = 0.5  # smoothing of discrete and on/off actions, unless sigma has a number for each output
DISCRETE_NOISE = 0.5  # exploration of them, unless action_noise has a number for each output
_MAX_UPDATES_PER_CALL = 64
_SATURATION_PATIENCE = 5_000  # updates with nearly all actions at a bound before the user is warned
_SATURATION_CHECK = 1_000  # updates between two such checks, each of which waits for the device
_LOG_EVERY = 20  # updates between two reads of their metrics, each of which waits for the device
SelfAlgorithm = TypeVar("SelfAlgorithm", bound="DPGAlgorithm")


class DPGAlgorithm(SavedAlgorithm):
    """Deterministic policy gradients on SB3's off-policy loop.

    A subclass has the constructor, the defaults of the policy, and :attr:`row`, the algorithm as a row of the family's
    table. The agent works in actions scaled to [-1, 1].

    :param policy: policy class or its alias
    :param env: environment, or its id
    :param device: JAX's device
    :param _init_setup_model: build the networks at once
    :param qf_learning_rate: step size of the critics; None for that of the actor
    :param settings: arguments of SB3's ``OffPolicyAlgorithm``, and the subclass's own, which become attributes
    """

    policy_aliases: ClassVar[dict[str, type[DDPGPolicy]]] = {  # type: ignore[assignment]
        "MlpPolicy": DDPGPolicy,
        "CnnPolicy": CnnPolicy,
        "MultiInputPolicy": DDPGPolicy,
    }
    policy_defaults: ClassVar[dict[str, Any]] = {}  # arguments of the policy unless the user gives others
    decodes: ClassVar[bool] = False  # whether it takes actions other than Box
    observation_space: spaces.Space
    replay_buffer_class: type[ReplayBuffer] | None
    key: jax.Array
    policy_delay: int
    optimize_memory_usage: bool = False
    # A subclass without such an argument has no smoothing, white noise and no penalty.
    sigma: Sigma = 1.0
    noise_color: float = 0.0
    random_episodes: float = 0.0
    saturation_penalty: float = 0.0
    _logged_updates: int = 0
    _warned_of_saturation: bool = False

    def __init__(
        self,
        *,
        policy: str | type[DDPGPolicy],
        env: GymEnv | str | None,
        action_noise: Exploration,
        device: str,
        _init_setup_model: bool,
        qf_learning_rate: float | Schedule | None = None,
        **settings: Any,
    ) -> None:
        self._qf_follows = qf_learning_rate is None
        self.qf_learning_rate = settings["learning_rate"] if qf_learning_rate is None else qf_learning_rate
        self.__dict__.update(settings, action_noise=action_noise)  # checked before SB3 uses any of them
        self._check_arguments()
        if env is not None:
            env = maybe_make_env(env, settings["verbose"])
            check_spaces(env.observation_space, env.action_space)
            self._check_action_space(env.action_space)
        super().__init__(
            policy=policy,
            env=env,  # type: ignore[arg-type]
            action_noise=action_noise,  # type: ignore[arg-type]
            device="cpu",  # of SB3's buffers; JAX places the networks
            sde_support=False,
            support_multi_env=True,
            supported_action_spaces=(spaces.Space,),  # checked above
            **{name: value for name, value in settings.items() if name in _SB3_ARGUMENTS},
        )
        keep_compiled()
        self._device_name = str(device)
        self._metrics = no_metrics()
        if _init_setup_model:
            self._setup_model()

    def _check_arguments(self) -> None:
        """Raise ``ValueError`` for the first invalid argument."""
        for row in HYPERPARAMETERS.values():
            special = row.argument in ("action_noise", "train_freq", "gradient_steps")
            if hasattr(self, row.argument) and not special:
                value = getattr(self, row.argument)
                listed = row.argument == "sigma" and isinstance(value, list | tuple | np.ndarray)
                for one in value if listed else [value]:
                    check_argument(row.argument, one)
        if isinstance(self.sigma, str) and self.sigma != "auto":
            raise ValueError(f'sigma must be a positive number, a schedule or "auto", got {self.sigma!r}')
        check_integer("gradient_steps", self.gradient_steps, -1)
        number, unit = self.train_freq if isinstance(self.train_freq, tuple | list) else (self.train_freq, "step")
        check_integer("train_freq", number, 1)
        check_choice("the unit of train_freq", getattr(unit, "value", unit), ("step", "episode"))  # SB3 has an Enum
        check_flag("optimize_memory_usage", self.optimize_memory_usage)
        if self.seed is not None:
            check_integer("seed", self.seed, 0)
        check_exploration(self.action_noise)

    def _check_action_space(self, space: spaces.Space) -> None:
        """Raise ``SpaceError`` unless this algorithm acts in the space."""
        if not isinstance(space, spaces.Box) and not self.decodes:
            raise SpaceError(
                f"env must have a Box action space (continuous actions) for {type(self).__name__}, got {space}. "
                "SoftTD3 takes discrete and mixed actions"
            )

    def _check_scales(self) -> None:
        """Raise ``ValueError`` unless scales that are given per component fit the action space."""
        size = flat_space(self.action_space).shape
        for name in ("sigma", "action_noise"):
            value = getattr(self, name)
            if isinstance(value, list | tuple | np.ndarray) and np.shape(value) != size:
                raise ValueError(f"{name} must be a number or have the shape {size}, got the shape {np.shape(value)}")

    @property
    def layout(self) -> Layout | None:
        """How the actor's output decodes into actions; None for a Box."""
        if not hasattr(self, "_layout"):
            self._layout = make_layout(self.action_space, (self.policy_kwargs or {}).get("active_if"))
        return self._layout

    @property
    def row(self) -> Row:
        """The algorithm as a row of the family's table: the only thing in which the algorithms differ."""
        raise NotImplementedError

    @staticmethod
    def _wrap_env(env: GymEnv, verbose: int = 0, monitor_wrapper: bool = True) -> VecEnv:
        if isinstance(env, gym.Env):
            env = CheckedShape(env)
        return SavedAlgorithm._wrap_env(env, verbose, monitor_wrapper)

    def _setup_model(self) -> None:
        self._check_arguments()  # again: load sets attributes after the constructor
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self._check_action_space(self.action_space)  # again, for a loaded model
        self._check_scales()
        noise: Any = self.action_noise
        if self.layout is not None and not isinstance(noise, ActionNoise | str) and noise is not None:
            noise = per_entry(noise, DISCRETE_NOISE, self.layout)
        shape = flat_space(self.action_space).shape
        self.action_noise = make_action_noise(noise, shape, self.n_envs, self.noise_color, self.random_episodes)
        if self.replay_buffer is None:
            self._setup_replay_buffer()
        self._convert_train_freq()
        self.policy = self.policy_class(  # type: ignore[assignment]
            self.observation_space, self.action_space, self.lr_schedule, **self._policy_arguments()
        )
        self.key = self.policy.build(self.key)
        if isinstance(self.sigma, str):
            self.policy.sigma_state = make_sigma_state(self.policy.actor.action_dim)
        if self._device_name != "auto":
            placed = jax.device_put((self.policy.actor_state, self.policy.qf_state), _find_device(self._device_name))
            self.policy.actor_state, self.policy.qf_state = placed

    def _policy_arguments(self) -> dict[str, Any]:
        """Return the arguments of the policy: those given, and defaults that fit them."""
        given = {name: value for name, value in self.policy_kwargs.items() if value is not None}
        defaults = dict(self.policy_defaults)
        if "optimizer_class" in given:
            defaults.pop("optimizer_kwargs", None)
        net_arch = given.get("net_arch", defaults.get("net_arch", ()))
        layers = net_arch.get("qf") if isinstance(net_arch, dict) else net_arch
        if not isinstance(layers, list | tuple) or len(layers) < 2:
            defaults.pop("action_layer", None)  # there is no second layer
        if "batch_norm" in defaults and defaults["batch_norm"] is None:
            defaults["batch_norm"] = self.layout is not None
        return {**defaults, **given}

    def _setup_lr_schedule(self) -> None:
        super()._setup_lr_schedule()
        if self._qf_follows:
            self.qf_learning_rate = self.learning_rate
        self.qf_schedule = None if self._qf_follows else FloatSchedule(self.qf_learning_rate)

    def _setup_replay_buffer(self) -> None:
        # The choice is not stored: a model that is loaded with other settings chooses again.
        self.replay_buffer = make_replay_buffer(
            self.replay_buffer_class,
            self.buffer_size,
            self.observation_space,
            flat_space(self.action_space),
            self.env,
            n_envs=self.n_envs,
            n_steps=self.n_steps,
            gamma=self.gamma,
            optimize_memory_usage=self.optimize_memory_usage,
            replay_buffer_kwargs=self.replay_buffer_kwargs,
        )

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seed JAX, NumPy, Python and the action space; see SB3."""
        super().set_random_seed(seed)
        self.key = jax.random.PRNGKey(np.random.randint(2**14) if seed is None else seed)  # noqa: NPY002

    @property
    def actor(self) -> ActorView:  # type: ignore[override]
        """The actor with its weights, as in SB3."""
        return self.policy.actor

    @property
    def actor_target(self) -> NetworkView:
        """The target network of the actor."""
        return self.policy.actor_target

    @property
    def critic(self) -> CriticView:
        """The critics with their weights."""
        return self.policy.critic

    @property
    def critic_target(self) -> CriticView:
        """The target networks of the critics."""
        return self.policy.critic_target

    def _settle_sigma(self) -> None:
        """Create the state of a learned sigma if ``sigma`` is ``"auto"``, and drop it otherwise."""
        learned = isinstance(self.sigma, str)
        if learned != (self.policy.sigma_state is not None):
            self.policy.sigma_state = make_sigma_state(self.policy.actor.action_dim) if learned else None

    def current_sigma(self) -> float | np.ndarray:
        """Return the current scale of the smoothing noise: a number, or ``(m,)`` if components differ."""
        self._settle_sigma()
        if self.policy.sigma_state is not None:
            return np.exp(np.asarray(self.policy.sigma_state.params))
        assert not isinstance(self.sigma, str)
        sigma: Any = self.sigma(self._current_progress_remaining) if callable(self.sigma) else self.sigma
        if self.layout is not None:
            return per_entry(sigma, DISCRETE_SIGMA, self.layout)
        return np.asarray(sigma, np.float32) if np.ndim(sigma) else float(sigma)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_device_name", "_metrics", "_logged_updates", "_layout"]

    def learn(
        self: SelfAlgorithm,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 4,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfAlgorithm:
        """Train for ``total_timesteps`` environment steps, as in SB3; logs are named after the class."""
        return super().learn(
            total_timesteps=total_timesteps,
            callback=callback,
            log_interval=log_interval,
            tb_log_name=tb_log_name or type(self).__name__,
            reset_num_timesteps=reset_num_timesteps,
            progress_bar=progress_bar,
        )

    def _sample_action(
        self, learning_starts: int, action_noise: ActionNoise | None = None, n_envs: int = 1
    ) -> tuple[Any, np.ndarray]:
        """Choose actions as SB3 does, but add the noise to scaled actions directly, before they are decoded."""
        layout, shape = self.layout, flat_space(self.action_space).shape
        if self.num_timesteps < learning_starts and layout is not None:
            executed = layout.sample(self.action_space.np_random, n_envs)
            return to_env(self.action_space, executed), layout.masked(executed)
        if self.num_timesteps < learning_starts:
            scaled = self.policy.scale_action(np.array([self.action_space.sample() for _ in range(n_envs)]))
        else:
            assert self._last_obs is not None
            observations, _ = self.policy.prepare_obs(self._last_obs)
            scaled = np.asarray(self.policy._predict(observations)).reshape(n_envs, *shape)
        if not np.isfinite(scaled).all():
            raise ValueError(
                f"the policy diverged: its action at step {self.num_timesteps} is NaN after {self._n_updates} updates"
            )
        if action_noise is not None:
            for noise in noises(action_noise):
                if isinstance(noise, SmoothingNoise):
                    noise.sigma = np.broadcast_to(self.current_sigma(), shape)
            scaled = with_noise(scaled, action_noise, 1 if layout is None else np.inf)
        if layout is not None:
            executed = layout.execute(scaled)
            return to_env(self.action_space, executed), layout.masked(executed)
        return self.policy.unscale_action(scaled), scaled

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Sample ``gradient_steps`` batches and update critics, actor and targets with each."""
        qf_schedule = self.qf_schedule or self.lr_schedule
        progress = self._current_progress_remaining
        self._settle_sigma()
        # A learned sigma is part of the state that the update changes.
        sigma = 0.0 if self.policy.sigma_state is not None else self.current_sigma()
        rates = Rates(self.lr_schedule(progress), qf_schedule(progress), self.tau, sigma, self.saturation_penalty)
        together = self._updates_per_call(gradient_steps)
        for _ in range(gradient_steps // together):
            batches = self._sample_batches(together, batch_size)
            policy = self.policy
            learned = Learned(policy.actor_state, policy.qf_state, policy.sigma_state, self.key, self._metrics)
            numbers = np.arange(self._n_updates + 1, self._n_updates + 1 + together)
            with_actor = None if self.policy_delay == 1 else numbers % self.policy_delay == 0
            actor, critics, sigma_state, key, metrics = compiled_updates()(
                policy.qf, self.row, with_actor, learned, batches, rates
            )
            # Atomically, and without torch's __setattr__, which searches everything for modules and parameters.
            policy.__dict__.update(actor_state=actor, qf_state=critics, sigma_state=sigma_state)
            self.__dict__.update(key=key, _metrics=metrics, _n_updates=self._n_updates + together)
        self._record_updates()
        self._warn_of_saturation()

    def _updates_per_call(self, gradient_steps: int) -> int:
        """Return how many updates go into one compiled call: all, or one if that would compile many functions."""
        regular = gradient_steps == self.gradient_steps and gradient_steps % self.policy_delay == 0
        return gradient_steps if regular and gradient_steps <= _MAX_UPDATES_PER_CALL else 1

    def _sample_batches(self, n_batches: int, batch_size: int) -> Batch:
        """Sample ``n_batches`` batches as arrays ``(n_batches, batch_size, ...)``."""
        batch = self._sample_batch(n_batches * batch_size)
        if isinstance(self.replay_buffer, HerReplayBuffer):
            # It returns transitions with their own goals first; give each batch its share of them.
            by_turns = np.arange(n_batches * batch_size).reshape(batch_size, n_batches).T.ravel()
            batch = jax.tree.map(lambda array: array[by_turns], batch)
        return jax.tree.map(lambda array: array.reshape(n_batches, batch_size, *array.shape[1:]), batch)

    def _sample_batch(self, batch_size: int) -> Batch:
        assert self.replay_buffer is not None
        if isinstance(self.replay_buffer, RecordReplayBuffer):
            batch = Batch(*self.replay_buffer.sample_arrays(batch_size, env=self._vec_normalize_env))
            if self.policy.images[0] and is_image_space(self.observation_space):  # the records hold pixels
                scaled = [pixels / np.float32(255) for pixels in (batch.observations, batch.next_observations)]
                return batch._replace(observations=scaled[0], next_observations=scaled[1])
            return batch
        samples = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
        return flat_batch(samples, self.observation_space, self.gamma, *self.policy.images)

    def dump_logs(self) -> None:
        """Write the log with the metrics of the last update."""
        if self._n_updates:
            self._record_updates(at_once=True)
        super().dump_logs()

    def _record_updates(self, at_once: bool = False) -> None:
        """Pass the metrics of the last update to the logger, so that callbacks find them in its ``name_to_value``.

        Reading a metric waits for the device, so it happens every 20 updates and for the log.
        """
        if not hasattr(self, "_logger"):  # train() without learn()
            return
        self.logger.record("train/learning_rate", self.lr_schedule(self._current_progress_remaining))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        recent = self._n_updates - self._logged_updates < _LOG_EVERY and "train/q_mean" in self.logger.name_to_value
        if recent and not at_once:
            return
        self._logged_updates = self._n_updates
        for name, value in self._metrics.items():
            self.logger.record(f"train/{name}", float(value))

    def _warn_of_idle_steps(self, total_timesteps: int) -> None:
        if total_timesteps <= self.learning_starts:
            warnings.warn(
                f"nothing will be learned in {total_timesteps:,} steps: the first {self.learning_starts:,} are random "
                "(learning_starts)",
                stacklevel=5,  # the caller of learn
            )

    def _warn_of_saturation(self) -> None:
        if self._warned_of_saturation or self._n_updates % _SATURATION_CHECK >= max(self.gradient_steps, 1):
            return
        if self._metrics["saturated_updates"] * self.policy_delay >= _SATURATION_PATIENCE:
            self._warned_of_saturation = True
            warnings.warn(
                f"more than 99 % of the actions have been at a bound for {_SATURATION_PATIENCE:,} updates: the policy "
                'has probably stopped learning. Likely causes: estimator="paper" where returns are negative '
                '(use estimator="centered"), a learning rate that is too high, or rewards of a very large scale '
                "(scale them, or use layer norm: policy_kwargs={'layer_norm': True})",
                stacklevel=2,
            )

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, BaseCallback]:
        if reset_num_timesteps:
            self._warn_of_idle_steps(total_timesteps)
        # SB3 restarts the noise with every call; if training continues, so does the noise.
        noise = self.action_noise
        self.action_noise = noise if reset_num_timesteps else None
        result = super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)
        self.action_noise = noise
        assert self._last_obs is not None
        if not all_finite(self._last_obs):
            raise ValueError(f"the observation after reset, at step {self.num_timesteps}, is NaN or infinite")
        return result

    def _store_transition(
        self,
        replay_buffer: ReplayBuffer,
        buffer_action: np.ndarray,
        new_obs: np.ndarray | dict[str, np.ndarray],
        reward: np.ndarray,
        dones: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        # Before anything is stored, so that neither buffer nor weights ever contain NaN or infinity.
        if not np.isfinite(reward).all():
            raise ValueError(f"the reward of step {self.num_timesteps} is NaN or infinite: {reward}")
        last_obs = [
            infos[i]["terminal_observation"] for i in np.flatnonzero(dones) if "terminal_observation" in infos[i]
        ]
        if not all(map(all_finite, [new_obs, *last_obs])):
            raise ValueError(f"the observation of step {self.num_timesteps} is NaN or infinite")
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)

    def export(self, path: str | Path) -> Path:
        """Export the deterministic policy for use without this package.

        The exported policy maps an observation to an action in the environment's units. It includes the observation
        statistics of a ``VecNormalize``.

        :param path: ``.onnx``, ``.py`` (needs NumPy only) or ``.safetensors``
        :return: the path
        """
        from softdpg.export import export_policy

        return export_policy(self.policy, path, self.get_vec_normalize_env(), {"algorithm": type(self).__name__})


_SB3_ARGUMENTS = {
    *("learning_rate", "buffer_size", "learning_starts", "batch_size", "tau", "gamma", "train_freq", "gradient_steps"),
    *("replay_buffer_class", "replay_buffer_kwargs", "optimize_memory_usage", "n_steps", "stats_window_size"),
    *("tensorboard_log", "policy_kwargs", "verbose", "seed"),
}


def _find_device(name: str) -> jax.Device:
    """Return the JAX device with SB3's name (``cuda``, ``cuda:1``) or JAX's own (``gpu``, ``cpu``)."""
    platform, _, index = name.partition(":")
    platform = {"cuda": "gpu"}.get(platform, platform)
    try:
        return jax.devices(platform)[int(index or 0)]
    except (RuntimeError, IndexError, ValueError):
        if platform == "gpu":
            warnings.warn(f"device={name!r}: JAX has no such GPU, using the CPU", stacklevel=5)
            return jax.devices("cpu")[0]
        available = sorted({device.platform for device in jax.devices()} | {"auto", "cpu"})
        raise ValueError(f"device {name!r} is not available to JAX; available: {', '.join(available)}") from None
