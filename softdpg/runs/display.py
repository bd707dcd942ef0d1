"""What a run prints: messages, a live progress line in a terminal, plain lines anywhere else.

Printing never ends a run, whatever the encoding of the terminal is and whether or not anybody reads it.
"""

import codecs
import errno
import io
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column


def speak_any_encoding() -> None:
    """Replace characters that the encoding of the terminal lacks, for instance ± by +-."""
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
    """Continue without output when its reader is gone, as with ``| head`` or a closed terminal."""
    try:
        yield
        stream.flush()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        silence(stream)


def silence(stream: TextIO) -> None:
    """Discard all further output of a stream."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def say(message: str) -> None:
    """Print a line to standard output, if anybody reads it."""
    with unless_closed(sys.stdout):
        print(message)


def say_error(message: str) -> None:
    """Print a line to standard error, if anybody reads it."""
    with unless_closed(sys.stderr):
        print(message, file=sys.stderr)


def warn(message: str) -> None:
    """Print a warning to standard error."""
    say_error(f"softdpg: warning: {message}")


class _RunConsole(Console):
    """A console that continues without a reader; Rich's own ends the process."""

    def on_broken_pipe(self) -> None:
        """Discard all further output."""
        silence(sys.stdout)


class Pace:
    """Estimate the speed of a run, and from it the time left.

    :param window: seconds over which the speed is measured
    """

    def __init__(self, window: float = 60.0) -> None:
        self.window = window
        self._points: deque[tuple[float, int]] = deque()

    def update(self, step: int) -> None:
        """Record that ``step`` has been reached now."""
        now = time.monotonic()
        self._points.append((now, step))
        while len(self._points) > 2 and now - self._points[0][0] > self.window:
            self._points.popleft()

    @property
    def speed(self) -> float:
        """Steps per second; 0 while unknown."""
        if len(self._points) < 2:
            return 0.0
        (t0, s0), (t1, s1) = self._points[0], self._points[-1]
        return max(s1 - s0, 0) / (t1 - t0) if t1 > t0 else 0.0  # fewer than before: the run started over

    def left(self, steps: int) -> str:
        """Return the time that ``steps`` more steps will take, as h:mm:ss."""
        return format_seconds(steps / self.speed) if self.speed else "-:--:--"


def format_seconds(seconds: float) -> str:
    """Format a time as ``h:mm:ss``, with days in front from one day on."""
    return str(timedelta(seconds=round(seconds)))


class RunDisplay:
    """Show the progress of one run: steps, speed, time left, last evaluation.

    :param title: printed first
    :param steps: steps of the whole run
    :param console: where to print; standard output unless given
    """

    LINE_EVERY = 30.0  # seconds between two lines where there is no terminal

    def __init__(self, title: str, steps: int, console: Console | None = None) -> None:
        self.steps = steps
        self.console = console or _RunConsole(highlight=False)
        self.pace = Pace()
        self.evaluation = ""
        self._next_line = 0.0
        self._progress = Progress(
            BarColumn(bar_width=None),
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            console=self.console,
            expand=True,
            disable=not self.console.is_terminal,
        )
        self._task = self._progress.add_task("", total=steps)
        self.say(title)

    def __enter__(self) -> "RunDisplay":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, step: int) -> None:
        """Show that the run is at ``step``."""
        self.pace.update(step)
        step = min(step, self.steps)  # the last rollout is done to its end
        numbers = f"{step:,}/{self.steps:,}  {self.pace.speed:,.0f} steps/s  {self.pace.left(self.steps - step)} left"
        if self.evaluation:
            numbers += f"  evaluation {self.evaluation}"
        self._progress.update(self._task, completed=step, description=numbers)
        if not self.console.is_terminal and self.pace.speed and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + self.LINE_EVERY
            self.say(numbers)

    def evaluated(self, step: int, mean: float, std: float) -> None:
        """Show an evaluation."""
        self.evaluation = f"{mean:.1f} ± {std:.1f}"
        if not self.console.is_terminal:
            self.say(f"evaluation at step {step:,}: {self.evaluation}")

    def say(self, message: str) -> None:
        """Print a line above the progress bar."""
        with unless_closed(sys.stdout):
            self.console.print(message, soft_wrap=True, markup=False)
