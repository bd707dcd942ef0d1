"""The process of a run: its threads, its cache of compiled functions, its signals, and what it ran on.

Light: :func:`use_one_thread` and :func:`keep_compiled` must be called before JAX is imported.
"""

import os
import platform
import signal
import subprocess
import threading
from collections.abc import Callable, MutableMapping
from functools import cache
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any

from softdpg.algorithms.compilation import cache_settings
from softdpg.runs.display import warn

GRACE = 25.0  # seconds that an interrupted run may take to end; schedulers kill after 30
_MARGIN = 2.0  # seconds that ``overdue`` gets before the kernel ends the process
_EIGEN = "--xla_cpu_multi_thread_eigen="
_PACKAGES = (
    "softdpg",
    "jax",
    "jaxlib",
    "flax",
    "optax",
    "sbx-rl",
    "stable-baselines3",
    "torch",
    "numpy",
    "gymnasium",
    "mujoco",
    "box2d",
)


def use_one_thread(environ: MutableMapping[str, str] = os.environ) -> None:
    """Give this process one thread, so that parallel runs do not compete for cores and results repeat.

    JAX splits its work by the number of threads, so another number gives other last digits. Variables that are already
    set stay.

    :param environ: the variables that JAX, torch and BLAS read when they are first imported
    """
    # NPROC is the size of JAX's own thread pools.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"):
        environ.setdefault(name, "1")
    flags = environ.get("XLA_FLAGS", "")
    if _EIGEN not in flags:
        environ["XLA_FLAGS"] = f"{flags} {_EIGEN}false".strip()


def keep_compiled(environ: MutableMapping[str, str] = os.environ) -> None:
    """Keep compiled functions on disk, see :mod:`softdpg.algorithms.compilation`. The variables reach child processes.

    :param environ: the variables that JAX reads when it is imported
    """
    for name, value in cache_settings(environ, _warn_once).items():
        environ.setdefault(name.upper(), value)


@cache
def _warn_once(message: str) -> None:
    warn(message)


class Signals:
    """Inside its ``with`` block the first SIGINT, SIGTERM or SIGHUP is a request, the second a ``KeyboardInterrupt``.

    SIGHUP comes when a terminal is closed. It stays ignored under ``nohup``.

    :param overdue: called in a thread with the signal's number if the block has not ended :data:`GRACE` seconds after
        the request; it must end the process. If native code keeps Python from running, the kernel ends the process.
    """

    def __init__(self, overdue: Callable[[int], None] | None = None) -> None:
        self.received: int | None = None
        self._overdue = overdue
        self._timer: threading.Timer | None = None

    def __enter__(self) -> "Signals":
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        self._previous = {number: signal.signal(number, self._handle) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._timer.cancel()
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            raise KeyboardInterrupt
        self.received = number
        if self._overdue is not None:
            self._timer = threading.Timer(GRACE, self._overdue, [number])
            self._timer.daemon = True
            self._timer.start()
            signal.setitimer(signal.ITIMER_REAL, GRACE + _MARGIN)  # SIGALRM, which ends a process


def provenance() -> dict[str, Any]:
    """Return what made a result: package versions, git commit and machine, for ``config.json``."""
    return {"versions": _versions(), "commit": _commit(), "machine": _machine()}


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _commit() -> str | None:
    """Return the commit of the checkout that this package runs from; None if it is installed."""
    package = Path(__file__).parents[1]

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(package), *arguments], capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    # A package installed below another checkout does not belong to it.
    if git("ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit = git("rev-parse", "HEAD")
    return f"{commit}-dirty" if commit and git("status", "--porcelain", "--", str(package)) else commit


def _machine() -> dict[str, Any]:
    threads = int(os.environ.get("NPROC", os.cpu_count() or 1))  # of JAX
    system = f"{platform.system()} {platform.machine()}"
    return {"system": system, "processor": _processor(), "cores": os.cpu_count(), "threads": threads}


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
