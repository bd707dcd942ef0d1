"""Deterministic episodes on environments apart from those of training."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from softdpg.algorithms.shapes import check_shape
from softdpg.runs.environments import make_env

LONGEST = 10_000  # steps after which an episode is cut in an environment that has no time limit


class Predicts(Protocol):
    """A policy as SB3 has it."""

    def predict(self, observation: Any, *, deterministic: bool) -> tuple[np.ndarray, object]:
        """Actions ``(batch, m)`` for observations ``(batch, d)``, or a dict of them."""


class DivergedError(ValueError):
    """A policy whose actions are not finite."""


def stacked(observations: Sequence[Any]) -> Any:
    """Observations as one batch: an array, or a dict of arrays."""
    if isinstance(observations[0], Mapping):
        return {name: np.stack([parts[name] for parts in observations]) for name in observations[0]}
    return np.stack(observations)


def put(batch: Any, i: int, observation: Any) -> None:
    """Replace the ``i``-th observation of a batch."""
    if isinstance(batch, dict):
        for name, part in batch.items():
            part[i] = observation[name]
    else:
        batch[i] = observation


class Evaluator:
    """Plays one episode in each of ``episodes`` environments, side by side, so that one forward pass serves all."""

    def __init__(self, env_id: str, episodes: int, env_kwargs: Mapping[str, Any] = {}) -> None:
        self.envs = [make_env(env_id, env_kwargs) for _ in range(episodes)]

    def returns(self, policy: Predicts, seeds: Sequence[int]) -> np.ndarray:
        """Undiscounted returns ``(len(seeds),)`` of deterministic episodes, the i-th from ``seeds[i]``.

        There may be at most as many seeds as environments. An episode without end is cut after :data:`LONGEST` steps.
        :class:`DivergedError` if an action is NaN or infinite, ``ValueError`` if a return is.
        """
        envs = self.envs[: len(seeds)]
        # The batch keeps its size to the end: another size would be another compiled function.
        first = [env.reset(seed=seed)[0] for env, seed in zip(envs, seeds, strict=True)]
        check_shape(first[0], envs[0].observation_space)
        observations = stacked(first)
        returns = np.zeros(len(envs))
        playing = list(range(len(envs)))
        limited = envs[0].spec is not None and envs[0].spec.max_episode_steps is not None
        for _ in itertools.count() if limited else range(LONGEST):
            if not playing:
                break
            actions, _ = policy.predict(observations, deterministic=True)
            if not np.isfinite(actions[playing]).all():
                raise DivergedError("the policy diverged: its action is NaN or infinite")
            for i in playing.copy():
                observation, reward, terminated, truncated, _ = envs[i].step(actions[i])
                check_shape(observation, envs[i].observation_space)
                put(observations, i, observation)
                returns[i] += float(reward)
                if terminated or truncated:
                    playing.remove(i)
        if not np.isfinite(returns).all():
            raise ValueError(f"the return of an evaluation is NaN or infinite: {returns}")
        return returns

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()
