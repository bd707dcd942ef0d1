"""Compiled functions are kept on disk: a run does not wait for what an earlier one has compiled.

That is JAX's own persistent cache, with a place and a size. What it gives back is the same machine code, so that runs
repeat exactly with it and without.
"""

import hashlib
import os
import platform
from collections.abc import MutableMapping
from pathlib import Path

_DIRECTORY = "JAX_COMPILATION_CACHE_DIR"
_BYTES = 1 << 30  # of all files; those not used for longest go first


def keep_compiled(environ: MutableMapping[str, str] = os.environ) -> None:
    """Set the variables that JAX reads when it is imported. A cache that is already set, or none, stays as it is."""
    if _DIRECTORY in environ:
        return
    try:
        root = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        directory = root.absolute() / "softdpg" / f"compiled-{_kind_of_processor()}"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # a home that is nowhere, or where nothing can be written
        return
    if not os.access(directory, os.W_OK | os.X_OK):
        return
    environ[_DIRECTORY] = str(directory)
    environ.setdefault("JAX_COMPILATION_CACHE_MAX_SIZE", str(_BYTES))
    # Making a model compiles dozens of functions that take a moment each.
    environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def _kind_of_processor() -> str:
    """A name for the kind of processor: where machines share a home, code for one may not run on the other."""
    kind = [platform.machine(), platform.processor()]
    try:
        lines = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
    except OSError:
        lines = []
    kind += [line for line in lines if line.partition("\t")[0] in ("model name", "flags", "Features")]
    return hashlib.sha256("\n".join(kind).encode()).hexdigest()[:16]
