"""The listing of the environments: complete, true, and the same in the documentation."""

import dataclasses
import re
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium as gym
import pytest

import softdpg  # noqa: F401
from softdpg.envs import DISCRETE_ENVS, DiscreteEnv, classic_control, register_envs, rules
from softdpg.envs.action_spaces import SUMMARIES
from softdpg.envs.listing import env_rows, markdown, print_listing
from softdpg.paper import PAPER_SCORES

ROOT = Path(__file__).parents[2]


def test_every_registered_environment_is_listed() -> None:
    listed = [*(row.id for row in env_rows()), *SUMMARIES]
    assert len(listed) == len(set(listed))
    assert set(listed) == {env_id for env_id in gym.registry if env_id.startswith("softdpg/")}


@pytest.mark.parametrize("name", list(DISCRETE_ENVS))
def test_sizes(name: str) -> None:
    env = gym.make(f"softdpg/{name}Discrete-v0")
    assert DISCRETE_ENVS[name][2:] == (*env.observation_space.shape, *env.action_space.shape)


def test_ceilings() -> None:
    assert [row.ceiling for row in env_rows()] == [
        "300",
        "3,000",
        "none",
        "none",
        "19,900",
        "10,400",
        "21,000",
        "33",
        "115",
        "2,834 (2,540 in one hold)",
        "130 (less 0.01 a step)",
        "50",
    ]


def test_documentation_holds_the_current_tables() -> None:
    assert markdown(PAPER_SCORES) in (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("rule_name", [name for name in rules.__all__ if name != "Rule"])
def test_documentation_names_every_argument(rule_name: str) -> None:
    text = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
    environment = rule_name.removesuffix("Rule")
    row = next(
        line for line in text.split("## Arguments")[1].splitlines() if re.match(rf"\|.*\b{environment}\b.*\|", line)
    )
    names = [field.name for field in dataclasses.fields(getattr(rules, rule_name)) if field.init]
    assert sorted(re.findall(r"`(\w+)`", row)) == sorted(names)


def test_command_lists_ids_scores_and_loads_no_simulator() -> None:
    code = (
        "import sys; sys.argv = ['softdpg', 'envs']; from softdpg.cli import main; main(); "
        "assert not {'mujoco', 'Box2D', 'jax', 'torch'} & set(sys.modules)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for row in env_rows():
        assert row.id in output
        assert row.base in output
    assert "discrete: DDPG 190.56 ± 60.23, Soft DDPG 271.93 ± 5.54" in output
    assert "continuous: DDPG -1.00 ± 0.00, Soft DDPG -1.00 ± 0.00" in output


def test_an_environment_outside_the_paper_is_one_class_and_one_entry(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What CONTRIBUTING.md says of an environment, with a second pendulum."""

    class SwingDiscrete(classic_control.PendulumDiscrete):
        summary = "8 a step near upright"

    monkeypatch.setattr(classic_control, "SwingDiscrete", SwingDiscrete, raising=False)
    monkeypatch.setitem(DISCRETE_ENVS, "Swing", DiscreteEnv("Pendulum-v1", "classic_control", 3, 1))
    monkeypatch.setattr(gym.envs.registration, "registry", dict(gym.registry))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Overriding environment")
        register_envs()
    assert isinstance(gym.make("softdpg/SwingDiscrete-v0", disable_env_checker=True), gym.Env)
    print_listing(PAPER_SCORES)
    block = capsys.readouterr().out.split("softdpg/SwingDiscrete-v0")[1].split("softdpg/")[0]
    assert "8 a step near upright" in block
    assert "paper" not in block
    table, scores = markdown(PAPER_SCORES).split("\n\n")
    assert "| softdpg/SwingDiscrete-v0 | Pendulum-v1 | 200 | 3 | 1 | 8 a step near upright | 2,834" in table
    assert "Swing" not in scores
