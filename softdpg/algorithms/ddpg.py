"""Deep Deterministic Policy Gradient (DDPG), the baseline of the paper."""

from typing import Any, ClassVar

from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import GymEnv, Schedule

from softdpg.algorithms.base import DPGAlgorithm
from softdpg.algorithms.exploration import Exploration
from softdpg.algorithms.family import FAMILY, Row
from softdpg.algorithms.policies import DDPGPolicy


class DDPG(DPGAlgorithm):
    """Deep Deterministic Policy Gradient (DDPG), with the paper's settings as defaults.

    The signature follows :class:`stable_baselines3.DDPG`. The agent works in actions scaled to [-1, 1].

    :param policy: ``"MlpPolicy"``, ``"CnnPolicy"`` for images, or ``"MultiInputPolicy"`` for Dict observations
    :param env: environment with a bounded Box action space, or its id
    :param learning_rate: step size of the actor: a number, or a schedule of the remaining progress (from 1 to 0)
    :param buffer_size: number of transitions in the replay buffer
    :param learning_starts: number of steps with uniformly random actions before learning starts
    :param batch_size: number of transitions in a minibatch
    :param tau: Polyak coefficient of the target networks
    :param gamma: discount factor
    :param train_freq: steps of the environment between two calls of the update, or ``(1, "episode")``
    :param gradient_steps: updates per call; -1 for as many as steps were taken
    :param action_noise: exploration: the standard deviation of Gaussian noise in scaled actions, an ``ActionNoise`` of
        SB3, or None
    :param replay_buffer_class: class of the replay buffer; None for the fastest one that fits the observations
    :param replay_buffer_kwargs: further arguments of the replay buffer; None for none
    :param optimize_memory_usage: store observations once instead of twice, with SB3's ``ReplayBuffer``
    :param n_steps: number of rewards summed before the critic's value (n-step returns)
    :param tensorboard_log: directory of TensorBoard logs; None for none
    :param policy_kwargs: arguments of :class:`~softdpg.algorithms.policies.DDPGPolicy`; None for hidden layers of
        400 and 300 units
    :param verbose: 0 for no output, 1 for messages, 2 for debugging
    :param seed: seed of all random numbers; None for a random one
    :param device: ``"auto"`` for JAX's default, or ``"cpu"``, ``"gpu"``, ``"tpu"``
    :param _init_setup_model: build the networks at once
    :param policy_delay: number of critic updates per update of the actor
    :param stats_window_size: number of episodes over which SB3 averages its statistics
    :param qf_learning_rate: step size of the critic, a number or a schedule; None for that of the actor
    """

    policy_defaults: ClassVar[dict[str, Any]] = {"net_arch": [400, 300], "action_layer": "second"}

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
    ) -> None:
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
            action_noise=action_noise,
            replay_buffer_class=replay_buffer_class,
            replay_buffer_kwargs=replay_buffer_kwargs,
            optimize_memory_usage=optimize_memory_usage,
            n_steps=n_steps,
            tensorboard_log=tensorboard_log,
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            seed=seed,
            device=device,
            _init_setup_model=_init_setup_model,
            policy_delay=policy_delay,
            stats_window_size=stats_window_size,
            qf_learning_rate=qf_learning_rate,
        )

    @property
    def row(self) -> Row:
        """The algorithm as a row of the family's table."""
        return FAMILY["DDPG"]
