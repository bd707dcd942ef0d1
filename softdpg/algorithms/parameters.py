"""Trees of parameters as flat dictionaries of arrays, such as ``{"actor.Dense_0.kernel": ...}``, and back."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import serialization, traverse_util

_OF_TENSORS = ("clone", "cpu", "detach", "numpy", "to")  # methods of PyTorch that callers of SB3 use on parameters


class ParameterArray(np.ndarray):
    """A parameter on the host, read-only: an array of NumPy, which JAX takes too, and functions of PyTorch as well.

    ``torch.allclose(a, b)``, ``a.clone()`` and the like work on a copy in PyTorch and give what they give there.
    """

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Call a function of PyTorch with tensors in the place of these arrays."""
        return func(*_tensors(args), **_tensors(kwargs or {}))

    @property
    def device(self) -> Any:
        """The CPU, as PyTorch names it: what is here is a copy on the host, wherever the network is."""
        import torch

        return torch.device("cpu")

    def __getattr__(self, name: str) -> Any:
        if name in _OF_TENSORS:
            return getattr(_tensors(self), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _tensors(value: Any) -> Any:
    """``value`` with copies in PyTorch of the parameters in it."""
    if isinstance(value, ParameterArray):
        import torch

        return torch.from_numpy(np.array(value))
    if isinstance(value, dict):
        return {key: _tensors(part) for key, part in value.items()}
    return type(value)(map(_tensors, value)) if type(value) in (list, tuple) else value


Parameters = dict[str, ParameterArray]


def to_flat(tree: Any) -> Parameters:
    """The leaves of a tree of flax or optax, named by their path."""
    leaves = {name: jnp.asarray(leaf) for name, leaf in _flatten(tree).items() if _is_leaf(leaf)}
    return {name: np.asarray(leaf).view(ParameterArray) for name, leaf in jax.device_get(leaves).items()}


def from_flat(tree: Any, arrays: Mapping[str, Any], strict: bool = True) -> Any:
    """A tree like ``tree`` with the leaves that ``arrays`` names: JAX, NumPy or CPU arrays of PyTorch.

    :param strict: all leaves must be named, and nothing else
    """
    flat = _flatten(tree)
    leaves = {name: leaf for name, leaf in flat.items() if _is_leaf(leaf)}
    missing, unexpected = sorted(leaves.keys() - arrays.keys()), sorted(arrays.keys() - leaves.keys())
    # As PyTorch's load_state_dict, whose errors callers of SB3 know.
    if strict and (missing or unexpected):
        raise RuntimeError(f"not the parameters of this network: missing {missing}, unexpected {unexpected}")
    for name, leaf in leaves.items():
        if name in arrays:
            array = np.asarray(arrays[name])
            if array.shape != np.shape(leaf):
                raise RuntimeError(f"{name} has shape {array.shape}, that of this network {np.shape(leaf)}")
            flat[name] = _like(leaf, array)
    return serialization.from_state_dict(tree, traverse_util.unflatten_dict(flat, sep="."))


def _like(leaf: Any, array: np.ndarray) -> Any:
    """A copy of ``array`` of ``leaf``'s kind, for which nothing has to be compiled anew."""
    if not array.ndim and getattr(leaf, "weak_type", True):  # a counter that began as a number of Python
        return array.item()
    return jnp.array(array, jnp.result_type(leaf), device=leaf.sharding if leaf.committed else None)


def _flatten(tree: Any) -> dict[str, Any]:
    return traverse_util.flatten_dict(serialization.to_state_dict(tree), keep_empty_nodes=True, sep=".")


def _is_leaf(value: Any) -> bool:
    return value is not traverse_util.empty_node and value is not None
