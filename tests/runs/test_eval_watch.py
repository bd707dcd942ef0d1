"""``softdpg eval`` and ``softdpg watch``: from a run's numbers to returns and videos, running no code of the run."""

import os
import subprocess
import sys
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from processes import tiny_config

from softdpg.errors import UserError
from softdpg.runs.environments import EVALUATION, episode_seed, make_env
from softdpg.runs.evaluate_run import evaluate_run
from softdpg.runs.evaluation import Evaluator
from softdpg.runs.learner import arrays_to_tree, tree_to_arrays
from softdpg.runs.training import train
from softdpg.runs.watch import watch


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

    evaluator = Evaluator("Pendulum-v1", 3)
    three, two = evaluator.returns(Still(), [1, 2, 3]), evaluator.returns(Still(), [1, 2])
    np.testing.assert_array_equal(three[:2], two)
    assert len(set(three)) == 3


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_watch_writes_a_video_that_moves(run, tmp_path, suffix):
    path = watch(run, out=tmp_path / f"video{suffix}", episodes=2)
    frames = iio.imread(path)
    assert frames.ndim == 4
    assert frames.shape[-1] == 3
    assert len(frames) >= 4
    assert (frames[0] != frames[2]).any()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_no_gl_library_is_one_clear_line(run, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "softdpg", "watch", str(run), "--out", str(tmp_path / "video.mp4")],
        env=environment | {"MUJOCO_GL": "glfw"},  # which needs a screen
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "softdpg: error: cannot draw without a screen; MuJoCo needs EGL" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_video_that_cannot_be_written_is_one_clear_line(run):
    """As with a run directory that is read-only."""
    with pytest.raises(UserError, match=r"cannot write /proc/video.gif: .*; --out names another place"):
        watch(run, out=Path("/proc/video.gif"))


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
    with pytest.raises(UserError, match="--episodes must be at least 1, not 0"):
        evaluate_run(run, episodes=0)
    with pytest.raises(UserError, match=r"--out must end in .mp4 or .gif, not '.avi'"):
        watch(run, out=tmp_path / "video.avi")
    with pytest.raises(UserError, match="there is no directory"):
        watch(run, out=tmp_path / "none" / "video.gif")
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "config.json").write_bytes((run / "config.json").read_bytes())
    with pytest.raises(UserError, match="has no weights yet"):
        evaluate_run(unfinished)
    (unfinished / "config.json").write_text('{"algo": "ddpg"}')
    with pytest.raises(UserError, match=r"config.json does not hold the settings of a run"):
        evaluate_run(unfinished)


def test_a_run_from_a_stranger_runs_no_code(run, tmp_path):
    """A pickle in the place of the weights is not loaded, and a good run needs no pickle."""

    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    import pickle

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
    code = (
        "import pickle, sys, pathlib\n"
        "from softdpg.runs import evaluate_run, evaluation, learner\n"
        "def forbidden(*a, **k): raise AssertionError('unpickled')\n"
        "pickle.load = pickle.loads = pickle.Unpickler = forbidden\n"
        "import cloudpickle; cloudpickle.load = cloudpickle.loads = forbidden\n"
        "print(len(evaluate_run.evaluate_run(pathlib.Path(sys.argv[1]), episodes=1)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(foreign)], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_trees_to_arrays_and_back():
    import optax
    from flax.training.train_state import TrainState

    params = {"layer": {"kernel": np.arange(6.0).reshape(2, 3), "bias": np.zeros(3)}}
    state = TrainState.create(apply_fn=None, params=params, tx=optax.chain(optax.clip(1.0), optax.adam(0.1)))
    changed = state.apply_gradients(grads={"layer": {"kernel": np.ones((2, 3)), "bias": np.ones(3)}})
    arrays = tree_to_arrays(changed)
    back = tree_to_arrays(arrays_to_tree(state, arrays))
    assert arrays.keys() == back.keys()
    assert "params/layer/kernel" in arrays
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, back[name])
    with pytest.raises(ValueError, match="not the arrays of this network: params/layer/bias"):
        arrays_to_tree(state, {name: array for name, array in arrays.items() if name != "params/layer/bias"})
    with pytest.raises(ValueError, match=r"params/layer/bias has shape \(4,\), this network \(3,\)"):
        arrays_to_tree(state, arrays | {"params/layer/bias": np.zeros(4)})


def test_help_of_eval_and_watch():
    for name in ("eval", "watch"):
        command = [str(Path(sys.executable).with_name("softdpg")), name, "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "run directory" in done.stdout
