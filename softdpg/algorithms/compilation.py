"""JAX's persistent compilation cache, with a place and a size: what one process has compiled, the next one finds.

The cache returns the same machine code, so that results are the same with and without it. It is in
``~/.cache/softdpg``, or ``$XDG_CACHE_HOME/softdpg``. JAX's own settings take precedence: a cache that is configured
stays as it is, and ``JAX_ENABLE_COMPILATION_CACHE=false`` or an empty ``JAX_COMPILATION_CACHE_DIR`` switches it off.
This module does not import JAX until a model is made.
"""

import hashlib
import os
import platform
import stat
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

DIRECTORY = "jax_compilation_cache_dir"
_BYTES = 1 << 30  # the files that were not used for longest are removed first


def cache_settings(environ: Mapping[str, str], warn: Callable[[str], None]) -> dict[str, str]:
    """Return the settings that make JAX keep what it compiles, by JAX's names; empty to leave it as it is.

    A directory that somebody else could have written to is not used, because the files in it are executed.

    :param environ: the environment variables
    :param warn: called with one line if the directory is not safe
    """
    if DIRECTORY.upper() in environ:
        return {}
    try:
        root = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory = root.absolute()
        for name in ("softdpg", f"compiled-{_kind_of_processor()}"):
            directory /= name
            directory.mkdir(mode=0o700, exist_ok=True)
            wrong = _unsafe(directory)
            if wrong:
                warn(f"compiling without a cache: {directory} {wrong}")
                return {}
    except (OSError, RuntimeError):  # no home, or not writable
        return {}
    if not os.access(directory, os.W_OK | os.X_OK):
        return {}
    # Making a model compiles dozens of small functions.
    return {
        DIRECTORY: str(directory),
        "jax_compilation_cache_max_size": str(_BYTES),
        "jax_persistent_cache_min_compile_time_secs": "0",
    }


def keep_compiled() -> None:
    """Make JAX keep what it compiles from now on, unless the user has configured its cache or switched it off."""
    import jax

    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None or not config.jax_enable_compilation_cache:
        return
    for name, value in cache_settings(os.environ, lambda message: warnings.warn(message, stacklevel=2)).items():
        if name.upper() not in os.environ:
            config.update(name, type(getattr(config, name) or "")(value))


def _unsafe(directory: Path) -> str:
    """Return why another user may have written to a directory, as the end of a sentence; empty if none can have."""
    about = directory.lstat()
    if not stat.S_ISDIR(about.st_mode):
        return "is a link, not a directory"
    if about.st_uid != os.getuid():
        return "belongs to another user"
    return "can be written by other users; run chmod go-w on it" if about.st_mode & 0o022 else ""


def _kind_of_processor() -> str:
    """Return a name for the kind of processor: machines may share a home, but code for one may not run on another."""
    kind = [platform.machine(), platform.processor()]
    try:
        lines = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
    except OSError:
        lines = []
    kind += [line for line in lines if line.partition("\t")[0] in ("model name", "flags", "Features")]
    return hashlib.sha256("\n".join(kind).encode()).hexdigest()[:16]
