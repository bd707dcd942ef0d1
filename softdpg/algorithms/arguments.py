"""What the constructors accept: each check names the argument and what it may be."""

import warnings
from typing import Any

import numpy as np


def check_whole(name: str, value: Any, least: int) -> None:
    """``ValueError`` unless ``value`` is a whole number of at least ``least``."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, not {value!r}")


def check_share(name: str, value: Any) -> None:
    """``ValueError`` unless ``value`` is a number from 0 to 1."""
    if not _is_number(value) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, not {value!r}")


def check_scale(name: str, value: Any, least: int = 0) -> None:
    """``ValueError`` unless ``value`` is a finite number of at least ``least``."""
    if not _is_number(value) or not least <= value < np.inf:
        raise ValueError(f"{name} must be a finite number >= {least}, not {value!r}")


def check_rate(name: str, value: Any) -> None:
    """``ValueError`` unless ``value`` is a finite number of at least 0, or a schedule that starts with one."""
    check_scale(name, value(1.0) if callable(value) else value)


def check_flag(name: str, value: Any) -> None:
    """``ValueError`` unless ``value`` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, not {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """``ValueError`` unless ``value`` is one of ``choices``."""
    if value not in choices:
        quoted = [f'"{choice}"' for choice in choices]
        raise ValueError(f"{name} must be {', '.join(quoted[:-1])} or {quoted[-1]}, not {value!r}")


def check_train_freq(value: Any) -> None:
    """``ValueError`` unless ``value`` is a whole number of steps, or a pair such as ``(1, "episode")``."""
    number, unit = value if isinstance(value, tuple | list) and len(value) == 2 else (value, "step")
    check_whole("train_freq", number, 1)
    check_choice("the unit of train_freq", getattr(unit, "value", unit), ("step", "episode"))  # SB3's own has an Enum


def check_net_arch(net_arch: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Hidden units of actor and critic; ``ValueError`` unless ``net_arch`` is a list, or one for each of the two."""
    by_network = isinstance(net_arch, dict)
    if by_network and net_arch.keys() != {"pi", "qf"}:
        raise ValueError(f"net_arch must be a list, or a dict with lists for pi and qf, not {net_arch!r}")
    lists = (net_arch["pi"], net_arch["qf"]) if by_network else (net_arch, net_arch)
    for units in lists:
        if not isinstance(units, list | tuple):
            raise ValueError(f"net_arch must be a list, or a dict with lists for pi and qf, not {net_arch!r}")
        for layer in units:
            check_whole("each layer of net_arch", layer, 1)
    return tuple(lists[0]), tuple(lists[1])


def check_activation(activation_fn: Any) -> None:
    """``ValueError`` unless ``activation_fn`` is a function and not a module of PyTorch."""
    if isinstance(activation_fn, type) or not callable(activation_fn):
        raise ValueError(
            f"activation_fn must be a function of a JAX array, such as flax.linen.relu or jax.numpy.tanh, "
            f"not {activation_fn!r} (a PyTorch module has no meaning here)"
        )


def check_features_extractor(features_extractor_class: Any, features_extractor_kwargs: dict[str, Any] | None) -> None:
    """``ValueError`` for a features extractor other than the flattening that is done anyway."""
    if getattr(features_extractor_class, "__name__", "") not in ("FlattenExtractor", "CombinedExtractor"):
        raise ValueError(
            f"features_extractor_class={features_extractor_class!r} has no meaning here: it is a PyTorch module, and "
            "observations are flattened and joined. Put features into the environment with a Gymnasium wrapper"
        )
    for name in features_extractor_kwargs or {}:
        if name not in ("cnn_output_dim", "normalized_image"):
            raise ValueError(f"features_extractor_kwargs has {name!r}, which means nothing to a flattened observation")
        warnings.warn(
            f"{name} in features_extractor_kwargs has no effect: there is no CNN, images are flattened", stacklevel=5
        )


def check_dropout(dropout_rate: Any) -> None:
    """``ValueError`` for dropout."""
    if dropout_rate not in (None, 0):
        raise ValueError(
            f"dropout_rate={dropout_rate!r} is not supported: the critics have no dropout; layer_norm=True and "
            "n_critics are what there is against overestimation"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
