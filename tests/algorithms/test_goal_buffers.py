"""Buffers for Dict observations: SB3's samples, flat, from a file that can be rewound."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.buffers import DictReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import examples.point_mass  # noqa: F401 (registers PointMassGoal-v0)
from softdpg import DDPG
from softdpg.algorithms.flat_buffers import FlatReplayBuffer
from softdpg.algorithms.her_buffer import HerDiskReplayBuffer
from softdpg.algorithms.spaces import flat_observations

ACTIONS = spaces.Box(-1, 1, (2,), np.float32)


def seed(number):
    np.random.seed(number)  # noqa: NPY002 (SB3 samples with it)


def goal_env(n_envs=1):
    return DummyVecEnv([lambda: gym.make("PointMassGoal-v0")] * n_envs)


def her_buffer(path, size, n_envs=1, **settings):
    env = goal_env(n_envs)
    settings = {"slack": 100, "n_sampled_goal": 4} | settings
    return HerDiskReplayBuffer(size, env.observation_space, ACTIONS, n_envs=n_envs, path=path, env=env, **settings)


def episodes(n_envs, steps):
    """Transitions of random episodes; the achieved goal says which environment and which step it is of."""
    rng = np.random.default_rng(0)
    for t in range(steps):
        marks = np.stack([np.arange(n_envs), np.full(n_envs, t)], axis=1).astype(np.float32)
        goals = rng.normal(size=(2, n_envs, 2)).astype(np.float32)
        obs = {"observation": marks + 0.5, "achieved_goal": marks - 1, "desired_goal": goals[0]}
        next_obs = {"observation": marks - 0.5, "achieved_goal": marks, "desired_goal": goals[0]}
        done = rng.random(n_envs) < 0.15
        infos = [{"TimeLimit.truncated": bool(rng.random() < 0.5)} for _ in range(n_envs)]
        yield obs, next_obs, rng.uniform(-1, 1, (n_envs, 2)).astype(np.float32), goals[1, :, 0], done, infos


def fill(buffer, transitions):
    for transition in transitions:
        buffer.add(*transition)
    return buffer


def rows(obs, actions, next_obs, dones, rewards, discounts=None):
    """Samples as rows in an order that does not depend on theirs."""
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
    ours = her_buffer(tmp_path / "buffer", 300, goal_selection_strategy=strategy)
    env = goal_env()
    theirs = HerReplayBuffer(300, env.observation_space, ACTIONS, env, goal_selection_strategy=strategy)
    for buffer in (ours, theirs):
        fill(buffer, episodes(1, 250))
    normalize = None
    if normalized:
        normalize = VecNormalize(goal_env(), norm_reward=False)
        for name, statistics in normalize.obs_rms.items():
            statistics.mean, statistics.var = np.full(2, len(name) / 10), np.array([0.5, 2.0])
    seed(7)
    expected = sb3_rows(theirs.sample(64, normalize), env.observation_space)
    seed(7)
    found = rows(*ours.sample_arrays(64, normalize))
    np.testing.assert_array_equal(found, expected)
    seed(7)
    samples = ours.sample(64, normalize)
    np.testing.assert_array_equal(rows(samples.observations, samples.actions, samples.next_observations,
                                       samples.dones, samples.rewards), expected)  # fmt: skip


@pytest.mark.parametrize(("n_envs", "steps"), [(1, 260), (2, 130), (2, 400), (3, 137)])
def test_what_can_be_sampled_is_what_sb3_would(tmp_path, n_envs, steps):
    """Whole episodes in the buffer, wrapped or not; goals are reached later in the same episode."""
    ours = fill(her_buffer(tmp_path / "buffer", 100 * n_envs, n_envs), episodes(n_envs, steps))
    env = goal_env(n_envs)
    theirs = HerReplayBuffer(100 * n_envs, env.observation_space, ACTIONS, env, n_envs=n_envs)
    fill(theirs, episodes(n_envs, steps))
    slots, envs = np.nonzero(theirs.ep_length > 0)
    expected = {(int(e), int(t)) for e, t in theirs.next_observations["achieved_goal"][slots, envs]}
    obs, _, next_obs, *_ = ours.sample_arrays(20_000)
    achieved = ours.part(next_obs, "achieved_goal")
    assert {(int(e), int(t)) for e, t in achieved} == expected
    goals = ours.part(obs, "desired_goal")
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


def test_what_cannot_be_says_so(tmp_path):
    buffer = her_buffer(tmp_path / "buffer", 50)
    with pytest.raises(ValueError, match="none has ended yet: learning_starts"):
        buffer.sample_arrays(4)
    with pytest.raises(ValueError, match="n_steps=1, not 3"):
        her_buffer(tmp_path / "steps", 50, n_steps=3)
    with pytest.raises(ValueError, match="goal_selection_strategy must be one of"):
        her_buffer(tmp_path / "strategy", 50, goal_selection_strategy="first")
    only = spaces.Dict(observation=spaces.Box(-1, 1, (2,), np.float32))
    with pytest.raises(ValueError, match="no achieved_goal"):
        HerDiskReplayBuffer(50, only, ACTIONS, path=tmp_path / "only", env=goal_env())
    fill(buffer, episodes(1, 40))
    buffer.env = DummyVecEnv([lambda: _OneReward(gym.make("PointMassGoal-v0"))])
    with pytest.raises(ValueError, match=r"a finite reward for each goal of a batch, shape \(8,\), not \(\)"):
        buffer.sample_arrays(10)


class _OneReward(gym.Wrapper):
    def compute_reward(self, achieved_goal, desired_goal, info):
        return -1.0


def test_flat_observations_are_those_of_sb3s_dict_buffer():
    space = spaces.Dict(
        a=spaces.Box(-1, 1, (2, 2), np.float32), b=spaces.Discrete(3), c=spaces.MultiBinary(2)
    )  # fmt: skip
    ours, theirs = (kind(40, space, ACTIONS, n_envs=2) for kind in (FlatReplayBuffer, DictReplayBuffer))
    rng = np.random.default_rng(0)
    for _ in range(50):
        obs, next_obs = (
            {"a": rng.normal(size=(2, 2, 2)).astype(np.float32), "b": rng.integers(0, 3, 2),
             "c": rng.integers(0, 2, (2, 2)).astype(np.int8)} for _ in range(2)
        )  # fmt: skip
        action, reward, done = rng.uniform(-1, 1, (2, 2)).astype(np.float32), rng.normal(size=2), rng.random(2) < 0.1
        for buffer in (ours, theirs):
            buffer.add(obs, next_obs, action, reward, done, [{}, {}])
    seed(3)
    samples = theirs.sample(100)
    seed(3)
    found = ours.sample_arrays(100)
    for flat, part in ((found[0], samples.observations), (found[2], samples.next_observations)):
        expected = flat_observations({name: array.numpy() for name, array in part.items()}, space)
        np.testing.assert_array_equal(flat, expected)
    np.testing.assert_array_equal(found[1], samples.actions)
    np.testing.assert_array_equal(found[4], samples.rewards[:, 0])
    with pytest.raises(ValueError, match="takes a Dict observation space"):
        FlatReplayBuffer(10, ACTIONS, ACTIONS)


def test_every_batch_of_sb3s_buffer_has_its_share_of_goals_that_were_set():
    """Several batches are sampled at once; SB3 puts the transitions with their own goals first."""
    env = goal_env()
    model = DDPG(
        "MultiInputPolicy",
        env,
        buffer_size=300,
        replay_buffer_class=HerReplayBuffer,
        policy_kwargs={"net_arch": [4, 4]},
    )
    fill(model.replay_buffer, episodes(1, 200))
    observations = np.asarray(model._sample_batches(4, 25).observations)
    assert observations.shape == (4, 25, 6)
    first = 2 * list(env.observation_space.spaces).index("desired_goal")
    goals = observations[:, :, first : first + 2]
    assert (goals == np.round(goals)).all(axis=2).sum(axis=1).tolist() == [20, 20, 20, 20]
