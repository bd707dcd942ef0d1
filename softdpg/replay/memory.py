"""Replay buffers in memory, with each transition as one float32 record."""

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from softdpg.replay.spaces import flat_observations

_VIEWS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


class RecordReplayBuffer(NStepReplayBuffer):
    """Store each transition as one float32 record, so that one gather reads a batch.

    A record is ``[observation, next observation, action, reward, done, timeout]``. SB3's arrays are views of the
    records. With the same state of ``numpy.random``, samples equal those of SB3's ``ReplayBuffer`` index by index, or
    with several steps those of its ``NStepReplayBuffer``.

    :param args: the positional arguments of SB3's ``ReplayBuffer``
    :param n_steps: number of steps whose rewards are summed, up to the end of the episode or the newest transition
    :param gamma: discount factor of these rewards
    :param kwargs: the keyword arguments of SB3's ``ReplayBuffer``, except ``optimize_memory_usage=True``
    """

    def __init__(self, *args: Any, n_steps: int = 1, gamma: float = 0.99, **kwargs: Any) -> None:
        ReplayBuffer.__init__(self, *args, **kwargs)
        self.n_steps, self.gamma = n_steps, gamma
        if self.optimize_memory_usage:
            raise ValueError("RecordReplayBuffer does not support optimize_memory_usage=True")
        # This replaces SB3's own arrays. Nobody has written to them, so they never took any memory.
        self._set_records(np.zeros((self.buffer_size * self.n_envs, self.record_dim), np.float32))

    @property
    def record_dim(self) -> int:
        """Number of floats in a record."""
        return 2 * int(np.prod(self.obs_shape)) + self.action_dim + 3

    def _set_records(self, records: np.ndarray) -> None:
        """Make SB3's arrays ``(slots, n_envs, ...)`` views of the records ``(slots * n_envs, record_dim)``."""
        obs_dim = int(np.prod(self.obs_shape))
        self._records = records
        bounds = np.cumsum([0, obs_dim, obs_dim, self.action_dim, 1, 1, 1])
        self._columns = [slice(int(start), int(stop)) for start, stop in pairwise(bounds)]
        by_slot = records.reshape(-1, self.n_envs, self.record_dim)
        fields = [by_slot[:, :, columns] for columns in self._columns]
        self.observations, self.next_observations = (f.reshape(*f.shape[:2], *self.obs_shape) for f in fields[:2])
        self.actions = fields[2]
        self.rewards, self.dones, self.timeouts = (field[:, :, 0] for field in fields[3:])

    def _slots(self, batch_inds: np.ndarray) -> np.ndarray:
        """Return the slots of the transitions with SB3's indices ``batch_inds``, ``(batch,)``."""
        return batch_inds

    def sample_arrays(self, batch_size: int, env: VecNormalize | None = None) -> tuple[np.ndarray, ...]:
        """Return the sample that :meth:`sample` would return, without the conversion to torch.

        :param batch_size: number of transitions
        :param env: normalise observations and rewards by the statistics of this wrapper
        :return: observations ``(batch, d)``, actions ``(batch, m)``, next observations ``(batch, d)``, and dones,
            rewards and discounts ``(batch,)``
        """
        return self._gather(np.random.randint(0, self.size(), size=batch_size), env)  # noqa: NPY002

    def _get_samples(self, batch_inds: np.ndarray, env: VecNormalize | None = None) -> ReplayBufferSamples:
        """Gather the transitions with SB3's indices ``batch_inds``, ``(batch,)``."""
        return self._as_samples(self._gather(batch_inds, env))

    def _as_samples(self, arrays: tuple[np.ndarray, ...]) -> ReplayBufferSamples:
        """Convert what :meth:`sample_arrays` returns to SB3's type and shapes."""
        obs, actions, next_obs, *rest = arrays
        shape = (len(obs), *self.obs_shape)
        arrays = (obs.reshape(shape), actions, next_obs.reshape(shape), *(array[:, None] for array in rest))
        samples = ReplayBufferSamples(*(self.to_torch(array, copy=False) for array in arrays))
        return samples if self.n_steps > 1 else samples._replace(discounts=None)

    def _gather(self, batch_inds: np.ndarray, env: VecNormalize | None) -> tuple[np.ndarray, ...]:
        # The same random numbers as in SB3, from the same generator.
        envs = np.zeros(len(batch_inds), np.int64)
        if self.n_envs > 1:
            envs = np.random.randint(0, high=self.n_envs, size=len(batch_inds))  # noqa: NPY002
        rows = self._slots(batch_inds) * self.n_envs + envs
        records = self._records.take(rows, axis=0)
        obs, next_obs, actions, rewards, dones, timeouts = (records[:, columns] for columns in self._columns)
        discounts = np.full(len(rows), self.gamma, np.float32)
        if env is not None:
            rewards = self._normalize_reward(rewards, env)
        if self.n_steps > 1:
            rewards, discounts, last = self._returns(batch_inds, envs, env)
            ends = self._records.take(last, axis=0)
            next_obs, dones, timeouts = (ends[:, self._columns[i]] for i in (1, 4, 5))
        if env is not None:
            obs, next_obs = (self._normalized(x, env) for x in (obs, next_obs))
        return (
            np.ascontiguousarray(obs),
            np.ascontiguousarray(actions),
            np.ascontiguousarray(next_obs),
            (dones * (1 - timeouts))[:, 0],
            rewards[:, 0],
            discounts,
        )

    def _returns(
        self, batch_inds: np.ndarray, envs: np.ndarray, env: VecNormalize | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compute returns of up to ``n_steps`` steps.

        :return: the discounted sums of rewards ``(batch, 1)``, the discounts after them ``(batch,)`` and the rows of
            the last transitions ``(batch,)``
        """
        newest = (self.pos - 1) % self.buffer_size
        following = (batch_inds[:, None] + np.arange(self.n_steps)) % self.buffer_size
        rows = self._slots(following) * self.n_envs + envs[:, None]
        rewards, dones = self._records[rows, self._columns[3].start], self._records[rows, self._columns[4].start]
        if env is not None:
            rewards = self._normalize_reward(rewards, env)
        # SB3's dones include time limits. The oldest transition follows the newest one in the buffer.
        ends = (dones > 0) | (following == newest)
        ends[:, -1] = True
        length = ends.argmax(axis=1)
        powers = np.float32(self.gamma) ** np.arange(self.n_steps + 1, dtype=np.float32)
        counted = np.arange(self.n_steps) <= length[:, None]
        returns = (rewards * counted * powers[:-1]).sum(axis=1, keepdims=True, dtype=np.float32)
        return returns, powers[length + 1], rows[np.arange(len(rows)), length]

    def _normalized(self, obs: np.ndarray, env: VecNormalize) -> np.ndarray:
        """Normalise observations ``(batch, d)`` by the statistics of ``env``, which have the observations' shape."""
        shape = (len(obs), *self.obs_shape)
        return self._normalize_obs(obs.reshape(shape), env).reshape(obs.shape)  # type: ignore[union-attr]

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the records once, without the views."""
        return {name: value for name, value in self.__dict__.items() if name not in _VIEWS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_records(self._records)


class FlatReplayBuffer(RecordReplayBuffer):
    """Store Dict observations as the networks see them: flattened and concatenated.

    Samples have observations ``(batch, d)``. Unlike SB3's ``DictReplayBuffer`` it supports ``n_steps`` above 1.

    :param buffer_size: maximal number of transitions
    :param observation_space: Dict of parts that the algorithms support; ``d`` is its ``flatdim``
    :param action_space: action space
    :param args: further positional arguments of :class:`RecordReplayBuffer`
    :param kwargs: further keyword arguments of :class:`RecordReplayBuffer`
    """

    def __init__(
        self, buffer_size: int, observation_space: spaces.Space, action_space: spaces.Space, *args: Any, **kwargs: Any
    ) -> None:
        if not isinstance(observation_space, spaces.Dict):
            raise ValueError(f"{type(self).__name__} needs a Dict observation space, got {observation_space}")
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
        """Append one transition of each environment.

        :param obs: dict of arrays ``(n_envs, ...)``
        :param next_obs: the observations after the step, like ``obs``
        :param action: ``(n_envs, m)``
        :param reward: ``(n_envs,)``
        :param done: ``(n_envs,)``, whether the episode ended
        :param infos: the info dict of each environment
        """
        flat, next_flat = (flat_observations(parts, self.parts) for parts in (obs, next_obs))
        super().add(flat, next_flat, action, reward, done, infos)

    def part(self, flat: np.ndarray, name: str) -> np.ndarray:
        """Return a part of observations ``(batch, d)``: a Box as ``(batch, *shape)``, any other part flattened.

        :param flat: observations ``(batch, d)``
        :param name: key of the part in the Dict space
        """
        columns, space = flat[:, self.part_columns[name]], self.parts[name]
        return columns.reshape(len(flat), *space.shape) if isinstance(space, spaces.Box) else columns

    def _normalized(self, obs: np.ndarray, env: VecNormalize) -> np.ndarray:
        parts: Any = env.normalize_obs({name: self.part(obs, name) for name in self.parts.spaces})
        return np.concatenate([parts[name].reshape(len(obs), -1) for name in self.parts.spaces], axis=1)
