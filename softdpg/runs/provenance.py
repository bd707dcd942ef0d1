"""What made a result: package versions, git commit, machine."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

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


def provenance() -> dict[str, Any]:
    """The part of ``config.json`` that is not a setting."""
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
    """The commit of the checkout that this package runs from; None if it runs from elsewhere."""
    package = Path(__file__).parents[1]

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(package), *arguments], capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    # A package installed below somebody else's checkout is not of that checkout.
    if git("ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit = git("rev-parse", "HEAD")
    return f"{commit}-dirty" if commit and git("status", "--porcelain", "--", str(package)) else commit


def _machine() -> dict[str, Any]:
    threads = int(os.environ.get("NPROC", os.cpu_count() or 1))  # of JAX; see threads.py
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
