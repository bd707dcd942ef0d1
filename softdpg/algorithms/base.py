"""What DDPG, TD3 and the soft algorithms share: SB3's off-policy algorithm around the compiled update."""

from pathlib import Path
from typing import Any, ClassVar, TypeVar

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

from softdpg.algorithms.arguments import (
    check_flag,
    check_rate,
    check_scale,
    check_share,
    check_train_freq,
    check_whole,
)
from softdpg.algorithms.buffers import RecordReplayBuffer
from softdpg.algorithms.devices import find_device
from softdpg.algorithms.exploration import Exploration, check_exploration, make_action_noise
from softdpg.algorithms.metrics import LoggedAlgorithm
from softdpg.algorithms.networks import ActionLayer
from softdpg.algorithms.noise import SmoothingNoise, noises, with_noise
from softdpg.algorithms.policies import CnnPolicy, DDPGPolicy
from softdpg.algorithms.replay import flat_batch, make_replay_buffer
from softdpg.algorithms.shapes import CheckedShape
from softdpg.algorithms.sigma import Sigma, as_sigma, make_sigma_state
from softdpg.algorithms.spaces import all_finite, check_spaces
from softdpg.algorithms.types import Batch
from softdpg.algorithms.update import DPG, Learned, Rates, compiled_updates, no_metrics
from softdpg.algorithms.views import ActorView, NetworkView

_MOST_UPDATES_IN_A_CALL = 64
SelfAlgorithm = TypeVar("SelfAlgorithm", bound="DPGAlgorithm")


