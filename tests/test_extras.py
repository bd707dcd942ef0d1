"""What is not installed names its extra in one line, and ``pyproject.toml`` says the same as the code."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import gymnasium as gym
import pytest

from softdpg.algorithms import registry
from softdpg.cli import main
from softdpg.errors import EXTRAS, MissingExtraError, UserError, require_extra
from softdpg.runs.environments import make_env

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DISTRIBUTIONS = {
    "sb3_contrib": "sb3-contrib",
    "mujoco": "gymnasium[mujoco]",
    "Box2D": "gymnasium[box2d]",
    "imageio_ffmpeg": "imageio-ffmpeg",
    "sbx": "sbx-rl",
}


def without(modules: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process in which importing these modules fails as if they were not installed."""
    block = f"import sys; sys.modules.update(dict.fromkeys({modules!r})); "
    return subprocess.run([sys.executable, "-c", block + code], capture_output=True, text=True, check=False)


def test_every_extra_installs_its_modules() -> None:
    optional = PROJECT["optional-dependencies"]
    for extra, modules in EXTRAS.items():
        names = {re.split("[><=]", requirement)[0] for requirement in optional[extra]}
        assert {DISTRIBUTIONS.get(module, module) for module in modules} <= {
            re.sub(r"\[default\]", "", n) for n in names
        }
    (everything,) = optional["all"]
    assert set(re.findall(r"\w+", everything)) == {"softdpg", *EXTRAS}


def test_no_extra_is_a_requirement_of_the_package_alone() -> None:
    alone = {re.split("[><=]", requirement)[0] for requirement in PROJECT["dependencies"]}
    modules = {DISTRIBUTIONS.get(module, module) for modules in EXTRAS.values() for module in modules}
    assert not alone & modules


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["report", "."], "report"),
        (["theory"], "report"),
        (["toy"], "report"),
        (["demo"], "report"),
        (["watch", "."], "video"),
    ],
)
def test_a_command_without_its_extra(arguments: list[str], extra: str, monkeypatch, capsys) -> None:
    for module in EXTRAS[extra]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(sys, "argv", ["softdpg", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    needs = f"softdpg {arguments[0]} needs the extra '{extra}'"
    expected = f"softdpg: error: {needs}: in a copy of the repository, pip install '.[{extra}]'\n"
    assert capsys.readouterr() == ("", expected)


@pytest.mark.parametrize(("name", "extra"), [("Ant", "mujoco"), ("LunarLander", "box2d")])
def test_an_environment_without_its_simulator(name: str, extra: str, monkeypatch) -> None:
    for module in EXTRAS[extra]:
        monkeypatch.setitem(sys.modules, module, None)
    # Another test of this process may have imported them already.
    packages = ("softdpg.envs.", "gymnasium.envs.")
    for loaded in [name for name in sys.modules if name.startswith(packages) and extra in name]:
        monkeypatch.delitem(sys.modules, loaded)
    needs = f"{name}Discrete needs the extra '{extra}': in a copy of the repository, pip install '.[{extra}]'"
    with pytest.raises(MissingExtraError) as error:
        gym.make(f"softdpg/{name}Discrete-v0")
    assert str(error.value) == needs
    with pytest.raises(UserError) as error:
        make_env(f"softdpg/{name}Discrete-v0")
    assert str(error.value) == f"cannot make environment 'softdpg/{name}Discrete-v0': {needs}"


def test_a_peer_without_its_library(monkeypatch) -> None:
    for module in EXTRAS["peers"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"^sbx-sac needs the extra 'peers': .*pip install '\.\[peers\]'$"):
        registry.find("sbx-sac").load()


@pytest.mark.extended
def test_the_algorithms_need_no_extra() -> None:
    modules = tuple(module for modules in EXTRAS.values() for module in modules)
    code = (
        "from softdpg import SoftDDPG\n"
        "small = {'learning_starts': 5, 'batch_size': 16, 'policy_kwargs': {'net_arch': [16, 16]}}\n"
        "SoftDDPG('MlpPolicy', 'softdpg/PendulumDiscrete-v0', n_samples=4, **small).learn(7)"
    )
    assert without(modules, code).returncode == 0


def test_one_error_for_the_command_and_for_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"model.export needs the extra 'export': .*pip install '\.\[export\]'"):
        require_extra("export", "model.export")
    assert issubclass(MissingExtraError, UserError)
    assert issubclass(MissingExtraError, ImportError)
    require_extra("report", "softdpg report")
