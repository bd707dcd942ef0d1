"""The optimiser for ``optimizer_class`` and ``optimizer_kwargs``: one of optax, or the equivalent of a PyTorch class.

A PyTorch class stands for the optax optimiser with PyTorch's defaults and argument names.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import optax
import torch as th

Optimizer = Callable[..., optax.GradientTransformation]
_SPEED = ("foreach", "fused", "capturable", "differentiable")  # of PyTorch's loops, not of the numbers
_ONLY_OFF = ("amsgrad", "maximize", "dampening")  # accepted where they change nothing


def check_optimizer(optimizer_class: Any, optimizer_kwargs: dict[str, Any] | None) -> None:
    """Raise ``ValueError`` for an unknown optimiser or an argument that it does not have."""
    if _is_torch(optimizer_class):
        find_optimizer(optimizer_class, optimizer_kwargs or {})
    elif isinstance(optimizer_class, type) or not callable(optimizer_class):
        known = ", ".join(f"torch.optim.{one.__name__}" for one in _OF_TORCH)
        raise ValueError(
            f"optimizer_class must be an optimiser of optax, such as optax.adamw, or one of {known}, "
            f"got {optimizer_class!r} (other PyTorch optimisers cannot train JAX networks)"
        )


def find_optimizer(optimizer_class: Any, optimizer_kwargs: dict[str, Any]) -> optax.GradientTransformation:
    """Return the optimiser with step size 1; the update multiplies by the learning rate of SB3's schedule."""
    kwargs = ((name, tuple(value) if isinstance(value, list) else value) for name, value in optimizer_kwargs.items())
    return _make_optimizer(optimizer_class, tuple(sorted(kwargs)))


@cache
def _make_optimizer(optimizer_class: Any, kwargs: tuple[tuple[str, Any], ...]) -> optax.GradientTransformation:
    """Return one object per optimiser, so that models with the same settings share a compiled update."""
    if not _is_torch(optimizer_class):
        return optimizer_class(learning_rate=1.0, **dict(kwargs))
    defaults, make = _OF_TORCH[optimizer_class]
    given = {}
    for name, value in kwargs:
        if name == "lr":
            raise ValueError("optimizer_kwargs has 'lr': set the algorithm's learning_rate instead")
        if name in defaults:
            given[name] = value
        elif name not in _SPEED and (name not in _ONLY_OFF or value):
            raise ValueError(
                f"optimizer_kwargs has {name!r}, which is not supported with torch.optim.{optimizer_class.__name__}; "
                f"it takes {', '.join(defaults)}"
            )
    return make(**defaults | given)


def _is_torch(optimizer_class: Any) -> bool:
    return isinstance(optimizer_class, type) and optimizer_class in _OF_TORCH


def _adam(betas: tuple[float, float], eps: float, weight_decay: float) -> optax.GradientTransformation:
    return _with_penalty(weight_decay, optax.adam(1.0, b1=betas[0], b2=betas[1], eps=eps))


def _adamw(betas: tuple[float, float], eps: float, weight_decay: float) -> optax.GradientTransformation:
    return optax.adamw(1.0, b1=betas[0], b2=betas[1], eps=eps, weight_decay=weight_decay)


def _sgd(momentum: float, weight_decay: float, nesterov: bool) -> optax.GradientTransformation:
    return _with_penalty(weight_decay, optax.sgd(1.0, momentum=momentum or None, nesterov=nesterov))


def _rmsprop(
    alpha: float, eps: float, weight_decay: float, momentum: float, centered: bool
) -> optax.GradientTransformation:
    # Its eps is added to the root, not under it.
    rms = (optax.scale_by_stddev if centered else optax.scale_by_rms)(decay=alpha, eps=eps, eps_in_sqrt=False)
    return _with_penalty(weight_decay, optax.chain(rms, optax.sgd(1.0, momentum=momentum or None)))


def _with_penalty(weight_decay: float, optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """Add ``weight_decay`` times the weights to the gradient before the optimiser."""
    return optax.chain(optax.add_decayed_weights(weight_decay), optimizer) if weight_decay else optimizer


_BETAS = {"betas": (0.9, 0.999), "eps": 1e-8}
_OF_TORCH: dict[Any, tuple[dict[str, Any], Optimizer]] = {
    th.optim.Adam: (_BETAS | {"weight_decay": 0.0}, _adam),
    th.optim.AdamW: (_BETAS | {"weight_decay": 1e-2}, _adamw),
    th.optim.SGD: ({"momentum": 0.0, "weight_decay": 0.0, "nesterov": False}, _sgd),
    th.optim.RMSprop: (
        {"alpha": 0.99, "eps": 1e-8, "weight_decay": 0.0, "momentum": 0.0, "centered": False},
        _rmsprop,
    ),
}
