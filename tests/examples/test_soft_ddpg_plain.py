"""Algorithm 1 in one file is short, runs and learns. ``test_update.py`` compares its update with the package's."""

import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from examples import soft_ddpg_plain as plain

ROOT = Path(__file__).parents[2]


def test_it_is_short_and_needs_no_other_reinforcement_learning_library() -> None:
    lines = Path(str(plain.__file__)).read_text(encoding="utf-8").splitlines()
    assert len(lines) < 200
    assert not [line for line in lines if "stable_baselines3" in line or "sbx" in line]


@pytest.mark.extended
def test_it_runs_as_a_program() -> None:
    command = [sys.executable, "examples/soft_ddpg_plain.py", "1010", "3"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert result.stdout.startswith("step  1,000  return ")


def test_networks_by_hand() -> None:
    layers = [(jnp.array([[1.0, -2.0]]), jnp.array([0.5, 1.0])), (jnp.array([[3.0], [4.0]]), jnp.array([-1.0]))]
    # 2 -> (2.5, -3) -> relu (2.5, 0) -> 6.5
    np.testing.assert_allclose(plain.mlp(layers, jnp.array([[2.0]])), [[6.5]])
    np.testing.assert_allclose(plain.pi(layers, jnp.array([[2.0]])), [[np.tanh(6.5)]])
    shapes = [(kernel.shape, bias.shape) for kernel, bias in plain.init_mlp(np.random.default_rng(0), (3, 8, 2))]
    assert shapes == [((3, 8), (8,)), ((8, 2), (2,))]


@pytest.mark.extended
def test_it_learns_discrete_pendulum() -> None:
    assert max(plain.train(20_000, seed=0)) > 1_500
