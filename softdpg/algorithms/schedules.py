"""Schedules of the progress remaining, from 1 to 0, as SB3 has them; written as text on the command line."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Linear:
    """From ``start`` to ``end`` in a straight line; ``linear:0.5:0.1`` as text."""

    start: float
    end: float

    def __call__(self, progress_remaining: float) -> float:
        """The value when this share of the training is left."""
        return self.end + (self.start - self.end) * progress_remaining


def parse_schedule(text: str) -> Linear:
    """The schedule that a text means; ``ValueError`` if it means none."""
    kind, *numbers = text.split(":")
    if kind != "linear" or len(numbers) != 2:
        raise ValueError(f"not a schedule: {text!r} (linear:START:END)")
    return Linear(*map(float, numbers))
