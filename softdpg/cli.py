"""The command ``softdpg``. Each function is a subcommand: its signature is the help, its body one call.

Implementations are imported inside the functions, so that ``softdpg --help`` loads neither JAX nor torch.
"""

from collections.abc import Callable
from typing import Any

import tyro


def version() -> None:
    """Print the version."""
    from softdpg import __version__

    print(__version__)


COMMANDS: dict[str, Callable[..., Any]] = {
    "version": version,
}


def main() -> None:
    """Entry point of the console script."""
    tyro.extras.subcommand_cli_from_dict(
        COMMANDS, prog="softdpg", description="Soft Deterministic Policy Gradient: train, reproduce, inspect."
    )
