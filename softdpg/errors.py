"""Errors that the command reports in one line, and suggestions for mistyped names."""

import difflib
import re
from importlib.util import find_spec

# The extras of pyproject.toml, and modules that are installed with each.
EXTRAS = {
    "mujoco": ("mujoco",),
    "box2d": ("Box2D",),
    "report": ("matplotlib", "plotly"),
    "video": ("imageio", "imageio_ffmpeg"),
    "peers": ("sbx", "sb3_contrib"),
    "ray": ("ray",),
    "tune": ("optuna",),
    "export": ("onnx",),
    "track": ("mlflow", "wandb"),
}


class UserError(Exception):
    """Invalid input. The command prints the message in one line and exits with code 2."""


class MissingExtraError(UserError, ImportError):
    """An extra of the package is not installed.

    :param extra: a name in ``EXTRAS``
    :param what: the command or function that needs it
    """

    def __init__(self, extra: str, what: str) -> None:
        # The package is not on PyPI yet; docs/installation.md says the same.
        super().__init__(f"{what} needs the extra {extra!r}: in a copy of the repository, pip install '.[{extra}]'")


def require_extra(extra: str, what: str) -> None:
    """Raise :class:`MissingExtraError` if an extra is not installed. This imports none of its modules.

    :param extra: a name in ``EXTRAS``
    :param what: the command or function that needs it
    """
    if any(find_spec(module) is None for module in EXTRAS[extra]):
        raise MissingExtraError(extra, what)


def one_line(error: BaseException) -> str:
    """Return the message of any exception in one line of at most 1,000 characters."""
    try:
        text = str(error)
    except Exception:
        text = "its message cannot be shown"
    return " ".join(text.split())[:1_000].encode(errors="backslashreplace").decode()  # without lone surrogates


def near_matches(name: str, known: list[str]) -> str:
    """Return ``; did you mean A, B?`` for the known names nearest to ``name``, or an empty string.

    :param name: the mistyped name
    :param known: all names; of several versions only the newest is suggested
    """
    newest = {re.sub(r"-v\d+$", "", candidate): candidate for candidate in sorted(known, key=_version)}
    stems = {stem.rsplit("/")[-1].lower(): stem for stem in newest} | {stem.lower(): stem for stem in newest}
    wanted = re.sub(r"-v\d+$", "", name.lower())
    found = dict.fromkeys(newest[stems[key]] for key in difflib.get_close_matches(wanted, stems, n=6, cutoff=0.6))
    return f"; did you mean {', '.join(list(found)[:3])}?" if found else ""


def _version(name: str) -> int:
    match = re.search(r"-v(\d+)$", name)
    return int(match[1]) if match else -1
