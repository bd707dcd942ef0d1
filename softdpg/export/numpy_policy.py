"""The forward pass of a policy in NumPy. An exported ``.py`` file is this code followed by the policy's arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def act(spec: dict[str, Any], arrays: dict[str, np.ndarray], observation: Any) -> Any:
    """Return the action for one observation, or the actions for a batch, in the environment's units.

    :param spec: ``parts`` (name and shape of each part of the observation; the name is None unless it is a dict),
        ``layers``, ``activation``, ``layer_norm`` (its epsilon, or None), ``input_limit`` (the limit of the network's
        standardised input, or None), ``action_shape``, and for actions that are not a Box ``action``: their parts
    :param arrays: kernels, biases and scales of the layers, bounds of the action, and statistics of the observation and
        of the network's input
    :param observation: an array, or a dict of arrays for Dict observations
    :return: ``action_shape``, or ``(batch, *action_shape)``; a batch of tuples or dicts is a list
    """
    x, batched = _flat(spec["parts"], observation)
    if "observation/mean" in arrays:
        limit = arrays["observation/limit"]
        x = np.clip((x - arrays["observation/mean"]) / arrays["observation/std"], -limit, limit)
    x = x.astype(np.float32, copy=False)
    if spec["input_limit"] is not None:
        x = np.clip((x - arrays["input/mean"]) / arrays["input/std"], -spec["input_limit"], spec["input_limit"])
    for i in range(spec["layers"]):
        x = x @ arrays[f"layer_{i}/kernel"] + arrays[f"layer_{i}/bias"]
        if i == spec["layers"] - 1:
            break
        if spec["layer_norm"] is not None:
            x = x - x.mean(axis=1, keepdims=True)
            x = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(spec["layer_norm"]))
            x = x * arrays[f"norm_{i}/scale"] + arrays[f"norm_{i}/bias"]
        x = ACTIVATIONS[spec["activation"]](x)
    if "action" in spec:
        decoded = [_decode(spec["action"], row) for row in np.tanh(x)]
        nested = "tuple" in spec["action"] or "dict" in spec["action"]
        return (decoded if nested else np.stack(decoded)) if batched else decoded[0]
    scaled = np.tanh(x).reshape(-1, *spec["action_shape"])
    low, high = arrays["action/low"], arrays["action/high"]
    actions = low + 0.5 * (scaled + 1) * (high - low)
    return actions if batched else actions[0]


def _decode(part: dict[str, Any], u: np.ndarray) -> Any:
    """Return the action, or a part of it, that the network's output ``(m,)`` stands for.

    A number is scaled; one output means on if it is positive; of several outputs the largest is the option taken.
    """
    if "dict" in part:
        return {key: _decode(inner, u) for key, inner in part["dict"].items()}
    if "tuple" in part:
        return tuple(_decode(inner, u) for inner in part["tuple"])
    own = u[part["start"] : part["stop"]]
    if "low" in part:
        low, high = np.array(part["low"]), np.array(part["high"])
        action = low + 0.5 * (own.reshape(part["shape"]) + 1) * (high - low)
        action = np.clip(action if part["dtype"].startswith("float") else np.rint(action), low, high)
    else:
        groups = np.split(own, np.cumsum(part["sizes"])[:-1])
        options = [group[0] > 0 if len(group) == 1 else group.argmax() for group in groups]
        action = np.array(options, np.int64).reshape(part["shape"]) + part["first"]
    return action.astype(part["dtype"])[()]


def _flat(parts: list[Any], observation: Any) -> tuple[np.ndarray, bool]:
    """Flatten and concatenate the parts of an observation to ``(batch, d)``; also return whether it was a batch."""
    columns, batched = [], False
    for name, shape in parts:
        part = np.asarray(observation if name is None else observation[name])
        batched = part.ndim > len(shape)
        if part.shape[batched:] != tuple(shape):
            raise ValueError(
                f"{name or 'the observation'} must have shape {tuple(shape)} or be a batch of it, got {part.shape}"
            )
        columns.append(part.reshape(len(part) if batched else 1, -1))
    return (columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)), batched
