"""The model of a run: made from its settings, with its log, its normalisation of observations, and its weights."""

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import Env, spaces
from safetensors import SafetensorError
from safetensors.numpy import load, save
from stable_baselines3.common.logger import CSVOutputFormat, Logger, TensorBoardOutputFormat
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer
from torch.utils.tensorboard import SummaryWriter

from softdpg.algorithms.cnn import LEAST_PIXELS
from softdpg.algorithms.parameters import from_flat, to_flat
from softdpg.algorithms.settings import HYPERPARAMETERS
from softdpg.errors import UserError
from softdpg.replay.disk import DiskReplayBuffer, FlatDiskReplayBuffer
from softdpg.replay.hindsight import HerDiskReplayBuffer
from softdpg.replay.memory import FlatReplayBuffer
from softdpg.runs import files
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.environments import Policy, SeededEpisodes

Arrays = dict[str, np.ndarray]
_NORMALIZATION = "observation/"  # prefix of the names of its statistics


def make_learner(config: RunConfig, env: Env | VecEnv, **buffer: Any) -> Any:
    """Make the algorithm of a run, untrained.

    :param config: resolved settings
    :param env: the environment, or several of them
    :param buffer: SB3's arguments of the replay buffer
    """
    entry = config.algorithm
    policy = _policy(config, env.observation_space)
    arguments: dict[str, Any] = {"seed": config.seed}
    for name, value in config.hyperparameters:
        hyperparameter = HYPERPARAMETERS[name]
        group, _, key = hyperparameter.argument.rpartition(".")
        (arguments.setdefault(group, {}) if group else arguments)[key] = hyperparameter.convert(value)
    policy_kwargs = arguments.get("policy_kwargs", {})
    if "qf_net_arch" in policy_kwargs:
        if "net_arch" not in policy_kwargs:
            raise UserError("--qf-net-arch needs --net-arch, the layers of the actor")
        policy_kwargs["net_arch"] = {"pi": policy_kwargs["net_arch"], "qf": policy_kwargs.pop("qf_net_arch")}
    if entry.origin == "peer":
        arguments |= _peer_arguments(arguments, env)
    try:
        return entry.load()(policy, env, **(arguments | buffer))
    except ValueError as error:
        raise UserError(_with_flags(str(error))) from None


