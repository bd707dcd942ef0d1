"""The replay buffer of a model, whichever class it is, and batches from it."""

import warnings
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from softdpg.algorithms.buffers import RecordReplayBuffer
from softdpg.algorithms.spaces import SpaceError, flat_observations, float32_space
from softdpg.algorithms.types import Batch


def keeps_n_steps(replay_buffer_class: type[ReplayBuffer] | None) -> bool:
    """Whether a buffer takes ``n_steps`` from the algorithm; None is the algorithm's own choice.

    As in SB3, a class of SB3's that the user gives has its own ``n_steps``.
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
    """A buffer of the given class, or for None of the one that suits the observations.

    :param env: only a ``HerReplayBuffer`` needs it
    """
    buffer_class = replay_buffer_class or _default_class(observation_space, n_steps, optimize_memory_usage)
    if n_steps > 1 and not keeps_n_steps(replay_buffer_class):
        warnings.warn(
            f"n_steps={n_steps} has no effect with replay_buffer_class={buffer_class.__name__}: "
            "give the buffer its own n_steps and gamma through replay_buffer_kwargs if it has them",
            stacklevel=5,
        )
    kwargs = dict(replay_buffer_kwargs)
    if issubclass(buffer_class, NStepReplayBuffer) and keeps_n_steps(replay_buffer_class):
        kwargs = {"n_steps": n_steps, "gamma": gamma, **kwargs}
    if issubclass(buffer_class, HerReplayBuffer):
        assert env is not None, "HerReplayBuffer needs an environment"
        kwargs["env"] = env
    return buffer_class(
        buffer_size,
        # Whatever precision the environment has, the buffer keeps float32: half the memory, all that is needed
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
            raise SpaceError(f"n_steps={n_steps}: only 1 is supported for Dict observation spaces")
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
    """Samples of any SB3 buffer as flat NumPy arrays: ``(batch, d)``, ``(batch, m)`` and ``(batch,)``.

    ``normalize_images`` and ``pixels`` as for :func:`~softdpg.algorithms.spaces.flat_observations`.
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
    """Tensors of PyTorch, or a dict of them, as NumPy arrays."""
    if isinstance(observations, dict):
        return {name: part.numpy() for name, part in observations.items()}
    return observations.numpy()
