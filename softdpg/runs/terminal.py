"""Printing that never ends a run: whatever the terminal's encoding, and whether or not anybody reads it."""

import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


def speak_any_encoding() -> None:
    """Print what the terminal's encoding lacks in ASCII, +- for the sign of both: no run ends on a character."""
    codecs.register_error("softdpg", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="softdpg")


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    plain = {"±": "+-", "−": "-", "–": "-", "…": "...", "×": "x"}
    return "".join(plain.get(character, "?") for character in error.object[error.start : error.end]), error.end


@contextmanager
def unless_closed(stream: TextIO) -> Iterator[None]:
    """Go on without output where its reader is gone, as with ``| head`` or a closed terminal: training goes on."""
    try:
        yield
        stream.flush()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        silence(stream)


def silence(stream: TextIO) -> None:
    """Print to nowhere from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def say(message: str) -> None:
    """Print a line, if there is somebody to read it."""
    with unless_closed(sys.stdout):
        print(message)


def say_error(message: str) -> None:
    """Print a line to standard error, if there is somebody to read it."""
    with unless_closed(sys.stderr):
        print(message, file=sys.stderr)


def warn(message: str) -> None:
    """Print a warning."""
    say_error(f"softdpg: warning: {message}")
