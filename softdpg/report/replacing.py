"""Writing files that others may be reading."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from softdpg.errors import UserError


@contextmanager
def written_aside(out: Path) -> Iterator[Path]:
    """A directory whose files are moved to ``out`` in the end; ``UserError`` if that cannot be.

    Whoever reads a file meanwhile sees the old one or the new one. Nobody knows the directory's name, so that no link
    can wait in the place of a file.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".report-", dir=out) as aside:
            yield Path(aside)
            for file in Path(aside).iterdir():
                file.replace(out / file.name)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}") from None


def write_texts(texts: dict[str, str], directory: Path) -> list[Path]:
    """Write files by name; returns their paths."""
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8", newline="\n")
    return [directory / name for name in texts]
