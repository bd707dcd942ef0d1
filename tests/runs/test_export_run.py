"""``softdpg export``: the policy of a run as a file."""

import subprocess
import sys

import numpy as np
import pytest
from commands import softdpg
from processes import tiny_config

from softdpg.algorithms.export import read_safetensors
from softdpg.errors import UserError
from softdpg.runs.environments import make_env
from softdpg.runs.evaluate_run import open_run
from softdpg.runs.export_run import export_run
from softdpg.runs.learner import load_learner
from softdpg.runs.training import train

ENV = "softdpg/PendulumDiscrete-v0"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run without a single update."""
    path = tmp_path_factory.mktemp("runs") / "run"
    assert train(tiny_config(ENV, "ddpg", steps=60), path) == 0
    return path


@pytest.mark.parametrize(("to", "name"), [("onnx", "policy.onnx"), ("numpy", "policy.py")])
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
    observations = np.random.default_rng(0).uniform(-1, 1, (20, 3)).astype(np.float32)
    expected, _ = model.predict(observations, deterministic=True)
    np.testing.assert_allclose(read_safetensors(path)(observations), expected, rtol=0, atol=2e-6)


def _reordered(opened):
    config, weights = opened
    return config, make_env(config.env), weights


def test_wrong_ending_and_missing_directory(run, tmp_path):
    with pytest.raises(UserError, match=r"must end in \.onnx"):
        export_run(run, to="onnx", out=tmp_path / "policy.py")
    with pytest.raises(UserError, match="no directory"):
        export_run(run, to="numpy", out=tmp_path / "missing" / "policy.py")


def test_missing_extra_is_one_line(run, tmp_path):
    code = "import sys; sys.modules['onnx'] = None; from softdpg.cli import main; main()"
    command = [sys.executable, "-c", code, "export", str(run), "--to", "onnx", "--out", str(tmp_path / "policy.onnx")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1] == (
        "softdpg: error: an ONNX file needs the extra 'export': pip install 'softdpg[export]'"
    )
