"""Replay buffers of float32 records: in memory, or on disk and safe against a crash at any moment."""

import json
import mmap
import os
import stat
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import BaseBuffer, NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

_HEADER_BYTES = 4096
_LAYOUT_BYTES = _HEADER_BYTES - 8  # the last 8 bytes hold the number of reserved transitions
_ALLOCATION_BYTES = 8 * 2**20
_FORMAT, _FORMAT_OF_0_1_0 = "softdpg replay buffer 2", "softdpg replay buffer 1"  # the latter without run and checksums
_LARGEST_BLOCK = 1024  # records under one checksum

_VIEWS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


class RecordReplayBuffer(NStepReplayBuffer):
    """SB3's ``ReplayBuffer`` with a transition as one float32 record, so that a batch is gathered in one go.

    A record is ``[observation, next observation, action, reward, done, timeout]``; SB3's arrays are views of the
    records. Samples are those of SB3's ``ReplayBuffer``, or for several steps of its ``NStepReplayBuffer``, index for
    index, under the same state of ``numpy.random``.
    The parameters are SB3's; ``optimize_memory_usage`` is not supported.

    :param n_steps: rewards of so many steps are summed, up to the end of the episode or the newest transition
    :param gamma: discount of those rewards
    """

    def __init__(self, *args: Any, n_steps: int = 1, gamma: float = 0.99, **kwargs: Any) -> None:
        ReplayBuffer.__init__(self, *args, **kwargs)
        self.n_steps, self.gamma = n_steps, gamma
        if self.optimize_memory_usage:
            raise ValueError("RecordReplayBuffer does not support optimize_memory_usage=True")
        # SB3's own arrays, which no one has written to and which therefore take no memory, go.
        self._set_records(np.zeros((self.buffer_size * self.n_envs, self.record_dim), np.float32))

    @property
    def record_dim(self) -> int:
        """Numbers in a record."""
        return 2 * int(np.prod(self.obs_shape)) + self.action_dim + 3

    def _set_records(self, records: np.ndarray) -> None:
        """Lay SB3's arrays, ``(slots, n_envs, ...)``, over records ``(slots * n_envs, record_dim)``."""
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
        """Where the transitions with SB3's indices ``batch_inds``, ``(batch,)``, are kept."""
        return batch_inds

    def sample_arrays(self, batch_size: int, env: VecNormalize | None = None) -> tuple[np.ndarray, ...]:
        """The sample that :meth:`sample` gives, without the way through torch.

        :return: observations ``(batch, d)``, actions ``(batch, m)``, next observations ``(batch, d)``; dones, rewards
            and discounts ``(batch,)``; with ``n_steps`` above 1 also the observations after one step ``(batch, d)``
        """
        return self._gather(np.random.randint(0, self.size(), size=batch_size), env)  # noqa: NPY002

    def _get_samples(self, batch_inds: np.ndarray, env: VecNormalize | None = None) -> ReplayBufferSamples:
        """Gather the records that SB3 would keep at ``batch_inds``, ``(batch,)`` indices below ``size()``."""
        return self._as_samples(self._gather(batch_inds, env))

    def _as_samples(self, arrays: tuple[np.ndarray, ...]) -> ReplayBufferSamples:
        """What :meth:`sample_arrays` gives as SB3 has it."""
        obs, actions, next_obs, *rest = arrays[:6]
        shape = (len(obs), *self.obs_shape)
        arrays = (obs.reshape(shape), actions, next_obs.reshape(shape), *(array[:, None] for array in rest))
        samples = ReplayBufferSamples(*(self.to_torch(array, copy=False) for array in arrays))
        return samples if self.n_steps > 1 else samples._replace(discounts=None)

    def _gather(self, batch_inds: np.ndarray, env: VecNormalize | None) -> tuple[np.ndarray, ...]:
        # Draws as SB3's, from SB3's generator.
        envs = np.zeros(len(batch_inds), np.int64)
        if self.n_envs > 1:
            envs = np.random.randint(0, high=self.n_envs, size=len(batch_inds))  # noqa: NPY002
        rows = self._slots(batch_inds) * self.n_envs + envs
        records = self._records.take(rows, axis=0)
        obs, next_obs, actions, rewards, dones, timeouts = (records[:, columns] for columns in self._columns)
        discounts = np.full(len(rows), self.gamma, np.float32)
        if env is not None:
            rewards = self._normalize_reward(rewards, env)
        successors = []
        if self.n_steps > 1:
            rewards, discounts, last = self._returns(batch_inds, envs, env)
            ends = self._records.take(last, axis=0)
            successors = [next_obs]
            next_obs, dones, timeouts = (ends[:, self._columns[i]] for i in (1, 4, 5))
        if env is not None:
            obs, next_obs, *successors = (self._normalized(x, env) for x in (obs, next_obs, *successors))
        return (
            np.ascontiguousarray(obs),
            np.ascontiguousarray(actions),
            np.ascontiguousarray(next_obs),
            (dones * (1 - timeouts))[:, 0],
            rewards[:, 0],
            discounts,
            *successors,  # not copied: only an embedding reads them
        )

    def _returns(
        self, batch_inds: np.ndarray, envs: np.ndarray, env: VecNormalize | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Discounted rewards of up to ``n_steps`` steps ``(batch, 1)``, discount after them, and the last one's row."""
        newest = (self.pos - 1) % self.buffer_size
        following = (batch_inds[:, None] + np.arange(self.n_steps)) % self.buffer_size
        rows = self._slots(following) * self.n_envs + envs[:, None]
        rewards, dones = self._records[rows, self._columns[3].start], self._records[rows, self._columns[4].start]
        if env is not None:
            rewards = self._normalize_reward(rewards, env)
        # SB3's dones include time limits; what follows the newest transition in the buffer is the oldest.
        ends = (dones > 0) | (following == newest)
        ends[:, -1] = True
        length = ends.argmax(axis=1)
        powers = np.float32(self.gamma) ** np.arange(self.n_steps + 1, dtype=np.float32)
        counted = np.arange(self.n_steps) <= length[:, None]
        returns = (rewards * counted * powers[:-1]).sum(axis=1, keepdims=True, dtype=np.float32)
        return returns, powers[length + 1], rows[np.arange(len(rows)), length]

    def _normalized(self, obs: np.ndarray, env: VecNormalize) -> np.ndarray:
        """Observations ``(batch, d)`` normalised by the statistics of ``env``, which have the observations' shape."""
        shape = (len(obs), *self.obs_shape)
        return self._normalize_obs(obs.reshape(shape), env).reshape(obs.shape)  # type: ignore[union-attr]

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the records once, without the views."""
        return {name: value for name, value in self.__dict__.items() if name not in _VIEWS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_records(self._records)


class DiskReplayBuffer(RecordReplayBuffer):
    """The records in one memory-mapped file, for runs that must survive being killed.

    Record ``t`` (counted over the whole run) lies in slot ``t % (buffer_size + slack)``, while only the last
    ``buffer_size`` transitions are sampled. A record therefore stays untouched for ``slack`` steps after it has left
    the window: a checkpoint that remembers nothing but ``count`` gets its exact window back with :meth:`rewind`, as
    long as no more than about five eighths of ``slack`` transitions were added after it. :meth:`holds` tells.

    Every record goes into the CRC-32 of its block as it is added. A checkpoint that stores :meth:`checksums` and gives
    them to :meth:`rewind` learns of any byte of its window that has changed since.

    Disk space is allocated as the buffer fills, so a full disk is an ``OSError`` from :meth:`add` and never the
    ``SIGBUS`` that a sparse memory map would give.

    :param path: the file; one that exists must have the same layout, and is empty until :meth:`rewind`
    :param slack: records that are kept beyond the buffer's size, so that a checkpoint stays usable after it
    :param run: the identity of the run that the file belongs to; that of another run is refused
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        device: th.device | str = "cpu",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        path: str | os.PathLike[str],
        slack: int = 0,
        run: str = "",
        n_steps: int = 1,
        gamma: float = 0.99,
    ) -> None:
        if optimize_memory_usage:
            raise ValueError("DiskReplayBuffer does not support optimize_memory_usage=True")
        if not isinstance(observation_space, spaces.Box) or not isinstance(action_space, spaces.Box):
            raise ValueError(
                "DiskReplayBuffer takes Box observation and action spaces, "
                f"not {type(observation_space).__name__} and {type(action_space).__name__}"
            )
        if slack < 0:
            raise ValueError(f"slack must be at least 0, not {slack}")
        # ReplayBuffer.__init__ would allocate the arrays in memory.
        BaseBuffer.__init__(self, buffer_size, observation_space, action_space, device, n_envs=n_envs)
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.optimize_memory_usage = False
        self.handle_timeout_termination = handle_timeout_termination
        self.n_steps, self.gamma = n_steps, gamma
        self.path = Path(path)
        self.slots = self.buffer_size + slack
        self.run = run
        self.count = 0
        self._open()

    def _open(self) -> None:
        self._record_bytes = 4 * self.record_dim * self.n_envs
        if not os.path.lexists(self.path):
            self._create()
        # A pipe, a device or a link in the place of the file is not waited for, and not followed.
        fd = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            self.slots = self._check_file(fd)
            self._map = mmap.mmap(fd, self._file_bytes)
            # Random reads: without this every page fault would pull in neighbours that are not needed.
            self._map.madvise(mmap.MADV_RANDOM)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        self._reserved = np.frombuffer(self._map, "<u8", count=1, offset=_LAYOUT_BYTES)
        records = np.frombuffer(self._map, "<f4", offset=_HEADER_BYTES)
        self._set_records(records.reshape(-1, self.record_dim))  # with slack=0 a slot is SB3's index
        self._safe_count = min(self.slots, int(self._reserved[0]))
        self._block = min(max((self.slots - self.buffer_size) // 4, 1), _LARGEST_BLOCK)
        self._sums = [0] * (self.slots // self._block + 2)  # that of block b, as far as it is filled, at b % len

    @property
    def _layout(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "byteorder": "little",
            "run": self.run,
            "buffer_size": self.buffer_size,
            "slots": self.slots,
            "n_envs": self.n_envs,
            "obs_dim": int(np.prod(self.obs_shape)),
            "action_dim": self.action_dim,
        }

    @property
    def _file_bytes(self) -> int:
        return _HEADER_BYTES + self.slots * self._record_bytes

    def _create(self) -> None:
        """Make the file aside and rename it: a process killed here leaves no file without a header."""
        aside = self.path.with_name(self.path.name + ".tmp")
        aside.unlink(missing_ok=True)
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        with open(fd, "wb") as file:
            file.write(json.dumps(self._layout).encode().ljust(_LAYOUT_BYTES) + bytes(8))
            file.truncate(self._file_bytes)
        aside.replace(self.path)

    def _check_file(self, fd: int) -> int:
        """The number of slots in the file; ``ValueError`` if it is not a replay buffer of this layout and run."""
        stored, layout = _read_layout(fd), self._layout
        if stored.get("format") == _FORMAT and stored.get("run") != self.run:
            raise ValueError(f"{self.path} is the replay buffer of another run")
        if stored.get("format") == _FORMAT_OF_0_1_0 and isinstance(stored.get("slots"), int):
            layout |= {"format": _FORMAT_OF_0_1_0, "slots": max(stored["slots"], self.buffer_size)}
            del layout["run"], layout["buffer_size"]
        size = _HEADER_BYTES + layout["slots"] * self._record_bytes
        if stored != layout or os.fstat(fd).st_size != size:
            raise ValueError(f"{self.path} is not a replay buffer of this layout: {layout}")
        return int(layout["slots"])

    def add(
        self,
        obs: np.ndarray,
        next_obs: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Append one transition of each environment; ``OSError`` (ENOSPC) if the disk is full."""
        if self.count >= self._safe_count:
            self._reserve()
        slot = self.count % self.slots
        self.observations[slot] = obs
        self.next_observations[slot] = next_obs
        self.actions[slot] = action.reshape(self.n_envs, self.action_dim)
        self.rewards[slot] = reward
        self.dones[slot] = done
        if self.handle_timeout_termination:
            self.timeouts[slot] = [info.get("TimeLimit.truncated", False) for info in infos]
        block, filled = divmod(self.count, self._block)
        i = block % len(self._sums)
        records = self._records[slot * self.n_envs : (slot + 1) * self.n_envs]
        self._sums[i] = zlib.crc32(records.data, self._sums[i] if filled else 0)
        self.count += 1
        self.pos += 1
        if self.pos == self.buffer_size:
            self.full = True
            self.pos = 0

    def _reserve(self) -> None:
        """Make room for more records, and note on disk that they may be written before any of them is."""
        if self.count < self.slots:
            stop = min(self.count + max(_ALLOCATION_BYTES // self._record_bytes, 1), self.slots)
            start = _HEADER_BYTES + self.count * self._record_bytes
            _allocate(self._fd, start, (stop - self.count) * self._record_bytes)
        else:
            stop = self.count + max((self.slots - self.buffer_size) // 8, 1)
        if stop > self._reserved[0]:
            self._reserved[0] = stop
            self._map.flush(0, _HEADER_BYTES)
        self._safe_count = stop

    def _slots(self, batch_inds: np.ndarray) -> np.ndarray:
        # Index j holds the newest transition t with t % buffer_size == j.
        newest = self.count - 1
        return (newest - (newest - batch_inds) % self.buffer_size) % self.slots

    def _blocks(self, count: int) -> range:
        """The blocks of records that the window before transition ``count`` needs."""
        return range(max(count - self.buffer_size, 0) // self._block, -(-count // self._block))

    def holds(self, count: int) -> bool:
        """Whether the window that ended at transition ``count``, in whole blocks, is still in the file."""
        oldest = self._blocks(count).start * self._block
        return 0 <= count <= self._reserved[0] <= oldest + self.slots

    def checksums(self) -> np.ndarray:
        """CRC-32 ``(blocks,)`` of each block of records in the present window, oldest first."""
        return np.array([self._sums[b % len(self._sums)] for b in self._blocks(self.count)], np.uint32)

    def rewind(self, count: int, checksums: np.ndarray | None = None) -> None:
        """Set the buffer back to where it held ``count`` transitions.

        ``ValueError``, with the buffer left as it was, if it cannot, or if the records are not those that had these
        :meth:`checksums`.
        """
        if not self.holds(count):
            raise ValueError(f"{self.path} no longer holds the {self.buffer_size} transitions before number {count}")
        blocks = self._blocks(count)
        sums = [self._checksum(b * self._block, min((b + 1) * self._block, count)) for b in blocks]
        if checksums is not None and not np.array_equal(np.array(sums, np.uint32), checksums):
            raise ValueError(f"{self.path} does not hold the transitions that were written to it")
        for b, value in zip(blocks, sums, strict=True):
            self._sums[b % len(self._sums)] = value
        self.count = count
        self.pos = count % self.buffer_size
        self.full = count >= self.buffer_size

    def _checksum(self, start: int, stop: int) -> int:
        """CRC-32 of the records from ``start`` to before ``stop``, counted over the whole run."""
        value, wrap = 0, (start // self.slots + 1) * self.slots
        for first, last in ((start, min(stop, wrap)), (wrap, stop)):
            if first < last:
                # Not through the map, which reads page by page.
                offset = _HEADER_BYTES + first % self.slots * self._record_bytes
                value = zlib.crc32(os.pread(self._fd, (last - first) * self._record_bytes, offset), value)
        return value

    def reset(self) -> None:
        """Forget every transition. Those written earlier count as overwritten, so nothing can be rewound to."""
        super().reset()
        self.count = 0
        self._reserved[0] = self._safe_count = 0

    def flush(self) -> None:
        """Write what is still in the page cache to the disk, so that it survives a power cut too."""
        # Reaches pages changed through the map as well, and unlike mmap.flush lets other threads run.
        os.fsync(self._fd)

    def close(self) -> None:
        """Release the file descriptor; the memory map goes with the last array that refers to it."""
        os.close(self._fd)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the reference to the file, not its contents."""
        private = {
            "_map",
            "_fd",
            "_reserved",
            "_records",
            "_columns",
            "_record_bytes",
            "_safe_count",
            "_sums",
            "_block",
        }
        return {name: value for name, value in super().__getstate__().items() if name not in private}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()
        self.rewind(self.count)


def _allocate(fd: int, start: int, length: int) -> None:
    """Give the bytes disk space; their contents are not needed."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, start, length)
    else:  # macOS
        os.pwrite(fd, bytes(length), start)


def _read_layout(fd: int) -> dict[str, Any]:
    """The header of a replay buffer's file; an empty one for anything else."""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return {}
    try:
        stored = json.loads(os.pread(fd, _LAYOUT_BYTES, 0))
    except (ValueError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}
