"""Who works on a run directory: a lock that is released with its process and cannot be deleted."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What the kernel says where a directory cannot be locked, as on NFS.
_UNSUPPORTED = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP, errno.EISDIR)
_FILE = "lock"


class InUseError(Exception):
    """Another process holds the lock."""


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory; :class:`InUseError` if another process does.

    The lock is on the directory itself, so that no file is there to be deleted while it is held. Where the file system
    locks no directories, a file in it serves. The kernel releases a lock with its process, even one that was killed.
    """
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            _lock(fd, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            os.close(fd)
            fd = os.open(directory / _FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
            _lock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def is_locked(directory: Path) -> bool:
    """Whether a process holds the lock now."""
    for path, kind in ((directory, os.O_DIRECTORY), (directory / _FILE, os.O_NOFOLLOW | os.O_NONBLOCK)):
        try:
            fd = os.open(path, os.O_RDONLY | kind)
        except OSError:
            continue
        try:
            _lock(fd, fcntl.LOCK_SH)
        except InUseError:
            return True
        except OSError:  # not supported here
            pass
        finally:
            os.close(fd)
    return False


def _lock(fd: int, kind: int) -> None:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InUseError from None
