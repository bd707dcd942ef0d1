"""Environments of a run: seeds, names, and modules of one's own, which a run directory never imports."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from commands import softdpg
from processes import tiny_config
from runs_on_disk import make_foreign

from softdpg.errors import UserError
from softdpg.paper import ENVIRONMENTS
from softdpg.runs.config import RunConfig
from softdpg.runs.environments import SeededEpisodes, episode_seed, make_env
from softdpg.runs.learner import _policy
from softdpg.runs.trained import open_run
from softdpg.runs.training import train

ALL = [env_id for environment in ENVIRONMENTS.values() for env_id in (environment.discrete, environment.continuous)]


def play(env, seed, steps=150):
    generator = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    history = [observation.tobytes()]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(
            generator.uniform(env.action_space.low, env.action_space.high).astype(np.float32)
        )
        history.append(observation.tobytes() + np.float64(reward).tobytes())
        if terminated or truncated:
            break
    return history


@pytest.mark.parametrize("env_id", ALL)
def test_an_episode_is_the_same_in_a_new_and_in_a_used_environment(env_id):
    """What exact resume rests on: nothing of earlier episodes is left in the simulators."""
    used = make_env(env_id)
    for seed in range(4):
        play(used, seed, steps=50)
    assert play(used, 100) == play(make_env(env_id), 100)


@pytest.mark.extended
@pytest.mark.parametrize("env_id", ALL)
def test_episodes_are_the_same_after_many_others(env_id):
    used = make_env(env_id)
    for seed in range(8):
        play(used, seed)
    for seed in range(100, 103):
        assert play(used, seed) == play(make_env(env_id), seed)


def test_episodes_are_numbered_and_do_not_repeat():
    env = SeededEpisodes(make_env("Pendulum-v1"), seed=3)
    starts = [env.reset(seed=0)[0] for _ in range(4)]
    assert env.episode == 4
    assert len({start.tobytes() for start in starts}) == 4
    again = SeededEpisodes(make_env("Pendulum-v1"), seed=3)
    again.episode = 2
    np.testing.assert_array_equal(again.reset()[0], starts[2])
    assert len({episode_seed(seed, stream, n) for seed in range(5) for stream in range(3) for n in range(100)}) == 1500


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("AntDiscrete-v0", "no environment 'AntDiscrete-v0'; did you mean softdpg/AntDiscrete-v0"),
        ("softdpg/PendulmDiscrete-v0", "did you mean softdpg/PendulumDiscrete-v0"),
        ("halfcheetah-v5", "did you mean HalfCheetah-v"),
        ("Pendulum-v9", "did you mean Pendulum-v1"),
        ("qwertyuiop", r"no environment 'qwertyuiop'.*\(give your own environment"),
        ("not an id!", "cannot make environment 'not an id!': Malformed environment ID"),
        ("FrozenLake-v1", "FrozenLake-v1 has a Discrete observation space; softdpg needs a Box"),
    ],
)
def test_environments_that_cannot_be_used(env_id, message):
    with pytest.raises(UserError, match=message) as error:
        make_env(env_id)
    assert "\n" not in str(error.value)


def test_unbounded_actions_are_refused():
    gym.register("Unbounded-v0", entry_point=lambda **_: _Unbounded())
    with pytest.raises(UserError, match="Unbounded-v0 has an unbounded action space"):
        make_env("Unbounded-v0")


class _Unbounded(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Box(-np.inf, np.inf, (1,))


ENV = """
from pathlib import Path
import gymnasium as gym
import numpy as np
import helper

Path("imported").touch()

