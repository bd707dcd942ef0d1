"""The listing of the environments: complete, true, and the same in the documentation."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import softdpg  # noqa: F401
from softdpg.envs import DISCRETE_ENVS, rules
from softdpg.envs.listing import SIZES, env_rows, markdown
from softdpg.paper import PAPER_SCORES

ROOT = Path(__file__).parents[2]


def test_every_registered_environment_is_listed() -> None:
    assert {row.id for row in env_rows()} == {env_id for env_id in gym.registry if env_id.startswith("softdpg/")}


@pytest.mark.parametrize("name", list(DISCRETE_ENVS))
def test_sizes(name: str) -> None:
    env = gym.make(f"softdpg/{name}Discrete-v0")
    assert SIZES[name] == (*env.observation_space.shape, *env.action_space.shape)


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
