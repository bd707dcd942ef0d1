"""The one error that the command reports as a single line."""


class UserError(Exception):
    """Input that cannot work. The command prints the message on one line and exits with code 2."""


def missing_extra(name: str) -> UserError:
    """The error of a part of the package whose further dependencies are not installed."""
    return UserError(f"this needs the extra {name!r}: pip install 'softdpg[{name}]'")
