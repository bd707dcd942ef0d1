"""Soft DDPG, Algorithm 1 of the paper: what differs from DDPG, and nothing else.

Lines 1-3 (networks, targets, buffer, exploration), 6 (critic step) and 9 (targets) are those of DDPG and stand in
``ddpg.py``. Lines 4-5 and 7-8 are the two methods of :class:`SoftDPG`.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import jax
import numpy as np
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.type_aliases import GymEnv, Schedule

from softdpg.algorithms.ddpg import DDPG, DPG
from softdpg.algorithms.networks import ActionLayer, Critic
from softdpg.algorithms.policies import DDPGPolicy
from softdpg.algorithms.smoothing import (
    centered_gradient,
    gaussian_perturbations,
    paper_gradient,
    perturbed,
    smoothed_value,
)

Estimator = Literal["paper", "centered"]


@dataclass(frozen=True)
class SoftDPG(DPG):
    """The critic seen through Gaussian noise on the action, by its values alone.

    :param sigma: scale of the noise, in actions scaled to [-1, 1]
    :param n_samples: N, draws for each state
    :param estimator: ``"paper"``, the gradient of Algorithm 1, or ``"centered"``, free of clip bias and with a baseline
    :param antithetic: draw the noise in pairs (w, -w)
    """

    sigma: float
    n_samples: int
    estimator: Estimator
    antithetic: bool

    def next_value(self, params: Any, observations: jax.Array, actions: jax.Array, key: jax.Array) -> jax.Array:
        """``V_sigma(s') = mean_i Q(s', clip(pi(s') + sigma w_i))``: lines 4-5.

        The gradient of the critic's loss over the N targets ``y_i`` is that over their mean, so they are averaged here.
        """
        w = self._draw(key, actions)
        next_actions = perturbed(actions.T, w, self.sigma, low=-1, high=1)
        return smoothed_value(self._values(params, observations, next_actions))

    def action_gradient(
        self, params: Any, observations: jax.Array, actions: jax.Array, key: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Gradient of ``E[Q(s, pi(s) + sigma w)]`` with respect to the action, and that value: lines 7-8.

        Line 8 minimises ``mean_i ||a_i - pi(s)||^2 Q(s, a_i) / (2 sigma^2)`` over theta with ``a_i`` and ``Q`` held
        constant; its gradient with respect to ``pi(s)`` is minus what ``paper_gradient`` returns.
        """
        w = self._draw(key, actions)
        samples = perturbed(actions.T, w, self.sigma, low=-1, high=1)
        values = self._values(params, observations, samples)
        if self.estimator == "paper":
            gradient = paper_gradient(actions.T, samples, values, self.sigma)
        else:
            gradient = centered_gradient(w, values, self.sigma, self.antithetic)
        return gradient.T, smoothed_value(values)

    def _draw(self, key: jax.Array, actions: jax.Array) -> jax.Array:
        """``w_i`` for actions ``(batch, m)``: ``(N, m, batch)``, the shape of :mod:`~softdpg.algorithms.smoothing`."""
        return gaussian_perturbations(key, self.n_samples, actions.shape[::-1], self.antithetic)

    def _values(self, params: Any, observations: jax.Array, actions: jax.Array) -> jax.Array:
        """``Q(s, a_i)``: observations ``(batch, d)`` and actions ``(N, m, batch)`` to ``(N, batch)``."""
        return self.critic.apply(params, observations, actions, method=Critic.at_actions)


class SoftDDPG(DDPG):
    """Soft Deep Deterministic Policy Gradient (Soft DDPG), with the paper's settings as defaults.

    The Bellman equation is smoothed with Gaussian noise on the action, and the policy follows a gradient that needs
    only values of the critic, not its derivative. All but the parameters described here are those of :class:`DDPG`.

    :param sigma: scale of the smoothing noise, in actions scaled to [-1, 1]
    :param n_samples: N, smoothing samples for each state of the batch
    :param estimator: ``"paper"`` is Algorithm 1 to the letter. ``"centered"`` takes the score of the unclipped draw,
        which has no bias near the action bounds, and subtracts a baseline, which has less variance
    :param antithetic: draw the noise in pairs (w, -w), with N even; None for True with ``"centered"`` and False with
        ``"paper"``
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
        sigma: float = 0.2,
        n_samples: int = 50,
        estimator: Estimator = "paper",
        antithetic: bool | None = None,
        qf_learning_rate: float | Schedule | None = None,
        action_layer: ActionLayer = "second",
    ) -> None:
        self.sigma = sigma
        self.n_samples = n_samples
        self.estimator = estimator
        self.antithetic = estimator == "centered" if antithetic is None else antithetic
        self._check_smoothing()
        super().__init__(
            policy,
            env,
            learning_rate,
            buffer_size,
            learning_starts,
            batch_size,
            tau,
            gamma,
            train_freq,
            gradient_steps,
            action_noise,
            replay_buffer_class,
            replay_buffer_kwargs,
            optimize_memory_usage,
            n_steps,
            tensorboard_log,
            policy_kwargs,
            verbose,
            seed,
            device,
            _init_setup_model,
            qf_learning_rate=qf_learning_rate,
            action_layer=action_layer,
        )

    def _check_smoothing(self) -> None:
        if not 0 < self.sigma < np.inf:
            raise ValueError(f"sigma must be a number > 0, not {self.sigma}")
        if self.estimator not in get_args(Estimator):
            raise ValueError(f'estimator must be "paper" or "centered", not {self.estimator!r}')
        if not isinstance(self.n_samples, int | np.integer) or self.n_samples < 1:
            raise ValueError(f"n_samples must be a whole number >= 1, not {self.n_samples}")
        if self.antithetic and self.n_samples % 2:
            raise ValueError(f"n_samples must be even for antithetic pairs (w, -w), not {self.n_samples}")
        if self.estimator == "centered" and self.n_samples < 2:
            raise ValueError("n_samples must be at least 2 for the baseline of the centered estimator")

    def _make_dpg(self) -> SoftDPG:
        return SoftDPG(self.policy.qf, float(self.sigma), int(self.n_samples), self.estimator, bool(self.antithetic))
