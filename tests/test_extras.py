"""What is not installed names its extra in one line, and ``pyproject.toml`` says the same as the code."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from softdpg.errors import EXTRAS, MissingExtraError, UserError, require_extra

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DISTRIBUTIONS = {
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
def test_a_command_without_its_extra(arguments: list[str], extra: str) -> None:
    code = f"sys.argv = ['softdpg', *{arguments!r}]; from softdpg.cli import main; main()"
    result = without(EXTRAS[extra], code)
    expected = f"softdpg: error: softdpg {arguments[0]} needs the extra '{extra}': pip install 'softdpg[{extra}]'\n"
    assert (result.returncode, result.stdout, result.stderr) == (2, "", expected)


@pytest.mark.parametrize(("name", "extra"), [("Ant", "mujoco"), ("LunarLander", "box2d")])
def test_an_environment_without_its_simulator(name: str, extra: str) -> None:
    code = (
        "import gymnasium as gym, softdpg\n"
        "from softdpg.runs.environments import make_env\n"
        "for make in (gym.make, make_env):\n"
        f"    try: make('softdpg/{name}Discrete-v0')\n"
        "    except Exception as error: print(type(error).__name__, error)"
    )
    first, second = without(
        EXTRAS[extra], code.replace("import gymnasium", "\nimport gymnasium", 1)
    ).stdout.splitlines()
    needs = f"{name}Discrete needs the extra '{extra}': pip install 'softdpg[{extra}]'"
    assert first == f"MissingExtraError {needs}"
    assert second == f"UserError cannot make environment 'softdpg/{name}Discrete-v0': {needs}"


def test_a_peer_without_its_library(tmp_path: Path) -> None:
    arguments = ["train", "--env", "Pendulum-v1", "--algo", "sbx-sac", "--steps", "10", "--out", str(tmp_path / "run")]
    code = f"sys.argv = ['softdpg', *{arguments!r}]; from softdpg.cli import main; main()"
    result = without(EXTRAS["peers"], code)
    assert result.returncode == 2
    assert result.stderr == "softdpg: error: sbx-sac needs the extra 'peers': pip install 'softdpg[peers]'\n"


def test_the_algorithms_need_no_extra() -> None:
    modules = tuple(module for modules in EXTRAS.values() for module in modules)
    code = (
        "from softdpg import SoftDDPG; SoftDDPG('MlpPolicy', 'softdpg/PendulumDiscrete-v0', learning_starts=5).learn(7)"
    )
    assert without(modules, code).returncode == 0


def test_one_error_for_the_command_and_for_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        MissingExtraError, match=r"model.export needs the extra 'export': pip install 'softdpg\[export\]'"
    ):
        require_extra("export", "model.export")
    assert issubclass(MissingExtraError, UserError)
    assert issubclass(MissingExtraError, ImportError)
    require_extra("report", "softdpg report")


def test_what_pip_shows() -> None:
    assert PROJECT["authors"] == [{"name": "The softdpg developers"}]
    assert PROJECT["license"] == "MIT"
    assert PROJECT["urls"]["Homepage"].startswith("https://")
    assert "Operating System :: POSIX" in PROJECT["classifiers"]
