"""Exploration noise beside SB3's, in actions scaled to [-1, 1]."""

import numpy as np
from stable_baselines3.common.noise import ActionNoise


class SmoothingNoise(ActionNoise):
    """Gaussian noise of the scale with which the critic is smoothed at the time: ``action_noise="sigma"``.

    ``Q_sigma`` is then the value of the very policy that collects the data.

    :param action_dim: m
    """

    def __init__(self, action_dim: int) -> None:
        super().__init__()
        self.sigma = np.zeros(action_dim)

    def __call__(self) -> np.ndarray:
        """One draw, ``(m,)``, from SB3's generator."""
        return np.random.normal(0.0, self.sigma)  # noqa: NPY002
