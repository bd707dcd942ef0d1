"""Deep Deterministic Policy Gradient, the baseline of the paper: the family's update with one critic and no noise."""

from typing import Any

from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import GymEnv, Schedule

from softdpg.algorithms.base import DPGAlgorithm
from softdpg.algorithms.exploration import Exploration
from softdpg.algorithms.networks import ActionLayer
from softdpg.algorithms.policies import DDPGPolicy
from softdpg.algorithms.update import DPG


class DDPG(DPGAlgorithm):
    """Deep Deterministic Policy Gradient (DDPG), with the paper's settings as defaults.

    The signature is that of :class:`stable_baselines3.DDPG`; what is not described here is described there.
    The agent works in actions scaled to [-1, 1].

    :param policy: ``"MlpPolicy"``, ``"CnnPolicy"`` for images, or ``"MultiInputPolicy"`` for Dict observations
    :param env: environment with a bounded Box action space
    :param learning_rate: of the actor; a number, or a schedule of the progress remaining (from 1 to 0)
    :param learning_starts: steps of uniformly random actions at the start
    :param action_noise: exploration: the standard deviation of Gaussian noise in scaled actions, or an ``ActionNoise``
        of SB3, or None
    :param policy_kwargs: of :class:`~softdpg.algorithms.policies.DDPGPolicy`: ``net_arch``, ``layer_norm``, ...
    :param device: ``"auto"`` for JAX's default, or ``"cpu"``, ``"gpu"``, ``"tpu"``
    :param policy_delay: the actor is updated with every ``policy_delay``-th update of the critic
    :param qf_learning_rate: of the critic; a number or a schedule, None for that of the actor
    :param action_layer: hidden layer of the critic where the action enters, ``"second"`` or ``"input"``; None for the
        second where there is one
    """

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
        action_noise: Exploration = 0.1,
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
        policy_delay: int = 1,
        stats_window_size: int = 100,
        qf_learning_rate: float | Schedule | None = None,
        action_layer: ActionLayer | None = None,
    ) -> None:
        self.policy_delay = policy_delay
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
            policy_defaults={},
        )

    def _make_dpg(self) -> DPG:
        return DPG(self.policy.qf)
