"""The state of a run in memory, taken apart into arrays and JSON, and put together again.

Taken between two steps. What it holds: networks, targets and optimisers; the JAX, NumPy and Python generators and that
of the action space; SB3's counters; of each unfinished episode its number and its actions. The buffer keeps its own
contents on disk, so its count and checksums are enough. An environment is brought back by playing its episode again:
its seed follows from the run's seed and the episode's number.
"""

import random
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecNormalize

from softdpg.algorithms.buffers import DiskReplayBuffer
from softdpg.algorithms.noise import ColoredNoise, noises
from softdpg.runs.checkpoint import Checkpoint
from softdpg.runs.environments import SeededEpisodes
from softdpg.runs.evaluation import put
from softdpg.runs.learner import arrays_to_tree, tree_to_arrays
from softdpg.runs.normalization import set_statistics, statistics, take_statistics

_COUNTERS = ("num_timesteps", "_episode_num", "_n_updates")


def capture(model: Any, envs: Sequence[SeededEpisodes]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and JSON-ready state from which :func:`restore` brings back the run exactly."""
    buffer = model.replay_buffer
    assert isinstance(buffer, DiskReplayBuffer)
    assert model.ep_info_buffer is not None
    assert model.ep_success_buffer is not None
    numpy_state: Any = np.random.get_state(legacy=False)  # noqa: NPY002 (SB3 samples with it)
    arrays = {
        **tree_to_arrays(_networks(model)),
        "random/jax": np.asarray(model.key),
        "random/numpy": numpy_state["state"]["key"],
        **_named("last_observation", _seen(model)),
        **statistics(model.get_vec_normalize_env()),
        "buffer/checksums": buffer.checksums(),
        **{f"episodes/{i}/actions": env.actions for i, env in enumerate(envs)},
    }
    state = {
        **{name: getattr(model, name) for name in _COUNTERS},
        "learning_starts": model.learning_starts,
        "episodes": [env.episode - 1 for env in envs],
        "run": buffer.run,
        "action_noise": [noise.get_state() for noise in _colored(model)],
        "buffer_count": buffer.count,
        "ep_info_buffer": [{key: float(value) for key, value in info.items()} for info in model.ep_info_buffer],
        "ep_success_buffer": [float(success) for success in model.ep_success_buffer],
        "random": {
            "numpy": [numpy_state["state"]["pos"], numpy_state["has_gauss"], numpy_state["gauss"]],
            "python": random.getstate(),
            "action_space": model.action_space.np_random.bit_generator.state,
        },
    }
    return arrays, state


def restore(model: Any, envs: Sequence[SeededEpisodes], checkpoint: Checkpoint, *, may_refill: bool = False) -> bool:
    """Put a fresh model, buffer and environments into the state of a checkpoint.

    Returns whether the environments came to the same observations again; if not, they hold state that a reset with a
    seed does not set, and the run will go on well but not bit for bit. ``ValueError`` (or ``KeyError``, ``TypeError``)
    if the checkpoint does not fit; the model is then as it was.

    :param may_refill: whether a buffer that is gone may be filled anew, with random steps, before learning goes on
    """
    buffer = model.replay_buffer
    assert isinstance(buffer, DiskReplayBuffer)
    arrays, state = dict(checkpoint.arrays), checkpoint.state
    if state.get("run", buffer.run) != buffer.run:
        raise ValueError("the checkpoint is that of another run")

    # First everything that may fail, then everything that changes the model.
    counters = {name: _count(state[name]) for name in _COUNTERS}
    if counters["num_timesteps"] != checkpoint.step:
        raise ValueError(f"the checkpoint of step {checkpoint.step} is of step {counters['num_timesteps']}")
    generators = _generators(model, arrays.pop("random/jax"), arrays.pop("random/numpy"), state["random"])
    ep_infos = [{str(key): float(value) for key, value in info.items()} for info in state["ep_info_buffer"]]
    ep_successes = [float(success) for success in state["ep_success_buffer"]]
    colored, stored = _colored(model), state.get("action_noise", [])
    noise_states = [[_count(seed), _count(step)] for seed, step in stored]
    if len(noise_states) != len(colored):
        raise ValueError(f"the checkpoint has the state of {len(noise_states)} coloured noises, the run {len(colored)}")
    episodes, actions, last_observation = _episodes(envs, arrays, state)
    checksums = arrays.pop("buffer/checksums", None)  # 0.1.0 had none
    normalization = take_statistics(model.get_vec_normalize_env(), arrays)
    networks = arrays_to_tree(_networks(model), arrays)
    count, learning_starts = _count(state["buffer_count"]), _count(state.get("learning_starts", model.learning_starts))
    if may_refill and not buffer.holds(count):
        buffer.reset()
        learning_starts = model.learning_starts + checkpoint.step
    else:
        buffer.rewind(count, checksums)

    for noise, noise_state in zip(colored, noise_states, strict=True):
        noise.set_state(noise_state)
    model.policy.actor_state, model.policy.qf_state = networks["actor"], networks["critic"]
    model.policy.sigma_state = networks.get("sigma")
    for name, value in counters.items():
        setattr(model, name, value)
    model.learning_starts = learning_starts
    model.ep_info_buffer = deque(ep_infos, maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(ep_successes, maxlen=model._stats_window_size)
    set_statistics(model.get_vec_normalize_env(), normalization)
    observations = _replay(model, envs, episodes, actions)
    _set_seen(model, observations)
    model.key, numpy_state, python_state, action_space_state = generators
    np.random.set_state(numpy_state)  # noqa: NPY002
    random.setstate(python_state)
    model.action_space.np_random.bit_generator.state = action_space_state
    again = _named("last_observation", observations)
    return all(np.array_equal(again[name], array) for name, array in last_observation.items())


def _generators(model: Any, jax_key: np.ndarray, numpy_key: np.ndarray, state: Mapping[str, Any]) -> tuple[Any, ...]:
    """The states of the generators, each tried out on a generator of its own."""
    if (jax_key.shape, jax_key.dtype) != (model.key.shape, model.key.dtype):
        raise ValueError("random/jax is not a key")
    position, has_gauss, gauss = state["numpy"]
    numpy_state = ("MT19937", numpy_key, position, has_gauss, gauss)
    np.random.RandomState().set_state(numpy_state)
    version, internal, gauss_next = state["python"]
    python_state = (version, tuple(internal), gauss_next)
    random.Random().setstate(python_state)
    type(model.action_space.np_random.bit_generator)().state = state["action_space"]
    return jnp.array(jax_key, copy=True), numpy_state, python_state, state["action_space"]


def _episodes(
    envs: Sequence[SeededEpisodes], arrays: dict[str, np.ndarray], state: Mapping[str, Any]
) -> tuple[list[int], list[np.ndarray], dict[str, np.ndarray]]:
    """Number and actions ``(steps, m)`` of each environment's episode, and the observations that they led to."""
    if "episode" in state:  # 0.1.0 made checkpoints between episodes only
        first = {"last_observation": arrays.pop("first_observation")}
        return [_count(state["episode"])], [envs[0].actions[:0]], first
    numbers = [_count(number) for number in state["episodes"]]
    if len(numbers) != len(envs):
        raise ValueError(f"the checkpoint has {len(numbers)} environments, the run {len(envs)}")
    actions = [arrays.pop(f"episodes/{i}/actions") for i in range(len(envs))]
    for taken, env in zip(actions, envs, strict=True):
        if taken.shape[1:] != env.action_space.shape or not np.isfinite(taken).all():
            raise ValueError(f"actions of shape {taken.shape[1:]}, not finite ones of {env.action_space.shape}")
    space: Any = envs[0].observation_space
    parts = [f"/{name}" for name in space] if isinstance(space, spaces.Dict) else [""]
    return numbers, actions, {name: arrays.pop(name) for name in (f"last_observation{part}" for part in parts)}


def _replay(model: Any, envs: Sequence[SeededEpisodes], episodes: Sequence[int], actions: Sequence[np.ndarray]) -> Any:
    """Play the unfinished episodes up to where they were; their observations ``(n_envs, d)``, not normalised."""
    vec_env: Any = model.env
    if isinstance(vec_env, VecNormalize):  # past it: the statistics have seen these episodes
        vec_env = vec_env.venv
    for env, number in zip(envs, episodes, strict=True):
        env.episode = number
    observations = vec_env.reset()
    # Past the vector of environments, which would step them all, but through SB3's Monitor, which counts.
    for i, taken in enumerate(actions):
        for action in taken:
            observation, _, terminated, truncated, _ = vec_env.envs[i].step(action)
            if terminated or truncated:  # another episode than it was: begin the next
                observation, _ = vec_env.envs[i].reset()
                put(observations, i, observation)
                break
            put(observations, i, observation)
    return observations


def _named(name: str, observations: Any) -> dict[str, np.ndarray]:
    """An observation, or its parts, as arrays with names."""
    if isinstance(observations, Mapping):
        return {f"{name}/{part}": np.ascontiguousarray(array) for part, array in observations.items()}
    return {name: np.ascontiguousarray(observations)}


def _seen(model: Any) -> Any:
    """The observations that the next actions are for, as the environments gave them."""
    return model._last_obs if model.get_vec_normalize_env() is None else model._last_original_obs


def _set_seen(model: Any, observations: Any) -> None:
    normalize = model.get_vec_normalize_env()
    model._last_original_obs = model._last_obs = observations
    if normalize is not None:
        model._last_obs = normalize.normalize_obs(observations)


def _colored(model: Any) -> list[ColoredNoise]:
    """The noises that have a state of their own."""
    return [noise for noise in noises(model.action_noise) if isinstance(noise, ColoredNoise)]


def _networks(model: Any) -> dict[str, Any]:
    policy = model.policy
    learned_sigma = {} if policy.sigma_state is None else {"sigma": policy.sigma_state}
    return {"actor": policy.actor_state, "critic": policy.qf_state, **learned_sigma}


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"not a count: {str(value)[:50]}")
    return value
