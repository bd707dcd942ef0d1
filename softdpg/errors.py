"""The one error that the command reports as a single line."""


class UserError(Exception):
    """Input that cannot work. The command prints the message on one line and exits with code 2."""
