"""The training scripts run as they are, with a few steps."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("script", "last_line"),
    [
        ("train_point_mass.py", "of 50 steps at the goal in the mean of 100 episodes"),
        ("train_point_mass_her.py", "of 100 episodes reach the goal, with a mean return of -"),
    ],
)
def test_script(script: str, last_line: str) -> None:
    command = [sys.executable, f"examples/{script}", "1010"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert last_line in result.stdout.splitlines()[-1]
