"""DDPG and SoftDDPG through everything that a Stable-Baselines3 user expects of an algorithm."""

import csv
import io

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.callbacks import (
    CallbackList,
    CheckpointCallback,
    EvalCallback,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnRewardThreshold,
)
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.vec_env import VecNormalize

from softdpg import DDPG, SoftDDPG
from softdpg.replay.batches import flat_batch
from softdpg.replay.memory import RecordReplayBuffer

SMALL = dict(learning_starts=20, batch_size=16, buffer_size=2_000, seed=0, policy_kwargs=dict(net_arch=[16, 16]))


def make_ddpg(env="Pendulum-v1", policy="MlpPolicy", **kwargs):
    return DDPG(policy, env, **{**SMALL, **kwargs})


def make_soft(env="Pendulum-v1", policy="MlpPolicy", **kwargs):
    return SoftDDPG(policy, env, **{**SMALL, "n_samples": 4, "estimator": "paper", **kwargs})


def make_centered(env="Pendulum-v1", policy="MlpPolicy", **kwargs):
    return make_soft(env, policy, estimator="centered", **kwargs)


ALL = pytest.mark.parametrize("make", [make_ddpg, pytest.param(make_soft, marks=pytest.mark.extended), make_centered])
BOTH = pytest.mark.parametrize("make", [make_ddpg, make_centered])


def weights(model):
    states = (model.policy.actor_state, model.policy.qf_state)
    return jax.tree.map(np.array, [(s.params, s.target_params, s.opt_state) for s in states])


def assert_equal(got, want):
    jax.tree.map(np.testing.assert_array_equal, got, want)


def changed(before, after):
    return not all(jax.tree.leaves(jax.tree.map(np.array_equal, before, after)))


@ALL
def test_same_seed_gives_the_same_weights_bit_for_bit(make):
    start = weights(make())
    first, second, other = (weights(make(seed=seed).learn(60)) for seed in (0, 0, 1))
    assert_equal(first, second)
    assert changed(start, first)
    assert changed(other, first)


def test_defaults_are_the_papers_table_but_for_the_estimator():
    model = SoftDDPG("MlpPolicy", "Pendulum-v1")
    assert (model.sigma, model.n_samples, model.estimator) == (0.2, 50, "centered")
    assert (model.gamma, model.batch_size, model.tau, model.buffer_size) == (0.99, 256, 0.005, 1_000_000)
    assert model.lr_schedule(1) == model.lr_schedule(0) == 1e-4
    assert model.qf_schedule is None
    assert model.policy.actor.net_arch == model.policy.qf.critic.net_arch == (400, 300)
    assert model.policy.qf.critic.action_layer == "second"
    assert (model.train_freq.frequency, model.gradient_steps, model.learning_starts) == (1, 1, 1_000)
    np.testing.assert_array_equal(model.action_noise._sigma, [0.1])


@BOTH
def test_predict_one_observation_and_a_batch(make):
    model = make()
    observations = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    actions, state = model.predict(observations, deterministic=True)
    assert actions.shape == (5, 1)
    assert state is None
    scaled = model.policy.actor.apply(model.policy.actor_state.params, observations)
    np.testing.assert_allclose(actions, 2 * scaled, rtol=1e-5)  # Pendulum's torque goes from -2 to 2
    one, _ = model.predict(observations[0])
    assert one.shape == (1,)
    np.testing.assert_allclose(one, actions[0], rtol=1e-5)


@ALL
def test_save_and_load_by_path_and_by_file_object(make, tmp_path):
    model = make()
    model.learn(40)
    buffer = io.BytesIO()
    model.save(tmp_path / "model")
    model.save(buffer)
    buffer.seek(0)
    observations = np.random.default_rng(0).normal(size=(5, 3))
    for source in (tmp_path / "model.zip", buffer):
        loaded = type(model).load(source, env=model.get_env())
        assert_equal(weights(loaded), weights(model))
        np.testing.assert_array_equal(loaded.predict(observations)[0], model.predict(observations)[0])
        assert loaded.row == model.row
        loaded.learn(30, reset_num_timesteps=False)
        assert loaded.num_timesteps == 70
    without_env = type(model).load(tmp_path / "model")
    np.testing.assert_array_equal(without_env.predict(observations)[0], model.predict(observations)[0])
    without_env.set_env(gym.make("Pendulum-v1"))
    without_env.learn(30)
    assert changed(weights(model), weights(without_env))


