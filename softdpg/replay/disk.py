"""Replay buffers on disk that survive a crash at any moment."""

import json
import mmap
import os
import stat
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import BaseBuffer

from softdpg.replay.memory import FlatReplayBuffer, RecordReplayBuffer

_HEADER_BYTES = 4096
_LAYOUT_BYTES = _HEADER_BYTES - 8  # the last 8 bytes of the header hold the number of reserved transitions
_ALLOCATION_BYTES = 8 * 2**20
_FORMAT = "softdpg replay buffer 2"
_LARGEST_BLOCK = 1024  # records under one checksum


class DiskReplayBuffer(RecordReplayBuffer):
    """Store the records in one memory-mapped file, for runs that must survive being killed.

    The file has ``buffer_size + slack`` slots. Record ``t``, counted over the whole run, is in slot
    ``t % (buffer_size + slack)``, and only the last ``buffer_size`` transitions are sampled. So a record stays
    untouched for ``slack`` steps after it has left this window. A checkpoint therefore needs to store only ``count``:
    :meth:`rewind` restores its exact window, as long as no more than about 5/8 of ``slack`` transitions were added
    after it. :meth:`holds` tells whether it still can.

    Each added record enters the CRC-32 checksum of its block. A checkpoint stores :meth:`checksums` and passes them to
    :meth:`rewind`, which then detects any changed byte of the window.

    Disk space is allocated as the buffer fills. A full disk is therefore an ``OSError`` from :meth:`add`, not a
    ``SIGBUS`` as with a sparse memory map.

    :param buffer_size: maximal number of transitions that are sampled
    :param observation_space: a Box
    :param action_space: a Box
    :param device: device of the tensors that :meth:`sample` returns
    :param n_envs: number of training environments
    :param optimize_memory_usage: must be False
    :param handle_timeout_termination: treat time limits as truncation, so that values bootstrap through them
    :param path: the file; an existing file must have the same layout, and counts as empty until :meth:`rewind`
    :param slack: number of records kept beyond ``buffer_size``, so that earlier checkpoints stay usable
    :param run: identity of the run; a file that belongs to another run is refused
    :param n_steps: number of steps whose rewards are summed
    :param gamma: discount factor of these rewards
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
                "DiskReplayBuffer needs Box observation and action spaces, "
                f"got {type(observation_space).__name__} and {type(action_space).__name__}"
            )
        if slack < 0:
            raise ValueError(f"slack must be at least 0, got {slack}")
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
        # Do not wait for a pipe or a device in place of the file, and do not follow a link.
        fd = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            self._check_file(fd)
            self._map = mmap.mmap(fd, self._file_bytes)
            # Reads are random: without this, every page fault would also read pages that are not needed.
            self._map.madvise(mmap.MADV_RANDOM)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        self._reserved = np.frombuffer(self._map, "<u8", count=1, offset=_LAYOUT_BYTES)
        records = np.frombuffer(self._map, "<f4", offset=_HEADER_BYTES)
        self._set_records(records.reshape(-1, self.record_dim))
        self._safe_count = min(self.slots, int(self._reserved[0]))
        self._block = min(max((self.slots - self.buffer_size) // 4, 1), _LARGEST_BLOCK)
        # The checksum of block b, as far as the block is filled, is at index b % len.
        self._sums = [0] * (self.slots // self._block + 2)

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
        """Write the file under another name, then rename it, so that a killed process leaves no file without header."""
        aside = self.path.with_name(self.path.name + ".tmp")
        aside.unlink(missing_ok=True)
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        with open(fd, "wb") as file:
            file.write(json.dumps(self._layout).encode().ljust(_LAYOUT_BYTES) + bytes(8))
            file.truncate(self._file_bytes)
        aside.replace(self.path)

    def _check_file(self, fd: int) -> None:
        """Raise ``ValueError`` unless the file is a replay buffer of this layout and this run."""
        stored = _read_layout(fd)
        if stored.get("format") == _FORMAT and stored.get("run") != self.run:
            raise ValueError(f"{self.path} is the replay buffer of another run")
        if stored != self._layout or os.fstat(fd).st_size != self._file_bytes:
            raise ValueError(f"{self.path} is not a replay buffer of this layout: {self._layout}")

    def add(
        self,
        obs: np.ndarray,
        next_obs: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Append one transition of each environment.

        :param obs: ``(n_envs, *shape)``
        :param next_obs: ``(n_envs, *shape)``
        :param action: ``(n_envs, m)``
        :param reward: ``(n_envs,)``
        :param done: ``(n_envs,)``, whether the episode ended
        :param infos: the info dict of each environment
        :raises OSError: with ``ENOSPC`` if the disk is full
        """
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
        """Reserve room for more records; note this on disk before any of them is written."""
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
        # SB3's index j is the newest transition t with t % buffer_size == j.
        newest = self.count - 1
        return (newest - (newest - batch_inds) % self.buffer_size) % self.slots

    def _blocks(self, count: int) -> range:
        """Return the blocks of records that the window before transition ``count`` needs."""
        return range(max(count - self.buffer_size, 0) // self._block, -(-count // self._block))

    def holds(self, count: int) -> bool:
        """Return whether the file still holds the window before transition ``count``, in whole blocks.

        :param count: number of transitions, counted over the whole run
        """
        oldest = self._blocks(count).start * self._block
        return 0 <= count <= self._reserved[0] <= oldest + self.slots

    def checksums(self) -> np.ndarray:
        """Return the CRC-32 of each block of records in the current window, oldest first: ``(blocks,)``."""
        return np.array([self._sums[b % len(self._sums)] for b in self._blocks(self.count)], np.uint32)

    def rewind(self, count: int, checksums: np.ndarray | None = None) -> None:
        """Restore the state after ``count`` transitions.

        :param count: number of transitions, counted over the whole run
        :param checksums: what :meth:`checksums` returned in that state
        :raises ValueError: if the file no longer holds the window, or the records do not match the checksums; the
            buffer is then unchanged
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
        """Return the CRC-32 of the records from ``start`` to before ``stop``, counted over the whole run."""
        value, wrap = 0, (start // self.slots + 1) * self.slots
        for first, last in ((start, min(stop, wrap)), (wrap, stop)):
            if first < last:
                # pread is faster than the map, which reads page by page.
                offset = _HEADER_BYTES + first % self.slots * self._record_bytes
                value = zlib.crc32(os.pread(self._fd, (last - first) * self._record_bytes, offset), value)
        return value

    def reset(self) -> None:
        """Forget every transition; no earlier state can be restored."""
        super().reset()
        self.count = 0
        self._reserved[0] = self._safe_count = 0

    def flush(self) -> None:
        """Write the page cache to the disk, so that the records survive a power cut."""
        # fsync includes pages changed through the map and, unlike mmap.flush, lets other threads run.
        os.fsync(self._fd)

    def close(self) -> None:
        """Close the file descriptor; the memory map lives as long as an array refers to it."""
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


class FlatDiskReplayBuffer(FlatReplayBuffer, DiskReplayBuffer):
    """Store flattened Dict observations on disk: a :class:`FlatReplayBuffer` and a :class:`DiskReplayBuffer`."""


def _allocate(fd: int, start: int, length: int) -> None:
    """Allocate disk space; nobody needs what the bytes contain."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, start, length)
    else:  # macOS
        os.pwrite(fd, bytes(length), start)


def _read_layout(fd: int) -> dict[str, Any]:
    """Read the header of a replay buffer's file; return an empty dict for any other file."""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return {}
    try:
        stored = json.loads(os.pread(fd, _LAYOUT_BYTES, 0))
    except (ValueError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}
