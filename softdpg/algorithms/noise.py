"""Exploration noise beside SB3's, in actions scaled to [-1, 1]."""

import numpy as np
from stable_baselines3.common.noise import ActionNoise, VectorizedActionNoise


def noises(action_noise: ActionNoise | None) -> list[ActionNoise]:
    """The noise of each environment."""
    if isinstance(action_noise, VectorizedActionNoise):
        return action_noise.noises
    return [] if action_noise is None else [action_noise]


def with_noise(actions: np.ndarray, action_noise: ActionNoise) -> np.ndarray:
    """Actions with a draw of the noise added, clipped to [-1, 1]; the noise itself where coloured noise drives.

    Slow noise of full strength carries a body to places that small or white noise never reaches: on a sparse reward it
    decides whether the replay buffer holds a single success.

    :param actions: scaled to [-1, 1], ``(n_envs, m)``
    """
    drawn = np.broadcast_to(action_noise(), actions.shape)
    noisy = np.clip(actions + drawn, -1, 1)
    for i, noise in enumerate(noises(action_noise)):
        if isinstance(noise, ColoredNoise) and noise.scale and noise.drives:
            noisy[i] = np.clip(drawn[i] / noise.scale, -1, 1)
    return noisy


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
    others, 2023). A stretch of it is drawn at once, by its spectrum, for each episode and after every ``period`` steps.
    In a share of the stretches it drives: it is the action itself, with a standard deviation of 1.
    It is a function of one seed, which comes from SB3's generator: seed and step are its whole state.

    :param shape: shape of an action
    :param scale: standard deviation
    :param beta: the color
    :param period: steps of a stretch, the longest wave in it
    :param driving: share of the stretches in which it drives
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        scale: float,
        beta: float,
        period: int = 1_000,
        driving: float = 0.0,
    ) -> None:
        super().__init__()
        self.shape, self.scale, self.beta, self.period = shape, scale, beta, period
        self.driving = driving
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
        rng = np.random.default_rng(self.seed)
        unit = self._draw(rng)
        self.drives = bool(rng.random() < self.driving)
        self._stretch = self.scale * unit

    def _draw(self, rng: np.random.Generator) -> np.ndarray:
        """``(period, *shape)`` of variance 1 from independent normal Fourier coefficients, amplitudes by the color."""
        frequencies = np.fft.rfftfreq(self.period)
        amplitudes = np.maximum(frequencies, frequencies[1]) ** (-self.beta / 2)
        real, imaginary = amplitudes * rng.normal(size=(2, int(np.prod(self.shape)), len(amplitudes)))
        edges = [0, -1] if self.period % 2 == 0 else [0]  # these frequencies have no imaginary part
        imaginary[:, edges] = 0
        real[:, edges] *= np.sqrt(2)
        power = 4 * amplitudes**2
        power[edges] /= 2
        noise = np.fft.irfft(real + 1j * imaginary, n=self.period) * self.period / np.sqrt(power.sum())
        return noise.T.reshape(self.period, *self.shape)
