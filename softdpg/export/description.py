"""Describe a policy by plain values and arrays, which every export format writes."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import flax.linen as nn
import jax
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.vec_env import VecNormalize

from softdpg.algorithms.actions import from_env, leaves
from softdpg.algorithms.networks import STANDARDIZE_EPSILON, STANDARDIZE_LIMIT, relu
from softdpg.algorithms.policies import DDPGPolicy
from softdpg.export.numpy_policy import act

ACTIVATION_NAMES = {relu: "relu", nn.relu: "relu", nn.tanh: "tanh", nn.elu: "elu", nn.silu: "silu"}
LAYER_NORM_EPSILON = 1e-6  # flax's
TOLERANCE = 1e-5  # in actions scaled to [-1, 1]; the order of float32 sums changes them by less


@dataclass(frozen=True)
class Description:
    """A policy that maps observations to actions in the environment's units, in NumPy alone.

    :param spec: the plain values that :func:`~softdpg.export.numpy_policy.act` reads, ready for JSON
    :param arrays: the arrays that it reads
    :param dtypes: NumPy's type name of each part of the observation, in the order of ``spec["parts"]``
    """

    spec: dict[str, Any]
    arrays: dict[str, np.ndarray]
    dtypes: tuple[str, ...]

    def __call__(self, observation: Any) -> Any:
        """Return the action for one observation, or the actions for a batch.

        :param observation: an array, or a dict of arrays for Dict observations
        """
        return act(self.spec, self.arrays, observation)


def describe(policy: DDPGPolicy, normalize: VecNormalize | None = None) -> Description:
    """Collect the values and arrays of a policy.

    :param policy: the policy of a model
    :param normalize: include the observation statistics of this wrapper
    :raises ValueError: if the policy cannot be exported, because of images or convolutions, discrete observations, or
        an activation other than relu, tanh, elu and silu
    """
    parts = _parts(policy.observation_space)
    if policy.actor.features_extractor is not None:
        raise ValueError("a CnnPolicy cannot be exported: an exported policy has only dense layers")
    if any(is_image_space(space) for space in parts.values()):
        raise ValueError("a policy on images cannot be exported")
    if any(isinstance(space, spaces.Discrete | spaces.MultiDiscrete) for space in parts.values()):
        raise ValueError("a policy on Discrete or MultiDiscrete observations cannot be exported")
    activation = ACTIVATION_NAMES.get(policy.actor.activation_fn)
    if activation is None:
        known = ", ".join(sorted(set(ACTIVATION_NAMES.values())))
        raise ValueError(f"activation_fn must be one of {known} for export, got {policy.actor.activation_fn}")
    arrays = _layers(policy)
    spec = {
        "parts": [[name, list(space.shape or ())] for name, space in parts.items()],
        "layers": len(policy.actor.net_arch) + 1,
        "activation": activation,
        "layer_norm": LAYER_NORM_EPSILON if "norm_0/scale" in arrays else None,
        "input_limit": STANDARDIZE_LIMIT if "input/mean" in arrays else None,
        "action_shape": list(policy.action_space.shape or ()),
    }
    arrays |= _statistics(parts, normalize)
    if isinstance(policy.action_space, spaces.Box):
        arrays |= {"action/low": policy.action_space.low, "action/high": policy.action_space.high}
    else:
        spec["action"] = _action(policy.action_space)
    description = Description(spec, arrays, tuple(np.dtype(space.dtype).name for space in parts.values()))
    _check(description, policy, normalize)
    return description


def _parts(space: spaces.Space) -> dict[str | None, spaces.Space]:
    return dict(space.items()) if isinstance(space, spaces.Dict) else {None: space}


def _action(space: spaces.Space) -> Any:
    """Describe an action space that is decoded: nested lists and dicts of its parts, ready for JSON."""
    parts: dict[tuple[Any, ...], Any] = {}
    for path, leaf in leaves(space).items():
        part: dict[str, Any] = {"start": leaf.start, "stop": leaf.stop, "dtype": np.dtype(leaf.space.dtype).name}
        part["shape"] = list(leaf.space.shape or ())
        if isinstance(leaf.space, spaces.Box):
            part |= {"low": leaf.space.low.tolist(), "high": leaf.space.high.tolist()}
        else:
            part["sizes"] = [stop - start for kind, a, b in leaf.blocks for start, stop in _entries(kind, a, b)]
            start = 0 if isinstance(leaf.space, spaces.MultiBinary) else leaf.space.start
            part["first"] = np.asarray(start).tolist()
        parts[path] = part
    return _nested_action(space, (), parts)


def _entries(kind: str, start: int, stop: int) -> list[tuple[int, int]]:
    return [(start, stop)] if kind == "choice" else [(i, i + 1) for i in range(start, stop)]


def _nested_action(space: spaces.Space, path: tuple[Any, ...], parts: dict[tuple[Any, ...], Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {"dict": {key: _nested_action(part, (*path, key), parts) for key, part in space.items()}}
    if isinstance(space, spaces.Tuple):
        return {"tuple": [_nested_action(part, (*path, i), parts) for i, part in enumerate(space)]}
    return parts[path]


def _layers(policy: DDPGPolicy) -> dict[str, np.ndarray]:
    params = dict(jax.device_get(policy.actor_state.params)["params"])
    seen = params.pop("observations", None)  # the statistics by which the network standardises its input
    statistics = (
        {}
        if seen is None
        else {"input/mean": seen["mean"], "input/std": np.sqrt(seen["variance"] + STANDARDIZE_EPSILON)}
    )
    names = {"Dense": "layer", "LayerNorm": "norm"}
    return statistics | {
        f"{names[module.rsplit('_', 1)[0]]}_{module.rsplit('_', 1)[1]}/{name}": np.asarray(array)
        for module, leaves in params.items()
        for name, array in leaves.items()
    }


def _statistics(parts: dict[str | None, spaces.Space], normalize: VecNormalize | None) -> dict[str, np.ndarray]:
    """Return mean, standard deviation and limit of each component; parts that are not normalised get 0, 1 and inf."""
    if normalize is None or not normalize.norm_obs:
        return {}
    mean, std, limit = [], [], []
    for name, space in parts.items():
        size = spaces.flatdim(space)
        if name is None or name in (normalize.norm_obs_keys or ()):
            statistics: Any = normalize.obs_rms if name is None else normalize.obs_rms[name]
            mean.append(statistics.mean.ravel())
            std.append(np.sqrt(statistics.var + normalize.epsilon).ravel())
            limit.append(np.full(size, normalize.clip_obs))
        else:
            mean.append(np.zeros(size))
            std.append(np.ones(size))
            limit.append(np.full(size, np.inf))
    columns = {"mean": mean, "std": std, "limit": limit}
    return {f"observation/{name}": np.concatenate(values).astype(np.float64) for name, values in columns.items()}


def _agree(got: Any, expected: Any, policy: DDPGPolicy) -> bool:
    """Whether two actions are the same up to the order of float32 sums."""
    if isinstance(policy.action_space, spaces.Box):
        half_range = 0.5 * (policy.action_space.high - policy.action_space.low)
        return not np.any(np.abs(got - expected) > TOLERANCE * half_range)
    executed = [from_env(policy.action_space, [action]) for action in (got, expected)]
    return not np.any(np.abs(executed[0] - executed[1]) > TOLERANCE)


def _check(description: Description, policy: DDPGPolicy, normalize: VecNormalize | None) -> None:
    """Raise ``ValueError`` unless the description acts like the policy, for instance for a user's own network."""
    space = deepcopy(policy.observation_space)  # sampling must not change the generator of the user's space
    space.seed(0)
    for _ in range(16):
        sample: Any = space.sample()
        seen: Any = sample if normalize is None else normalize.normalize_obs(sample)
        expected, _ = policy.predict(seen, deterministic=True)
        if not _agree(description(sample), expected, policy):
            raise ValueError("this policy cannot be exported: its network is not the one of this package")
