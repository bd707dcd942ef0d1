"""When a run has reached its goal."""

from collections.abc import Sequence

IN_A_ROW = 2  # evaluations: one alone may be luck


def crossing(means: Sequence[float], goal: float) -> int | None:
    """Index of the evaluation that completes the first :data:`IN_A_ROW` with a mean of at least ``goal``, if any."""
    above = 0
    for index, mean in enumerate(means):
        above = above + 1 if mean >= goal else 0
        if above == IN_A_ROW:
            return index
    return None
