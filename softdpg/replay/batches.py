"""Make the replay buffer of a model, and turn the samples of any buffer into batches."""

import warnings
from typing import Any, NamedTuple

import jax
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from softdpg.replay.memory import RecordReplayBuffer
from softdpg.replay.spaces import SpaceError, flat_observations, float32_space

Array = jax.Array | np.ndarray


class Batch(NamedTuple):
    """Transitions that an update learns from.

    :param observations: ``(batch, d)``
    :param actions: ``(batch, m)``, scaled to [-1, 1]
    :param next_observations: ``(batch, d)``; with n-step returns the observations after the last of these steps
    :param dones: ``(batch,)``; 1 where the episode terminated, 0 elsewhere and at a time limit
    :param rewards: ``(batch,)``; with n-step returns their discounted sums
    :param discounts: ``(batch,)``; gamma, or its power after several steps
    """

    observations: Array
    actions: Array
    next_observations: Array
    dones: Array
    rewards: Array
    discounts: Array


def keeps_n_steps(replay_buffer_class: type[ReplayBuffer] | None) -> bool:
    """Return whether a buffer of this class takes ``n_steps`` from the algorithm.

    As in SB3, a class of SB3's own that the user passes has an ``n_steps`` of its own.

    :param replay_buffer_class: None if the algorithm chooses the class
    """
    return replay_buffer_class is None or issubclass(replay_buffer_class, RecordReplayBuffer)


def make_replay_buffer(
    replay_buffer_class: type[ReplayBuffer] | None,
    buffer_size: int,
    observation_space: spaces.Space,
    action_space: spaces.Space,
    env: VecEnv | None,
    *,
    n_envs: int,
    n_steps: int,
    gamma: float,
    optimize_memory_usage: bool,
    replay_buffer_kwargs: dict[str, Any],
) -> ReplayBuffer:
    """Make a replay buffer.

    :param replay_buffer_class: class of the buffer; None chooses the one that suits the observation space
    :param buffer_size: maximal number of transitions
    :param observation_space: observation space of the environment
    :param action_space: action space of the environment
    :param env: the training environments; only a ``HerReplayBuffer`` needs them
    :param n_envs: number of training environments
    :param n_steps: number of steps whose rewards are summed
    :param gamma: discount factor
    :param optimize_memory_usage: store each observation once, as SB3's ``ReplayBuffer`` can
    :param replay_buffer_kwargs: further arguments of the class; they take precedence over those above, and
        ``optimize_memory_usage`` may be among them
    """
    kwargs = dict(replay_buffer_kwargs)
    optimize_memory_usage = kwargs.pop("optimize_memory_usage", optimize_memory_usage)
    buffer_class = replay_buffer_class or _default_class(observation_space, n_steps, optimize_memory_usage)
    if n_steps > 1 and not keeps_n_steps(replay_buffer_class):
        warnings.warn(
            f"n_steps={n_steps} has no effect with replay_buffer_class={buffer_class.__name__}. "
            "If this class has n_steps and gamma, pass them in replay_buffer_kwargs",
            stacklevel=5,
        )
    if issubclass(buffer_class, NStepReplayBuffer) and keeps_n_steps(replay_buffer_class):
        kwargs = {"n_steps": n_steps, "gamma": gamma, **kwargs}
    if issubclass(buffer_class, HerReplayBuffer):
        assert env is not None, "HerReplayBuffer needs an environment"
        kwargs["env"] = env
    return buffer_class(
        buffer_size,
        # float32 suffices whatever the precision of the environment, and takes half the memory of float64.
        float32_space(observation_space),
        action_space,
        device="cpu",
        n_envs=n_envs,
        optimize_memory_usage=optimize_memory_usage,
        **kwargs,
    )


def _default_class(space: spaces.Space, n_steps: int, optimize_memory_usage: bool) -> type[ReplayBuffer]:
    if isinstance(space, spaces.Dict):
        if n_steps > 1:
            raise SpaceError(f"n_steps must be 1 for a Dict observation space, got {n_steps}")
        return DictReplayBuffer
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating) and not optimize_memory_usage:
        return RecordReplayBuffer
    return ReplayBuffer if n_steps == 1 else NStepReplayBuffer


def flat_batch(
    samples: ReplayBufferSamples,
    observation_space: spaces.Space,
    gamma: float,
    normalize_images: bool = True,
    pixels: bool = False,
) -> Batch:
    """Convert samples of any SB3 buffer to a batch of NumPy arrays.

    :param samples: what the buffer's ``sample`` returned
    :param observation_space: observation space of the environment
    :param gamma: discount, for samples that have none of their own
    :param normalize_images: divide images by 255
    :param pixels: keep images as uint8; see :func:`~softdpg.replay.spaces.flat_observations`
    """
    size = len(samples.actions)
    discounts = np.full(size, gamma, np.float32) if samples.discounts is None else samples.discounts.numpy()
    observations, next_observations = (
        flat_observations(_numpy(part), observation_space, normalize_images, pixels)
        for part in (samples.observations, samples.next_observations)
    )
    return Batch(
        observations,
        samples.actions.numpy(),
        next_observations,
        samples.dones.numpy().reshape(size),
        samples.rewards.numpy().reshape(size),
        discounts.reshape(size),
    )


def _numpy(observations: Any) -> Any:
    """Convert a tensor of PyTorch, or a dict of them, to NumPy."""
    if isinstance(observations, dict):
        return {name: part.numpy() for name, part in observations.items()}
    return observations.numpy()