def _with_flags(message: str) -> str:
    """Replace the arguments of the classes in an error message by the flags of the command line."""
    flags = {row.argument.removeprefix("policy_kwargs."): row.flag for row in HYPERPARAMETERS.values()}

    def replaced(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name not in flags or not (value or match.start() == 0 or "_" in name):  # an ordinary word
            return match[0]
        return f"{flags[name]} {value}" if value else flags[name]

    return re.sub(r'\b(\w+)\b(?:="?([\w.-]+)"?)?', replaced, message)


def _policy(config: RunConfig, space: spaces.Space) -> str:
    """Return the policy of a run: the chosen one, or the one for its observations."""
    if isinstance(space, spaces.Dict):
        return "MultiInputPolicy"
    if config.policy is not None or config.algorithm.origin == "peer":
        return config.policy or "MlpPolicy"
    if not is_image_space(space):
        return "MlpPolicy"
    sides = space.shape[1:] if is_image_space_channels_first(space) else space.shape[:2]  # type: ignore[index, arg-type]
    return "CnnPolicy" if min(sides) >= LEAST_PIXELS else "MlpPolicy"


def _peer_arguments(arguments: dict[str, Any], env: Env | VecEnv) -> dict[str, Any]:
    """Return what the constructors of other libraries take in another form: device, and noise as an object."""
    noise = arguments.get("action_noise")
    if not noise:
        return {"device": "cpu"} | ({} if noise is None else {"action_noise": None})
    shape = env.action_space.shape or ()
    return {"device": "cpu", "action_noise": NormalActionNoise(np.zeros(shape), np.full(shape, noise))}


def make_training_learner(config: RunConfig, directory: RunDirectory, envs: Sequence[SeededEpisodes]) -> Any:
    """Make the algorithm of a run with a replay buffer on disk, if the algorithm can resume from one.

    :param config: resolved settings
    :param directory: where the file of the buffer is
    :param envs: the parallel environments
    """
    vec_env: VecEnv = DummyVecEnv([partial(Monitor, env) for env in envs])
    if config.normalize:
        vec_env = normalized(vec_env)
    goals = {name: getattr(config, name) for name in ("n_sampled_goal", "goal_selection_strategy")}
    if not config.algorithm.exact_resume:
        her = {"replay_buffer_class": HerReplayBuffer, "replay_buffer_kwargs": goals} if config.her else {}
        return make_learner(config, vec_env, **her)
    buffer_class: type[DiskReplayBuffer] = DiskReplayBuffer
    if isinstance(vec_env.observation_space, spaces.Dict):
        buffer_class = HerDiskReplayBuffer if config.her else FlatDiskReplayBuffer
    # Four times what is added between two checkpoints, so that the older of the two kept ones stays usable.
    slack = 4 * (config.checkpoint_every // len(envs) + config.train_freq)
    return make_learner(
        config,
        vec_env,
        replay_buffer_class=buffer_class,
        replay_buffer_kwargs={
            **(goals | {"env": vec_env} if config.her else {}),
            "path": directory.replay_buffer,
            "slack": max(slack, 4096),
            "run": directory.read_config()["run"],
        },
    )


def buffer_in_memory(config: RunConfig, space: spaces.Space) -> type[FlatReplayBuffer] | None:
    """Return the replay buffer of a model outside of its run; None for the algorithm's own choice."""
    return FlatReplayBuffer if isinstance(space, spaces.Dict) and (config.n_steps or 1) > 1 else None


def make_logger(directory: Path, last_step: int) -> Logger:
    """Make a logger that continues ``progress.csv`` and the TensorBoard events.

    :param directory: the run directory
    :param last_step: the last step that has been logged
    """
    outputs = [
        _ContinuedCSV(directory / "progress.csv"),
        _ContinuedTensorBoard(directory, purge_step=last_step + 1 if last_step else None),
    ]
    return Logger(str(directory), outputs)


class _ContinuedCSV(CSVOutputFormat):
    """SB3's CSV output, which appends to the file instead of emptying it."""

    def __init__(self, path: Path) -> None:
        self.file = open(files.open_regular(path, os.O_RDWR), "r+", encoding="utf-8")  # noqa: SIM115 (SB3 closes it)
        header = self.file.readline().rstrip("\n")
        self.keys = header.split(",") if header else []
        self.file.seek(0, 2)
        self.separator = ","
        self.quotechar = '"'


class _ContinuedTensorBoard(TensorBoardOutputFormat):
    """SB3's TensorBoard output, which hides what earlier event files have from ``purge_step`` on."""

    def __init__(self, directory: Path, purge_step: int | None) -> None:
        # An unpredictable name, so that no link can wait in its place.
        self.writer = SummaryWriter(str(directory), purge_step=purge_step, filename_suffix=f".{secrets.token_hex(4)}")
        self._is_closed = False


def save_weights(model: Any, path: Path) -> None:
    """Write the weights of actor and critic, and the statistics of the observations, as safetensors.

    :param model: of this library or a peer
    :param path: the file
    """
    files.replace_file(path, save(_weights(model) | statistics(model.get_vec_normalize_env())))


def load_learner(config: RunConfig, env: Env, path: Path) -> Any:
    """Make the algorithm of a run with the weights in a file; raise ``UserError`` if they are not its weights.

    The file holds numbers only, so that an untrusted one cannot execute code.

    :param config: resolved settings
    :param env: the environment
    :param path: what :func:`save_weights` wrote
    """
    try:
        arrays = load_arrays(files.read_bytes(path, files.ARRAYS))
    except FileNotFoundError:
        raise UserError(f"no weights yet: {path} is written with the first checkpoint") from None
    except ValueError as error:
        raise UserError(f"cannot load {path}: {error}") from None
    # Before networks of that size are made, which an untrusted config.json may choose.
    if sum(array.size for array in arrays.values()) < sum(a * b for a, b in pairwise(config.net_arch or ())):
        raise UserError(f"cannot load {path}: the weights do not match net_arch={list(config.net_arch or ())}")
    vec_env: Any = normalized(DummyVecEnv([lambda: env]), training=False) if config.normalize else env
    buffer_class = buffer_in_memory(config, env.observation_space)
    buffer: dict[str, Any] = {"buffer_size": 1} if "buffer_size" in config.algorithm.hyperparameters else {}
    buffer |= {} if buffer_class is None else {"replay_buffer_class": buffer_class}
    model = make_learner(config, vec_env, **buffer)
    try:
        found = take_statistics(model.get_vec_normalize_env(), arrays)
        check_arrays(_weights(model), arrays)
    except ValueError as error:
        raise UserError(f"cannot load {path}: {error}") from None
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise UserError(f"cannot load {path}: it has weights that are NaN or infinite; the training diverged")
    _set_weights(model, arrays)
    set_statistics(model.get_vec_normalize_env(), found)
    return model


def load_arrays(contents: bytes) -> Arrays:
    """Read the arrays in the contents of a safetensors file; raise ``ValueError`` if it is invalid."""
    try:
        return load(contents)
    except SafetensorError as error:
        raise ValueError(f"not a safetensors file: {error}") from None
    except KeyError as error:
        raise ValueError(f"numbers of type {error.args[0]} are not supported") from None


def check_arrays(expected: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ``ValueError`` unless names, shapes and kinds of numbers are the same.

    :param expected: arrays of the network
    :param arrays: arrays from a file
    """
    if expected.keys() != arrays.keys():
        raise ValueError(f"its arrays are not those of this network: {min(expected.keys() ^ arrays.keys())}")
    for name, array in arrays.items():
        if array.shape != expected[name].shape:
            raise ValueError(f"{name} has shape {array.shape}, this network {expected[name].shape}")
        if array.dtype.kind != expected[name].dtype.kind:
            raise ValueError(f"{name} has numbers of type {array.dtype}, this network {expected[name].dtype}")


def _weights(model: Any) -> Arrays:
    """Return the parameters of the networks, and the statistics of their normalisation layers if they have any."""
    return _torch_weights(model) if _is_torch(model) else dict(to_flat(_weight_trees(model)))


def _set_weights(model: Any, arrays: Arrays) -> None:
    if _is_torch(model):
        import torch

        model.policy.load_state_dict({name: torch.as_tensor(np.array(array)) for name, array in arrays.items()})
        return
    weights = from_flat(_weight_trees(model), arrays)
    for attribute, name in (("actor_state", "actor"), ("qf_state", "critic")):
        changes = {"params": weights[name]}
        if f"{name}_statistics" in weights:
            changes["batch_stats"] = weights[f"{name}_statistics"]
        setattr(model.policy, attribute, getattr(model.policy, attribute).replace(**changes))


def _is_torch(model: Any) -> bool:
    return not hasattr(model.policy, "actor_state")


def _torch_weights(model: Any) -> Arrays:
    return {name: tensor.numpy() for name, tensor in model.policy.state_dict().items()}


def _weight_trees(model: Any) -> dict[str, Any]:
    states = {"actor": model.policy.actor_state, "critic": model.policy.qf_state}
    trees = {name: state.params for name, state in states.items()}
    statistics = {f"{name}_statistics": getattr(state, "batch_stats", None) for name, state in states.items()}
    return trees | {name: tree for name, tree in statistics.items() if tree is not None}


def normalized(vec_env: VecEnv, *, training: bool = True) -> VecNormalize:
    """Wrap environments in SB3's ``VecNormalize``, which normalises observations and clips them to [-10, 10].

    The replay buffer keeps observations as they are; samples are normalised with the current statistics.

    :param vec_env: the environments; of a Dict observation its Box parts are normalised
    :param training: whether the statistics follow the observations
    """
    space = vec_env.observation_space
    keys = None
    if isinstance(space, spaces.Dict):
        keys = [name for name, part in space.items() if isinstance(part, spaces.Box)]
    return VecNormalize(vec_env, training=training, norm_reward=False, clip_obs=10.0, norm_obs_keys=keys)


Statistics = dict[str, tuple[np.ndarray, np.ndarray, float]]
"""Mean, variance and count of each part of the observation."""


def statistics(normalize: VecNormalize | None) -> Arrays:
    """Return mean, variance and count of each part of the observation; nothing without normalisation."""
    arrays = {}
    for name, found in _running(normalize).items():
        arrays[f"{_NORMALIZATION}{name}mean"], arrays[f"{_NORMALIZATION}{name}var"] = found.mean, found.var
        arrays[f"{_NORMALIZATION}{name}count"] = np.array([found.count], np.float64)
    return {name: np.ascontiguousarray(array, np.float64) for name, array in arrays.items()}


def take_statistics(normalize: VecNormalize | None, arrays: Arrays) -> Statistics:
    """Remove from ``arrays`` what :func:`statistics` returned, and return it; raise ``ValueError`` if it is invalid."""
    found: Statistics = {}
    for name, running in _running(normalize).items():
        kinds = {"mean": running.mean.shape, "var": running.var.shape, "count": (1,)}
        missing = [kind for kind in kinds if f"{_NORMALIZATION}{name}{kind}" not in arrays]
        if missing:
            raise ValueError(f"it has no {_NORMALIZATION}{name}{missing[0]}, which --normalize needs")
        mean, var, count = (arrays.pop(f"{_NORMALIZATION}{name}{kind}") for kind in kinds)
        for array, (kind, shape) in zip((mean, var, count), kinds.items(), strict=True):
            if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError(f"{_NORMALIZATION}{name}{kind} must be finite numbers of shape {shape}, type float64")
        if (var < 0).any() or count[0] <= 0:
            raise ValueError(f"{_NORMALIZATION}{name}var and count must not be negative")
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
    """A policy that normalises the observations that it gets."""

    def __init__(self, model: Any, normalize: VecNormalize) -> None:
        self.model, self.normalize = model, normalize

    def predict(self, observation: Any, *, deterministic: bool) -> tuple[np.ndarray, object]:
        """Return actions for one observation or a batch of them."""
        return self.model.predict(self.normalize.normalize_obs(observation), deterministic=deterministic)


def policy_of(model: Any) -> Policy:
    """Return the policy of a model on observations of the environment, normalised if the model learned so."""
    normalize = model.get_vec_normalize_env()
    return model if normalize is None else _Normalizing(model, normalize)
