"""Deterministic episodes on environments apart from those of training."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from softdpg.runs.environments import make_env


class Predicts(Protocol):
    """A policy as SB3 has it."""

    def predict(self, observation: np.ndarray, *, deterministic: bool) -> tuple[np.ndarray, object]:
        """Actions ``(batch, m)`` for observations ``(batch, d)``."""


class Evaluator:
    """Plays one episode in each of ``episodes`` environments, side by side, so that one forward pass serves all."""

    def __init__(self, env_id: str, episodes: int) -> None:
        self.envs = [make_env(env_id) for _ in range(episodes)]

    def returns(self, policy: Predicts, seeds: Sequence[int]) -> np.ndarray:
        """Undiscounted returns ``(len(seeds),)`` of deterministic episodes, the i-th from ``seeds[i]``.

        There may be at most as many seeds as environments.
        """
        envs = self.envs[: len(seeds)]
        # The batch keeps its size to the end: another size would be another compiled function.
        observations = np.stack([env.reset(seed=seed)[0] for env, seed in zip(envs, seeds, strict=True)])
        returns = np.zeros(len(envs))
        playing = list(range(len(envs)))
        while playing:
            actions, _ = policy.predict(observations, deterministic=True)
            for i in playing.copy():
                observations[i], reward, terminated, truncated, _ = envs[i].step(actions[i])
                returns[i] += float(reward)
                if terminated or truncated:
                    playing.remove(i)
        return returns

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()
