"""Runs on Dict observations, and ``--her``."""

import sys

import gymnasium as gym
import numpy as np
import pytest
from commands import softdpg
from processes import tiny_config

from softdpg import SoftTD3
from softdpg.errors import UserError
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.environments import check_goals, make_env
from softdpg.runs.learner import load_learner, policy_of
from softdpg.runs.trained import evaluate_run, export_run, open_run
from softdpg.runs.training import train

GOALS = "examples.point_mass:PointMassGoal-v0"
TINY_TD3 = {"n_samples": 2, "train_freq": 2, "gradient_steps": 2}


class Mixed(gym.Env):
    """A Dict observation without goals."""

    observation_space = gym.spaces.Dict(
        place=gym.spaces.Box(-100, 100, (2, 1), np.float64), lamp=gym.spaces.Discrete(3)
    )
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._look(), {}

    def step(self, action):
        observation = self._look()
        return observation, float(action[0]) * observation["place"].sum(), False, False, {}

    def _look(self):
        return {"place": self.np_random.normal(50, 10, (2, 1)), "lamp": int(self.np_random.integers(3))}


gym.register("Mixed-v0", Mixed, max_episode_steps=20)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("env", "algo", "settings"),
    [
        (GOALS, "soft-td3", {"her": True, "n_envs": 4, "normalize": True, **TINY_TD3}),
        pytest.param("Mixed-v0", "soft-td3", {"normalize": True, **TINY_TD3}, marks=pytest.mark.extended),
    ],
)
def test_a_run_from_training_to_export(tmp_path, env, algo, settings, monkeypatch):
    """Hindsight replay, and returns of three steps on a mixed observation; evaluated, exported and loaded."""
    config, run = tiny_config(env, algo, steps=320, learning_starts=250, **settings), tmp_path / "run"
    assert train(config, run) == 0
    stored = RunConfig.from_json(RunDirectory(run).read_config())
    assert (stored.her, stored.n_steps) == ((True, 1) if config.her else (False, 3))
    assert evaluate_run(run, episodes=2, trust=True).shape == (2,)
    opened, weights = open_run(run, trust=True)
    environment = make_env(opened.env)
    policy = policy_of(load_learner(opened, environment, weights))
    observations = [environment.reset(seed=i)[0] for i in range(5)]
    batch = {name: np.stack([parts[name] for parts in observations]) for name in observations[0]}
    expected, _ = policy.predict(batch, deterministic=True)
    # The finished model is that of SB3: it loads without the run, and keeps its returns of several steps.
    model = SoftTD3.load(run / "model.zip", env=make_env(opened.env))
    assert model.n_steps == stored.n_steps
    np.testing.assert_array_equal(model.predict(policy.normalize.normalize_obs(batch), deterministic=True)[0], expected)
    if not config.her:
        with pytest.raises(UserError, match="a policy on Discrete or MultiDiscrete observations cannot be exported"):
            export_run(run, to="numpy", trust=True)
        return
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(export_run(run, to="onnx", trust=True))
    np.testing.assert_allclose(
        session.run(None, {name: part.astype(np.float32) for name, part in batch.items()})[0],
        expected,
        rtol=0,
        atol=1e-6,
    )
    export_run(run, to="numpy", trust=True)
    monkeypatch.syspath_prepend(str(run))
    sys.modules.pop("policy", None)
    import policy as numpy_policy

    np.testing.assert_allclose(numpy_policy.predict(batch), expected, rtol=0, atol=1e-6)


def test_hindsight_from_episodes_that_are_whole(tmp_path, capsys):
    config = tiny_config(GOALS, "ddpg", steps=100, her=True, learning_starts=10)
    assert train(config, tmp_path / "run") == 1
    error = capsys.readouterr().err
    assert (
        "hindsight replay needs a whole episode, but none has ended yet: learning_starts and buffer_size must" in error
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"her": True, "n_steps": 3, "algo": "soft-td3"}, "--her applies with --n-steps 1 only, not 3"),
        ({"n_sampled_goal": 8}, "--n-sampled-goal applies with --her only"),
        ({"goal_selection_strategy": "final"}, "--goal-selection-strategy applies with --her only"),
        ({"her": True, "n_sampled_goal": 0}, "--n-sampled-goal must be at least 1, got 0"),
        ({"her": True, "goal_selection_strategy": "last"}, "must be future or final or episode"),
    ],
)
def test_invalid_settings(settings, message):
    with pytest.raises(UserError, match=message):
        RunConfig(**({"env": GOALS, "algo": "ddpg"} | settings)).resolved()


def test_settings_are_stored():
    config = RunConfig(GOALS, "soft-td3", her=True, n_sampled_goal=8, goal_selection_strategy="final").resolved()
    assert RunConfig.from_json(config.to_json()) == config
    assert config.n_steps == 1
    plain = RunConfig(GOALS, "soft-td3").resolved().to_json()
    assert (plain["her"], plain["n_sampled_goal"], plain["env_kwargs"]) == (False, 4, {})
    for wrong in ({"her": 1}, {"normalize": "yes"}, {"her": True, "n_sampled_goal": 1.5}):
        with pytest.raises(UserError, match="must be"):
            RunConfig.from_json(plain | wrong)


class Silent(gym.Wrapper):
    """Goals, but no one to say what they pay."""

    def has_wrapper_attr(self, name):
        return name != "compute_reward" and super().has_wrapper_attr(name)


def test_environments_without_goals_are_one_line(tmp_path):
    with pytest.raises(
        UserError, match=r"--her needs an environment with goals.* Pendulum-v1 has no Box 'observation'"
    ):
        train(tiny_config("Pendulum-v1", "ddpg", her=True), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(UserError, match=r"--her needs compute_reward\(achieved_goal, desired_goal, info\)"):
        check_goals(Silent(make_env(GOALS)), "Silent-v0")


def test_an_invalid_part_is_one_line():
    class Nested(gym.Env):
        observation_space = gym.spaces.Dict(a=gym.spaces.Dict(b=gym.spaces.Box(-1, 1, (1,))))
        action_space = gym.spaces.Box(-1, 1, (1,))

    gym.register("Nested-v0", Nested)
    with pytest.raises(UserError, match="has a Dict as part 'a' of its observation; softdpg needs Box, Discrete"):
        make_env("Nested-v0")


def test_flags(tmp_path):
    flags = ["--env", GOALS, "--algo", "soft-td3", "--her", "--n-sampled-goal", "8", "--normalize"]
    done = softdpg("train", *flags, "--write-config", "goals.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "goals.yaml").read_text()
    assert all(
        line in text.splitlines() for line in ("her: true", "n-sampled-goal: 8", "normalize: true", "n-steps: 1")
    )
