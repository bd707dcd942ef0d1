"""The docstring of an environment is its specification: what it says in numbers is what the code does."""

import ast
import dataclasses
import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import load_env_creator

import softdpg  # noqa: F401
from softdpg.envs import DISCRETE_ENVS
from softdpg.envs.toy import Toy

IDS = [*(f"softdpg/{name}Discrete-v0" for name in DISCRETE_ENVS), "softdpg/Toy-v0"]
each_id = pytest.mark.parametrize("env_id", IDS)
SECTIONS = ("Observation", "Action", "Starting state", "Reward", "Episode end", "Memory", "Ceiling", "Version history")


def docstring(env_id: str) -> str:
    env_class: Any = load_env_creator(str(gym.spec(env_id).entry_point))
    return re.sub(r"\s+", " ", env_class.__doc__)


@each_id
def test_every_section_is_there_in_one_order(env_id: str) -> None:
    text = docstring(env_id)
    assert text.startswith(f"``{env_id}``: ")
    positions = [text.index(f"**{section}**") for section in SECTIONS]
    assert positions == sorted(positions)


@each_id
def test_spaces(env_id: str) -> None:
    env = gym.make(env_id)
    for section, space in (("Observation", env.observation_space), ("Action", env.action_space)):
        assert isinstance(space, gym.spaces.Box)
        match = re.search(rf"\*\*{section}\*\* ``Box\((.*?), (\(\d+,\)), (\w+)\)``", docstring(env_id))
        assert match is not None
        bounds, shape, dtype = match.groups()
        assert (ast.literal_eval(shape), dtype) == (space.shape, str(space.dtype))
        if bounds == "low, high":  # too long to write down
            assert env_id == "softdpg/BipedalWalkerDiscrete-v0"
            continue
        low, high = eval(bounds, {"inf": np.inf})
        for written, bound in ((low, space.low), (high, space.high)):
            np.testing.assert_array_equal(np.broadcast_to(written, space.shape).astype(space.dtype), bound)


@each_id
def test_time_limit(env_id: str) -> None:
    env = gym.make(env_id)
    end = docstring(env_id).split("**Episode end**: ")[1].split("**")[0]
    match = re.search(r"truncated after ([\d,]+|``length``) steps", end)
    assert match is not None
    steps = match[1].replace("``length``", str(Toy().length)).replace(",", "")
    assert int(steps) == (env.spec.max_episode_steps if env.spec and env.spec.max_episode_steps else Toy().length)


@pytest.mark.parametrize("name", list(DISCRETE_ENVS))
def test_arguments_and_their_defaults(name: str) -> None:
    text = docstring(f"softdpg/{name}Discrete-v0").split("**Arguments**: ")[1].split("**Version")[0]
    written = {key: ast.literal_eval(value) for key, value in re.findall(r"``(\w+)=([^`]+)``", text)}
    rule: Any = gym.make(f"softdpg/{name}Discrete-v0").get_wrapper_attr("rule")
    names = [field.name for field in dataclasses.fields(rule) if field.init]
    assert written == {key: getattr(rule, key) for key in names} | {"observe_progress": False}
    assert f"those of ``{DISCRETE_ENVS[name][0]}``" in text


@pytest.mark.parametrize(
    ("name", "height", "angle"),
    [("Hopper", 0.7, 0.2), ("Walker2d", 0.8, 1.0), ("Ant", 0.2, None), ("Humanoid", 1.0, None)],
)
def test_heights_and_angles_that_end_an_episode(name: str, height: float, angle: float | None) -> None:
    """From a state just inside of each bound the base does not call the robot fallen, just outside it does."""
    env: Any = gym.make(f"softdpg/{name}Discrete-v0").unwrapped
    planar = angle is not None
    env.reset(seed=0)
    for changed, bound in ((1 if planar else 2, height), *([(2, angle)] if planar else [])):
        for outside in (False, True):
            qpos, qvel = env.init_qpos.copy(), env.init_qvel.copy()
            direction = 1 if changed == 2 and planar else -1
            qpos[changed] = bound + direction * (1e-3 if outside else -1e-3)
            env.set_state(qpos, qvel)
            assert bool(env.is_healthy) is not outside
    end = docstring(f"softdpg/{name}Discrete-v0").split("**Episode end**: ")[1].split("**")[0]
    assert f"{height:g}" in end
