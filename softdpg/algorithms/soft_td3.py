"""Soft TD3: the smoothed Bellman target and policy gradient of Soft DDPG on an ensemble of well-conditioned critics."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import jax
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import GymEnv, Schedule

from softdpg.algorithms.arguments import check_choice, check_flag, check_scale
from softdpg.algorithms.base import DPGAlgorithm
from softdpg.algorithms.exploration import Exploration
from softdpg.algorithms.networks import ActionLayer
from softdpg.algorithms.policies import DDPGPolicy
from softdpg.algorithms.replay import keeps_n_steps
from softdpg.algorithms.sigma import Sigma
from softdpg.algorithms.smoothing import Scale, perturbed, smoothed_value
from softdpg.algorithms.soft_ddpg import Estimator, SoftDPG, check_smoothing
from softdpg.algorithms.td3 import noisy_actions
from softdpg.algorithms.types import Array
from softdpg.algorithms.update import DPG, Ascent

ActorGradient = Literal["smoothed", "exact"]
Minimum = Literal["samples", "means", "none"]


@dataclass(frozen=True)
class SoftTwinDPG(SoftDPG):
    """:class:`SoftDPG` of which either half can be exchanged for TD3's.

    :param minimum: the least of the critics sample by sample, or of their means over the samples; or the critics' mean
    :param smooth_target: False for TD3's target
    :param actor_gradient: ``"exact"`` for the derivative of the critic
    """

    minimum: Minimum
    smooth_target: bool
    actor_gradient: ActorGradient
    target_policy_noise: float
    target_noise_clip: float

    def combined(self, values: jax.Array) -> jax.Array:
        """The least of the critics, or their mean."""
        return values.mean(axis=0) if self.minimum == "none" else super().combined(values)

    def next_value(
        self, params: Any, observations: Array, actions: jax.Array, key: jax.Array, sigma: Scale
    ) -> jax.Array:
        """``mean_i min_j Q_j(s', a_i)``, ``min_j mean_i Q_j(s', a_i)`` or all's mean; shapes as in :class:`DPG`."""
        if not self.smooth_target:
            noisy = noisy_actions(actions, key, self.target_policy_noise, self.target_noise_clip)
            return DPG.next_value(self, params, observations, noisy, key, sigma)
        if self.minimum != "means":
            return super().next_value(params, observations, actions, key, sigma)
        next_actions = perturbed(actions.T, self._draw(key, actions), sigma, low=-1, high=1)
        values = self.critics.at_actions(params, observations, next_actions)
        return smoothed_value(values.swapaxes(0, 1)).min(axis=0)

    def action_gradient(
        self, params: Any, observations: Array, actions: jax.Array, key: jax.Array, sigma: Scale
    ) -> Ascent:
        """As in :class:`SoftDPG`, or the critic's own derivative."""
        if self.actor_gradient == "exact":
            return DPG.action_gradient(self, params, observations, actions, key, sigma)
        return super().action_gradient(params, observations, actions, key, sigma)