@BOTH
def test_save_and_load_replay_buffer(make, tmp_path):
    model = make()
    model.learn(40)
    model.save_replay_buffer(tmp_path / "buffer")
    other = make()
    other.load_replay_buffer(tmp_path / "buffer")
    assert other.replay_buffer.size() == 40
    other.train(gradient_steps=2, batch_size=16)
    assert other._n_updates == 2


@ALL
def test_callbacks_csv_and_tensorboard(make, tmp_path):
    model = make(tensorboard_log=str(tmp_path / "tensorboard"))
    model.set_logger(configure(str(tmp_path / "csv"), ["csv", "tensorboard"]))
    evaluate = EvalCallback(
        Monitor(gym.make("Pendulum-v1")),
        eval_freq=100,
        n_eval_episodes=1,
        best_model_save_path=str(tmp_path / "best"),
        log_path=str(tmp_path / "evaluations"),
        callback_on_new_best=StopTrainingOnRewardThreshold(reward_threshold=1.0),
        verbose=0,
    )
    checkpoint = CheckpointCallback(save_freq=150, save_path=str(tmp_path / "checkpoints"), save_replay_buffer=True)
    model.learn(450, callback=CallbackList([evaluate, checkpoint]), log_interval=1)
    np.testing.assert_array_equal(np.load(tmp_path / "evaluations/evaluations.npz")["timesteps"], [100, 200, 300, 400])
    names = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert {"rl_model_150_steps.zip", "rl_model_450_steps.zip", "rl_model_replay_buffer_300_steps.pkl"} <= names
    assert (tmp_path / "best/best_model.zip").exists()
    type(model).load(tmp_path / "checkpoints/rl_model_300_steps")

    rows = list(csv.DictReader((tmp_path / "csv/progress.csv").open()))
    last = next(row for row in reversed(rows) if row["train/critic_loss"])
    for name in ("critic_loss", "q_mean", "actor_gradient_norm", "saturated_actions", "actor_loss", "learning_rate"):
        assert np.isfinite(float(last[f"train/{name}"])), name
    assert 0 <= float(last["train/saturated_actions"]) <= 1
    assert (
        float(last["train/n_updates"]) == 379
    )  # of steps 21 to 399: logged at the end of an episode, before its last update
    assert list((tmp_path / "csv").glob("events.out.tfevents*"))


def test_tensorboard_log_is_named_after_the_algorithm(tmp_path):
    make_soft(tensorboard_log=str(tmp_path)).learn(30)
    assert [path.name for path in tmp_path.iterdir()] == ["SoftDDPG_1"]


@BOTH
def test_callback_can_stop_training(make):
    model = make()
    model.learn(10_000, callback=StopTrainingOnMaxEpisodes(max_episodes=1))
    assert model.num_timesteps == 200


def test_progress_bar(capfd):
    make_ddpg().learn(30, progress_bar=True)
    assert "30/30" in "".join(capfd.readouterr())


@BOTH
@pytest.mark.parametrize(
    ("train_freq", "gradient_steps", "n_envs", "updates"),
    # Updates start once more than 20 steps are done.
    [(1, 3, 1, 3 * 40), (4, -1, 1, 40), (1, -1, 2, 40), (2, 1, 2, 10), ((1, "episode"), -1, 1, 200)],
)
def test_update_frequency_and_several_environments(make, train_freq, gradient_steps, n_envs, updates):
    env = make_vec_env("Pendulum-v1", n_envs=n_envs, seed=0)
    model = make(env, train_freq=train_freq, gradient_steps=gradient_steps)
    model.learn(60)
    assert model._n_updates == updates
    assert model.replay_buffer.size() * n_envs == model.num_timesteps


