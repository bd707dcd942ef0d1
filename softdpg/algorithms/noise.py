"""Exploration noise beside SB3's, in actions scaled to [-1, 1]."""

import numpy as np
from stable_baselines3.common.noise import ActionNoise, VectorizedActionNoise


def noises(action_noise: ActionNoise | None) -> list[ActionNoise]:
    """The noise of each environment."""
    if isinstance(action_noise, VectorizedActionNoise):
        return action_noise.noises
    return [] if action_noise is None else [action_noise]


def coloured_warm_up(action_noise: ActionNoise | None) -> np.ndarray | None:
    """Actions before learning starts, in [-1, 1]: coloured noise with a standard deviation of 1; None if it is white.

    Slow noise of full strength carries a body to places that uniform actions, which cancel each other, never reach: on
    a sparse reward it decides whether the replay buffer holds a single success when learning starts.

    :return: of the shape of the noise, ``(m,)`` or ``(n_envs, m)``
    """
    noise = noises(action_noise)[0] if action_noise is not None else None  # of all environments the same kind
    if not isinstance(noise, ColoredNoise) or not noise.scale:
        return None
    return np.clip(action_noise() / noise.scale, -1, 1)  # type: ignore[misc]


class SmoothingNoise(ActionNoise):
    """Gaussian noise of the scale with which the critic is smoothed at the time: ``action_noise="sigma"``.

    ``Q_sigma`` is then the value of the very policy that collects the data.

    :param shape: shape of an action
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.sigma = np.zeros(shape)

    def __call__(self) -> np.ndarray:
        """One draw, of the shape of an action, from SB3's generator."""
        return np.random.normal(0.0, self.sigma)  # noqa: NPY002


class ColoredNoise(ActionNoise):
    """Gaussian noise whose power falls with the frequency f as ``f^-beta``; 0 is white, 1 pink, 2 red.

    Pink noise explores further than white noise of the same scale and stays close enough to the policy (Eberhard and
    others, 2023). Before learning starts it is the action itself, with a standard deviation of 1. A stretch of it is
    drawn at once, by its spectrum, for each episode and after every ``period`` steps.
    It is a function of one seed, which comes from SB3's generator: seed and step are its whole state.

    :param shape: shape of an action
    :param scale: standard deviation
    :param beta: the color
    :param period: steps of a stretch, the longest wave in it
    """

    def __init__(self, shape: tuple[int, ...], scale: float, beta: float, period: int = 1_000) -> None:
        super().__init__()
        self.shape, self.scale, self.beta, self.period = shape, scale, beta, period
        self.reset()

    def __call__(self) -> np.ndarray:
        """The noise of the next step, of the shape of an action."""
        if self.step == self.period:
            self.reset()
        self.step += 1
        return self._stretch[self.step - 1]

    def reset(self) -> None:
        """Begin a new stretch."""
        self.set_state([int(np.random.randint(2**32, dtype=np.uint64)), 0])  # noqa: NPY002

    def get_state(self) -> list[int]:
        """Seed and step."""
        return [self.seed, self.step]

    def set_state(self, state: list[int]) -> None:
        """Go on with the noise that has this seed, at this step."""
        self.seed, self.step = state
        self._stretch = self._draw(np.random.default_rng(self.seed))

    def _draw(self, rng: np.random.Generator) -> np.ndarray:
        """``(period, *shape)`` from independent normal Fourier coefficients with the amplitudes of the color."""
        frequencies = np.fft.rfftfreq(self.period)
        amplitudes = np.maximum(frequencies, frequencies[1]) ** (-self.beta / 2)
        real, imaginary = amplitudes * rng.normal(size=(2, int(np.prod(self.shape)), len(amplitudes)))
        edges = [0, -1] if self.period % 2 == 0 else [0]  # these frequencies have no imaginary part
        imaginary[:, edges] = 0
        real[:, edges] *= np.sqrt(2)
        power = 4 * amplitudes**2
        power[edges] /= 2
        noise = np.fft.irfft(real + 1j * imaginary, n=self.period) * self.period / np.sqrt(power.sum())
        return (self.scale * noise.T).reshape(self.period, *self.shape)
