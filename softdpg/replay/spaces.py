"""Check observation and action spaces, and flatten observations for buffers and networks."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space, maybe_transpose
from stable_baselines3.common.utils import is_vectorized_observation

_PARTS = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)
Observation = np.ndarray | dict[str, np.ndarray]


class SpaceError(ValueError, AssertionError, NotImplementedError):
    """Raised for an unsupported space. It derives from each error that SB3 raises in such a case."""


def check_spaces(observation_space: spaces.Space, action_space: spaces.Space) -> None:
    """Raise :class:`SpaceError` unless the algorithms support these spaces.

    :param observation_space: Box, Discrete, MultiBinary, MultiDiscrete, or a Dict of these that is not nested
    :param action_space: Box with finite bounds, Discrete, MultiDiscrete, MultiBinary, or Tuple and Dict of them
    """
    check_action_space(action_space)
    parts = observation_space.values() if isinstance(observation_space, spaces.Dict) else [observation_space]
    if not all(isinstance(part, _PARTS) for part in parts):
        raise SpaceError(
            "env must have a Box, Discrete, MultiBinary or MultiDiscrete observation space, or a Dict of them that is "
            f"not nested, got {observation_space}"
        )
    if any(isinstance(part, spaces.MultiDiscrete) and len(part.shape) != 1 for part in parts):
        raise SpaceError(f"env must have MultiDiscrete observations of one dimension, got {observation_space}")


def check_action_space(space: spaces.Space) -> None:
    """Raise :class:`SpaceError` for an action space that no algorithm here can act in."""
    if isinstance(space, spaces.Tuple | spaces.Dict):
        for part in space.values() if isinstance(space, spaces.Dict) else space:
            check_action_space(part)
        if not len(space.spaces):
            raise SpaceError(f"env must have an action space with at least one part, got {space}")
    elif not isinstance(space, _PARTS):
        raise SpaceError(
            "env must have an action space of Box, Discrete, MultiDiscrete and MultiBinary, or Tuple and Dict of them, "
            f"got {space}"
        )
    elif isinstance(space, spaces.Box) and not space.is_bounded():
        raise SpaceError(f"env must have a bounded action space, with finite low and high, got {space}")


def float32_space(space: spaces.Space) -> spaces.Space:
    """Return the space with every floating-point part in float32, so that a buffer made for it stores float32.

    :param space: any space; parts of other types stay as they are
    """
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: float32_space(part) for key, part in space.items()})
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32)
    return space


def all_finite(observations: Observation) -> bool:
    """Return whether an observation contains neither NaN nor infinity.

    :param observations: an array, or a dict of arrays
    """
    parts = observations.values() if isinstance(observations, dict) else [observations]
    return all(bool(np.isfinite(part).all()) for part in parts)


def flat_observations(
    observations: Observation, space: spaces.Space, normalize_images: bool = True, pixels: bool = False
) -> np.ndarray:
    """Flatten a batch of observations to float32 ``(batch, d)``, with ``d = spaces.flatdim(space)``.

    The parts of a Dict are concatenated in its order. Discrete and MultiDiscrete values become one-hot.

    :param observations: an array ``(batch, ...)``, or a dict of them
    :param space: the observation space
    :param normalize_images: divide images by 255 (an image is a Box of uint8 with three axes, from 0 to 255)
    :param pixels: keep a Box of uint8 as uint8, for a network that converts it; this takes a quarter of the memory
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
    """Encode values ``(batch, k)`` as one-hot ``(batch, sum(sizes))``.

    :param sizes: number of values of each of the k components
    :param start: the smallest value of each component
    """
    index = values.astype(np.int64) - start
    if np.any(index < 0) or np.any(index >= sizes):
        raise ValueError(f"a discrete observation is outside its space: {sizes.tolist()} values from {start} on")
    flat = np.zeros((len(values), sizes.sum()), np.float32)
    np.put_along_axis(flat, index + np.cumsum(sizes) - sizes, 1, axis=1)
    return flat


def as_batch(observation: Any, space: spaces.Space) -> tuple[Any, bool]:
    """Return the observation as a batch, and whether it already was one.

    :param observation: one observation or a batch of them
    :param space: the observation space; ``ValueError`` if the shape does not match it
    """
    if isinstance(space, spaces.Dict):
        if not isinstance(observation, dict) or not observation.keys() >= space.spaces.keys():
            raise ValueError(f"the observation must be a dict with the parts {', '.join(space.spaces)}")
        parts = {name: as_batch(observation[name], part) for name, part in space.items()}
        if len({vectorized for _, vectorized in parts.values()}) != 1:
            raise ValueError("either every part of a Dict observation must be a batch, or none")
        return {name: part for name, (part, _) in parts.items()}, next(iter(parts.values()))[1]
    observation = np.asarray(observation)
    if is_image_space(space):
        observation = maybe_transpose(observation, space)
    vectorized = is_vectorized_observation(observation, space)
    assert space.shape is not None
    return observation.reshape(-1, *space.shape), vectorized


def check_shape(observation: Any, space: spaces.Space) -> None:
    """Raise ``ValueError`` unless the observation has the shape of its space; NumPy would broadcast some others.

    :param observation: one observation
    :param space: the observation space
    """
    if isinstance(space, spaces.Dict):
        for name, part in space.items():
            check_shape(observation[name], part)
    elif np.shape(observation) != space.shape:
        raise ValueError(f"the observation must have shape {space.shape}, got {np.shape(observation)}")


class CheckedShape(gym.Wrapper):
    """Check the shape of every observation before SB3 copies it into an array, which would broadcast it."""

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and check the observation."""
        observation, info = self.env.reset(**kwargs)
        check_shape(observation, self.observation_space)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment and check the observation."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        check_shape(observation, self.observation_space)
        return observation, reward, terminated, truncated, info
