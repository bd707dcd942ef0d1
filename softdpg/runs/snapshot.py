"""The state of a run in memory, taken apart into arrays and JSON, and put together again.

Taken between two steps, right after an episode's end. What it holds: networks, targets and optimisers; the JAX,
NumPy and Python generators and that of the action space; SB3's counters. The buffer keeps its own contents on disk,
so its count is enough; the environment is a function of the run's seed and the episode's number.
"""

import random
from collections import deque
from typing import Any

import jax.numpy as jnp
import numpy as np

from softdpg import DDPG
from softdpg.algorithms.buffers import DiskReplayBuffer
from softdpg.runs.checkpoint import Checkpoint
from softdpg.runs.environments import SeededEpisodes
from softdpg.runs.learner import arrays_to_tree, tree_to_arrays

_COUNTERS = ("num_timesteps", "_episode_num", "_n_updates")


def capture(model: DDPG, env: SeededEpisodes) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and JSON-ready state from which :func:`restore` brings back the run exactly."""
    assert isinstance(model.replay_buffer, DiskReplayBuffer)
    assert model.ep_info_buffer is not None
    assert model.ep_success_buffer is not None
    numpy_state: Any = np.random.get_state(legacy=False)  # noqa: NPY002 (SB3 samples with it)
    arrays = {
        **tree_to_arrays(_networks(model)),
        "random/jax": np.asarray(model.key),
        "random/numpy": numpy_state["state"]["key"],
        "first_observation": np.asarray(model._last_obs),
    }
    state = {
        **{name: getattr(model, name) for name in _COUNTERS},
        "episode": env.episode - 1,  # the environment has been reset for it already
        "buffer_count": model.replay_buffer.count,
        "ep_info_buffer": [{key: float(value) for key, value in info.items()} for info in model.ep_info_buffer],
        "ep_success_buffer": [float(success) for success in model.ep_success_buffer],
        "random": {
            "numpy": [numpy_state["state"]["pos"], numpy_state["has_gauss"], numpy_state["gauss"]],
            "python": random.getstate(),
            "action_space": model.action_space.np_random.bit_generator.state,
        },
    }
    return arrays, state


def restore(model: DDPG, env: SeededEpisodes, checkpoint: Checkpoint) -> bool:
    """Put a fresh model, buffer and environment into the state of a checkpoint.

    Returns whether the environment gave the same first observation again; if not, it holds state that a reset with a
    seed does not set, and the run will go on well but not bit for bit. ``ValueError`` if the checkpoint does not fit.
    """
    assert isinstance(model.replay_buffer, DiskReplayBuffer)
    arrays, state = dict(checkpoint.arrays), checkpoint.state
    model.replay_buffer.rewind(state["buffer_count"])
    key, numpy_key = arrays.pop("random/jax"), arrays.pop("random/numpy")
    first_observation = arrays.pop("first_observation")
    networks = arrays_to_tree(_networks(model), arrays)
    model.policy.actor_state, model.policy.qf_state = networks["actor"], networks["critic"]
    model.key = jnp.array(key, copy=True)
    for name in _COUNTERS:
        setattr(model, name, state[name])
    model.ep_info_buffer = deque(state["ep_info_buffer"], maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(state["ep_success_buffer"], maxlen=model._stats_window_size)
    assert model.env is not None
    env.episode = state["episode"]
    model._last_obs = model.env.reset()
    position, has_gauss, gauss = state["random"]["numpy"]
    np.random.set_state(("MT19937", numpy_key, position, has_gauss, gauss))  # noqa: NPY002
    version, internal, gauss_next = state["random"]["python"]
    random.setstate((version, tuple(internal), gauss_next))
    model.action_space.np_random.bit_generator.state = state["random"]["action_space"]
    return np.array_equal(np.asarray(model._last_obs), first_observation)


def _networks(model: DDPG) -> dict[str, Any]:
    return {"actor": model.policy.actor_state, "critic": model.policy.qf_state}