class DPGAlgorithm(LoggedAlgorithm):
    """Deterministic policy gradients on SB3's off-policy loop; a subclass says what its critics are asked.

    The agent works in actions scaled to [-1, 1]. Parameters are those of the subclasses.
    """

    policy_aliases: ClassVar[dict[str, type[DDPGPolicy]]] = {  # type: ignore[assignment]
        "MlpPolicy": DDPGPolicy,
        "CnnPolicy": CnnPolicy,
        "MultiInputPolicy": DDPGPolicy,
    }
    action_space: spaces.Box
    observation_space: spaces.Space
    replay_buffer_class: type[ReplayBuffer] | None
    key: jax.Array
    policy_delay: int = 1  # a subclass that has these sets them before it calls the constructor here
    sigma: Sigma = 1.0  # of no effect where there is no noise
    noise_color: float = 0.0
    random_episodes: float = 0.0
    saturation_penalty: float = 0.0

    def __init__(
        self,
        policy: str | type[DDPGPolicy],
        env: GymEnv | str | None,
        *,
        learning_rate: float | Schedule,
        buffer_size: int,
        learning_starts: int,
        batch_size: int,
        tau: float,
        gamma: float,
        train_freq: int | tuple[int, str],
        gradient_steps: int,
        action_noise: Exploration,
        replay_buffer_class: type[ReplayBuffer] | None,
        replay_buffer_kwargs: dict[str, Any] | None,
        optimize_memory_usage: bool,
        n_steps: int,
        stats_window_size: int,
        tensorboard_log: str | None,
        policy_kwargs: dict[str, Any] | None,
        verbose: int,
        seed: int | None,
        device: str,
        _init_setup_model: bool,
        qf_learning_rate: float | Schedule | None,
        action_layer: ActionLayer | None,
        policy_defaults: dict[str, Any],
    ) -> None:
        self.learning_rate, self._qf_follows = learning_rate, qf_learning_rate is None
        self.qf_learning_rate = learning_rate if qf_learning_rate is None else qf_learning_rate
        self.buffer_size, self.learning_starts, self.batch_size = buffer_size, learning_starts, batch_size
        self.tau, self.gamma, self.n_steps = tau, gamma, n_steps
        self.train_freq, self.gradient_steps = train_freq, gradient_steps
        self.action_noise = action_noise  # type: ignore[assignment]  # made of a number when the model is set up
        self.optimize_memory_usage, self.seed = optimize_memory_usage, seed
        self._check_arguments()
        if env is not None:
            env = maybe_make_env(env, verbose)
            check_spaces(env.observation_space, env.action_space)
        super().__init__(
            policy=policy,
            env=env,  # type: ignore[arg-type]
            learning_rate=learning_rate,
            buffer_size=buffer_size,
            learning_starts=learning_starts,
            batch_size=batch_size,
            tau=tau,
            gamma=gamma,
            train_freq=train_freq,
            gradient_steps=gradient_steps,
            action_noise=action_noise,  # type: ignore[arg-type]
            replay_buffer_class=replay_buffer_class,
            replay_buffer_kwargs=replay_buffer_kwargs,
            optimize_memory_usage=optimize_memory_usage,
            n_steps=n_steps,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            device="cpu",  # of SB3's buffers; the networks are JAX's
            seed=seed,
            sde_support=False,
            support_multi_env=True,
            supported_action_spaces=(spaces.Box,),
        )
        self.action_layer = action_layer
        self._policy_defaults = policy_defaults
        self._device_name = str(device)
        self._metrics = no_metrics()
        if _init_setup_model:
            self._setup_model()

    def _check_arguments(self) -> None:
        """``ValueError`` that names the first argument which cannot be."""
        check_rate("learning_rate", self.learning_rate)
        if not self._qf_follows:
            check_rate("qf_learning_rate", self.qf_learning_rate)
        check_whole("buffer_size", self.buffer_size, 1)
        check_whole("learning_starts", self.learning_starts, 0)
        check_whole("batch_size", self.batch_size, 1)
        check_share("tau", self.tau)
        check_share("gamma", self.gamma)
        check_train_freq(self.train_freq)
        check_whole("gradient_steps", self.gradient_steps, -1)
        check_whole("n_steps", self.n_steps, 1)
        check_whole("policy_delay", self.policy_delay, 1)
        check_scale("noise_color", self.noise_color)
        check_share("random_episodes", self.random_episodes)
        check_scale("saturation_penalty", self.saturation_penalty)
        check_flag("optimize_memory_usage", self.optimize_memory_usage)
        if self.seed is not None:
            check_whole("seed", self.seed, 0)
        check_exploration(self.action_noise)

    @staticmethod
    def _wrap_env(env: GymEnv, verbose: int = 0, monitor_wrapper: bool = True) -> VecEnv:
        if isinstance(env, gym.Env):
            env = CheckedShape(env)
        return LoggedAlgorithm._wrap_env(env, verbose, monitor_wrapper)

    def _setup_model(self) -> None:
        self._check_arguments()  # once more: load sets attributes after the constructor
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.action_noise = make_action_noise(
            self.action_noise,
            self.action_space.shape,
            self.n_envs,
            self.noise_color,
            self.random_episodes,
        )
        if self.replay_buffer is None:
            self._setup_replay_buffer()
        self._convert_train_freq()
        given = {name: value for name, value in self.policy_kwargs.items() if value is not None}
        policy_kwargs = {"action_layer": self.action_layer, **self._policy_defaults, **given}
        self.policy = self.policy_class(  # type: ignore[assignment]
            self.observation_space, self.action_space, self.lr_schedule, **policy_kwargs
        )
        self.key = self.policy.build(self.key)
        if self.sigma == "auto":
            self.policy.sigma_state = make_sigma_state(self.policy.actor.action_dim)
        if self._device_name != "auto":
            placed = jax.device_put((self.policy.actor_state, self.policy.qf_state), find_device(self._device_name))
            self.policy.actor_state, self.policy.qf_state = placed

    def _setup_lr_schedule(self) -> None:
        super()._setup_lr_schedule()
        if self._qf_follows:
            self.qf_learning_rate = self.learning_rate
        self.qf_schedule = None if self._qf_follows else FloatSchedule(self.qf_learning_rate)

    def _setup_replay_buffer(self) -> None:
        # What is chosen here is not noted: a model that is loaded with other settings chooses anew.
        self.replay_buffer = make_replay_buffer(
            self.replay_buffer_class,
            self.buffer_size,
            self.observation_space,
            self.action_space,
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
        """The policy's actor with its weights, as SB3 has it; :attr:`critic` and the targets likewise."""
        return self.policy.actor

    @property
    def actor_target(self) -> NetworkView:
        """See :attr:`actor`."""
        return self.policy.actor_target

    @property
    def critic(self) -> NetworkView:
        """See :attr:`actor`."""
        return self.policy.critic

    @property
    def critic_target(self) -> NetworkView:
        """See :attr:`actor`."""
        return self.policy.critic_target

    @property
    def dpg(self) -> DPG:
        """What the update asks of the critics, from the settings as they are now."""
        return self._make_dpg()

    def _make_dpg(self) -> DPG:
        """The only thing in which the algorithms of the family differ."""
        raise NotImplementedError

    def _settle_sigma(self) -> None:
        """Have a sigma to learn if ``sigma`` is ``"auto"``, and none if it has been set to anything else."""
        learned = isinstance(self.sigma, str)
        if learned != (self.policy.sigma_state is not None):
            self.policy.sigma_state = make_sigma_state(self.policy.actor.action_dim) if learned else None

    def current_sigma(self) -> float | np.ndarray:
        """The scale of the smoothing noise now: a number, or ``(m,)`` if it is learned."""
        self._settle_sigma()
        if self.policy.sigma_state is not None:
            return np.exp(np.asarray(self.policy.sigma_state.params))
        sigma = as_sigma(self.sigma)
        return float(sigma(self._current_progress_remaining) if callable(sigma) else sigma)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_device_name"]

    def learn(
        self: SelfAlgorithm,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 4,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfAlgorithm:
        """Train for ``total_timesteps`` steps of the environment; see SB3. The log is named after the class."""
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
    ) -> tuple[np.ndarray, np.ndarray]:
        """As in SB3, without its way from scaled actions to those of the environment and back before the noise."""
        if self.num_timesteps < learning_starts:
            scaled = self.policy.scale_action(np.array([self.action_space.sample() for _ in range(n_envs)]))
        else:
            assert self._last_obs is not None
            observations, _ = self.policy.prepare_obs(self._last_obs)
            scaled = np.asarray(self.policy._predict(observations)).reshape(n_envs, *self.action_space.shape)
        if not np.isfinite(scaled).all():
            raise ValueError(
                f"the policy diverged: its action at step {self.num_timesteps} is NaN, after {self._n_updates} updates"
            )
        if action_noise is not None:
            for noise in noises(action_noise):
                if isinstance(noise, SmoothingNoise):
                    noise.sigma = np.broadcast_to(self.current_sigma(), self.action_space.shape)
            scaled = with_noise(scaled, action_noise)
        return self.policy.unscale_action(scaled), scaled

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Sample ``gradient_steps`` batches and update critics, actor and targets with each."""
        qf_schedule = self.qf_schedule or self.lr_schedule
        progress = self._current_progress_remaining
        self._settle_sigma()
        # A learned sigma is part of what the update changes.
        sigma = 0.0 if self.policy.sigma_state is not None else self.current_sigma()
        rates = Rates(self.lr_schedule(progress), qf_schedule(progress), self.tau, sigma, self.saturation_penalty)
        together = self._updates_in_a_call(gradient_steps)
        for _ in range(gradient_steps // together):
            batches = self._sample_batches(together, batch_size)
            policy = self.policy
            learned = Learned(policy.actor_state, policy.qf_state, policy.sigma_state, self.key, self._metrics)
            numbers = np.arange(self._n_updates + 1, self._n_updates + 1 + together)
            with_actor = None if self.policy_delay == 1 else numbers % self.policy_delay == 0
            actor, critics, sigma_state, key, metrics = compiled_updates()(
                self.dpg, with_actor, learned, batches, rates
            )
            # At once, and past torch's __setattr__, which looks for modules and parameters in everything it is given.
            policy.__dict__.update(actor_state=actor, qf_state=critics, sigma_state=sigma_state)
            self.__dict__.update(key=key, _metrics=metrics, _n_updates=self._n_updates + together)
        self._record_updates()
        self._warn_of_saturation()

    def _updates_in_a_call(self, gradient_steps: int) -> int:
        """How many of the updates are one call of the compiled function: all, or one where that would compile often."""
        regular = gradient_steps == self.gradient_steps and gradient_steps % self.policy_delay == 0
        return gradient_steps if regular and gradient_steps <= _MOST_UPDATES_IN_A_CALL else 1

    def _sample_batches(self, n_batches: int, batch_size: int) -> Batch:
        """``n_batches`` batches in arrays ``(n_batches, batch_size, ...)``."""
        batch = self._sample_batch(n_batches * batch_size)
        if isinstance(self.replay_buffer, HerReplayBuffer):
            # It puts transitions with their own goals first; each batch is to have its share of them.
            by_turns = np.arange(n_batches * batch_size).reshape(batch_size, n_batches).T.ravel()
            batch = jax.tree.map(lambda array: array[by_turns], batch)
        return jax.tree.map(lambda array: array.reshape(n_batches, batch_size, *array.shape[1:]), batch)

    def _sample_batch(self, batch_size: int) -> Batch:
        assert self.replay_buffer is not None
        if isinstance(self.replay_buffer, RecordReplayBuffer):
            batch = Batch(*self.replay_buffer.sample_arrays(batch_size, env=self._vec_normalize_env))
            if self.policy.images[0] and is_image_space(self.observation_space):  # the records hold pixels
                pixels = ("observations", "next_observations", "successors")
                seen = {name: getattr(batch, name) for name in pixels if getattr(batch, name) is not None}
                return batch._replace(**{name: array / np.float32(255) for name, array in seen.items()})
            return batch
        samples = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
        return flat_batch(samples, self.observation_space, self.gamma, *self.policy.images)

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
        # SB3 begins the noise anew with every call; where training goes on, so does the noise.
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
        # Checked here, before anything is stored: neither buffer nor weights ever see a value that is not finite.
        if not np.isfinite(reward).all():
            raise ValueError(f"the reward of step {self.num_timesteps} is NaN or infinite: {reward}")
        last_obs = [
            infos[i]["terminal_observation"] for i in np.flatnonzero(dones) if "terminal_observation" in infos[i]
        ]
        if not all(map(all_finite, [new_obs, *last_obs])):
            raise ValueError(f"the observation of step {self.num_timesteps} is NaN or infinite")
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)

    def export(self, path: str | Path) -> Path:
        """Write the deterministic policy for use without this package; returns the path.

        Observation in, action in the environment's own units out; the observation statistics of a ``VecNormalize``
        are included.

        :param path: ``.onnx``, ``.py`` (needs NumPy alone) or ``.safetensors``
        """
        from softdpg.algorithms.export import export_policy

        return export_policy(self.policy, path, self.get_vec_normalize_env(), {"algorithm": type(self).__name__})
