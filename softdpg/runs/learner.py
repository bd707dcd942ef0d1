"""The learner of a run: made from its settings, and its weights in a file that holds no code."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import serialization, traverse_util
from gymnasium import Env
from safetensors.numpy import save
from stable_baselines3.common.vec_env import VecEnv

from softdpg import DDPG, SoftDDPG
from softdpg.errors import UserError
from softdpg.runs import files
from softdpg.runs.config import RunConfig
from softdpg.runs.weights import load_arrays


def make_learner(config: RunConfig, env: Env | VecEnv, **buffer: Any) -> DDPG:
    """The algorithm of a resolved config on ``env``, untrained; ``buffer`` are SB3's replay buffer arguments."""
    arguments: dict[str, Any] = {
        "learning_rate": config.learning_rate,
        "qf_learning_rate": config.qf_learning_rate,
        "buffer_size": config.buffer_size,
        "learning_starts": config.learning_starts,
        "batch_size": config.batch_size,
        "tau": config.tau,
        "gamma": config.gamma,
        "train_freq": config.train_freq,
        "gradient_steps": config.gradient_steps,
        "action_noise": config.exploration_noise,
        "policy_kwargs": {"net_arch": list(config.net_arch)},
        "action_layer": config.action_layer,
        "seed": config.seed,
        **buffer,
    }
    try:
        if config.algo == "ddpg":
            return DDPG("MlpPolicy", env, **arguments)
        for name in ("sigma", "n_samples", "estimator", "antithetic"):
            arguments[name] = getattr(config, name)
        return SoftDDPG("MlpPolicy", env, **arguments)
    except ValueError as error:
        raise UserError(str(error)) from None


def save_weights(model: DDPG, path: Path) -> None:
    """Write the weights of actor and critic as safetensors."""
    weights = {"actor": model.policy.actor_state.params, "critic": model.policy.qf_state.params}
    files.replace_file(path, save(tree_to_arrays(weights)))


def load_learner(config: RunConfig, env: Env, path: Path) -> DDPG:
    """A learner with the weights in ``path``. Reads numbers alone: a file from a stranger cannot run code."""
    model = make_learner(config, env, buffer_size=1)
    weights = {"actor": model.policy.actor_state.params, "critic": model.policy.qf_state.params}
    try:
        weights = arrays_to_tree(weights, load_arrays(files.read_bytes(path, files.ARRAYS)))
    except FileNotFoundError:
        raise UserError(f"no weights yet: {path} is written with the first checkpoint") from None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot load {path}: {error}") from None
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(weights)):
        raise UserError(f"cannot load {path}: it has weights that are NaN or infinite; the training diverged")
    model.policy.actor_state = model.policy.actor_state.replace(params=weights["actor"])
    model.policy.qf_state = model.policy.qf_state.replace(params=weights["critic"])
    return model


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
