"""What every reward rule has in common, and the checks of their arguments.

A rule is a plain object: its arguments are the numbers of the reward (the paper's by default), its memory lives for one
episode. ``reset(...)`` starts an episode and ``step(...)`` returns the reward of one step; both take physical
quantities by name and know nothing of simulators. What the rule did in the step stands in its public attributes, which
the environments copy to ``info``: reading them is cheaper than building and merging a dictionary in every step.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


@dataclass(kw_only=True, slots=True)
class Rule:
    """A reward rule without memory and without a ceiling; rules with either override these methods."""

    def progress_names(self) -> tuple[str, ...]:
        """Name each entry of ``progress()``."""
        return ()

    def progress(self) -> tuple[float, ...]:
        """Return the memory that the next rewards depend on, each entry scaled to [-1, 1]."""
        return ()

    def ceiling(self, max_episode_steps: int) -> float | None:
        """Return the largest return that any trajectory of this many steps can have, ``None`` where there is none."""
        return None


def squash(x: float) -> float:
    """Map x to (-1, 1]: x itself in [0, 1], 1 above, x / (1 - x) below zero, where it stays one-to-one."""
    return min(x, 1.0) if x >= 0.0 else x / (1.0 - x)


def is_number(value: Any) -> bool:
    """Tell whether ``value`` is a finite real number (numpy scalars included, booleans not)."""
    try:
        return not isinstance(value, (bool, str, bytes)) and math.isfinite(value)
    except TypeError:
        return False


def check_number(name: str, value: Any) -> float:
    """Return ``value`` as a float; it must be a finite number."""
    if not is_number(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def check_positive(name: str, value: Any) -> float:
    """Return ``value`` as a float; it must be a finite number above zero."""
    if not is_number(value) or value <= 0:
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")
    return float(value)


def check_bonus(name: str, value: Any) -> float:
    """Return ``value`` as a float; it must be a finite number of at least zero."""
    if not is_number(value) or value < 0:
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
    return float(value)


def check_penalty(name: str, value: Any) -> float:
    """Return ``value`` as a float; it must be a finite number of at most zero, as it is added to the reward."""
    if not is_number(value) or value > 0:
        raise ValueError(f"{name} must be a finite number <= 0 (it is added to the reward), got {value!r}")
    return float(value)


def check_count(name: str, value: Any) -> int:
    """Return ``value`` as an int; it must be a whole number of at least one."""
    if not is_number(value) or value < 1 or value != int(value):
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Return ``value``; it must be a bool."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return value


def check_numbers(name: str, values: Any) -> tuple[float, ...]:
    """Return ``values`` as a tuple of floats; it must be a sequence of finite numbers."""
    try:
        entries = tuple(values)
    except TypeError:
        entries = (None,)
    if not all(is_number(value) for value in entries):
        raise ValueError(f"{name} must be a sequence of finite numbers, got {values!r}")
    return tuple(float(value) for value in entries)


def check_increasing(name: str, values: Any) -> tuple[float, ...]:
    """Return ``values`` as a tuple of floats; it must be a non-empty, strictly increasing sequence."""
    numbers = check_numbers(name, values)
    if not numbers or any(a >= b for a, b in pairwise(numbers)):
        raise ValueError(f"{name} must be one or more strictly increasing numbers, got {values!r}")
    return numbers


def check_bounds(name: str, values: Any) -> tuple[float, ...]:
    """Return ``values`` as a tuple of floats; it must be strictly increasing and positive, as it bounds a magnitude."""
    numbers = check_increasing(name, values)
    check_positive(f"{name}[0]", numbers[0])
    return numbers


def check_counts(name: str, values: Any) -> tuple[int, ...]:
    """Return ``values`` as a tuple of ints; it must be a strictly increasing sequence of whole numbers >= 1."""
    return tuple(check_count(f"{name}[{i}]", value) for i, value in enumerate(check_increasing(name, values)))


def check_band_rewards(name: str, values: Any, bounds_name: str, bounds: Sequence[float]) -> tuple[float, ...]:
    """Return ``values`` as a tuple of floats, one for each of the ``len(bounds) + 1`` bands."""
    numbers = check_numbers(name, values)
    if len(numbers) != len(bounds) + 1:
        raise ValueError(
            f"{name} must have one entry for each band, {len(bounds) + 1} for {bounds_name}={tuple(bounds)}, "
            f"got {len(numbers)}"
        )
    return numbers


def check_bonuses(name: str, values: Any, at_name: str, at: Sequence[float]) -> tuple[float, ...]:
    """Return ``values`` as a tuple of floats >= 0, one for each entry of ``at``."""
    numbers = check_numbers(name, values)
    if len(numbers) != len(at):
        raise ValueError(f"{name} must be as long as {at_name} ({len(at)}), got {len(numbers)} entries")
    return tuple(check_bonus(f"{name}[{i}]", number) for i, number in enumerate(numbers))
