"""Checkpoints: the state of a run between two steps, captured, written, read back and restored.

A checkpoint holds networks, targets and optimisers; the JAX, NumPy and Python generators and that of the action space;
SB3's counters; the number and the actions of each unfinished episode. The buffer keeps its contents in its own file, so
its count and checksums are enough. An environment is restored by playing its episode again: its seed follows from the
run's seed and the episode's number.

On disk a checkpoint is a directory named by its step, complete or absent, and free of pickle. ``arrays.safetensors``
and ``state.json`` hold the state, further files are copies of the run's tables so far, and ``SHA256SUMS`` (in the
format of ``sha256sum``) covers them all. The names are fixed, so that an untrusted checkpoint cannot make a run read or
write any other place.
"""

import hashlib
import json
import os
import random
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from safetensors.numpy import save
from stable_baselines3.common.vec_env import VecNormalize

from softdpg.algorithms.exploration import ColoredNoise, noises
from softdpg.algorithms.parameters import from_flat, to_flat
from softdpg.errors import one_line
from softdpg.replay.disk import DiskReplayBuffer
from softdpg.runs import files
from softdpg.runs.environments import SeededEpisodes, array_shape, put
from softdpg.runs.learner import check_arrays, load_arrays, set_statistics, statistics, take_statistics

TABLES = ("evaluations.csv", "progress.csv", "timings.csv")
_KEPT = 2  # checkpoints
_MT19937 = 624  # numbers in the state of NumPy's generator
_COUNTERS = ("num_timesteps", "_episode_num", "_n_updates")
_ARRAYS, _STATE, _SUMS = "arrays.safetensors", "state.json", "SHA256SUMS"
_LIMITS = {_ARRAYS: files.ARRAYS, _STATE: files.TABLE} | dict.fromkeys(TABLES, files.TABLE)


class DamagedCheckpointError(Exception):
    """Raised for a checkpoint whose files are missing or changed."""


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run needs to resume.

    :param step: steps taken
    :param arrays: arrays by name
    :param state: the rest of the state, as values of JSON
    :param files: contents of :data:`TABLES`, or of some of them
    """

    step: int
    arrays: Mapping[str, np.ndarray]
    state: Mapping[str, Any]
    files: Mapping[str, bytes]


def write(directory: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint to a temporary directory, rename it, and remove all but the newest two.

    If anything fails, for instance because the disk is full, the earlier ones stay as they were.

    :param directory: the directory of all checkpoints of the run
    :param checkpoint: what to write
    """
    target = directory / f"{checkpoint.step:012d}"
    aside = directory / f"{target.name}.tmp"
    files.make_directory(directory)
    _remove(aside)
    try:
        aside.mkdir()
        state = dict(checkpoint.state) | {"files": sorted(checkpoint.files)}  # reveals a lost line of the sums
        contents_of = {
            _ARRAYS: save(dict(checkpoint.arrays)),
            _STATE: json.dumps(state).encode(),
            **checkpoint.files,
        }
        sums = "".join(f"{hashlib.sha256(contents).hexdigest()}  {name}\n" for name, contents in contents_of.items())
        for name, contents in {**contents_of, _SUMS: sums.encode()}.items():
            with (aside / name).open("wb") as file:
                file.write(contents)
                file.flush()
                os.fsync(file.fileno())
        _sync_directory(aside)
        _remove(target)  # a damaged one, which the run did not use
        aside.rename(target)
        _sync_directory(directory)
    except BaseException:
        _remove(aside)
        raise
    for old in _newest_first(directory)[_KEPT:]:
        shutil.rmtree(old)


def read(path: Path) -> Checkpoint:
    """Read one checkpoint; raise :class:`DamagedCheckpointError` unless every byte is as it was written."""
    try:
        found = {}
        for line in files.read_text(path / _SUMS, files.SMALL).splitlines():
            expected, name = line.split("  ", 1)
            if name not in _LIMITS:
                raise DamagedCheckpointError(f"{path / _SUMS} names a file that no checkpoint has: {name!r}")
            found[name] = files.read_bytes(path / name, _LIMITS[name])
            if hashlib.sha256(found[name]).hexdigest() != expected:
                raise DamagedCheckpointError(f"{path / name} is not as it was written")
        arrays, state = load_arrays(found.pop(_ARRAYS)), files.parse_json(found.pop(_STATE), _STATE)
        if found.keys() != set(state.pop("files")):
            raise DamagedCheckpointError(f"{path / _SUMS} does not name all files of the checkpoint")
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DamagedCheckpointError(f"{path} cannot be read ({error})") from None
    return Checkpoint(int(path.name), arrays, state, found)


