"""An algorithm of one's own is one entry, an environment of one's own needs none: trained by the command, and shown."""

import json
import re
import sys

import gymnasium as gym
import pytest

from softdpg import DDPG
from softdpg.algorithms.registry import ALGORITHMS, Algorithm, register, unregister
from softdpg.algorithms.settings import HYPERPARAMETERS, Hyperparameter
from softdpg.cli import main
from softdpg.report.style import style

TINY = "--steps 150 --learning-starts 100 --batch-size 16 --net-arch 16 16 --evaluate-every 75 --evaluation-episodes 2"


class Dummy(DDPG):
    """DDPG with an argument that it writes down."""

    def __init__(self, *arguments, mood="calm", **keywords):
        self.mood = mood
        super().__init__(*arguments, **keywords)


@pytest.fixture
def softdpg(monkeypatch, capsys):
    """The command in this process: exit code, standard output, standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["softdpg", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        return code or 0, *capsys.readouterr()

    return call


@pytest.fixture
def dummy():
    own = ("learning_rate", "learning_starts", "batch_size", "net_arch", "train_freq", "buffer_size")
    defaults = {name: ALGORITHMS["ddpg"].hyperparameters[name] for name in own}
    entry = Algorithm(
        "dummy",
        "A dummy (mine)",
        f"{__name__}:Dummy",
        hyperparameters=defaults | {"mood": "calm", "buffer_size": 1000},
    )
    yield register(entry, Hyperparameter("mood", str, description="Of the dummy."))
    unregister("dummy")
    del HYPERPARAMETERS["mood"]


def test_an_algorithm_is_one_entry(softdpg, dummy, tmp_path):
    code, out, _ = softdpg("train", "--help")
    assert code == 0
    assert "dummy" in out
    assert "--mood TEXT" in out
    run = tmp_path / "run"
    code, out, err = softdpg(
        *("train", "--env", "Pendulum-v1", "--algo", "dummy", "--mood", "wild", *TINY.split(), "--out", run)
    )
    assert code == 0, err
    assert "Pendulum-v1 dummy seed 0" in out
    stored = json.loads((run / "config.json").read_text())
    assert (stored["algo"], stored["hyperparameters"]["mood"]) == ("dummy", "wild")
    assert softdpg("eval", run, "--episodes", "1")[0] == 0


@pytest.mark.extended
def test_the_report_shows_an_algorithm_of_ones_own(softdpg, dummy, tmp_path):
    run = tmp_path / "run"
    assert softdpg("train", "--env", "Pendulum-v1", "--algo", "dummy", *TINY.split(), "--out", run)[0] == 0
    code, _, err = softdpg("report", run, "--out", tmp_path / "report")
    assert (code, err) == (0, "")
    page = (tmp_path / "report" / "report.html").read_text()
    assert f"--dummy: {style('dummy').color};" in page
    assert "A dummy (mine)" in (tmp_path / "report" / "tables.md").read_text()


@pytest.mark.extended
def test_an_environment_needs_no_entry(softdpg, tmp_path):
    from gymnasium.envs.classic_control.pendulum import PendulumEnv

    gym.register("MyPendulum-v0", PendulumEnv, max_episode_steps=50)
    try:
        code, _, err = softdpg(
            "train", "--env", "MyPendulum-v0", *TINY.split(), "--samples", 2, "--out", tmp_path / "run"
        )
        assert code == 0, err
        code, _, err = softdpg("report", tmp_path / "run")
        assert (code, err) == (0, "")
        tables = (tmp_path / "run" / "report" / "tables.md").read_text()
        assert "MyPendulum-v0" in tables
        assert softdpg("envs")[0] == 0
    finally:
        del gym.registry["MyPendulum-v0"]


@pytest.mark.extended
def test_a_peer_keeps_its_defaults_and_starts_over_after_a_kill(softdpg, tmp_path):
    run = tmp_path / "run"
    arguments = ("train", "--env", "Pendulum-v1", "--algo", "sb3-td3", *TINY.split(), "--out", run)
    code, _, err = softdpg(*arguments)
    assert code == 0, err
    stored = json.loads((run / "config.json").read_text())
    assert stored["hyperparameters"] == {"learning_starts": 100, "batch_size": 16, "net_arch": [16, 16]}
    evaluations = (run / "evaluations.csv").read_text()
    status = json.loads((run / "status.json").read_text())
    (run / "status.json").write_text(json.dumps(status | {"state": "running", "step": 100}))
    code, _, err = softdpg(*arguments)
    assert code == 0
    assert "TD3 (SB3) has no checkpoints: starting over" in err
    assert (run / "evaluations.csv").read_text() == evaluations  # the same seed, from the beginning
    code, out, _ = softdpg("eval", run, "--episodes", "1")
    assert code == 0
    assert "over 1 episodes" in out
    softdpg("report", run, "--out", tmp_path / "report")
    tables = (tmp_path / "report" / "tables.md").read_text()
    assert "TD3 (SB3) uses the defaults of its own library, unless a cell says otherwise." in tables
    assert "batch_size 16" in tables


def test_plugins_are_modules_named_in_the_environment(softdpg, tmp_path, monkeypatch):
    (tmp_path / "my_plugin.py").write_text(
        "from softdpg.algorithms.registry import Algorithm, register\n"
        'register(Algorithm("mine", "Mine", "softdpg:DDPG", hyperparameters={"gamma": 0.9}))\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SOFTDPG_PLUGINS", "my_plugin")
    code, out, _ = softdpg("train", "--help")
    unregister("mine")
    assert code == 0
    assert "mine" in re.findall(r"[\w-]+", out)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none", None, "cannot import 'none': No module named 'none'"),
        ("..none", None, "cannot import '..none': TypeError: "),
        ("broken", "1 / 0", "cannot import 'broken': ZeroDivisionError: division by zero"),
        ("broken", "import sys; sys.exit(0)", "cannot import 'broken': SystemExit: 0"),
        ("broken", "1 +", "cannot import 'broken': SyntaxError: "),
        (
            "broken",
            "import softdpg.algorithms.registry as r; r.register(5)",
            "cannot import 'broken': AttributeError: ",
        ),
    ],
)
def test_a_plugin_that_fails_is_one_line_every_time(softdpg, tmp_path, monkeypatch, name, text, message):
    if text:
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SOFTDPG_PLUGINS", name)
    for _ in range(2):
        code, _, err = softdpg("train", "--help")
        assert (code, len(err.splitlines())) == (2, 1)
        assert err.startswith(f"softdpg: error: SOFTDPG_PLUGINS: {message}")
