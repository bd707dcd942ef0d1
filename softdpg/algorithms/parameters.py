"""Convert trees of parameters to flat dictionaries, such as ``{"actor.Dense_0.kernel": ...}``, and back."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import serialization, traverse_util

_OF_TENSORS = ("clone", "cpu", "detach", "numpy", "to")  # methods of tensors that callers of SB3 use on parameters


class ParameterArray(np.ndarray):
    """A read-only parameter on the host: a NumPy array that JAX and PyTorch functions also accept.

    ``torch.allclose(a, b)``, ``a.clone()`` and similar calls work on a PyTorch copy and return what PyTorch returns.
    """

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Call a PyTorch function with tensors instead of these arrays."""
        return func(*_tensors(args), **_tensors(kwargs or {}))

    @property
    def device(self) -> Any:
        """PyTorch's CPU device: this is a copy on the host, wherever the network is."""
        import torch

        return torch.device("cpu")

    def __getattr__(self, name: str) -> Any:
        if name in _OF_TENSORS:
            return getattr(_tensors(self), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _tensors(value: Any) -> Any:
    """Return ``value`` with its parameters replaced by PyTorch copies."""
    if isinstance(value, ParameterArray):
        import torch

        return torch.from_numpy(np.array(value))
    if isinstance(value, dict):
        return {key: _tensors(part) for key, part in value.items()}
    return type(value)(map(_tensors, value)) if type(value) in (list, tuple) else value


Parameters = dict[str, ParameterArray]


def to_flat(tree: Any) -> Parameters:
    """Return the leaves of a flax or optax tree, named by their path."""
    leaves = {name: jnp.asarray(leaf) for name, leaf in _flatten(tree).items() if _is_leaf(leaf)}
    return {name: np.asarray(leaf).view(ParameterArray) for name, leaf in jax.device_get(leaves).items()}


def from_flat(tree: Any, arrays: Mapping[str, Any], strict: bool = True) -> Any:
    """Return a tree like ``tree`` with the leaves that ``arrays`` names: JAX, NumPy or PyTorch CPU arrays.

    :param tree: tree of flax or optax
    :param arrays: new leaves by name
    :param strict: require all leaves and nothing else
    """
    flat = _flatten(tree)
    leaves = {name: leaf for name, leaf in flat.items() if _is_leaf(leaf)}
    missing, unexpected = sorted(leaves.keys() - arrays.keys()), sorted(arrays.keys() - leaves.keys())
    # The same exception as PyTorch's load_state_dict, which callers of SB3 expect.
    if strict and (missing or unexpected):
        raise RuntimeError(f"the parameters do not match this network: missing {missing}, unexpected {unexpected}")
    for name, leaf in leaves.items():
        if name in arrays:
            array = np.asarray(arrays[name])
            if array.shape != np.shape(leaf):
                raise RuntimeError(f"{name} has shape {array.shape}, expected {np.shape(leaf)}")
            flat[name] = _like(leaf, array)
    return serialization.from_state_dict(tree, traverse_util.unflatten_dict(flat, sep="."))


def _like(leaf: Any, array: np.ndarray) -> Any:
    """Copy ``array`` with the type and placement of ``leaf``, so that nothing compiles again."""
    if not array.ndim and getattr(leaf, "weak_type", True):  # a counter that started as a Python number
        return array.item()
    return jnp.array(array, jnp.result_type(leaf), device=leaf.sharding if leaf.committed else None)


def _flatten(tree: Any) -> dict[str, Any]:
    return traverse_util.flatten_dict(serialization.to_state_dict(tree), keep_empty_nodes=True, sep=".")


def _is_leaf(value: Any) -> bool:
    return value is not traverse_util.empty_node and value is not None
