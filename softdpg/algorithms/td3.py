"""TD3 (Fujimoto and others, 2018): two critics, one draw of clipped noise on the target's action, a delayed actor."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import GymEnv, Schedule

from softdpg.algorithms.arguments import check_scale
from softdpg.algorithms.base import DPGAlgorithm
from softdpg.algorithms.exploration import Exploration
from softdpg.algorithms.networks import ActionLayer
from softdpg.algorithms.policies import DDPGPolicy
from softdpg.algorithms.smoothing import Scale
from softdpg.algorithms.types import Array
from softdpg.algorithms.update import DPG


@dataclass(frozen=True)
class TwinDelayedDPG(DPG):
    """The next action is seen through one draw of clipped noise: the smoothed target's case of one sample."""

    target_policy_noise: float
    target_noise_clip: float

    def next_value(
        self, params: Any, observations: Array, actions: jax.Array, key: jax.Array, sigma: Scale
    ) -> jax.Array:
        """``min_j Q_j(s', clip(pi(s') + clip(noise)))``; shapes as in :class:`DPG`."""
        noisy = noisy_actions(actions, key, self.target_policy_noise, self.target_noise_clip)
        return super().next_value(params, observations, noisy, key, sigma)


def noisy_actions(actions: jax.Array, key: jax.Array, scale: float, bound: float) -> jax.Array:
    """``clip(a + clip(noise))``, one draw for each action: ``(batch, m)`` to ``(batch, m)``."""
    noise = jnp.clip(jax.random.normal(key, actions.shape) * scale, -bound, bound)
    return jnp.clip(actions + noise, -1, 1)


class TD3(DPGAlgorithm):
    """Twin Delayed Deep Deterministic Policy Gradient (TD3).

    The signature and the defaults are those of :class:`stable_baselines3.TD3`, save for exploration, which is on by
    default, and 1,000 random steps at the start. What is not described here or in :class:`~softdpg.DDPG` is described
    there.

    :param policy_delay: the actor is updated with every ``policy_delay``-th update of the critics
    :param target_policy_noise: standard deviation of the noise on the target's action, in scaled actions
    :param target_noise_clip: bound of that noise
    :param policy_kwargs: of :class:`~softdpg.algorithms.policies.DDPGPolicy`; by default two critics, hidden layers of
        400 and 300 units as in SB3
    :param action_layer: hidden layer of the critics where the action enters; ``"input"`` is the layout of SB3 and SBX
    """

    def __init__(
        self,
        policy: str | type[DDPGPolicy],
        env: GymEnv | str | None,
        learning_rate: float | Schedule = 1e-3,
        buffer_size: int = 1_000_000,
        learning_starts: int = 1_000,
        batch_size: int = 256,
        tau: float = 0.005,
        gamma: float = 0.99,
        train_freq: int | tuple[int, str] = 1,
        gradient_steps: int = 1,
        action_noise: Exploration = 0.1,
        replay_buffer_class: type[ReplayBuffer] | None = None,
        replay_buffer_kwargs: dict[str, Any] | None = None,
        optimize_memory_usage: bool = False,
        n_steps: int = 1,
        policy_delay: int = 2,
        target_policy_noise: float = 0.2,
        target_noise_clip: float = 0.5,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: str = "auto",
        _init_setup_model: bool = True,
        *,
        qf_learning_rate: float | Schedule | None = None,
        action_layer: ActionLayer | None = "input",
    ) -> None:
        self.policy_delay = policy_delay
        self.target_policy_noise = target_policy_noise
        self.target_noise_clip = target_noise_clip
        super().__init__(
            policy,
            env,
            learning_rate=learning_rate,
            buffer_size=buffer_size,
            learning_starts=learning_starts,
            batch_size=batch_size,
            tau=tau,
            gamma=gamma,
            train_freq=train_freq,
            gradient_steps=gradient_steps,
            action_noise=action_noise,
            replay_buffer_class=replay_buffer_class,
            replay_buffer_kwargs=replay_buffer_kwargs,
            optimize_memory_usage=optimize_memory_usage,
            n_steps=n_steps,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            seed=seed,
            device=device,
            _init_setup_model=_init_setup_model,
            qf_learning_rate=qf_learning_rate,
            action_layer=action_layer,
            policy_defaults={"n_critics": 2},
        )

    def _check_arguments(self) -> None:
        super()._check_arguments()
        check_scale("target_policy_noise", self.target_policy_noise)
        check_scale("target_noise_clip", self.target_noise_clip)

    def _make_dpg(self) -> TwinDelayedDPG:
        return TwinDelayedDPG(self.policy.qf, float(self.target_policy_noise), float(self.target_noise_clip))
