"""Deep Deterministic Policy Gradient, the baseline of the paper, on the Stable-Baselines3 API."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium import spaces
from sbx.common.off_policy_algorithm import OffPolicyAlgorithmJax
from sbx.common.type_aliases import ReplayBufferSamplesNp, RLTrainState
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import ActionNoise, NormalActionNoise
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, ReplayBufferSamples, Schedule
from stable_baselines3.common.utils import FloatSchedule

from softdpg.algorithms.buffers import RecordReplayBuffer
from softdpg.algorithms.compilation import compiler_options
from softdpg.algorithms.networks import ActionLayer, Critic
from softdpg.algorithms.policies import DDPGPolicy
from softdpg.algorithms.spaces import all_finite, check_spaces, float32_space

SATURATED = 0.99  # an action beyond this share of its bound counts as saturated in the log
SelfDDPG = TypeVar("SelfDDPG", bound="DDPG")


@dataclass(frozen=True)
class DPG:
    """What DDPG asks of its critic: the value of the next state, and where to move the action of a state."""

    critic: Critic

    def next_value(self, params: Any, observations: jax.Array, actions: jax.Array, key: jax.Array) -> jax.Array:
        """``Q(s', pi(s'))``.

        :param params: parameters of the target critic
        :param observations: ``s'``, ``(batch, d)``
        :param actions: ``pi(s')`` of the target actor, ``(batch, m)``
        :return: ``(batch,)``
        """
        return self.critic.apply(params, observations, actions)

    def action_gradient(
        self, params: Any, observations: jax.Array, actions: jax.Array, key: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """``grad_a Q(s, a)`` at ``a = pi(s)``, and ``Q(s, pi(s))``.

        :param params: parameters of the critic
        :param observations: ``s``, ``(batch, d)``
        :param actions: ``pi(s)``, ``(batch, m)``
        :return: ``(batch, m)`` and ``(batch,)``
        """
        values, pullback = jax.vjp(lambda a: self.critic.apply(params, observations, a), actions)
        return pullback(jnp.ones_like(values))[0], values


def update(
    dpg: DPG,
    actor_state: RLTrainState,
    qf_state: RLTrainState,
    key: jax.Array,
    batch: ReplayBufferSamplesNp,
    learning_rate: float,
    qf_learning_rate: float,
    tau: float,
) -> tuple[RLTrainState, RLTrainState, jax.Array, dict[str, jax.Array]]:
    """Update critic, actor and targets from one batch.

    :return: actor state, critic state, key, and what is logged
    """
    key, target_key, actor_key = jax.random.split(key, 3)

    # Critic: y = r + discount * V(s'), minimise mean (y - Q(s, a))^2 / 2
    next_actions = actor_state.apply_fn(actor_state.target_params, batch.next_observations)
    next_values = dpg.next_value(qf_state.target_params, batch.next_observations, next_actions, target_key)
    targets = batch.rewards + (1 - batch.dones) * batch.discounts * next_values

    def critic_loss(params: Any) -> tuple[jax.Array, jax.Array]:
        values = qf_state.apply_fn(params, batch.observations, batch.actions)
        return 0.5 * jnp.mean((targets - values) ** 2), values

    (loss, values), gradient = jax.value_and_grad(critic_loss, has_aux=True)(qf_state.params)
    qf_state = _descend(qf_state, gradient, qf_learning_rate)

    # Actor: grad_theta J = mean over s of grad_theta pi(s) g(s), g the gradient with respect to the action
    actions, pullback = jax.vjp(lambda params: actor_state.apply_fn(params, batch.observations), actor_state.params)
    action_gradient, policy_values = dpg.action_gradient(qf_state.params, batch.observations, actions, actor_key)
    (gradient,) = pullback(-action_gradient / len(actions))
    actor_state = _descend(actor_state, gradient, learning_rate)

    # Targets: w' <- (1 - tau) w' + tau w
    qf_state, actor_state = (
        state.replace(target_params=optax.incremental_update(state.params, state.target_params, tau))
        for state in (qf_state, actor_state)
    )
    metrics = {
        "critic_loss": loss,
        "q_mean": values.mean(),
        "actor_loss": -policy_values.mean(),
        # As products: less work for XLA than the sum over all squares
        "actor_gradient_norm": jnp.sqrt(optax.tree.vdot(gradient, gradient)),
        "saturated_actions": jnp.mean(jnp.abs(actions) > SATURATED),
    }
    return actor_state, qf_state, key, metrics


@cache
def compiled_update() -> Callable[..., tuple[RLTrainState, RLTrainState, jax.Array, dict[str, jax.Array]]]:
    """:func:`update` as one compiled function.

    The memory of the states and of the key is reused for the results: the arguments are void afterwards.
    """
    donated = ("actor_state", "qf_state", "key")
    return jax.jit(update, static_argnames="dpg", donate_argnames=donated, compiler_options=compiler_options())


def _descend(state: RLTrainState, gradient: Any, learning_rate: float) -> RLTrainState:
    """One step of the optimiser, which was made with step size 1, at the given learning rate."""
    steps, opt_state = state.tx.update(gradient, state.opt_state, state.params)
    params = jax.tree.map(lambda param, step: param + learning_rate * step, state.params, steps)
    return state.replace(step=state.step + 1, params=params, opt_state=opt_state)


class DDPG(OffPolicyAlgorithmJax):
    """Deep Deterministic Policy Gradient (DDPG), with the paper's settings as defaults.

    The signature is that of :class:`stable_baselines3.DDPG`; what is not described here is described there.
    The agent works in actions scaled to [-1, 1]. While training, the update reuses the memory of the parameters:
    copy ``model.policy.actor_state`` or ``qf_state`` before ``learn`` to compare them with what comes after.

    :param policy: ``"MlpPolicy"``, or ``"MultiInputPolicy"`` for Dict observations
    :param env: environment with a bounded Box action space
    :param learning_rate: of the actor; a number, or a schedule of the progress remaining (from 1 to 0)
    :param learning_starts: steps of uniformly random actions at the start
    :param action_noise: exploration: the standard deviation of Gaussian noise in scaled actions, or an ``ActionNoise``
        of SB3, or None
    :param device: ``"auto"`` for JAX's default, or ``"cpu"``, ``"gpu"``, ``"tpu"``
    :param qf_learning_rate: of the critic; a number or a schedule, None for that of the actor
    :param action_layer: hidden layer of the critic where the action enters, ``"second"`` or ``"input"``
    """

    policy_aliases: ClassVar[dict[str, type[DDPGPolicy]]] = {
        "MlpPolicy": DDPGPolicy,
        "MultiInputPolicy": DDPGPolicy,
    }
    policy: DDPGPolicy
    action_space: spaces.Box
    observation_space: spaces.Space
    replay_buffer_class: type[ReplayBuffer] | None
    key: jax.Array

    def __init__(
        self,
        policy: str | type[DDPGPolicy],
        env: GymEnv | str | None,
        learning_rate: float | Schedule = 1e-4,
        buffer_size: int = 1_000_000,
        learning_starts: int = 1_000,
        batch_size: int = 256,
        tau: float = 0.005,
        gamma: float = 0.99,
        train_freq: int | tuple[int, str] = 1,
        gradient_steps: int = 1,
        action_noise: ActionNoise | float | None = 0.1,
        replay_buffer_class: type[ReplayBuffer] | None = None,
        replay_buffer_kwargs: dict[str, Any] | None = None,
        optimize_memory_usage: bool = False,
        n_steps: int = 1,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: str = "auto",
        _init_setup_model: bool = True,
        *,
        qf_learning_rate: float | Schedule | None = None,
        action_layer: ActionLayer = "second",
    ) -> None:
        if env is not None:
            env = maybe_make_env(env, verbose)
            check_spaces(env.observation_space, env.action_space)
        super().__init__(
            policy=policy,
            env=env,
            learning_rate=learning_rate,
            buffer_size=buffer_size,
            learning_starts=learning_starts,
            batch_size=batch_size,
            tau=tau,
            gamma=gamma,
            train_freq=train_freq,
            gradient_steps=gradient_steps,
            action_noise=self._as_action_noise(action_noise, env),
            replay_buffer_class=replay_buffer_class,
            replay_buffer_kwargs=replay_buffer_kwargs,
            optimize_memory_usage=optimize_memory_usage,
            n_steps=n_steps,
            tensorboard_log=tensorboard_log,
            policy_kwargs={"action_layer": action_layer, **(policy_kwargs or {})},
            verbose=verbose,
            seed=seed,
            sde_support=False,
            support_multi_env=True,
        )
        self.qf_schedule = None if qf_learning_rate is None else FloatSchedule(qf_learning_rate)
        self._device_name = str(device)
        self._metrics: dict[str, jax.Array] = {}
        if _init_setup_model:
            self._setup_model()

    @staticmethod
    def _as_action_noise(action_noise: ActionNoise | float | None, env: GymEnv | None) -> ActionNoise | None:
        if action_noise is None or isinstance(action_noise, ActionNoise):
            return action_noise
        if not 0 <= action_noise < np.inf:
            raise ValueError(f"action_noise must be a standard deviation >= 0, an ActionNoise or None: {action_noise}")
        if env is None or action_noise == 0:
            return None
        shape = env.action_space.shape or ()
        return NormalActionNoise(np.zeros(shape), np.full(shape, action_noise))

    def _setup_model(self) -> None:
        # Whatever precision the environment has, the buffer keeps float32: half the memory, and what the update needs.
        observation_space, self.observation_space = self.observation_space, float32_space(self.observation_space)
        if self.replay_buffer_class is None and self._plain_transitions():
            self.replay_buffer_class = RecordReplayBuffer
        super()._setup_model()
        self.observation_space = observation_space
        # After load the policy is there already.
        if getattr(self, "policy", None) is None:
            self.policy = self.policy_class(
                self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
            )
            self.key = self.policy.build(self.key, self.lr_schedule, self.qf_learning_rate)
        if self._device_name != "auto":
            placed = jax.device_put((self.policy.actor_state, self.policy.qf_state), _device(self._device_name))
            self.policy.actor_state, self.policy.qf_state = placed
        self.dpg = self._make_dpg()

    def _plain_transitions(self) -> bool:
        """Whether a transition is one vector of floats; for others SB3 chooses the buffer."""
        space = self.observation_space
        floats = isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating)
        return floats and self.n_steps == 1 and not self.optimize_memory_usage

    def _make_dpg(self) -> DPG:
        """Return what the update asks of the critic: the only thing in which Soft DDPG differs."""
        return DPG(self.policy.qf)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "dpg", "_device_name", "_metrics"]

    def learn(
        self: SelfDDPG,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 4,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfDDPG:
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
            return super()._sample_action(learning_starts, action_noise, n_envs)
        observations, _ = self.policy.prepare_obs(self._last_obs)
        scaled = np.asarray(self.policy._predict(observations)).reshape(n_envs, *self.action_space.shape)
        if action_noise is not None:
            scaled = np.clip(scaled + action_noise(), -1, 1)
        return self.policy.unscale_action(scaled), scaled

    def train(self, gradient_steps: int, batch_size: int) -> None:
        """Sample ``gradient_steps`` batches and update critic, actor and targets with each."""
        learning_rate = self.lr_schedule(self._current_progress_remaining)
        qf_learning_rate = (self.qf_schedule or self.lr_schedule)(self._current_progress_remaining)
        actor_state, qf_state = self.policy.actor_state, self.policy.qf_state
        for _ in range(gradient_steps):
            batch = self._sample_batch(batch_size)
            actor_state, qf_state, self.key, self._metrics = compiled_update()(
                self.dpg, actor_state, qf_state, self.key, batch, learning_rate, qf_learning_rate, self.tau
            )
        # Past torch's __setattr__, which looks for modules and parameters in everything it is given.
        self.policy.__dict__.update(actor_state=actor_state, qf_state=qf_state)
        self._n_updates += gradient_steps

    def _sample_batch(self, batch_size: int) -> ReplayBufferSamplesNp:
        assert self.replay_buffer is not None
        if isinstance(self.replay_buffer, RecordReplayBuffer):
            arrays = self.replay_buffer.sample_arrays(batch_size, env=self._vec_normalize_env)
            return ReplayBufferSamplesNp(*arrays, np.full(batch_size, self.gamma, np.float32))
        return self._as_batch(self.replay_buffer.sample(batch_size, env=self._vec_normalize_env))

    def _as_batch(self, samples: ReplayBufferSamples) -> ReplayBufferSamplesNp:
        """Samples of any SB3 buffer as flat NumPy arrays: ``(batch, d)``, ``(batch, m)`` and ``(batch,)``."""
        size = len(samples.actions)
        discounts = np.full(size, self.gamma, np.float32) if samples.discounts is None else samples.discounts.numpy()
        return ReplayBufferSamplesNp(
            self._flat(samples.observations),
            samples.actions.numpy(),
            self._flat(samples.next_observations),
            samples.dones.numpy().reshape(size),
            samples.rewards.numpy().reshape(size),
            discounts.reshape(size),
        )

    def _flat(self, observations: Any) -> np.ndarray:
        if isinstance(observations, dict):
            assert isinstance(self.observation_space, spaces.Dict)
            return np.concatenate([self._flat(observations[name]) for name in self.observation_space], axis=1)
        array = observations.numpy()
        return array.reshape(len(array), -1).astype(np.float32, copy=False)

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, BaseCallback]:
        result = super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)
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

    def dump_logs(self) -> None:
        """Write the log. Only here are the results of the last update waited for."""
        if self._metrics:
            self.logger.record("train/learning_rate", self.lr_schedule(self._current_progress_remaining))
            self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
            for name, value in self._metrics.items():
                self.logger.record(f"train/{name}", float(value))
        super().dump_logs()


def _device(name: str) -> jax.Device:
    try:
        return jax.devices({"cuda": "gpu"}.get(name, name))[0]
    except RuntimeError:
        available = sorted({device.platform for device in jax.devices()} | {"auto", "cpu"})
        raise ValueError(f"device {name!r} is not available to JAX; available: {', '.join(available)}") from None
