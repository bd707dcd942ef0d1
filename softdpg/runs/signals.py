"""Ctrl-C and SIGTERM as requests."""

import signal
import time
from types import FrameType


class Signals:
    """Within its ``with`` block the first SIGINT or SIGTERM is a request, the second a ``KeyboardInterrupt``."""

    def __init__(self) -> None:
        self.received: int | None = None
        self.since = 0.0

    def __enter__(self) -> "Signals":
        self._previous = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            raise KeyboardInterrupt
        self.received, self.since = number, time.monotonic()
