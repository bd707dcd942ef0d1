"""Hindsight experience replay (Andrychowicz and others, 2017) from records on disk."""

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from softdpg.replay import GOAL_PARTS, GOAL_SELECTIONS, GoalSelection
from softdpg.replay.disk import FlatDiskReplayBuffer


class HerDiskReplayBuffer(FlatDiskReplayBuffer):
    """Hindsight experience replay on disk, with the samples of SB3's ``HerReplayBuffer``.

    Of ``n_sampled_goal + 1`` transitions, ``n_sampled_goal`` get a new desired goal that was achieved in the same
    episode. The environment's ``compute_reward`` gives the reward for it. Only whole episodes are sampled: those that
    have ended and whose first transition is still in the buffer. The records tell where episodes begin, so a
    checkpoint needs nothing besides the file.

    :param args: the positional arguments of :class:`~softdpg.replay.disk.DiskReplayBuffer`; the observation space is a
        Dict with the Box parts ``observation``, ``achieved_goal`` and ``desired_goal``
    :param env: the training environments; the first one computes rewards
    :param n_sampled_goal: number of transitions with a new goal for each one with its own
    :param goal_selection_strategy: the new goal is achieved later in the episode (``future``), at its end (``final``)
        or anywhere in it (``episode``)
    :param kwargs: the keyword arguments of :class:`~softdpg.replay.disk.DiskReplayBuffer`; ``n_steps`` must be 1
    """

    def __init__(
        self,
        *args: Any,
        env: VecEnv,
        n_sampled_goal: int = 4,
        goal_selection_strategy: GoalSelection = "future",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        missing = [name for name in GOAL_PARTS if not isinstance(self.parts.spaces.get(name), spaces.Box)]
        if missing:
            raise ValueError(
                f"HerDiskReplayBuffer needs Box observations {', '.join(GOAL_PARTS)}; {missing[0]} is missing"
            )
        if self.n_steps != 1:
            raise ValueError(f"n_steps must be 1 with HerDiskReplayBuffer, got {self.n_steps}")
        if goal_selection_strategy not in GOAL_SELECTIONS:
            known = ", ".join(GOAL_SELECTIONS)
            raise ValueError(f"goal_selection_strategy must be one of {known}, got {goal_selection_strategy!r}")
        self.env, self.n_sampled_goal, self.goal_selection_strategy = env, n_sampled_goal, goal_selection_strategy
        # For each environment the first transitions of its episodes, counted over the whole run. The last episode has
        # not ended yet.
        self._starts = [np.zeros(1, np.int64)] * self.n_envs

    def _blocks(self, count: int) -> range:
        # One transition more than the window: it tells whether the first one begins an episode.
        return range(max(count - self.buffer_size - 1, 0) // self._block, super()._blocks(count).stop)

    def add(self, *args: Any) -> None:
        """Append one transition of each environment.

        :param args: as for :meth:`~softdpg.replay.memory.FlatReplayBuffer.add`
        :raises OSError: with ``ENOSPC`` if the disk is full
        """
        super().add(*args)
        for i in np.flatnonzero(self.dones[(self.count - 1) % self.slots]):
            starts = self._starts[i]
            self._starts[i] = np.append(starts[starts >= self.count - self.buffer_size], self.count)

    def rewind(self, count: int, checksums: np.ndarray | None = None) -> None:
        """Restore the state after ``count`` transitions.

        :param count: number of transitions, counted over the whole run
        :param checksums: what :meth:`checksums` returned in that state
        :raises ValueError: if the file no longer holds the window, or the records do not match the checksums
        """
        super().rewind(count, checksums)
        first = max(count - self.buffer_size, 0)
        known = np.arange(max(first - 1, 0), count)
        ended = self.dones[known % self.slots] > 0
        before = [0] if first == 0 else [first - 1]  # not a start: the episode began before the window
        self._starts = [np.concatenate([before, known[ended[:, i]] + 1]) for i in range(self.n_envs)]

    def reset(self) -> None:
        """Forget every transition."""
        super().reset()
        self._starts = [np.zeros(1, np.int64)] * self.n_envs

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> ReplayBufferSamples:
        """Sample transitions, some of them with a new goal; observations are ``(batch, d)``.

        :param batch_size: number of transitions
        :param env: normalise observations and rewards by the statistics of this wrapper
        """
        return self._as_samples(self.sample_arrays(batch_size, env))

    def sample_arrays(self, batch_size: int, env: VecNormalize | None = None) -> tuple[np.ndarray, ...]:
        """Return the sample that :meth:`sample` would return, without the conversion to torch.

        :param batch_size: number of transitions
        :param env: normalise observations and rewards by the statistics of this wrapper
        """
        times, envs = self._sample_times(batch_size)
        n_virtual = int((1 - 1 / (self.n_sampled_goal + 1)) * batch_size)
        goal_times = self._goal_times(times[:n_virtual], envs[:n_virtual])
        records = self._records_at(times, envs)
        obs, next_obs, actions, rewards, dones, timeouts = (records[:, columns] for columns in self._columns)
        reached = self._records_at(goal_times, envs[:n_virtual])[:, self._columns[1]]
        goals = reached[:, self.part_columns["achieved_goal"]]
        for flat in (obs, next_obs):
            flat[:n_virtual, self.part_columns["desired_goal"]] = goals
        rewards[:n_virtual, 0] = self._rewards(next_obs[:n_virtual])
        if env is not None:
            obs, next_obs = (self._normalized(x, env) for x in (obs, next_obs))
            rewards = self._normalize_reward(rewards, env)
        # Mix the two kinds evenly: a caller may split one large sample into several batches.
        parts = [np.arange(n_virtual) / max(n_virtual, 1), np.arange(batch_size - n_virtual) / (batch_size - n_virtual)]
        order = np.argsort(np.concatenate(parts), kind="stable")
        ends, discounts = (dones * (1 - timeouts))[:, 0], np.full(batch_size, self.gamma, np.float32)
        return tuple(array[order] for array in (obs, actions, next_obs, ends, rewards[:, 0], discounts))

    def _sample_times(self, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
        """Sample transitions of whole episodes uniformly.

        :return: their numbers, counted over the whole run, and their environments, both ``(batch,)``
        """
        oldest = self.count - self.buffer_size
        # The whole episodes of an environment are contiguous, up to the one that has not ended yet.
        first = np.array(
            [starts[min(int(np.searchsorted(starts, oldest)), len(starts) - 1)] for starts in self._starts]
        )
        sizes = np.array([starts[-1] for starts in self._starts]) - first
        stops = np.cumsum(sizes)
        if stops[-1] == 0:
            raise ValueError(
                "hindsight replay needs a whole episode, but none has ended yet: learning_starts and buffer_size must "
                "be larger than the length of an episode times the number of environments"
            )
        samples = np.random.randint(0, stops[-1], size=batch_size)  # noqa: NPY002 (SB3's generator)
        envs = np.searchsorted(stops, samples, side="right")
        return first[envs] + samples - (stops - sizes)[envs], envs

    def _goal_times(self, times: np.ndarray, envs: np.ndarray) -> np.ndarray:
        """Return for each transition the number of the one whose achieved goal becomes its desired goal."""
        begins, ends = np.empty_like(times), np.empty_like(times)
        for i, starts in enumerate(self._starts):
            mine = envs == i
            following = np.searchsorted(starts, times[mine], side="right")
            begins[mine], ends[mine] = starts[following - 1], starts[following]
        if self.goal_selection_strategy == "final":
            return ends - 1
        earliest = times - begins if self.goal_selection_strategy == "future" else 0
        return begins + np.random.randint(earliest, ends - begins)  # noqa: NPY002

    def _records_at(self, times: np.ndarray, envs: np.ndarray) -> np.ndarray:
        return self._records.take(times % self.slots * self.n_envs + envs, axis=0)

    def _rewards(self, next_obs: np.ndarray) -> np.ndarray:
        """Compute the rewards ``(batch,)`` of observations ``(batch, d)`` for their own desired goals."""
        achieved, desired = (self.part(next_obs, name) for name in GOAL_PARTS[1:])
        infos: list[dict[str, Any]] = [{} for _ in next_obs]
        (returned,) = self.env.env_method("compute_reward", achieved, desired, infos, indices=[0])
        rewards = np.asarray(returned, np.float32)
        if rewards.shape != (len(next_obs),) or not np.isfinite(rewards).all():
            raise ValueError(
                f"compute_reward must return a finite reward for each goal of a batch, shape {(len(next_obs),)}, "
                f"got shape {rewards.shape}"
            )
        return rewards
