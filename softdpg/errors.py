"""The error that the command reports as a single line, and the one for what is not installed."""

from importlib.util import find_spec

# The extras of pyproject.toml and the modules by which each is known to be installed.
EXTRAS = {
    "mujoco": ("mujoco",),
    "box2d": ("Box2D",),
    "report": ("matplotlib", "plotly"),
    "video": ("imageio", "imageio_ffmpeg"),
    "ray": ("ray",),
    "tune": ("optuna",),
    "export": ("onnx",),
}


class UserError(Exception):
    """Input that cannot work. The command prints the message on one line and exits with code 2."""


class MissingExtraError(UserError, ImportError):
    """Something needs an extra of the package that is not installed."""

    def __init__(self, extra: str, what: str) -> None:
        super().__init__(f"{what} needs the extra {extra!r}: pip install 'softdpg[{extra}]'")


def require_extra(extra: str, what: str) -> None:
    """Raise :class:`MissingExtraError` unless the modules of ``extra`` are there; imports none of them.

    :param extra: a name of ``EXTRAS``
    :param what: the command or function that needs it, the beginning of the message
    """
    if any(find_spec(module) is None for module in EXTRAS[extra]):
        raise MissingExtraError(extra, what)
