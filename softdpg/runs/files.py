"""Files of a run directory, which may be untrusted, and the lock on a directory.

Files are read and written without following links, without waiting for a pipe or a device, and within size limits.
"""

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from softdpg.errors import UserError

SMALL = 2**20  # bytes: settings and status
TABLE = 2**28  # CSV
ARRAYS = 2**33  # networks and optimisers
_DEEPEST = 50  # levels of JSON


class FileError(ValueError):
    """Raised for an invalid file; the message starts with its name."""


class InUseError(UserError):
    """Raised when another process holds the lock of a directory."""


def read_bytes(path: Path, limit: int) -> bytes:
    """Read a regular file.

    Raise ``FileNotFoundError`` if there is none, ``FileError`` if it is not regular, too large or unreadable.

    :param path: the file
    :param limit: largest size, in bytes
    """
    try:
        # Without O_NONBLOCK, opening a pipe would wait for its writer.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileError(f"{path.name} {_what_is_wrong(path, error)}") from None
    about = os.fstat(fd)
    if not stat.S_ISREG(about.st_mode):
        os.close(fd)
        raise FileError(f"{path.name} is not a regular file")
    with open(fd, "rb") as file:
        if about.st_size > limit:
            raise FileError(f"{path.name} has {about.st_size:,} bytes, more than {limit:,}")
        try:
            return file.read(limit)
        except OSError as error:
            raise FileError(f"{path.name} cannot be read: {error.strerror}") from None


def read_text(path: Path, limit: int = TABLE) -> str:
    """Read a text file; raises as :func:`read_bytes` does.

    :param path: the file
    :param limit: largest size, in bytes
    """
    try:
        return read_bytes(path, limit).decode()
    except UnicodeDecodeError:
        raise FileError(f"{path.name} is not text in UTF-8") from None


def read_json(path: Path, limit: int = SMALL) -> dict[str, Any]:
    """Read a JSON object; raise ``FileError`` unless all numbers are finite and all strings can be encoded.

    :param path: the file
    :param limit: largest size, in bytes
    """
    return parse_json(read_bytes(path, limit), path.name)


def parse_json(contents: bytes, name: str) -> dict[str, Any]:
    """Parse a JSON object; raises as :func:`read_json` does.

    :param contents: contents of the file
    :param name: name of the file, for the error message
    """
    try:
        value = parse_value(contents)
    except FileError as error:
        raise FileError(f"{name} {error}") from None
    if not isinstance(value, dict):
        raise FileError(f"{name} is not a JSON object")
    return value


def parse_value(contents: str | bytes) -> Any:
    """Parse a JSON value; raise ``FileError``, whose message lacks the file's name, as :func:`read_json` does.

    :param contents: the value
    """
    try:
        value = json.loads(contents, parse_constant=_not_finite, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()  # fails for a lone surrogate
    except UnicodeError:
        raise FileError("holds text that is not Unicode") from None
    except FileError:
        raise
    except ValueError:
        raise FileError("is not valid JSON") from None
    except RecursionError:
        raise FileError("is nested too deep") from None
    level = [value]
    for _ in range(_DEEPEST):
        parts = (part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list))
        level = [item for part in parts for item in part]
        if not level:
            return value
    raise FileError("is nested too deep")


def _finite(text: str) -> float:
    value = float(text)
    return _not_finite(text) if value in (float("inf"), float("-inf")) else value


def _not_finite(text: str) -> float:
    raise FileError(f"is invalid: {text[:50]} is not a finite number")


def write_json(path: Path, value: Any, *, durable: bool = False) -> None:
    """Write a JSON file; a reader sees the old contents or the new, never a part.

    :param path: the file
    :param value: what it is to hold
    :param durable: whether to wait until the contents are on the disk
    """
    replace_file(path, (json.dumps(value, indent=2) + "\n").encode(), durable=durable)


def replace_file(path: Path, contents: bytes, *, durable: bool = False) -> None:
    """Write ``contents`` to a temporary file, then rename it. A link at ``path`` is replaced, not followed.

    :param path: the file
    :param contents: its new contents
    :param durable: whether to wait until the contents are on the disk before renaming
    """
    aside = path.with_name(path.name + ".tmp")
    try:
        with open(_create(aside), "wb") as file:
            file.write(contents)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise


def _create(path: Path) -> int:
    """Create a new file, removing what a killed process or somebody else left under its name."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)


def open_regular(path: Path, flags: int) -> int:
    """Open a regular file, or create it; raise ``OSError`` or ``FileError`` if there is anything else.

    :param path: the file
    :param flags: of ``os.open``
    """
    fd = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileError(f"{path.name} is not a regular file")
    return fd


def append(path: Path, contents: bytes) -> None:
    """Append to a regular file, or create it."""
    with open(open_regular(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
        file.write(contents)


def is_full(error: OSError) -> bool:
    """Whether an error says that the disk, or the user's quota, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_directory(path: Path) -> bool:
    """Whether ``path`` is a directory, and not a link to one."""
    return path.is_dir() and not path.is_symlink()


def make_directory(path: Path) -> None:
    """Create a directory unless it exists; raise ``FileError`` if something else has its name."""
    path.mkdir(exist_ok=True)
    if not is_directory(path):
        raise FileError(f"{path.name} is a link, not a directory")


def _what_is_wrong(path: Path, error: OSError) -> str:
    return "is a link, which is not followed" if path.is_symlink() else f"cannot be read: {error.strerror}"


# What the kernel answers where a directory cannot be locked, for instance on NFS.
_UNSUPPORTED = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EISDIR)
LOCK = "lock"  # the file that is locked there instead


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory; raise :class:`InUseError` if another process holds it.

    The lock is on the directory itself, so that nobody can delete a lock file while it is held. A file in the directory
    serves where the file system cannot lock directories; where it can lock neither, raise ``UserError``. The kernel
    releases the lock when the process ends.
    """
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not _lock(fd, fcntl.LOCK_EX, directory):
            file = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
            os.close(fd)
            fd = file
            if not _lock(fd, fcntl.LOCK_EX, directory):
                (directory / LOCK).unlink()
                raise UserError(f"cannot lock {directory}; choose a directory on a file system that supports flock")
        yield
    finally:
        os.close(fd)


def is_locked(directory: Path) -> bool:
    """Whether a process holds the lock of a directory now."""
    for path, kind in ((directory, os.O_DIRECTORY), (directory / LOCK, os.O_NOFOLLOW | os.O_NONBLOCK)):
        try:
            fd = os.open(path, os.O_RDONLY | kind)
        except OSError:
            continue
        try:
            _lock(fd, fcntl.LOCK_SH, directory)
        except InUseError:
            return True
        finally:
            os.close(fd)
    return False


def _lock(fd: int, kind: int, directory: Path) -> bool:
    """Lock a directory, or a file in it, if the file system can; return whether it can."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InUseError(f"another process is working on {directory}") from None
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return False
    return True
