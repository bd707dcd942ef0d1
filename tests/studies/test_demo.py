"""The demo end to end, with so few steps that it is over before learning starts."""

import subprocess
import sys

import numpy as np
from matplotlib import image


def run_demo(out, *arguments):
    command = [sys.executable, "-m", "softdpg", "demo", "--out", str(out), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_demo_prints_a_table_and_draws_the_curves(tmp_path):
    first = run_demo(tmp_path / "demo", "--budget", "300")
    assert first.returncode == 0, first.stderr
    assert "2 of 2 runs finished" in first.stdout
    assert "The column is chosen to show the difference" in first.stdout
    table = first.stdout[first.stdout.index("MountainCar (discrete)") :]
    for label in ("Soft TD3 (ours)", "SAC (SBX)"):
        assert label in first.stdout
    assert "0 of 1" in table
    assert np.ptp(image.imread(tmp_path / "demo/race_curves.png")) > 0

    again = run_demo(tmp_path / "demo", "--budget", "300")
    assert again.returncode == 0
    assert "2 runs: 2 finished" in again.stdout  # nothing was done again
    assert again.stdout[again.stdout.index("MountainCar (discrete)") :] == table

    other = run_demo(tmp_path / "demo", "--budget", "500")
    assert other.returncode == 2
    assert "is 500, not 300" in other.stderr
