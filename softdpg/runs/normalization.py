"""Running normalisation of observations, ``--normalize``: SB3's ``VecNormalize``, its statistics as arrays.

The replay buffer keeps observations as they are; they are normalised when they are sampled, with the statistics of that
moment, clipped to [-10, 10].
"""

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from softdpg.runs.evaluation import Predicts

_PREFIX = "observation/"
Statistics = dict[str, tuple[np.ndarray, np.ndarray, float]]


def normalized(vec_env: VecEnv, *, training: bool = True) -> VecNormalize:
    """The environments with normalised observations; of a Dict those of its parts that are Boxes.

    :param training: whether the statistics follow what is observed
    """
    space = vec_env.observation_space
    keys = None
    if isinstance(space, spaces.Dict):
        keys = [name for name, part in space.items() if isinstance(part, spaces.Box)]
    return VecNormalize(vec_env, training=training, norm_reward=False, clip_obs=10.0, norm_obs_keys=keys)


def statistics(normalize: VecNormalize | None) -> dict[str, np.ndarray]:
    """Mean, variance and count of each part, by name; nothing if there is no normalisation."""
    arrays = {}
    for name, found in _running(normalize).items():
        arrays[f"{_PREFIX}{name}mean"], arrays[f"{_PREFIX}{name}var"] = found.mean, found.var
        arrays[f"{_PREFIX}{name}count"] = np.array([found.count], np.float64)
    return {name: np.ascontiguousarray(array, np.float64) for name, array in arrays.items()}


def take_statistics(normalize: VecNormalize | None, arrays: dict[str, np.ndarray]) -> Statistics:
    """Take what :func:`statistics` gave out of ``arrays``; ``ValueError`` if it cannot be that of ``normalize``."""
    found: Statistics = {}
    for name, running in _running(normalize).items():
        kinds = {"mean": running.mean.shape, "var": running.var.shape, "count": (1,)}
        missing = [kind for kind in kinds if f"{_PREFIX}{name}{kind}" not in arrays]
        if missing:
            raise ValueError(f"it has no {_PREFIX}{name}{missing[0]}, which --normalize needs")
        mean, var, count = (arrays.pop(f"{_PREFIX}{name}{kind}") for kind in kinds)
        for array, (kind, shape) in zip((mean, var, count), kinds.items(), strict=True):
            if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError(f"{_PREFIX}{name}{kind} must be finite numbers of shape {shape} and type float64")
        if (var < 0).any() or count[0] <= 0:
            raise ValueError(f"{_PREFIX}{name}var and count must not be negative")
        found[name] = (mean.copy(), var.copy(), float(count[0]))
    return found


def set_statistics(normalize: VecNormalize | None, found: Statistics) -> None:
    """Normalise by these statistics from now on."""
    for name, running in _running(normalize).items():
        running.mean, running.var, running.count = found[name]


def _running(normalize: VecNormalize | None) -> dict[str, RunningMeanStd]:
    if normalize is None:
        return {}
    statistics: Any = normalize.obs_rms
    return {f"{key}/": part for key, part in statistics.items()} if isinstance(statistics, dict) else {"": statistics}


class _Normalizing:
    """A model that is shown observations as the environment gives them."""

    def __init__(self, model: Any, normalize: VecNormalize) -> None:
        self.model, self.normalize = model, normalize

    def predict(self, observation: Any, *, deterministic: bool) -> tuple[np.ndarray, object]:
        """Actions for one observation or a batch of them."""
        return self.model.predict(self.normalize.normalize_obs(observation), deterministic=deterministic)


def player(model: Any) -> Predicts:
    """The policy of a model on observations as the environment gives them, normalised if the model learned so."""
    normalize = model.get_vec_normalize_env()
    return model if normalize is None else _Normalizing(model, normalize)
