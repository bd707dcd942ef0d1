"""Imports between the folders go one way, and the contract that says so can fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def lint(root):
    command = [
        str(Path(sys.executable).parent / "lint-imports"),
        "--no-cache",
        "--config",
        str(root / "pyproject.toml"),
    ]
    environment = os.environ | {"PYTHONPATH": str(root)}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)


def test_the_contract_is_kept():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout
    assert "1 kept, 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("paper.py", "import softdpg.runs.config", "softdpg.paper is not allowed to import softdpg.runs"),
        ("new.py", "", "softdpg.new"),  # a folder or module that has no place yet
    ],
)
def test_an_import_upwards_breaks_it(tmp_path, module, line, broken):
    shutil.copytree(ROOT / "softdpg", tmp_path / "softdpg", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "softdpg" / module).open("a") as file:
        file.write(f"\n{line}\n")
    done = lint(tmp_path)
    assert done.returncode == 1
    assert broken in done.stdout