class Push(gym.Env):
    observation_space = gym.spaces.Box(-2, 2, (2,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = np.zeros(2, np.float32)
        return self.state, {}

    def step(self, action):
        self.state = np.clip(self.state + helper.SPEED * float(action[0]), -2, 2).astype(np.float32)
        return self.state, float(self.state[0]), False, False, {}

gym.register("Push-v0", entry_point="{module}:Push", max_episode_steps=20)
"""
TINY = ["--algo", "ddpg", "--steps", "40", "--evaluation-episodes", "1", "--net-arch", "8", "8"]
IDS = ["./my_env.py:Push-v0", "mypackage.envs:Push-v0"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory with a module and a package."""
    path = tmp_path_factory.mktemp("home")
    (path / "helper.py").write_text("SPEED = 0.1\n")
    (path / "my_env.py").write_text(ENV.replace("{module}", "my_env"))
    (path / "mypackage").mkdir()
    (path / "mypackage" / "envs.py").write_text(ENV.replace("{module}", "mypackage.envs"))
    return path


@pytest.fixture(scope="module")
def trained(home):
    """Train on the environment with that number, unless that has been done; the name of the run."""

    def train(i):
        if not (home / f"run{i}").exists():
            done = softdpg("train", "--env", IDS[i], *TINY, "--out", f"run{i}", cwd=home)
            assert done.returncode == 0, done.stderr
            make_foreign(home / f"run{i}")
        return f"run{i}"

    return train


@pytest.mark.parametrize("i", [0, pytest.param(1, marks=pytest.mark.extended)])
def test_eval_with_trust_or_with_the_id(home, trained, i):
    refused = softdpg("eval", trained(i), "--episodes", "1", cwd=home)
    assert refused.returncode == 2
    assert "imported only with --trust" in refused.stderr
    trusted = softdpg("eval", f"run{i}", "--episodes", "2", "--trust", cwd=home)
    assert trusted.returncode == 0, trusted.stderr
    named = softdpg("eval", f"run{i}", "--episodes", "2", "--env", IDS[i], cwd=home)
    assert named.stdout == trusted.stdout


@pytest.mark.parametrize("command", ["eval", "watch", "export", pytest.param("report", marks=pytest.mark.extended)])
def test_a_run_directory_never_imports_a_module(home, trained, command):
    arguments = [command, trained(0), *(["--out", "report"] if command == "report" else [])]
    (home / "imported").unlink(missing_ok=True)
    assert "Traceback" not in softdpg(*arguments, cwd=home).stderr
    assert not (home / "imported").exists()


@pytest.mark.extended
def test_export(home, trained):
    # A new interpreter: neither the current directory nor PYTHONPATH leads to the module.
    command = [sys.executable, "-P", "-m", "softdpg", "export", trained(0), "--to", "numpy", "--env", IDS[0]]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (home / "run0" / "policy.py").is_file()


def test_unknown_id_says_how():
    with pytest.raises(UserError, match=r"no environment 'Pusj-v0'.*\./my_env\.py:MyEnv-v0"):
        make_env("Pusj-v0")


def test_an_unknown_id_may_need_the_module_of_its_library(monkeypatch):
    monkeypatch.setattr("softdpg.runs.environments.find_spec", lambda name: name == "shimmy" or None)
    with pytest.raises(UserError, match=r"; of a library that registers its own, shimmy:dm_control/qwer-v0 \(give"):
        make_env("dm_control/qwer-v0")


def test_a_file_without_an_id_lists_the_ids_in_it(tmp_path):
    path = tmp_path / "two_envs.py"
    path.write_text("import gymnasium as gym\nfor name in 'BA':\n    gym.register(f'{name}-v0', lambda: None)\n")
    with pytest.raises(UserError, match=rf"needs the id of an environment in it: --env {path}:A-v0 or --env {path}:B"):
        make_env(str(path))
    with pytest.raises(UserError, match=r"its module .*two_envs\.py is imported, but does not register 'C-v0'"):
        make_env(f"{path}:C-v0")
    (tmp_path / "no_envs.py").write_text("")
    with pytest.raises(
        UserError, match=r'it registers none; add gymnasium\.register\("MyEnv-v0", MyEnv\) to no_envs.py'
    ):
        make_env(str(tmp_path / "no_envs.py"))


def test_what_cannot_be_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="there is no file"):
        make_env("./none.py:Push-v0")
    (tmp_path / "broken_env.py").write_text("1 / 0\n")
    with pytest.raises(UserError, match=r"broken_env\.py:Push-v0: ZeroDivisionError: division by zero"):
        make_env("./broken_env.py:Push-v0")
    assert "broken_env" not in sys.modules
    with pytest.raises(UserError, match="ModuleNotFoundError"):
        make_env("no_such_package.envs:Push-v0")
    (tmp_path / "json.py").write_text("")
    with pytest.raises(UserError, match="is taken by the module 'json'"):
        make_env("./json.py:Push-v0")


def test_a_wrapper_is_a_class_or_function_of_a_module(tmp_path):
    (tmp_path / "my_wrappers.py").write_text(
        "import gymnasium as gym\n"
        "class Twice(gym.RewardWrapper):\n    def reward(self, reward):\n        return 2 * reward\n"
        "def broken(env):\n    return env.no\ndef nothing(env):\n    return None\n"
    )
    where = f"{tmp_path}/my_wrappers.py"
    plain, twice = make_env("Pendulum-v1"), make_env("Pendulum-v1", wrapper=f"{where}:Twice")
    rewards = []
    for env in (plain, twice):
        env.reset(seed=1)
        rewards.append(env.step(np.ones(1, np.float32))[1])
    assert rewards[1] == 2 * rewards[0]
    assert make_env("Pendulum-v1", wrapper="gymnasium.wrappers:FlattenObservation").observation_space.shape == (3,)
    for name, message in {
        "None_": "the module has no class or function 'None_'",
        "broken": "cannot wrap .*AttributeError",
        "nothing": "must return a Gymnasium environment, got NoneType",
    }.items():
        with pytest.raises(UserError, match=rf"--env-wrapper {where}:{name}.*{message}"):
            make_env("Pendulum-v1", wrapper=f"{where}:{name}")


@pytest.mark.parametrize("name", ["env_wrapper", "policy", "stop_at_score"])
def test_a_setting_that_may_be_missing_is_refused_with_another_type(name):
    stored = tiny_config().resolved().to_json() | {name: False}
    with pytest.raises(UserError, match=f"config.json: {name} must be (a string|a number|MlpPolicy or CnnPolicy)"):
        RunConfig.from_json(stored)


def test_the_wrapper_of_a_run_belongs_to_it_and_needs_trust_elsewhere(tmp_path):
    wrapper = "gymnasium.wrappers:NormalizeReward"
    config = tiny_config("Pendulum-v1", "ddpg", steps=20, env_wrapper=wrapper)
    assert train(config, tmp_path / "run") == 0
    assert open_run(tmp_path / "run")[0].env_wrapper == wrapper
    assert f"--env-wrapper {wrapper}" in config.resolved().command(tmp_path)
    make_foreign(tmp_path / "run")
    for env in (None, "Pendulum-v1"):
        with pytest.raises(
            UserError, match=r"asks for the wrapper 'gymnasium.wrappers:NormalizeReward', which is imported only"
        ):
            open_run(tmp_path / "run", env_id=env)
    assert open_run(tmp_path / "run", trust=True)[0].env_wrapper == wrapper
    with pytest.raises(UserError, match=r"--env-wrapper must be module:Class or file.py:Class, got 'Twice'"):
        RunConfig("Pendulum-v1", env_wrapper="Twice").resolved()


def test_images_have_a_cnn_unless_they_are_too_small_or_the_user_says_otherwise():
    def policy(shape, **settings):
        return _policy(RunConfig("Pendulum-v1", **settings), gym.spaces.Box(0, 255, shape, np.uint8))

    assert policy((36, 40, 3)) == policy((3, 36, 36)) == "CnnPolicy"
    assert policy((35, 40, 3)) == policy((40, 40, 3), policy="MlpPolicy") == policy((9,)) == "MlpPolicy"
    assert policy((40, 40, 3), algo="sb3-sac") == "MlpPolicy"
    with pytest.raises(UserError, match="--policy must be MlpPolicy or CnnPolicy, got Cnn"):
        RunConfig("Pendulum-v1", policy="Cnn").resolved()
