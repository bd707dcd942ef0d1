"""The demo end to end, with so few steps that it is over before learning starts."""

import subprocess
import sys

import numpy as np
from matplotlib import image


def run_demo(out, *arguments):
    command = [sys.executable, "-m", "softdpg", "demo", "--out", str(out), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_demo_prints_a_table_and_draws_the_curves(tmp_path):
    first = run_demo(tmp_path / "demo", "--steps", "400")
    assert first.returncode == 0, first.stderr
    assert "3 of 3 runs finished" in first.stdout
    table = first.stdout[first.stdout.index("Discrete Pendulum, one seed") :]
    for label in ("DDPG", "Soft DDPG", "Soft DDPG, centered (ours)"):
        assert f" {label} " in table
    assert np.ptp(image.imread(tmp_path / "demo/demo.png")) > 0

    again = run_demo(tmp_path / "demo", "--steps", "400")
    assert again.returncode == 0
    assert "runs finished" not in again.stdout  # nothing was done again
    assert again.stdout[again.stdout.index("Discrete Pendulum, one seed") :] == table

    other = run_demo(tmp_path / "demo", "--steps", "500")
    assert other.returncode == 2
    assert "--steps is 500, not 400" in other.stderr
