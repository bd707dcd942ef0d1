"""Hindsight replay on disk: the samples of SB3's buffer, from a file that can be rewound."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from transitions import episodes, fill, goal_env, seed

from softdpg import SoftTD3
from softdpg.replay.hindsight import HerDiskReplayBuffer
from softdpg.replay.spaces import flat_observations

ACTIONS = spaces.Box(-1, 1, (2,), np.float32)


def her_buffer(path, size, n_envs=1, **settings):
    env = goal_env(n_envs)
    settings = {"slack": 100, "n_sampled_goal": 4} | settings
    return HerDiskReplayBuffer(size, env.observation_space, ACTIONS, n_envs=n_envs, path=path, env=env, **settings)


def rows(obs, actions, next_obs, dones, rewards, discounts=None):
    """Samples as rows in a canonical order."""
    columns = [np.asarray(x).reshape(len(actions), -1) for x in (obs, actions, next_obs, dones, rewards)]
    table = np.concatenate(columns, axis=1)
    return table[np.lexsort(table.T)]


def sb3_rows(samples, space):
    flat = [flat_observations({k: v.numpy() for k, v in part.items()}, space)
            for part in (samples.observations, samples.next_observations)]  # fmt: skip
    return rows(flat[0], samples.actions, flat[1], samples.dones, samples.rewards)


@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
@pytest.mark.parametrize("normalized", [False, True])
def test_samples_are_those_of_sb3(tmp_path, strategy, normalized):
    on_disk = her_buffer(tmp_path / "buffer", 300, goal_selection_strategy=strategy)
    env = goal_env()
    of_sb3 = HerReplayBuffer(300, env.observation_space, ACTIONS, env, goal_selection_strategy=strategy)
    for buffer in (on_disk, of_sb3):
        fill(buffer, episodes(1, 250))
    normalize = None
    if normalized:
        normalize = VecNormalize(goal_env(), norm_reward=False)
        for name, statistics in normalize.obs_rms.items():
            statistics.mean, statistics.var = np.full(2, len(name) / 10), np.array([0.5, 2.0])
    seed(7)
    expected = sb3_rows(of_sb3.sample(64, normalize), env.observation_space)
    seed(7)
    found = rows(*on_disk.sample_arrays(64, normalize))
    np.testing.assert_array_equal(found, expected)
    seed(7)
    samples = on_disk.sample(64, normalize)
    np.testing.assert_array_equal(rows(samples.observations, samples.actions, samples.next_observations,
                                       samples.dones, samples.rewards), expected)  # fmt: skip


@pytest.mark.parametrize(("n_envs", "steps"), [(1, 260), (2, 130), (2, 400), (3, 137)])
def test_what_can_be_sampled_is_what_sb3_would(tmp_path, n_envs, steps):
    """Whole episodes in the buffer, wrapped or not; goals are reached later in the same episode."""
    on_disk = fill(her_buffer(tmp_path / "buffer", 100 * n_envs, n_envs), episodes(n_envs, steps))
    env = goal_env(n_envs)
    of_sb3 = HerReplayBuffer(100 * n_envs, env.observation_space, ACTIONS, env, n_envs=n_envs)
    fill(of_sb3, episodes(n_envs, steps))
    slots, envs = np.nonzero(of_sb3.ep_length > 0)
    expected = {(int(e), int(t)) for e, t in of_sb3.next_observations["achieved_goal"][slots, envs]}
    obs, _, next_obs, *_ = on_disk.sample_arrays(20_000)
    achieved = on_disk.part(next_obs, "achieved_goal")
    assert {(int(e), int(t)) for e, t in achieved} == expected
    goals = on_disk.part(obs, "desired_goal")
    of_hindsight = (goals == np.round(goals)).all(axis=1)
    assert of_hindsight.sum() == int(0.8 * 20_000)
    ends = {e: np.flatnonzero([done[e] for *_, done, _ in episodes(n_envs, steps)]) for e in range(n_envs)}
    for (e, t), (goal_env_number, goal_t) in zip(
        achieved[of_hindsight][:2000], goals[of_hindsight][:2000], strict=True
    ):
        assert goal_env_number == e
        assert t <= goal_t <= ends[int(e)][np.searchsorted(ends[int(e)], t)]
    # Every stretch of what was sampled has its share of the goals that were set.
    assert all(18 <= of_hindsight[i : i + 25].sum() <= 22 for i in range(0, 20_000, 25))


@pytest.mark.parametrize(("n_envs", "count"), [(1, 30), (1, 150), (2, 90), (2, 170), (1, 101), (1, 100)])
def test_a_file_rewound_gives_the_samples_it_gave(tmp_path, n_envs, count):
    all_of_them = list(episodes(n_envs, count + 25))
    buffer = fill(her_buffer(tmp_path / "buffer", 100 * n_envs, n_envs), all_of_them[:count])
    checksums = buffer.checksums()
    seed(1)
    expected = buffer.sample_arrays(500)
    fill(buffer, all_of_them[count:])
    buffer.close()
    again = her_buffer(tmp_path / "buffer", 100 * n_envs, n_envs)
    again.rewind(count, checksums)
    seed(1)
    for found, array in zip(again.sample_arrays(500), expected, strict=True):
        np.testing.assert_array_equal(found, array)


def test_errors(tmp_path):
    buffer = her_buffer(tmp_path / "buffer", 50)
    with pytest.raises(ValueError, match="none has ended yet: learning_starts"):
        buffer.sample_arrays(4)
    with pytest.raises(ValueError, match="n_steps must be 1 with HerDiskReplayBuffer, got 3"):
        her_buffer(tmp_path / "steps", 50, n_steps=3)
    with pytest.raises(ValueError, match="goal_selection_strategy must be one of future, final, episode, got 'first'"):
        her_buffer(tmp_path / "strategy", 50, goal_selection_strategy="first")
    only = spaces.Dict(observation=spaces.Box(-1, 1, (2,), np.float32))
    with pytest.raises(ValueError, match="achieved_goal is missing"):
        HerDiskReplayBuffer(50, only, ACTIONS, path=tmp_path / "only", env=goal_env())
    fill(buffer, episodes(1, 40))
    buffer.env = DummyVecEnv([lambda: _OneReward(gym.make("PointMassGoal-v0"))])
    with pytest.raises(ValueError, match=r"a finite reward for each goal of a batch, shape \(8,\), got shape \(\)"):
        buffer.sample_arrays(10)


class _OneReward(gym.Wrapper):
    def compute_reward(self, achieved_goal, desired_goal, info):
        return -1.0


@pytest.mark.parametrize("truncate", [False, True])
def test_a_buffer_is_saved_and_loaded_before_learning_starts(tmp_path, truncate):
    env = DummyVecEnv([lambda: BitFlippingEnv(n_bits=4, continuous=True)] * 2)
    model = SoftTD3(
        "MultiInputPolicy", env, replay_buffer_class=HerReplayBuffer, buffer_size=500, policy_kwargs={"net_arch": [8]}
    )
    with pytest.warns(UserWarning, match="nothing will be learned in 64 steps"):
        model.learn(64)
    before = model.replay_buffer
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    del model.replay_buffer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SB3's, of the truncated episode
        model.load_replay_buffer(tmp_path / "buffer.pkl", truncate_last_traj=truncate)
    assert model.replay_buffer.pos == before.pos == 32
    for name, part in before.observations.items():
        np.testing.assert_array_equal(model.replay_buffer.observations[name], part)
    with pytest.warns(UserWarning, match="nothing will be learned"):
        model.learn(64, reset_num_timesteps=True)
    assert model.replay_buffer.pos == 64
