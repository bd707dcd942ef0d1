"""Ctrl-C and SIGTERM as requests."""

import signal
import threading
from collections.abc import Callable
from types import FrameType

GRACE = 25.0  # seconds that an interrupted run may take to end; schedulers kill after 30
_MARGIN = 2.0  # seconds that ``overdue`` gets before the kernel ends the process


class Signals:
    """Within its ``with`` block the first SIGINT or SIGTERM is a request, the second a ``KeyboardInterrupt``.

    :param overdue: called, in a thread of its own, with the signal's number if the block has not ended :data:`GRACE`
        seconds after the request; it must end the process. If it cannot run, because native code keeps Python from
        running at all, the kernel ends the process.
    """

    def __init__(self, overdue: Callable[[int], None] | None = None) -> None:
        self.received: int | None = None
        self._overdue = overdue
        self._timer: threading.Timer | None = None

    def __enter__(self) -> "Signals":
        self._previous = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._timer.cancel()
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            raise KeyboardInterrupt
        self.received = number
        if self._overdue is not None:
            self._timer = threading.Timer(GRACE, self._overdue, [number])
            self._timer.daemon = True
            self._timer.start()
            signal.setitimer(signal.ITIMER_REAL, GRACE + _MARGIN)  # SIGALRM, which ends a process