class SoftTD3(DPGAlgorithm):
    """Soft TD3.

    The signature is that of :class:`stable_baselines3.TD3`; what is not described here is described in
    :class:`~softdpg.DDPG`, :class:`~softdpg.SoftDDPG` or there.

    :param n_steps: rewards of so many steps are summed before the critic's value; None for 3, and for 1 with Dict
        observations, ``optimize_memory_usage`` or a buffer of one's own
    :param policy_delay: the actor is updated with every ``policy_delay``-th update of the critics
    :param target_policy_noise: only with ``smooth_target=False``: scale of TD3's noise on the target's action
    :param target_noise_clip: only with ``smooth_target=False``: bound of that noise
    :param policy_kwargs: of :class:`~softdpg.algorithms.policies.DDPGPolicy`: ``net_arch``, ``n_critics``,
        ``embedding``, ...
    :param sigma: scale of the smoothing noise, see :class:`~softdpg.SoftDDPG`
    :param n_samples: N, smoothing samples for each state of the batch
    :param smooth_target: the Bellman target is the mean over N draws of the noise; False for the target of TD3
    :param actor_gradient: ``"smoothed"``, from values of the critics at the N draws, or ``"exact"``, their derivative
    :param minimum: the least of the critics sample by sample (``"samples"``), or of their means over the samples
        (``"means"``); or the mean of the critics (``"none"``)
    :param estimator: of the smoothed gradient, see :class:`~softdpg.SoftDDPG`
    :param antithetic: draw the noise in pairs (w, -w), with N even; None for True with ``"centered"``
    :param noise_color: exponent of the spectrum of the exploration noise that ``action_noise`` gives the scale of: 0 is
        white, 1 is pink, whose slow parts carry a body further
    :param random_episodes: share of the episodes that such noise, if it is not white, drives alone at full strength:
        what finds a reward that the policy has never met
    :param saturation_penalty: weight of the mean square of what tanh makes actions of. Without it an action that has
        come too close to its bound stays there, since the derivative of tanh is zero
    """

    def __init__(
        self,
        policy: str | type[DDPGPolicy],
        env: GymEnv | str | None,
        learning_rate: float | Schedule = 1e-3,
        buffer_size: int = 1_000_000,
        learning_starts: int = 5_000,
        batch_size: int = 128,
        tau: float = 0.005,
        gamma: float = 0.99,
        train_freq: int | tuple[int, str] = 8,
        gradient_steps: int = 8,
        action_noise: Exploration = 0.2,
        replay_buffer_class: type[ReplayBuffer] | None = None,
        replay_buffer_kwargs: dict[str, Any] | None = None,
        optimize_memory_usage: bool = False,
        n_steps: int | None = None,
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
        sigma: Sigma = 0.2,
        n_samples: int = 4,
        smooth_target: bool = True,
        actor_gradient: ActorGradient = "exact",
        minimum: Minimum = "none",
        estimator: Estimator = "centered",
        antithetic: bool | None = None,
        noise_color: float = 1.0,
        random_episodes: float = 0.05,
        saturation_penalty: float = 1e-3,
        qf_learning_rate: float | Schedule | None = None,
        action_layer: ActionLayer | None = None,
    ) -> None:
        if n_steps is None:
            possible = policy != "MultiInputPolicy" and keeps_n_steps(replay_buffer_class) and not optimize_memory_usage
            n_steps = 3 if possible else 1
        self.policy_delay = policy_delay
        self.target_policy_noise = target_policy_noise
        self.target_noise_clip = target_noise_clip
        self.sigma = sigma
        self.n_samples = n_samples
        self.smooth_target = smooth_target
        self.actor_gradient = actor_gradient
        self.minimum = minimum
        self.estimator = estimator
        self.antithetic = estimator == "centered" if antithetic is None else antithetic
        self.noise_color = noise_color
        self.random_episodes = random_episodes
        self.saturation_penalty = saturation_penalty
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
            policy_defaults={
                "net_arch": [128, 128],
                "n_critics": 2,
                "layer_norm": True,
                "standardize": True,
                **({} if "optimizer_class" in (policy_kwargs or {}) else {"optimizer_kwargs": {"b1": 0.5}}),
            },
        )

    def _check_arguments(self) -> None:
        super()._check_arguments()
        check_scale("target_policy_noise", self.target_policy_noise)
        check_scale("target_noise_clip", self.target_noise_clip)
        check_smoothing(self.sigma, self.n_samples, self.estimator, self.antithetic)
        check_flag("smooth_target", self.smooth_target)
        check_choice("actor_gradient", self.actor_gradient, get_args(ActorGradient))
        check_choice("minimum", self.minimum, get_args(Minimum))
        if self.sigma == "auto" and self.actor_gradient == "exact":
            raise ValueError('sigma="auto" needs actor_gradient="smoothed", whose draws it learns from')

    def _make_dpg(self) -> SoftTwinDPG:
        return SoftTwinDPG(
            self.policy.qf,
            int(self.n_samples),
            self.estimator,
            bool(self.antithetic),
            self.minimum,
            bool(self.smooth_target),
            self.actor_gradient,
            float(self.target_policy_noise),
            float(self.target_noise_clip),
        )
