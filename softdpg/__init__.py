"""Soft Deterministic Policy Gradient: algorithms, environments, theory and experiments.

Importing the package registers the environments and nothing else; the algorithms load JAX on first use.
"""

from typing import TYPE_CHECKING, Any

from softdpg.envs import register_envs

if TYPE_CHECKING:
    from softdpg.algorithms.ddpg import DDPG
    from softdpg.algorithms.soft_ddpg import SoftDDPG
    from softdpg.algorithms.soft_td3 import SoftTD3
    from softdpg.algorithms.td3 import TD3

    __version__: str

__all__ = ["DDPG", "TD3", "SoftDDPG", "SoftTD3", "__version__"]

register_envs()

_LAZY = {
    "DDPG": "softdpg.algorithms.ddpg",
    "TD3": "softdpg.algorithms.td3",
    "SoftDDPG": "softdpg.algorithms.soft_ddpg",
    "SoftTD3": "softdpg.algorithms.soft_td3",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":  # stands in pyproject.toml alone
        from importlib.metadata import version

        return version("softdpg")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
