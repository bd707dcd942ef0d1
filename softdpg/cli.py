"""The command ``softdpg``. Each function is a subcommand: its signature is the help, its body one call.

Implementations are imported inside the functions, so that ``softdpg --help`` loads neither JAX nor torch.
"""

import sys
from collections.abc import Callable
from typing import Any

import tyro

from softdpg.errors import UserError


def version() -> None:
    """Print the version."""
    from softdpg import __version__

    print(__version__)


COMMANDS: dict[str, Callable[..., Any]] = {
    "version": version,
}


def main() -> None:
    """Entry point of the console script."""
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS, prog="softdpg", description="Soft Deterministic Policy Gradient: train, reproduce, inspect."
        )
    except UserError as error:
        print(f"softdpg: error: {error}", file=sys.stderr)
        sys.exit(2)
