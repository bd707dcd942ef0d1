"""``softdpg eval``, ``watch`` and ``export``: a run's weights become returns, videos and files; no code of it runs."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import gymnasium as gym
import imageio.v3 as iio
import numpy as np
import pytest
from commands import softdpg
from gymnasium.envs.classic_control import PendulumEnv
from processes import tiny_config

from softdpg.cli import main
from softdpg.errors import UserError
from softdpg.export import read_safetensors
from softdpg.runs.config import RunConfig
from softdpg.runs.environments import EVALUATION, Evaluator, episode_seed, make_env
from softdpg.runs.learner import check_arrays, load_learner
from softdpg.runs.trained import evaluate_run, export_run, open_run, watch
from softdpg.runs.training import train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run without a single update."""
    path = tmp_path_factory.mktemp("runs") / "run"
    assert train(tiny_config("softdpg/InvertedPendulumDiscrete-v0", "ddpg", steps=60), path) == 0
    return path


def test_eval_gives_the_returns_of_the_policy(run):
    from softdpg import DDPG

    returns = evaluate_run(run, episodes=13, seed=4)
    assert returns.shape == (13,)
    np.testing.assert_array_equal(returns, evaluate_run(run, episodes=13, seed=4))

    # SB3's model, one episode at a time, on the seeds of the run's last evaluation.
    model = DDPG.load(run / "model.zip")
    row = (run / "evaluations.csv").read_text().splitlines()[-1].split(",")
    env = make_env("softdpg/InvertedPendulumDiscrete-v0")
    for i, expected in enumerate(row[3:]):
        observation, _ = env.reset(seed=episode_seed(0, EVALUATION, 60, i))
        total, over = 0.0, False
        while not over:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, over = total + reward, terminated or truncated
        assert total == float(expected)


def test_fewer_episodes_than_environments():
    class Still:
        def predict(self, observation, *, deterministic):
            return np.zeros((len(observation), 1), np.float32), None

    evaluator = Evaluator(RunConfig("Pendulum-v1"), 3)
    three, two = evaluator.returns(Still(), [1, 2, 3]), evaluator.returns(Still(), [1, 2])
    np.testing.assert_array_equal(three[:2], two)
    assert len(set(three)) == 3


@pytest.mark.extended
@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_watch_writes_a_video_that_moves(run, tmp_path, suffix):
    path = watch(run, out=tmp_path / f"video{suffix}", episodes=2)
    frames = iio.imread(path)
    assert frames.ndim == 4
    assert frames.shape[-1] == 3
    assert len(frames) >= 4
    assert (frames[0] != frames[2]).any()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("modes", "image", "message"),
    [
        ([], None, r'render_modes \[\]. Its class needs metadata = \{"render_modes": \["rgb_array"\]\}, the argument'),
        (["rgb_array"], None, r"render\(\) must return an image, \(height, width, 3\) of uint8, got NoneType"),
        (["rgb_array"], np.zeros((4, 4, 3)), r"of uint8, got an array \(4, 4, 3\)"),
    ],
)
def test_an_environment_without_rendering_says_what_it_needs(modes, image, message, tmp_path):
    class Blind(PendulumEnv):
        metadata = {"render_modes": modes}

        def __init__(self, render_mode=None):
            super().__init__(render_mode)

        def render(self):
            return image

    gym.register("Blind-v0", Blind, max_episode_steps=20, disable_env_checker=True)
    assert train(tiny_config("Blind-v0", "ddpg", steps=20), tmp_path) == 0
    with pytest.raises(UserError, match=rf"cannot make a video of Blind-v0.*{message}"):
        watch(tmp_path)
    del gym.registry["Blind-v0"]


@pytest.mark.extended
def test_no_gl_library_is_one_clear_line(run, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "softdpg", "watch", str(run), "--out", str(tmp_path / "video.mp4")],
        env=environment | {"MUJOCO_GL": "glfw"},  # which needs a screen
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "softdpg: error: cannot render without a screen; MuJoCo needs EGL" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.extended
def test_a_video_that_cannot_be_written_is_one_clear_line(run):
    """As with a run directory that is read-only."""
    with pytest.raises(UserError, match=r"cannot write /proc/video.gif: .*; choose another place with --out"):
        watch(run, out=Path("/proc/video.gif"))


@pytest.mark.extended
def test_a_video_is_not_written_through_links(run, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    for name in ("video.gif", ".video.gif.tmp.gif"):
        (tmp_path / name).symlink_to(precious)
    watch(run, out=tmp_path / "video.gif")
    assert precious.read_text() == "mine"
    assert iio.imread(tmp_path / "video.gif").ndim == 4


def test_bad_input(run, tmp_path):
    with pytest.raises(UserError, match=r"is not the directory of a run: no config.json"):
        evaluate_run(tmp_path)
    with pytest.raises(UserError, match="--episodes must be at least 1, got 0"):
        evaluate_run(run, episodes=0)
    with pytest.raises(UserError, match=r"--out must end in .mp4 or .gif, got '.avi'"):
        watch(run, out=tmp_path / "video.avi")
    with pytest.raises(UserError, match="there is no directory"):
        watch(run, out=tmp_path / "none" / "video.gif")
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "config.json").write_bytes((run / "config.json").read_bytes())
    with pytest.raises(UserError, match="has no weights yet"):
        evaluate_run(unfinished)
    (unfinished / "config.json").write_text('{"format": 3, "algo": "ddpg"}')
    with pytest.raises(UserError, match=r"config.json does not hold the settings of a run"):
        evaluate_run(unfinished)


