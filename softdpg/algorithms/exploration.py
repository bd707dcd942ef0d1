"""The argument ``action_noise``: what it may be, and the noise that it stands for."""

from typing import Any, Literal

import numpy as np
from stable_baselines3.common.noise import ActionNoise, NormalActionNoise, VectorizedActionNoise

from softdpg.algorithms.noise import ColoredNoise, SmoothingNoise

Exploration = ActionNoise | float | Literal["sigma"] | None


def check_exploration(action_noise: Any) -> None:
    """``ValueError`` unless ``action_noise`` is a standard deviation, ``"sigma"``, SB3's noise or None."""
    number = isinstance(action_noise, int | float | np.number) and not isinstance(action_noise, bool)
    named = isinstance(action_noise, str) and action_noise == "sigma"
    if action_noise is None or isinstance(action_noise, ActionNoise) or named:
        return
    if not number or not 0 <= action_noise < np.inf:
        raise ValueError(
            f'action_noise must be a standard deviation >= 0, "sigma", an ActionNoise or None: {action_noise!r}'
        )


def make_action_noise(
    action_noise: Any, shape: tuple[int, ...], n_envs: int, color: float, driving: float
) -> ActionNoise | None:
    """The noise that a checked ``action_noise`` stands for, one for each environment.

    :param shape: shape of an action
    :param color: of the noise that a number stands for, see :class:`ColoredNoise`
    :param driving: of that noise, if it has a color
    """
    if isinstance(action_noise, VectorizedActionNoise):  # of a saved model, whose environments were perhaps others
        action_noise = action_noise.base_noise
    if isinstance(action_noise, str):
        action_noise = SmoothingNoise(shape)
    elif not isinstance(action_noise, ActionNoise) and action_noise:
        white = NormalActionNoise(np.zeros(shape), np.full(shape, action_noise))
        action_noise = ColoredNoise(shape, action_noise, color, driving=driving) if color else white
    if not action_noise or n_envs == 1:
        return action_noise or None
    return VectorizedActionNoise(action_noise, n_envs)
