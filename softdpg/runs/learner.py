"""The learner of a run: made from its settings, and its weights in a file that holds no code."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import serialization, traverse_util
from gymnasium import Env, spaces
from safetensors.numpy import save
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from softdpg.algorithms.flat_buffers import FlatReplayBuffer
from softdpg.algorithms.hyperparameters import HYPERPARAMETERS
from softdpg.errors import UserError
from softdpg.runs import files
from softdpg.runs.config import RunConfig
from softdpg.runs.normalization import normalized, set_statistics, statistics, take_statistics
from softdpg.runs.weights import load_arrays


def make_learner(config: RunConfig, env: Env | VecEnv, **buffer: Any) -> Any:
    """The algorithm of a resolved config on ``env``, untrained; ``buffer`` are SB3's replay buffer arguments."""
    entry = config.algorithm
    policy = "MultiInputPolicy" if isinstance(env.observation_space, spaces.Dict) else "MlpPolicy"
    arguments: dict[str, Any] = {"seed": config.seed}
    for name, value in config.hyperparameters:
        hyperparameter = HYPERPARAMETERS[name]
        group, _, key = hyperparameter.argument.rpartition(".")
        (arguments.setdefault(group, {}) if group else arguments)[key] = hyperparameter.convert(value)
    if entry.origin == "peer":
        arguments |= _peer_arguments(arguments, env)
    try:
        return entry.load()(policy, env, **(arguments | buffer))
    except ValueError as error:
        raise UserError(str(error)) from None


def _peer_arguments(arguments: dict[str, Any], env: Env | VecEnv) -> dict[str, Any]:
    """Where the peers' constructors take another form: on the CPU, and with noise as an object."""
    noise = arguments.get("action_noise")
    if not noise:
        return {"device": "cpu"} | ({} if noise is None else {"action_noise": None})
    shape = env.action_space.shape or ()
    return {"device": "cpu", "action_noise": NormalActionNoise(np.zeros(shape), np.full(shape, noise))}


def save_weights(model: Any, path: Path) -> None:
    """Write the weights of actor and critic, and what observations are normalised by, as safetensors."""
    files.replace_file(path, save(tree_to_arrays(_weights(model)) | statistics(model.get_vec_normalize_env())))


def load_learner(config: RunConfig, env: Env, path: Path) -> Any:
    """A learner with the weights in ``path``. Reads numbers alone: a file from a stranger cannot run code."""
    try:
        arrays = load_arrays(files.read_bytes(path, files.ARRAYS))
    except FileNotFoundError:
        raise UserError(f"no weights yet: {path} is written with the first checkpoint") from None
    except ValueError as error:
        raise UserError(f"cannot load {path}: {error}") from None
    if sum(array.size for array in arrays.values()) < sum(a * b for a, b in pairwise(config.net_arch or ())):
        raise UserError(f"cannot load {path}: it has not the weights of layers of {list(config.net_arch or ())} units")
    vec_env: Any = normalized(DummyVecEnv([lambda: env]), training=False) if config.normalize else env
    buffer_class = buffer_in_memory(config, env.observation_space)
    buffer = {"buffer_size": 1} | ({} if buffer_class is None else {"replay_buffer_class": buffer_class})
    model = make_learner(config, vec_env, **buffer)
    try:
        found = take_statistics(model.get_vec_normalize_env(), arrays)
        weights = arrays_to_tree(_weights(model), arrays)
    except ValueError as error:
        raise UserError(f"cannot load {path}: {error}") from None
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(weights)):
        raise UserError(f"cannot load {path}: it has weights that are NaN or infinite; the training diverged")
    _set_weights(model, weights)
    set_statistics(model.get_vec_normalize_env(), found)
    return model


def buffer_in_memory(config: RunConfig, space: spaces.Space) -> type[FlatReplayBuffer] | None:
    """The replay buffer of a model that is away from its run; None for the algorithm's own choice."""
    return FlatReplayBuffer if isinstance(space, spaces.Dict) and (config.n_steps or 1) > 1 else None


def _weights(model: Any) -> dict[str, Any]:
    """Parameters of the networks, and what they normalise by if they do; a flat dict if they are torch's."""
    if not hasattr(model.policy, "actor_state"):
        return {name: tensor.numpy() for name, tensor in model.policy.state_dict().items()}
    states = {"actor": model.policy.actor_state, "critic": model.policy.qf_state}
    statistics = {f"{name}_statistics": getattr(state, "batch_stats", None) for name, state in states.items()}
    return {name: state.params for name, state in states.items()} | {
        name: tree for name, tree in statistics.items() if tree is not None
    }


def _set_weights(model: Any, weights: dict[str, Any]) -> None:
    if not hasattr(model.policy, "actor_state"):
        import torch

        model.policy.load_state_dict({name: torch.as_tensor(np.array(array)) for name, array in weights.items()})
        return
    for attribute, name in (("actor_state", "actor"), ("qf_state", "critic")):
        changes = {"params": weights[name]}
        if f"{name}_statistics" in weights:
            changes["batch_stats"] = weights[f"{name}_statistics"]
        setattr(model.policy, attribute, getattr(model.policy, attribute).replace(**changes))


def tree_to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a pytree of flax or optax, on the host, named by their path."""
    leaves = {name: leaf for name, leaf in _flatten(tree).items() if _is_leaf(leaf)}
    return {name: np.asarray(leaf) for name, leaf in jax.device_get(leaves).items()}


def arrays_to_tree(template: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A tree like ``template`` with its leaves from ``arrays``; ``ValueError`` unless names and shapes are the same."""
    flat = _flatten(template)
    leaves = {name: leaf for name, leaf in flat.items() if _is_leaf(leaf)}
    if leaves.keys() != arrays.keys():
        raise ValueError(f"it has not the arrays of this network: {sorted(leaves.keys() ^ arrays.keys())[0]}")
    for name, leaf in leaves.items():
        if np.shape(leaf) == (1, *arrays[name].shape):  # 0.1.0 kept its one critic without the axis of the ensemble
            arrays = arrays | {name: arrays[name][None]}
        if np.shape(leaf) != arrays[name].shape:
            raise ValueError(f"{name} has shape {arrays[name].shape}, this network {np.shape(leaf)}")
        if arrays[name].dtype.kind != np.dtype(jnp.result_type(leaf)).kind:
            raise ValueError(f"{name} has numbers of type {arrays[name].dtype}, this network {jnp.result_type(leaf)}")
        flat[name] = jnp.array(arrays[name], dtype=jnp.result_type(leaf))
    return serialization.from_state_dict(template, traverse_util.unflatten_dict(flat, sep="/"))


def _flatten(tree: Any) -> dict[str, Any]:
    return traverse_util.flatten_dict(serialization.to_state_dict(tree), keep_empty_nodes=True, sep="/")


def _is_leaf(value: Any) -> bool:
    return value is not traverse_util.empty_node and value is not None
