"""Arguments of an environment's constructor: ``KEY:VALUE`` on the command line, an object in files.

Values are literals of Python: numbers, texts, True, False, None, lists and dictionaries of these. Nothing is evaluated.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from softdpg.errors import UserError

ENV_KWARGS_METAVAR = "KEY:VALUE [KEY:VALUE ...]"  # in the help of the command line
_ARGUMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)[:=](.*)", re.S)
_OPENS_A_LITERAL = ("(", "[", "{", "'", '"')  # what begins with one of these is no bare text
_OWN = {"render_mode": "softdpg watch sets it", "id": "that is --env"}
_DEEPEST = 20  # levels of lists and dictionaries in a value


class EnvKwargs(dict[str, Any]):
    """Arguments by name, as values of JSON. Not to be changed, so that settings stay hashable."""

    def __init__(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__({str(name): _listed(value) for name, value in dict(values).items()})

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self))

    def __str__(self) -> str:
        return " ".join(self.texts()) or "not given"

    def texts(self) -> list[str]:
        """The arguments as :func:`parse` takes them, one text each."""
        return [f"{name}:{_text(value)}" for name, value in self.items()]

    def wrong(self) -> str:
        """What is wrong with them, as the end of a sentence that begins with their name; empty if nothing."""
        for name, value in self.items():
            if not name.isidentifier():
                return f"must have names of Python, not {name[:50]!r}"
            if name in _OWN:
                return f"cannot have {name}: {_OWN[name]}"
            if not _is_plain(value):
                return f"{name} must be finite numbers, texts, True, False, None, lists or dictionaries of these"
        return ""

    def holds_text(self) -> bool:
        """Whether there is a text in them, which may name a file, a module or anything else."""
        return any(map(_holds_text, self.values()))


def parse(texts: Iterable[str]) -> EnvKwargs:
    """The arguments in texts ``KEY:VALUE`` or ``KEY=VALUE``; ``UserError`` if there are others.

    A value that is no literal is a text, unless it begins like one of the literals with brackets or quotes.
    """
    values: dict[str, Any] = {}
    for text in texts:
        match = _ARGUMENT.fullmatch(text)
        if match is None:
            raise UserError(f"--env-kwargs takes KEY:VALUE, not {text!r}")
        name, value = match.groups()
        if name in values:
            raise UserError(f"--env-kwargs has {name} twice")
        values[name] = _literal(name, value.strip())
    found = EnvKwargs(values)
    wrong = found.wrong()
    if wrong:
        raise UserError(f"--env-kwargs {wrong}")
    return found


def _literal(name: str, text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        if text.startswith(_OPENS_A_LITERAL):
            raise UserError(f"--env-kwargs {name}: {text!r} is not a value of Python") from None
        return text


def _text(value: Any) -> str:
    """The shortest text that reads back as ``value``."""
    if isinstance(value, str) and value == value.strip() and not value.startswith(_OPENS_A_LITERAL):
        try:
            ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value
    return repr(value)


def _listed(value: Any, depth: int = 0) -> Any:
    """The value with lists for tuples, as JSON has it."""
    if depth > _DEEPEST:
        return value
    if isinstance(value, list | tuple):
        return [_listed(item, depth + 1) for item in value]
    return {key: _listed(item, depth + 1) for key, item in value.items()} if isinstance(value, dict) else value


def _is_plain(value: Any, depth: int = 0) -> bool:
    if isinstance(value, list | dict):
        parts = value.values() if isinstance(value, dict) else value
        named = isinstance(value, list) or all(isinstance(key, str) for key in value)
        return named and depth < _DEEPEST and all(_is_plain(part, depth + 1) for part in parts)
    return value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and isfinite(value))


def _holds_text(value: Any) -> bool:
    if isinstance(value, list | dict):
        return any(map(_holds_text, [*value, *value.values()] if isinstance(value, dict) else value))
    return isinstance(value, str)
