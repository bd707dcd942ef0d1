"""The command starts fast and loads nothing it does not need; the package's names are where users look for them."""

import os
import subprocess
import sys

import pytest

import softdpg
from softdpg.cli import COMMANDS


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


HEAVY = ("jax", "torch", "flax", "stable_baselines3", "sbx", "matplotlib", "pandas", "plotly", "scipy", "mujoco", "ray")


def test_help_loads_nothing_heavy():
    lines = [["--help"], *([command, "--help"] for command in COMMANDS)]
    code = f"""
import sys
from softdpg.cli import main
for arguments in {lines!r}:
    sys.argv = ["softdpg", *arguments]
    try:
        main()
    except SystemExit as end:
        assert end.code == 0
    assert not set(sys.modules) & set({HEAVY!r}), arguments
"""
    assert python(code).count("usage: softdpg") == len(lines)


def test_help_is_fast():
    """In CPU seconds, which say less about the machine's other work; the best of several all the same."""
    durations = []
    for _ in range(3):
        start = os.times()
        subprocess.run([sys.executable, "-m", "softdpg", "--help"], capture_output=True, check=True)
        end = os.times()
        durations.append(end.children_user + end.children_system - start.children_user - start.children_system)
    assert min(durations) < 0.75


def test_every_command_has_a_help_text():
    listing = subprocess.run([sys.executable, "-m", "softdpg", "--help"], capture_output=True, text=True, check=True)
    for name, command in COMMANDS.items():
        assert name in listing.stdout
        assert command.__doc__


def test_public_names():
    assert set(softdpg.__all__) <= set(dir(softdpg))
    assert softdpg.SoftDDPG.__mro__[1] is softdpg.DDPG
    with pytest.raises(AttributeError, match="no attribute 'PPO'"):
        softdpg.PPO  # noqa: B018


def test_version_is_that_of_the_package():
    from importlib.metadata import version

    assert python("import softdpg; print(softdpg.__version__)").strip() == version("softdpg")


def test_version_flag_and_mistyped_command():
    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "softdpg", *arguments], capture_output=True, text=True)

    assert run("--version").stdout.strip() == softdpg.__version__
    done = run("trian")
    assert done.returncode == 2
    assert done.stderr.startswith("softdpg: error: no command 'trian'; did you mean train?")