def test_set_env_with_another_number_of_environments_is_refused_and_the_same_number_works():
    model = make_centered(make_vec_env("Pendulum-v1", n_envs=2))
    with pytest.raises(AssertionError):
        model.set_env(make_vec_env("Pendulum-v1", n_envs=3))
    model.set_env(make_vec_env("Pendulum-v1", n_envs=2))
    model.learn(40)
    assert model.num_timesteps == 40


def test_learning_rate_schedules_reach_the_optimisers():
    """Adam's steps are near the learning rate in size, whatever the gradient: watch the largest step of each net."""
    sizes = []
    last = {}

    def record(local, _):
        now = weights(local["self"])
        if last:
            pairs = [(last["weights"][net][0], now[net][0]) for net in (0, 1)]
            sizes.append(
                [max(np.abs(b - a).max() for a, b in zip(*map(jax.tree.leaves, p), strict=True)) for p in pairs]
            )
        last["weights"] = now
        return True

    model = make_soft(learning_rate=lambda remaining: 1e-3 if remaining > 0.5 else 1e-6, qf_learning_rate=5e-4)
    model.learn(60, callback=record)
    actor, critic = np.array(sizes).T
    # The callback of step t sees the update of step t - 1; updates start after step 20.
    assert actor[:19].max() == 0
    assert 5e-4 < actor[20:28].max() < 4e-3
    assert 0 < actor[31:].max() < 1e-5
    assert 1e-4 < critic[31:].max() < 2e-3
    follows = make_soft(learning_rate=lambda remaining: 0.0 if remaining < 0.5 else 1e-3)
    follows.learn(29)
    before = weights(follows)[1][0]
    follows._current_progress_remaining = 0.1
    follows.train(gradient_steps=3, batch_size=16)
    assert_equal(weights(follows)[1][0], before)


def test_learning_rate_zero_changes_nothing():
    model = make_soft(learning_rate=0.0)
    before = weights(model)[0][0]
    model.learn(60)
    assert_equal(weights(model)[0][0], before)


@BOTH
def test_dict_observations_with_her(make):
    env = BitFlippingEnv(n_bits=4, continuous=True, max_steps=8)
    model = make(
        env,
        policy="MultiInputPolicy",
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs=dict(n_sampled_goal=2, goal_selection_strategy="future"),
    )
    model.learn(80)
    assert model._n_updates == 60
    observation = env.reset(seed=0)[0]
    assert model.predict(observation)[0].shape == (4,)
    batch = flat_batch(model.replay_buffer.sample(16), model.observation_space, model.gamma)
    assert batch.observations.shape == (16, 12)


@BOTH
def test_vec_normalize(make):
    env = VecNormalize(make_vec_env("Pendulum-v1", n_envs=1, seed=0))
    model = make(env)
    model.learn(60)
    # The buffer keeps what the environment said; samples are normalised with the statistics of the moment.
    raw = model.replay_buffer.rewards[:60, 0]
    np.testing.assert_allclose(raw.min(), env.unnormalize_reward(env.normalize_reward(raw)).min(), rtol=1e-4)
    assert raw.min() < -1
    sampled = model.replay_buffer.sample(200, env=env).rewards.numpy()
    np.testing.assert_allclose(sampled.min(), env.normalize_reward(raw.min()), rtol=1e-4)


@BOTH
def test_n_step_returns(make):
    model = make(n_steps=3)
    model.learn(60)
    assert isinstance(model.replay_buffer, RecordReplayBuffer)
    batch = flat_batch(model.replay_buffer.sample(64), model.observation_space, model.gamma)
    assert set(np.round(np.unique(batch.discounts), 6)) <= {np.round(np.float32(0.99**k), 6) for k in (1, 2, 3)}
    assert batch.discounts.min() < 0.98


def test_time_limit_is_not_a_terminal_state():
    model = make_ddpg()
    model.learn(210)  # Pendulum never terminates; its episodes are cut after 200 steps
    buffer = model.replay_buffer
    assert buffer.dones[199, 0] == buffer.timeouts[199, 0] == 1
    assert flat_batch(buffer._get_samples(np.arange(210)), model.observation_space, model.gamma).dones.sum() == 0


