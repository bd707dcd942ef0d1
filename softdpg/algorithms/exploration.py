"""Exploration noise in actions scaled to [-1, 1]: the argument ``action_noise`` and the noises it stands for."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from stable_baselines3.common.noise import ActionNoise, NormalActionNoise, VectorizedActionNoise

from softdpg.algorithms.settings import check_argument

Exploration = ActionNoise | float | Sequence[float] | Literal["sigma"] | None


def check_exploration(action_noise: Any) -> None:
    """Raise ``ValueError`` unless ``action_noise`` is a standard deviation, ``"sigma"``, SB3's noise or None."""
    if action_noise is not None and not isinstance(action_noise, ActionNoise):
        for scale in action_noise if isinstance(action_noise, list | tuple | np.ndarray) else [action_noise]:
            check_argument("action_noise", scale)


def make_action_noise(
    action_noise: Any,
    shape: tuple[int, ...],
    n_envs: int,
    color: float,
    random_episodes: float,
) -> ActionNoise | None:
    """Return the noise that a checked ``action_noise`` stands for, one per environment.

    :param action_noise: a standard deviation, an array of them, ``"sigma"``, SB3's noise or None
    :param shape: shape of an action
    :param n_envs: number of environments
    :param color: exponent of the spectrum, see :class:`ColoredNoise`; only for a standard deviation
    :param random_episodes: probability of an episode of pure noise; only with a color
    """
    if isinstance(action_noise, VectorizedActionNoise):  # of a saved model, possibly with other environments
        action_noise = action_noise.base_noise
    if isinstance(action_noise, str):
        action_noise = SmoothingNoise(shape)
    elif not isinstance(action_noise, ActionNoise) and np.any(action_noise):
        white = NormalActionNoise(np.zeros(shape), np.full(shape, action_noise))
        action_noise = ColoredNoise(shape, action_noise, color, pure=random_episodes) if color else white
    if not isinstance(action_noise, ActionNoise):
        return None
    if n_envs == 1:
        return action_noise
    return VectorizedActionNoise(action_noise, n_envs)


def noises(action_noise: ActionNoise | None) -> list[ActionNoise]:
    """Return the noise of each environment."""
    if isinstance(action_noise, VectorizedActionNoise):
        return action_noise.noises
    return [] if action_noise is None else [action_noise]


def with_noise(actions: np.ndarray, action_noise: ActionNoise, bound: float = 1) -> np.ndarray:
    """Add a sample of the noise and clip to [-bound, bound]; in an episode of pure noise return it at full strength.

    Slow noise at full strength reaches places that small or white noise never does. On a sparse reward this decides
    whether the replay buffer contains a success at all.

    :param actions: scaled to [-1, 1], ``(n_envs, m)``
    :param action_noise: noise of one environment, or vectorised
    :param bound: infinity if the result is decoded, since clipped options would tie
    """
    sample = np.broadcast_to(action_noise(), actions.shape)
    noisy = np.clip(actions + sample, -bound, bound)
    for i, noise in enumerate(noises(action_noise)):
        if isinstance(noise, ColoredNoise) and np.all(noise.scale) and noise.is_pure:
            noisy[i] = np.clip(sample[i] / noise.scale, -bound, bound)
    return noisy


class SmoothingNoise(ActionNoise):
    """Gaussian noise of the scale that currently smooths the critic: ``action_noise="sigma"``.

    ``Q_sigma`` is then the value of the policy that collects the data.

    :param shape: shape of an action
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.sigma = np.zeros(shape)

    def __call__(self) -> np.ndarray:
        """Sample noise of the shape of an action from SB3's generator."""
        return np.random.normal(0.0, self.sigma)  # noqa: NPY002


class ColoredNoise(ActionNoise):
    """Gaussian noise whose power falls with the frequency f as ``f^-beta``; 0 is white, 1 pink, 2 red.

    Pink noise explores further than white noise of the same scale and stays close enough to the policy (Eberhard et
    al., 2023). A sequence of it is generated from its spectrum at the start of each episode and after ``period`` steps.
    With probability ``pure`` the noise itself, with a standard deviation of 1, is the action during a sequence.
    The sequence is a function of one seed from SB3's generator, so seed and step are the whole state.

    :param shape: shape of an action
    :param scale: standard deviation, or one for each component
    :param beta: the color
    :param period: steps of a sequence, and the longest wave in it
    :param pure: probability that the actions of a sequence are pure noise
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        scale: float | np.ndarray,
        beta: float,
        period: int = 1_000,
        pure: float = 0.0,
    ) -> None:
        super().__init__()
        self.shape, self.scale, self.beta, self.period = shape, scale, beta, period
        self.pure = pure
        self.reset()

    def __call__(self) -> np.ndarray:
        """Return the noise of the next step, of the shape of an action."""
        if self.step == self.period:
            self.reset()
        self.step += 1
        return self._sequence[self.step - 1]

    def reset(self) -> None:
        """Begin a new sequence."""
        self.set_state([int(np.random.randint(2**32, dtype=np.uint64)), 0])  # noqa: NPY002

    def get_state(self) -> list[int]:
        """Return seed and step."""
        return [self.seed, self.step]

    def set_state(self, state: list[int]) -> None:
        """Continue the sequence of this seed at this step."""
        self.seed, self.step = state
        rng = np.random.default_rng(self.seed)
        unit = self._generate(rng)
        self.is_pure = bool(rng.random() < self.pure)
        self._sequence = self.scale * unit

    def _generate(self, rng: np.random.Generator) -> np.ndarray:
        """Return ``(period, *shape)`` of variance 1 from normal Fourier coefficients with amplitudes by the color."""
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
