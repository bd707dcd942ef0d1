"""What the algorithms ask of observation and action spaces, and observations as the networks see them."""

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space, maybe_transpose
from stable_baselines3.common.utils import is_vectorized_observation

_PARTS = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)
Observation = np.ndarray | dict[str, np.ndarray]


class SpaceError(ValueError, AssertionError, NotImplementedError):
    """A space that the algorithms cannot work with; SB3 raises one or the other of these for it."""


def check_spaces(observation_space: spaces.Space, action_space: spaces.Space) -> None:
    """Raise a ``ValueError`` that says what is accepted, unless the algorithms can work with these spaces."""
    if not isinstance(action_space, spaces.Box):
        raise SpaceError(f"env must have a Box action space (continuous actions), not {action_space}")
    if not np.all(np.isfinite(action_space.low)) or not np.all(np.isfinite(action_space.high)):
        raise SpaceError(f"env must have a bounded action space, with finite low and high, not {action_space}")
    parts = observation_space.values() if isinstance(observation_space, spaces.Dict) else [observation_space]
    if not all(isinstance(part, _PARTS) for part in parts):
        raise SpaceError(
            "env must have a Box, Discrete, MultiBinary or MultiDiscrete observation space, or a Dict of them that is "
            f"not nested: {observation_space}"
        )
    if any(isinstance(part, spaces.MultiDiscrete) and len(part.shape) != 1 for part in parts):
        raise SpaceError(f"env must have MultiDiscrete observations of one dimension: {observation_space}")


def float32_space(space: spaces.Space) -> spaces.Space:
    """Return the space with every floating-point part in float32, so that a buffer made for it keeps float32."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: float32_space(part) for key, part in space.items()})
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32)
    return space


def all_finite(observations: Observation) -> bool:
    """Whether an observation, or each part of a Dict observation, is free of NaN and infinity."""
    parts = observations.values() if isinstance(observations, dict) else [observations]
    return all(bool(np.isfinite(part).all()) for part in parts)


def flat_observations(
    observations: Observation, space: spaces.Space, normalize_images: bool = True, pixels: bool = False
) -> np.ndarray:
    """A batch of observations as float32 ``(batch, d)``, with ``d = spaces.flatdim(space)``.

    The parts of a Dict are joined in its order, Discrete and MultiDiscrete values are one-hot, and images (Box of
    uint8 with three axes, from 0 to 255) are divided by 255 if ``normalize_images``. With ``pixels`` a Box of uint8
    stays as it is, a quarter of the bytes, for a network that converts it.
    """
    if isinstance(space, spaces.Dict):
        parts = [flat_observations(observations[name], part, normalize_images) for name, part in space.items()]
        return np.concatenate(parts, axis=1)
    assert isinstance(observations, np.ndarray)
    if isinstance(space, spaces.Discrete):
        return _one_hot(observations.reshape(-1, 1), np.array([space.n]), space.start)
    if isinstance(space, spaces.MultiDiscrete):
        return _one_hot(observations.reshape(-1, len(space.nvec)), space.nvec, space.start)
    flat = observations.reshape(len(observations), -1)
    if pixels and flat.dtype == np.uint8:
        return flat
    flat = flat.astype(np.float32, copy=False)
    return flat / np.float32(255) if normalize_images and is_image_space(space) else flat


def _one_hot(values: np.ndarray, sizes: np.ndarray, start: Any) -> np.ndarray:
    """Values ``(batch, k)`` of k categories, the j-th with ``sizes[j]`` values from ``start``: ``(batch, sum)``."""
    index = values.astype(np.int64) - start
    if np.any(index < 0) or np.any(index >= sizes):
        raise ValueError(f"a discrete observation is outside its space of {sizes.tolist()} values from {start}")
    flat = np.zeros((len(values), sizes.sum()), np.float32)
    np.put_along_axis(flat, index + np.cumsum(sizes) - sizes, 1, axis=1)
    return flat


def as_batch(observation: Any, space: spaces.Space) -> tuple[Any, bool]:
    """One observation, or a batch of them, as a batch, and whether it came as one.

    ``ValueError`` if its shape, or that of a part of a Dict, is not that of the space.
    """
    if isinstance(space, spaces.Dict):
        if not isinstance(observation, dict) or not observation.keys() >= space.spaces.keys():
            raise ValueError(f"the observation must be a dict with the parts {', '.join(space.spaces)}")
        parts = {name: as_batch(observation[name], part) for name, part in space.items()}
        if len({vectorized for _, vectorized in parts.values()}) != 1:
            raise ValueError("of a Dict observation either every part must be a batch, or none")
        return {name: part for name, (part, _) in parts.items()}, next(iter(parts.values()))[1]
    observation = np.asarray(observation)
    if is_image_space(space):
        observation = maybe_transpose(observation, space)
    vectorized = is_vectorized_observation(observation, space)
    assert space.shape is not None
    return observation.reshape(-1, *space.shape), vectorized
