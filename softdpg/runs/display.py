"""What a run in the foreground shows: a live line in a terminal, plain lines anywhere else."""

import sys
import time
from collections import deque
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from softdpg.runs.terminal import silence, unless_closed


class _RunConsole(Console):
    """A console that goes on without a reader; Rich's own ends the process."""

    def on_broken_pipe(self) -> None:
        """Print to nowhere from now on."""
        silence(sys.stdout)


class Pace:
    """Speed over the last while, and from it the time left."""

    def __init__(self, window: float = 60.0) -> None:
        self.window = window
        self._points: deque[tuple[float, int]] = deque()

    def update(self, step: int) -> None:
        """Note that ``step`` has been reached now."""
        now = time.monotonic()
        self._points.append((now, step))
        while len(self._points) > 2 and now - self._points[0][0] > self.window:
            self._points.popleft()

    @property
    def speed(self) -> float:
        """Steps a second; 0 while unknown."""
        if len(self._points) < 2:
            return 0.0
        (t0, s0), (t1, s1) = self._points[0], self._points[-1]
        return max(s1 - s0, 0) / (t1 - t0) if t1 > t0 else 0.0  # less than before: one starts over

    def left(self, steps: int) -> str:
        """Time that ``steps`` more steps will take, as h:mm:ss."""
        return format_seconds(steps / self.speed) if self.speed else "-:--:--"


def format_seconds(seconds: float) -> str:
    """``h:mm:ss``, with days in front from one day on."""
    return str(timedelta(seconds=round(seconds)))


class RunDisplay:
    """Progress of one run: steps, speed, time left, last evaluation."""

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
