"""Soft TD3: the smoothed Bellman target of Soft DDPG with two small, well-conditioned critics. Start here."""

from typing import Any, ClassVar, Literal

from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import GymEnv, Schedule

from softdpg.algorithms.base import DPGAlgorithm, Sigma
from softdpg.algorithms.exploration import Exploration
from softdpg.algorithms.family import (
    CriticGradient,
    CriticReduction,
    DecodedGradient,
    ExactTarget,
    GradientRule,
    Row,
    SmoothedGradient,
    SmoothedTarget,
    StraightThroughGradient,
)
from softdpg.algorithms.policies import DDPGPolicy
from softdpg.replay.batches import keeps_n_steps
from softdpg.replay.spaces import SpaceError

ActorGradient = Literal["auto", "exact", "smoothed", "straight-through"]


class SoftTD3(DPGAlgorithm):
    """Soft TD3, the algorithm that we recommend for a task of your own.

    The critics learn the smoothed Bellman target, and the actor follows the derivative of their mean. Small networks,
    standardised observations, 3-step returns and coloured exploration noise make it fast in CPU time and let it find
    sparse rewards. The agent works in actions scaled to [-1, 1].

    Discrete, on/off and mixed actions are decoded from the actor's output, and the critics see the executed action
    (:mod:`softdpg.algorithms.actions`). Their gradient needs only values of the critics.

    :param policy: ``"MlpPolicy"``, ``"CnnPolicy"`` for images, or ``"MultiInputPolicy"`` for Dict observations
    :param env: environment, or its id; its actions are a bounded Box, Discrete, MultiDiscrete, MultiBinary, or Tuple
        and Dict of them
    :param learning_rate: step size of actor and critics: a number, or a schedule of the remaining progress (from 1 to
        0)
    :param buffer_size: number of transitions in the replay buffer
    :param learning_starts: number of steps with uniformly random actions before learning starts
    :param batch_size: number of transitions in a minibatch
    :param tau: Polyak coefficient of the target networks
    :param gamma: discount factor
    :param train_freq: steps of the environment between two calls of the update, or ``(1, "episode")``
    :param gradient_steps: updates per call; -1 for as many as steps were taken
    :param action_noise: exploration: the standard deviation of Gaussian noise in scaled actions, ``"sigma"`` for the
        scale of the smoothing, a list with one standard deviation for each output of the actor, an ``ActionNoise`` of
        SB3, or None
    :param replay_buffer_class: class of the replay buffer; None for the fastest one that fits the observations
    :param replay_buffer_kwargs: further arguments of the replay buffer; None for none
    :param n_steps: number of rewards summed before the critics' value (n-step returns). The default falls back to 1
        with Dict observations or a replay buffer that sums no rewards
    :param policy_delay: number of critic updates per update of the actor
    :param stats_window_size: number of episodes over which SB3 averages its statistics
    :param tensorboard_log: directory of TensorBoard logs; None for none
    :param policy_kwargs: arguments of :class:`~softdpg.algorithms.policies.DDPGPolicy`; None for two critics, two
        hidden layers of 128 units with layer norm, standardised observations, and Adam with b1 = 0.5; unless the
        actions are a Box, the critics have batch norm in place of layer norm and of target networks
    :param verbose: 0 for no output, 1 for messages, 2 for debugging
    :param seed: seed of all random numbers; None for a random one
    :param device: ``"auto"`` for JAX's default, or ``"cpu"``, ``"gpu"``, ``"tpu"``
    :param _init_setup_model: build the networks at once
    :param sigma: scale of the smoothing noise, in actions scaled to [-1, 1]: a number, a schedule of the remaining
        progress (``linear:START:END`` on the command line), ``"auto"`` to learn it for each action component, or a list
        with one number for each output of the actor
    :param n_samples: N, number of smoothing samples per state, in pairs (w, -w)
    :param smooth_target: smooth the Bellman target over N samples of the next action; False for no noise in the target
    :param actor_gradient: ``"auto"`` for the derivative of the critics where it exists, and the smoothed gradient in
        closed form for discrete actions; ``"exact"`` for the derivative of the critics; ``"smoothed"`` for the gradient
        from their values at N samples; ``"straight-through"`` for their derivative as if actions were not decoded
    :param critic_reduction: how the critics are combined: ``"min"`` or ``"mean"``
    :param noise_color: exponent of the spectrum of the exploration noise: 0 for white, 1 for pink noise, which explores
        further
    :param random_episodes: probability that an episode's actions are pure coloured noise, which finds rewards that the
        policy has never met
    :param saturation_penalty: L2 penalty on the actor's pre-tanh output, which frees actions that are stuck at a bound
    """

    policy_defaults: ClassVar[dict[str, Any]] = {
        "net_arch": [128, 128],
        "action_layer": "second",
        "n_critics": 2,
        "layer_norm": True,
        "batch_norm": None,  # True unless the actions are a Box
        "standardize": True,
        "optimizer_kwargs": {"b1": 0.5},
    }
    decodes = True
    n_samples: int
    smooth_target: bool
    actor_gradient: ActorGradient
    critic_reduction: CriticReduction

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
        n_steps: int = 3,
        policy_delay: int = 2,
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
        actor_gradient: ActorGradient = "auto",
        critic_reduction: CriticReduction = "mean",
        noise_color: float = 1.0,
        random_episodes: float = 0.05,
        saturation_penalty: float = 1e-3,
    ) -> None:
        sums_rewards = (
            keeps_n_steps(replay_buffer_class)
            and (policy != "MultiInputPolicy" or replay_buffer_class is not None)
            and not (replay_buffer_kwargs or {}).get("optimize_memory_usage")
        )
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
            n_steps=1 if n_steps == 3 and not sums_rewards else n_steps,
            policy_delay=policy_delay,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            seed=seed,
            device=device,
            _init_setup_model=_init_setup_model,
            sigma=sigma,
            n_samples=n_samples,
            smooth_target=smooth_target,
            actor_gradient=actor_gradient,
            critic_reduction=critic_reduction,
            noise_color=noise_color,
            random_episodes=random_episodes,
            saturation_penalty=saturation_penalty,
        )

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.n_samples % 2:
            raise ValueError(f"n_samples must be even for antithetic pairs (w, -w), got {self.n_samples}")
        if isinstance(self.sigma, str) and (self.actor_gradient != "smoothed" or self.n_samples < 4):
            raise ValueError('sigma="auto" needs actor_gradient="smoothed" and n_samples of at least 4')
        if self.random_episodes and not self.noise_color:
            raise ValueError(
                f"random_episodes={self.random_episodes} needs coloured noise: set noise_color above 0, or "
                "random_episodes=0"
            )

    @property
    def row(self) -> Row:
        """The algorithm as a row of the family's table, with the arguments of this model."""
        n_samples = int(self.n_samples)
        return Row(
            SmoothedTarget(n_samples) if self.smooth_target else ExactTarget(),
            self._gradient_rule(n_samples),
            self.critic_reduction,
            self.layout,
        )

    def _gradient_rule(self, n_samples: int) -> GradientRule:
        if self.actor_gradient == "smoothed":
            return SmoothedGradient(n_samples)
        if self.layout is None:
            return CriticGradient()
        return DecodedGradient(n_samples) if self.actor_gradient == "auto" else StraightThroughGradient(n_samples)

    def _check_action_space(self, space: spaces.Space) -> None:
        super()._check_action_space(space)
        if self.actor_gradient == "exact" and not isinstance(space, spaces.Box):
            raise SpaceError(
                f'actor_gradient="exact" needs a Box action space, got {space}: discrete actions have no derivative. '
                'Use SoftTD3 with actor_gradient="auto"'
            )
