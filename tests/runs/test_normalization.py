"""``--normalize``: statistics of all observations, in the run, in what is evaluated and in what is exported."""

import sys

import gymnasium as gym
import numpy as np
import pytest
from processes import tiny_config
from safetensors.numpy import load_file, save_file
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from softdpg import DDPG
from softdpg.errors import UserError
from softdpg.export import read_safetensors
from softdpg.replay.disk import DiskReplayBuffer
from softdpg.runs import checkpoint
from softdpg.runs.directory import RunDirectory
from softdpg.runs.environments import EVALUATION, Evaluator, check_normalizable, episode_seed, make_env
from softdpg.runs.learner import load_learner, policy_of
from softdpg.runs.trained import evaluate_run, export_run, open_run
from softdpg.runs.training import train

CONFIG = tiny_config("Pendulum-v1", "ddpg", steps=300, normalize=True, n_envs=2, evaluate_every=150)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    assert train(CONFIG, path, keep_buffer=True) == 0
    return path


@pytest.fixture(scope="module")
def policy(run):
    config, weights = open_run(run)
    return policy_of(load_learner(config, make_env(config.env), weights))


def test_statistics_are_those_of_all_observations(run):
    """Mean and variance in closed form, with SB3's start: a mean of 0 and a variance of 1 that count 1e-4."""
    env = make_env(CONFIG.env)
    last = next(checkpoint.newest_first(run / "checkpoints"))
    buffer = DiskReplayBuffer(
        500, env.observation_space, env.action_space, n_envs=2, path=run / "replay_buffer.bin",
        slack=4096, run=RunDirectory(run).read_config()["run"],
    )  # fmt: skip
    buffer.rewind(last.state["buffer_count"], last.arrays["buffer/checksums"])
    assert (last.step, buffer.count) == (300, 150)
    # The buffer holds them as the environment gave them, and of each step the one before it.
    seen = np.concatenate([buffer.observations[:150].reshape(-1, 3), last.arrays["last_observation"]]).astype(float)
    count = len(seen) + 1e-4
    mean = seen.sum(axis=0) / count
    var = (1e-4 * (1 + mean**2) + ((seen - mean) ** 2).sum(axis=0)) / count
    found = load_file(run / "model.safetensors")
    np.testing.assert_allclose(found["observation/mean"], mean, rtol=1e-6)
    np.testing.assert_allclose(found["observation/var"], var, rtol=1e-6)
    np.testing.assert_allclose(found["observation/count"], [count], rtol=1e-12)
    for name in ("mean", "var", "count"):
        np.testing.assert_array_equal(found[f"observation/{name}"], last.arrays[f"observation/{name}"])


def test_evaluations_are_of_the_normalised_policy(run, policy):
    seeds = [episode_seed(CONFIG.seed, EVALUATION, 300, i) for i in range(CONFIG.evaluation_episodes)]
    again = Evaluator(CONFIG, len(seeds)).returns(policy, seeds)
    row = (run / "evaluations.csv").read_text().splitlines()[-1].split(",")
    assert [float(cell) for cell in row[3:]] == again.tolist()
    plain = Evaluator(CONFIG, len(seeds)).returns(policy.model, seeds)
    assert not np.allclose(plain, again)
    assert evaluate_run(run, episodes=2).shape == (2,)


def test_exported_policies_normalise(run, policy, monkeypatch):
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    observations = (rng.uniform(-1, 1, (50, 3)) * [1, 1, 8]).astype(np.float32)
    observations[0] = [1e3, -1e3, 1e4]  # clipped
    expected, _ = policy.predict(observations, deterministic=True)
    paths = {to: export_run(run, to=to) for to in ("onnx", "numpy", "safetensors")}
    session = onnxruntime.InferenceSession(paths["onnx"])
    monkeypatch.syspath_prepend(str(run))
    sys.modules.pop("policy", None)
    import policy as numpy_policy

    found = {
        "onnx": session.run(None, {"observation": observations})[0],
        "numpy": numpy_policy.predict(observations),
        "safetensors": read_safetensors(paths["safetensors"])(observations),
    }
    half_range = 2.0  # of Pendulum's torque
    for name, actions in found.items():
        np.testing.assert_allclose(actions, expected, rtol=0, atol=1e-6 * half_range, err_msg=name)


def test_the_finished_model_in_the_way_of_sb3(run, policy):
    env = VecNormalize.load(str(run / "vecnormalize.pkl"), DummyVecEnv([lambda: gym.make("Pendulum-v1")]))
    model = DDPG.load(run / "model.zip")
    observations = np.array([[1.0, 0.0, 5.0], [0.0, -1.0, -3.0]], np.float32)
    actions, _ = model.predict(env.normalize_obs(observations), deterministic=True)
    np.testing.assert_array_equal(actions, policy.predict(observations, deterministic=True)[0])


def test_it_is_part_of_the_run(run):
    with pytest.raises(UserError, match="--normalize is False, not True"):
        train(tiny_config("Pendulum-v1", "ddpg", steps=300, n_envs=2, evaluate_every=150), run)
    assert "--normalize" in CONFIG.resolved().arguments()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("observation/var"), "no observation/var, which --normalize needs"),
        (lambda a: a.update({"observation/mean": np.zeros(2)}), "must be finite numbers of shape"),
        (lambda a: a.update({"observation/mean": np.full(3, np.nan)}), "must be finite numbers of shape"),
        (lambda a: a.update({"observation/var": np.full(3, -1.0)}), "must not be negative"),
    ],
)
def test_damaged_statistics_are_one_line(run, tmp_path, change, message):
    config, weights = open_run(run)
    arrays = load_file(weights)
    change(arrays)
    save_file(arrays, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=message):
        load_learner(config, make_env(config.env), tmp_path / "model.safetensors")


class Picture(gym.Env):
    observation_space = gym.spaces.Box(0, 255, (3, 40, 40), np.uint8)
    action_space = gym.spaces.Box(-1, 1, (1,))


class Lamp(gym.Env):
    observation_space = gym.spaces.Dict(lamp=gym.spaces.Discrete(3))
    action_space = gym.spaces.Box(-1, 1, (1,))


@pytest.mark.parametrize(
    ("env", "message"),
    [(Picture, "does not apply to images"), (Lamp, "applies to Box observations; Here-v0 has none")],
)
def test_what_cannot_be_normalised(env, message):
    with pytest.raises(UserError, match=f"--normalize {message}"):
        check_normalizable(env(), "Here-v0")