def test_termination_is_terminal():
    model = make_ddpg("InvertedPendulum-v5", learning_starts=1_000)
    model.learn(100)
    batch = flat_batch(model.replay_buffer._get_samples(np.arange(100)), model.observation_space, model.gamma)
    assert batch.dones.sum() == model.replay_buffer.dones.sum() > 0


def test_exploration_noise_is_in_scaled_actions():
    model = make_ddpg(learning_starts=0, action_noise=0.3, gradient_steps=0)
    model.learn(2_000)
    observations = model.replay_buffer.observations[:2_000, 0]
    greedy = model.policy.scale_action(model.predict(observations)[0])
    noise = model.replay_buffer.actions[:2_000, 0] - greedy
    inside = np.abs(greedy[:, 0]) < 0.2
    np.testing.assert_allclose(noise[inside].std(), 0.3, rtol=0.15)
    assert make_ddpg(action_noise=None).action_noise is None
    ornstein = OrnsteinUhlenbeckActionNoise(np.zeros(1), np.ones(1))
    assert make_ddpg(action_noise=ornstein).action_noise is ornstein


def test_replay_buffer_is_float32_and_small():
    model = DDPG("MlpPolicy", "Humanoid-v5", policy_kwargs=dict(net_arch=[8, 8]))
    buffer = model.replay_buffer
    assert model.observation_space.dtype == np.float64
    assert buffer.observations.dtype == buffer.next_observations.dtype == buffer.actions.dtype == np.float32
    assert buffer.observations.shape == (1_000_000, 1, 348)
    memory = {id(array.base): array.base for array in vars(buffer).values() if isinstance(array, np.ndarray)}
    assert all(np.shares_memory(array, buffer.observations) for array in memory.values() if array is not None)
    assert buffer._records.nbytes == 4 * 1_000_000 * (2 * 348 + 17 + 3) <= 3e9


def test_dict_buffers_are_float32_too():
    class Goal(gym.Env):
        observation_space = spaces.Dict({"position": spaces.Box(-1, 1, (2,), np.float64)})
        action_space = spaces.Box(-1, 1, (1,), np.float32)

        def reset(self, *, seed=None, options=None):
            return self.observation_space.sample(), {}

        def step(self, action):
            return self.observation_space.sample(), 0.0, False, False, {}

    model = make_ddpg(Goal(), policy="MultiInputPolicy")
    model.learn(30)
    assert model.replay_buffer.observations["position"].dtype == np.float32


@pytest.mark.extended
def test_device_by_name():
    model = make_soft(device="cpu")
    model.learn(30)
    assert jax.tree.leaves(model.policy.actor_state.params)[0].devices() == {jax.devices("cpu")[0]}
    with pytest.raises(ValueError, match=r"device 'quantum' is not available.*cpu"):
        make_soft(device="quantum")


@ALL
def test_callbacks_find_the_results_of_updates_in_the_logger(make):
    """They are at most 20 updates old, the number of updates is that of now, and after a dump they are there again."""
    seen = []

    def look(local, _):
        model = local["self"]
        values = model.logger.name_to_value
        seen.append((model._n_updates, values.get("train/n_updates"), values.get("train/critic_loss")))
        if model.num_timesteps == 70:
            model.logger.dump(model.num_timesteps)
        return True

    model = make()
    model.learn(100, callback=look)
    updates, logged, losses = zip(*seen, strict=True)
    # The callback of step t comes before its update; updates start with step 21.
    assert logged[:21] == losses[:21] == (None,) * 21
    assert logged[21:] == updates[21:] == tuple(range(1, 80))
    assert all(type(loss) is float and np.isfinite(loss) for loss in losses[21:])
    fresh = [i for i in range(22, 100) if losses[i] != losses[i - 1]]
    assert fresh == [41, 61, 70, 90]  # 20 updates after the first, then at once after the dump of step 70
