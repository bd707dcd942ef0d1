"""The command loads nothing that it does not need; the package's names are where users look for them."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import softdpg
from softdpg.cli import COMMANDS, main

HEAVY = ("jax", "torch", "flax", "stable_baselines3", "sbx", "matplotlib", "pandas", "plotly", "scipy", "mujoco", "ray")


def test_help_loads_nothing_heavy_and_names_every_command():
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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    _, overview, *helps = done.stdout.split("usage: softdpg")
    assert len(helps) == len(COMMANDS)
    for name, function in COMMANDS.items():
        assert f"• {name} " in overview
        assert function.__doc__.split()[0] in overview


def run(monkeypatch, *arguments):
    """Run the command in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["softdpg", *arguments])
    try:
        main()
    except SystemExit as end:
        return end.code
    return 0


def test_version_and_mistyped_command(monkeypatch, capsys):
    for arguments in (["--version"], ["version"]):
        assert run(monkeypatch, *arguments) == 0
        assert capsys.readouterr().out.strip() == softdpg.__version__ == version("softdpg")
    assert run(monkeypatch, "trian") == 2
    assert capsys.readouterr().err.startswith("softdpg: error: no command 'trian'; did you mean train?")


def test_the_command_is_a_module_too():
    done = subprocess.run([sys.executable, "-m", "softdpg", "--version"], capture_output=True, text=True)
    assert done.stdout.strip() == softdpg.__version__


def test_the_toy_takes_its_settings_from_the_flags(monkeypatch):
    from softdpg.experiments import toy

    seen = []
    monkeypatch.setattr(toy, "run", lambda settings, out: seen.append((settings, str(out))))
    assert run(monkeypatch, "toy", "--seeds", "2", "--algos", "ddpg", "--out", "here") == 0
    assert seen == [(toy.ToySettings(seeds=2, algos=("ddpg",)), "here")]


def test_public_names():
    assert set(softdpg.__all__) <= set(dir(softdpg))
    with pytest.raises(AttributeError, match="no attribute 'PPO'"):
        softdpg.PPO  # noqa: B018
