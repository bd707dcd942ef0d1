"""Replay buffers for observations of several parts: kept as the networks see them, flattened and joined."""

from itertools import accumulate
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecNormalize

from softdpg.algorithms.buffers import DiskReplayBuffer, RecordReplayBuffer
from softdpg.algorithms.spaces import flat_observations


class FlatReplayBuffer(RecordReplayBuffer):
    """A :class:`RecordReplayBuffer` for Dict observations. Samples have observations ``(batch, d)``.

    With it, ``n_steps`` above 1 is possible for Dict observations, too.

    :param observation_space: Dict of parts that the algorithms take; ``d`` is its ``flatdim``
    """

    def __init__(
        self, buffer_size: int, observation_space: spaces.Space, action_space: spaces.Space, *args: Any, **kwargs: Any
    ) -> None:
        if not isinstance(observation_space, spaces.Dict):
            raise ValueError(f"{type(self).__name__} takes a Dict observation space, not {observation_space}")
        self.parts = observation_space
        ends = accumulate(map(spaces.flatdim, observation_space.values()), initial=0)
        starts = dict(zip(observation_space.spaces, ends, strict=False))
        self.part_columns = {
            name: slice(starts[name], starts[name] + spaces.flatdim(part)) for name, part in observation_space.items()
        }
        flat = spaces.Box(-np.inf, np.inf, (spaces.flatdim(observation_space),), np.float32)
        super().__init__(buffer_size, flat, action_space, *args, **kwargs)

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Append one transition of each environment; observations are dicts of arrays ``(n_envs, ...)``."""
        flat, next_flat = (flat_observations(parts, self.parts) for parts in (obs, next_obs))
        super().add(flat, next_flat, action, reward, done, infos)

    def part(self, flat: np.ndarray, name: str) -> np.ndarray:
        """A part of observations ``(batch, d)``: a Box as it was, ``(batch, *shape)``, others flattened."""
        columns, space = flat[:, self.part_columns[name]], self.parts[name]
        return columns.reshape(len(flat), *space.shape) if isinstance(space, spaces.Box) else columns

    def _normalized(self, obs: np.ndarray, env: VecNormalize) -> np.ndarray:
        parts: Any = env.normalize_obs({name: self.part(obs, name) for name in self.parts.spaces})
        return np.concatenate([parts[name].reshape(len(obs), -1) for name in self.parts.spaces], axis=1)


class FlatDiskReplayBuffer(FlatReplayBuffer, DiskReplayBuffer):
    """A :class:`DiskReplayBuffer` for Dict observations."""