def test_an_untrusted_run_runs_no_code(run, tmp_path, monkeypatch):
    """A pickle in the place of the weights is not loaded, and a good run needs no pickle."""

    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "config.json").write_bytes((run / "config.json").read_bytes())
    for contents in (pickle.dumps(Bomb()), b"", b"\x08\x00\x00\x00\x00\x00\x00\x00{}"):
        (foreign / "model.safetensors").write_bytes(contents)
        with pytest.raises(UserError, match="cannot load"):
            evaluate_run(foreign)
    assert not (tmp_path / "exploded").exists()

    (foreign / "model.safetensors").write_bytes((run / "model.safetensors").read_bytes())
    (foreign / "model.zip").write_bytes(pickle.dumps(Bomb()))

    def forbidden(*_, **__):
        raise AssertionError("unpickled")

    for module, names in ((pickle, ("load", "loads", "Unpickler")), (cloudpickle, ("load", "loads"))):
        for name in names:
            monkeypatch.setattr(module, name, forbidden)
    assert len(evaluate_run(foreign, episodes=1)) == 1


def test_arrays_that_are_not_those_of_the_network():
    expected = {"actor.kernel": np.zeros((2, 3), np.float32), "actor.bias": np.zeros(3, np.float32)}
    check_arrays(expected, expected)
    with pytest.raises(ValueError, match=r"not those of this network: actor.bias"):
        check_arrays(expected, {"actor.kernel": expected["actor.kernel"]})
    with pytest.raises(ValueError, match=r"actor.bias has shape \(4,\), this network \(3,\)"):
        check_arrays(expected, expected | {"actor.bias": np.zeros(4, np.float32)})
    with pytest.raises(ValueError, match=r"actor.bias has numbers of type int32, this network float32"):
        check_arrays(expected, expected | {"actor.bias": np.zeros(3, np.int32)})


def test_help_of_eval_and_watch(monkeypatch, capsys):
    for name in ("eval", "watch"):
        monkeypatch.setattr(sys, "argv", ["softdpg", name, "--help"])
        with pytest.raises(SystemExit):
            main()
        assert "--episodes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("to", "name"), [pytest.param("onnx", "policy.onnx", marks=pytest.mark.extended), ("numpy", "policy.py")]
)
def test_command_writes_the_policy_of_the_run(run, tmp_path, to, name):
    out = tmp_path / name
    done = softdpg("export", run, "--to", to, "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"wrote {out}\n"
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_weights_are_those_of_the_run(run):
    path = export_run(run, to="safetensors")
    assert path == run / "policy.safetensors"
    model = load_learner(*_reordered(open_run(run)))
    observations = np.random.default_rng(0).uniform(-1, 1, (20, 4)).astype(np.float32)
    expected, _ = model.predict(observations, deterministic=True)
    np.testing.assert_allclose(read_safetensors(path)(observations), expected, rtol=0, atol=2e-6)


def _reordered(opened):
    config, weights = opened
    return config, make_env(config.env), weights


def test_wrong_suffix_and_missing_directory(run, tmp_path):
    with pytest.raises(UserError, match=r"must end in \.onnx"):
        export_run(run, to="onnx", out=tmp_path / "policy.py")
    with pytest.raises(UserError, match="no directory"):
        export_run(run, to="numpy", out=tmp_path / "missing" / "policy.py")


def test_missing_extra_is_one_line(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"an ONNX file needs the extra 'export': .*pip install '\.\[export\]'"):
        export_run(run, to="onnx", out=tmp_path / "policy.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.extended
def test_a_run_with_mixed_actions_from_training_to_report(tmp_path, monkeypatch):
    """Trained, evaluated, exported and reported; ``watch`` on an environment that renders."""
    run = tmp_path / "run"
    env = "strange_envs:StrangeMixed-v0"
    assert train(tiny_config(env, "soft-td3", steps=260, learning_starts=50, n_samples=2, normalize=True), run) == 0
    assert np.isfinite(evaluate_run(run, episodes=2, trust=True)).all()
    export_run(run, to="numpy", trust=True)
    monkeypatch.syspath_prepend(str(run))
    sys.modules.pop("policy", None)
    import policy

    opened, weights = open_run(run, trust=True)
    environment = make_env(opened.env)
    model = load_learner(opened, environment, weights)
    observation, _ = environment.reset(seed=0)
    normalized = model.get_vec_normalize_env().normalize_obs(observation)
    expected, _ = model.predict(normalized, deterministic=True)
    action = policy.predict(observation)
    assert environment.action_space.contains(expected)
    assert action.keys() == expected.keys()
    for name, part in expected.items():
        np.testing.assert_allclose(action[name], part, atol=1e-5)
    assert softdpg("report", run, "--out", tmp_path / "report").returncode == 0
    assert "Soft TD3" in (tmp_path / "report" / "tables.md").read_text()

    poles = tmp_path / "poles"
    assert train(tiny_config("CartPole-v1", "soft-td3", steps=60), poles) == 0
    assert len(iio.imread(watch(poles, out=tmp_path / "video.gif"))) >= 4
