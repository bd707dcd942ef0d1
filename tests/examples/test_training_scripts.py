"""The training script runs as it is, with a few steps."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.extended
@pytest.mark.parametrize("flags", [(), ("--her",)], ids=["fixed goal", "hindsight replay"])
def test_train_point_mass(flags: tuple[str, ...]) -> None:
    command = [sys.executable, "examples/train_point_mass.py", *flags, "--steps", "1010"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "of 100 episodes reach the goal, with a mean return of " in result.stdout.splitlines()[-1]
