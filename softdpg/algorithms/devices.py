"""Devices by the names that SB3 and JAX have for them."""

import warnings

import jax


def find_device(name: str) -> jax.Device:
    """The device of JAX with SB3's name, ``cuda`` or ``cuda:1``, or JAX's own, ``gpu`` or ``cpu``."""
    platform, _, index = name.partition(":")
    platform = {"cuda": "gpu"}.get(platform, platform)
    try:
        return jax.devices(platform)[int(index or 0)]
    except (RuntimeError, IndexError, ValueError):
        if platform == "gpu":
            warnings.warn(f"device={name!r}: JAX has no such GPU, going on with the CPU", stacklevel=5)
            return jax.devices("cpu")[0]
        available = sorted({device.platform for device in jax.devices()} | {"auto", "cpu"})
        raise ValueError(f"device {name!r} is not available to JAX; available: {', '.join(available)}") from None
