"""Soft DDPG, Algorithm 1 of the paper: what differs from DDPG, and nothing else.

Lines 1-3 (networks, targets, buffer, exploration), 6 (critic step) and 9 (targets) are those of DDPG and stand in
``base.py`` and ``update.py``. Lines 4-5 and 7-8 are the two methods of :class:`SoftDPG`.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import jax
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import GymEnv, Schedule

from softdpg.algorithms.arguments import check_choice, check_flag, check_whole
from softdpg.algorithms.ddpg import DDPG
from softdpg.algorithms.exploration import Exploration
from softdpg.algorithms.networks import ActionLayer
from softdpg.algorithms.policies import DDPGPolicy
from softdpg.algorithms.sigma import Sigma, as_sigma, log_sigma_gradient
from softdpg.algorithms.smoothing import (
    Scale,
    centered_gradient,
    gaussian_perturbations,
    paper_gradient,
    perturbed,
    smoothed_value,
)
from softdpg.algorithms.types import Array
from softdpg.algorithms.update import DPG, Ascent

Estimator = Literal["paper", "centered"]


@dataclass(frozen=True)
class SoftDPG(DPG):
    """The critic seen through Gaussian noise on the action, by its values alone.

    :param n_samples: N, draws for each state
    :param estimator: ``"paper"``, the gradient of Algorithm 1, or ``"centered"``, free of clip bias and with a baseline
    :param antithetic: draw the noise in pairs (w, -w)
    """

    n_samples: int
    estimator: Estimator
    antithetic: bool

    def next_value(
        self, params: Any, observations: Array, actions: jax.Array, key: jax.Array, sigma: Scale
    ) -> jax.Array:
        """``V_sigma(s') = mean_i Q(s', clip(pi(s') + sigma w_i))``: lines 4-5.

        The gradient of the critic's loss over the N targets ``y_i`` is that over their mean, so they are averaged here.
        """
        w = self._draw(key, actions)
        next_actions = perturbed(actions.T, w, sigma, low=-1, high=1)
        return smoothed_value(self._values(params, observations, next_actions))

    def action_gradient(
        self, params: Any, observations: Array, actions: jax.Array, key: jax.Array, sigma: Scale
    ) -> Ascent:
        """Gradient of ``E[Q(s, pi(s) + sigma w)]`` with respect to the action, and that value: lines 7-8.

        Line 8 minimises ``mean_i ||a_i - pi(s)||^2 Q(s, a_i) / (2 sigma^2)`` over theta with ``a_i`` and ``Q`` held
        constant; its gradient with respect to ``pi(s)`` is minus what ``paper_gradient`` returns.
        """
        w = self._draw(key, actions)
        samples = perturbed(actions.T, w, sigma, low=-1, high=1)
        values = self._values(params, observations, samples)
        if self.estimator == "paper":
            gradient = paper_gradient(actions.T, samples, values, sigma)
        else:
            gradient = centered_gradient(w, values, sigma, self.antithetic)
        by_log_sigma = log_sigma_gradient(w, values) if self.antithetic and self.n_samples > 2 else None
        return Ascent(gradient.T, smoothed_value(values), by_log_sigma)

    def _draw(self, key: jax.Array, actions: jax.Array) -> jax.Array:
        """``w_i`` for actions ``(batch, m)``: ``(N, m, batch)``, the shape of :mod:`~softdpg.algorithms.smoothing`."""
        return gaussian_perturbations(key, self.n_samples, actions.shape[::-1], self.antithetic)

    def _values(self, params: Any, observations: Array, actions: jax.Array) -> jax.Array:
        """``min_j Q_j(s, a_i)``: observations ``(batch, d)`` and actions ``(N, m, batch)`` to ``(N, batch)``."""
        return self.combined(self.critics.at_actions(params, observations, actions))


class SoftDDPG(DDPG):
    """Soft Deep Deterministic Policy Gradient (Soft DDPG), with the paper's settings as defaults.

    The Bellman equation is smoothed with Gaussian noise on the action, and the policy follows a gradient that needs
    only values of the critic, not its derivative. All but the parameters described here are those of :class:`DDPG`.

    :param sigma: scale of the smoothing noise, in actions scaled to [-1, 1]: a number; a schedule of the progress
        remaining (from 1 to 0); or ``"auto"``, learned for each action component.
        Can be set at any time
    :param n_samples: N, smoothing samples for each state of the batch
    :param estimator: ``"centered"`` takes the score of the unclipped draw, which has no bias near the action bounds,
        and subtracts a baseline, which has less variance. ``"paper"`` is Algorithm 1 to the letter
    :param antithetic: draw the noise in pairs (w, -w), with N even; None for True with ``"centered"`` and False with
        ``"paper"``
    :param action_noise: as in :class:`DDPG`, or ``"sigma"`` to explore with the noise of the smoothing
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
        sigma: Sigma = 0.2,
        n_samples: int = 50,
        estimator: Estimator = "centered",
        antithetic: bool | None = None,
        policy_delay: int = 1,
        stats_window_size: int = 100,
        qf_learning_rate: float | Schedule | None = None,
        action_layer: ActionLayer | None = None,
    ) -> None:
        self.sigma = sigma
        self.n_samples = n_samples
        self.estimator = estimator
        self.antithetic = estimator == "centered" if antithetic is None else antithetic
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
            policy_delay=policy_delay,
            stats_window_size=stats_window_size,
            qf_learning_rate=qf_learning_rate,
            action_layer=action_layer,
        )

    def _check_arguments(self) -> None:
        super()._check_arguments()
        check_smoothing(self.sigma, self.n_samples, self.estimator, self.antithetic)

    def _make_dpg(self) -> SoftDPG:
        return SoftDPG(self.policy.qf, int(self.n_samples), self.estimator, bool(self.antithetic))


def check_smoothing(sigma: Any, n_samples: Any, estimator: Any, antithetic: Any) -> None:
    """``ValueError`` that names the first argument of the smoothing which cannot be."""
    as_sigma(sigma)
    check_choice("estimator", estimator, get_args(Estimator))
    check_whole("n_samples", n_samples, 1)
    check_flag("antithetic", antithetic)
    if antithetic and n_samples % 2:
        raise ValueError(f"n_samples must be even for antithetic pairs (w, -w), not {n_samples}")
    if estimator == "centered" and n_samples < 2:
        raise ValueError("n_samples must be at least 2 for the baseline of the centered estimator")
    if sigma == "auto" and not (antithetic and n_samples >= 4):
        raise ValueError('sigma="auto" needs antithetic pairs and n_samples of at least 4')
