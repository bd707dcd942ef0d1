"""Files of a run directory, which may come from a stranger.

They are read and written without following a link, without waiting for a pipe or a device, and within limits of size.
"""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

SMALL = 2**20  # bytes: settings and status
TABLE = 2**28  # CSV
ARRAYS = 2**33  # networks and optimisers


class FileError(ValueError):
    """A file that cannot be what it should be; the message starts with its name."""


def read_bytes(path: Path, limit: int) -> bytes:
    """The contents of a regular file of at most ``limit`` bytes.

    ``FileNotFoundError`` if there is none, ``FileError`` if it is something else, too large or cannot be read.
    """
    try:
        # Not blocking: opening a pipe would wait for its writer.
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
    """The contents of a text file; see :func:`read_bytes`."""
    try:
        return read_bytes(path, limit).decode()
    except UnicodeDecodeError:
        raise FileError(f"{path.name} is not text in UTF-8") from None


def read_json(path: Path, limit: int = SMALL) -> dict[str, Any]:
    """The JSON object in a file; ``FileError`` unless all its numbers are finite and all its texts can be encoded."""
    return parse_json(read_bytes(path, limit), path.name)


def parse_json(contents: bytes, name: str) -> dict[str, Any]:
    """The JSON object in the contents of the file ``name``; see :func:`read_json`."""
    try:
        value = json.loads(contents, parse_constant=_not_finite, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate cannot be
    except UnicodeError:
        raise FileError(f"{name} holds text that is not Unicode") from None
    except FileError as error:
        raise FileError(f"{name}: {error}") from None
    except ValueError:
        raise FileError(f"{name} is not valid JSON") from None
    except RecursionError:
        raise FileError(f"{name} is nested too deep") from None
    if not isinstance(value, dict):
        raise FileError(f"{name} is not a JSON object")
    return value


def _finite(text: str) -> float:
    value = float(text)
    return _not_finite(text) if value in (float("inf"), float("-inf")) else value


def _not_finite(text: str) -> float:
    raise FileError(f"{text} is not a finite number")


def write_json(path: Path, value: Any, *, durable: bool = False) -> None:
    """Write a JSON file so that a reader sees the old contents or the new, never a part."""
    replace_file(path, (json.dumps(value, indent=2) + "\n").encode(), durable=durable)


def replace_file(path: Path, contents: bytes, *, durable: bool = False) -> None:
    """Write ``contents`` aside, then rename. A link at ``path`` is replaced, its target left alone.

    :param durable: whether the contents must be on the disk before the name is
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
    """A file that is new: what a killed process, or a stranger, left under its name goes, a link and not its target."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)


def open_regular(path: Path, flags: int) -> int:
    """A descriptor of a regular file, made if need be; ``OSError`` or ``FileError`` if there is anything else."""
    fd = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileError(f"{path.name} is not a regular file")
    return fd


def append(path: Path, contents: bytes) -> None:
    """Append to a regular file, made if need be."""
    with open(open_regular(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
        file.write(contents)


def is_full(error: OSError) -> bool:
    """Whether it says that the disk, or the user's share of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_directory(path: Path) -> bool:
    """Whether there is a directory, and not a link to one."""
    return path.is_dir() and not path.is_symlink()


def make_directory(path: Path) -> None:
    """Make a directory unless it is there; ``FileError`` if something else has its name."""
    path.mkdir(exist_ok=True)
    if not is_directory(path):
        raise FileError(f"{path.name} is a link, not a directory")


def _what_is_wrong(path: Path, error: OSError) -> str:
    return "is a link, which is not followed" if path.is_symlink() else f"cannot be read: {error.strerror}"