def newest_step(directory: Path) -> int:
    """Return the step of the newest checkpoint in ``directory``, damaged or not; 0 if there is none."""
    return max((int(path.name) for path in _newest_first(directory)), default=0)


def newest_first(directory: Path) -> Iterator[Checkpoint | DamagedCheckpointError]:
    """Read the checkpoints in ``directory`` one by one; yield the error instead of a damaged one."""
    for path in _newest_first(directory):
        try:
            yield read(path)
        except DamagedCheckpointError as error:
            yield error


def _newest_first(directory: Path) -> list[Path]:
    if not files.is_directory(directory):
        return []
    return sorted(
        (path for path in directory.iterdir() if _is_step(path.name) and files.is_directory(path)), reverse=True
    )


def _is_step(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) == 12


def _remove(path: Path) -> None:
    """Remove a directory, or a link in its place, if there is one."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def capture(model: Any, envs: Sequence[SeededEpisodes]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the JSON-ready state from which :func:`restore` restores a run exactly.

    :param model: the learner
    :param envs: its environments
    """
    buffer = model.replay_buffer
    assert isinstance(buffer, DiskReplayBuffer)
    assert model.ep_info_buffer is not None
    assert model.ep_success_buffer is not None
    numpy_state: Any = np.random.get_state(legacy=False)  # noqa: NPY002 (SB3 samples with it)
    arrays = {
        **to_flat(_networks(model)),
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
    """Put a new model, its buffer and its environments into the state of a checkpoint.

    Return whether the environments gave the same observations again. If not, they hold state that a reset with a seed
    does not set, and the run continues, but not bit for bit. Raise :class:`DamagedCheckpointError` if no run can have
    written the checkpoint; the model is then unchanged.

    :param model: the learner
    :param envs: its environments
    :param checkpoint: the state
    :param may_refill: whether a missing buffer may be filled with random steps before learning continues
    """
    try:
        apply = _prepare(model, envs, checkpoint, may_refill)
    except Exception as error:  # right checksums say nothing about the contents
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        raise DamagedCheckpointError(f"the checkpoint of step {checkpoint.step}: {kind}{one_line(error)}") from None
    return apply()


def _prepare(
    model: Any, envs: Sequence[SeededEpisodes], checkpoint: Checkpoint, may_refill: bool
) -> Callable[[], bool]:
    """Check everything in a checkpoint, which may be invalid; return the second half of :func:`restore`."""
    buffer = model.replay_buffer
    assert isinstance(buffer, DiskReplayBuffer)
    arrays, state = dict(checkpoint.arrays), checkpoint.state
    if state["run"] != buffer.run:
        raise ValueError("it belongs to another run")
    counters = {name: _count(state[name]) for name in _COUNTERS}
    if counters["num_timesteps"] != checkpoint.step:
        raise ValueError(f"it is of step {counters['num_timesteps']}")
    generators = _generators(model, arrays.pop("random/jax"), arrays.pop("random/numpy"), state["random"])
    ep_infos = [{str(key): float(value) for key, value in info.items()} for info in state["ep_info_buffer"]]
    if any(not {"r", "l"} <= info.keys() for info in ep_infos):
        raise ValueError("an episode has no return or no length")
    ep_successes = [float(success) for success in state["ep_success_buffer"]]
    colored = _colored(model)
    noise_states = [[_count(seed), _count(step)] for seed, step in state["action_noise"]]
    if len(noise_states) != len(colored):
        raise ValueError(f"it has the state of {len(noise_states)} noises, the run {len(colored)}")
    if any(step > noise.period for noise, (_, step) in zip(colored, noise_states, strict=True)):
        raise ValueError("the step of a noise is beyond its period")
    episodes, actions, last_observation = _episodes(envs, arrays, state)
    checksums = arrays.pop("buffer/checksums")
    normalization = take_statistics(model.get_vec_normalize_env(), arrays)
    check_arrays(to_flat(_networks(model)), arrays)
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("its networks have numbers that are NaN or infinite")
    networks = from_flat(_networks(model), arrays)
    count, learning_starts = _count(state["buffer_count"]), _count(state["learning_starts"])
    if may_refill and not buffer.holds(count):
        buffer.reset()
        learning_starts = model.learning_starts + checkpoint.step
    else:
        buffer.rewind(count, checksums)

    def apply() -> bool:
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

    return apply


def _generators(model: Any, jax_key: np.ndarray, numpy_key: np.ndarray, state: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the states of the generators, each tried on a new generator."""
    if (jax_key.shape, jax_key.dtype) != (model.key.shape, model.key.dtype):
        raise ValueError("random/jax is not a key")
    position, has_gauss, gauss = state["numpy"]
    if numpy_key.shape != (_MT19937,) or numpy_key.dtype != np.uint32 or not 0 <= _count(position) <= _MT19937:
        raise ValueError("random/numpy is not the state of a generator")  # NumPy itself does not check the position
    numpy_state = ("MT19937", numpy_key, position, has_gauss, float(gauss))
    np.random.RandomState().set_state(numpy_state)
    version, internal, gauss_next = state["python"]
    python_state = (version, tuple(internal), gauss_next)
    random.Random().setstate(python_state)
    type(model.action_space.np_random.bit_generator)().state = state["action_space"]
    return jnp.array(jax_key, copy=True), numpy_state, python_state, state["action_space"]


def _episodes(
    envs: Sequence[SeededEpisodes], arrays: dict[str, np.ndarray], state: Mapping[str, Any]
) -> tuple[list[int], list[np.ndarray], dict[str, np.ndarray]]:
    """Return number and actions ``(steps, m)`` of each environment's episode, and the observations they led to."""
    numbers = [_count(number) for number in state["episodes"]]
    if len(numbers) != len(envs):
        raise ValueError(f"it has {len(numbers)} environments, the run {len(envs)}")
    actions = [arrays.pop(f"episodes/{i}/actions") for i in range(len(envs))]
    for taken, env in zip(actions, envs, strict=True):
        shape = array_shape(env.action_space)
        if taken.shape[1:] != shape or not np.isfinite(taken).all():
            raise ValueError(f"actions of shape {taken.shape[1:]}, not finite ones of {shape}")
        free = isinstance(env.action_space, spaces.Box)  # rounding may exceed its bounds
        if not (free or all(env.action_space.contains(env.replay(action)) for action in taken)):
            raise ValueError("an action is not in the action space")
    space: Any = envs[0].observation_space
    parts = [f"/{name}" for name in space] if isinstance(space, spaces.Dict) else [""]
    return numbers, actions, {name: arrays.pop(name) for name in (f"last_observation{part}" for part in parts)}


def _replay(model: Any, envs: Sequence[SeededEpisodes], episodes: Sequence[int], actions: Sequence[np.ndarray]) -> Any:
    """Play the unfinished episodes again; return their observations ``(n_envs, d)``, not normalised."""
    vec_env: Any = model.env
    if isinstance(vec_env, VecNormalize):  # the statistics include these episodes already
        vec_env = vec_env.venv
    for env, number in zip(envs, episodes, strict=True):
        env.episode = number
    observations = vec_env.reset()
    # Not through the vector of environments, which would step them all, but through SB3's Monitor, which counts.
    for i, taken in enumerate(actions):
        for action in taken:
            observation, _, terminated, truncated, _ = vec_env.envs[i].step(envs[i].replay(action))
            if terminated or truncated:  # not the same episode: start the next
                observation, _ = vec_env.envs[i].reset()
                put(observations, i, observation)
                break
            put(observations, i, observation)
    return observations


def _named(name: str, observations: Any) -> dict[str, np.ndarray]:
    """Name an observation, or each of its parts."""
    if isinstance(observations, Mapping):
        return {f"{name}/{part}": np.ascontiguousarray(array) for part, array in observations.items()}
    return {name: np.ascontiguousarray(observations)}


def _seen(model: Any) -> Any:
    """Return the observations that the next actions are for, not normalised."""
    return model._last_obs if model.get_vec_normalize_env() is None else model._last_original_obs


def _set_seen(model: Any, observations: Any) -> None:
    normalize = model.get_vec_normalize_env()
    model._last_original_obs = model._last_obs = observations
    if normalize is not None:
        model._last_obs = normalize.normalize_obs(observations)


def _colored(model: Any) -> list[ColoredNoise]:
    """Return the exploration noises that have a state."""
    return [noise for noise in noises(model.action_noise) if isinstance(noise, ColoredNoise)]


def _networks(model: Any) -> dict[str, Any]:
    policy = model.policy
    learned_sigma = {} if policy.sigma_state is None else {"sigma": policy.sigma_state}
    return {"actor": policy.actor_state, "critic": policy.qf_state, **learned_sigma}


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"not a count: {str(value)[:50]}")
    return value
