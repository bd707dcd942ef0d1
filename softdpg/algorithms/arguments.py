"""What the constructors accept: each check names the argument and what it may be."""

from typing import Any

import numpy as np


def check_whole(name: str, value: Any, least: int) -> None:
    """``ValueError`` unless ``value`` is a whole number of at least ``least``."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, not {value!r}")


def check_share(name: str, value: Any) -> None:
    """``ValueError`` unless ``value`` is a number from 0 to 1."""
    if not _is_number(value) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, not {value!r}")


def check_scale(name: str, value: Any) -> None:
    """``ValueError`` unless ``value`` is a finite number of at least 0."""
    if not _is_number(value) or not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a finite number >= 0, not {value!r}")


def check_rate(name: str, value: Any) -> None:
    """``ValueError`` unless ``value`` is a finite number of at least 0, or a schedule that starts with one."""
    check_scale(name, value(1.0) if callable(value) else value)


def check_flag(name: str, value: Any) -> None:
    """``ValueError`` unless ``value`` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, not {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """``ValueError`` unless ``value`` is one of ``choices``."""
    if value not in choices:
        quoted = [f'"{choice}"' for choice in choices]
        raise ValueError(f"{name} must be {', '.join(quoted[:-1])} or {quoted[-1]}, not {value!r}")


def check_train_freq(value: Any) -> None:
    """``ValueError`` unless ``value`` is a whole number of steps, or a pair such as ``(1, "episode")``."""
    number, unit = value if isinstance(value, tuple | list) and len(value) == 2 else (value, "step")
    check_whole("train_freq", number, 1)
    check_choice("the unit of train_freq", unit, ("step", "episode"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
