"""``softdpg train``: what a run directory holds, what is refused, and what happens when the disk is full."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import strange_envs
from processes import SHORT, checkpoints, run, tiny_config
from rich.console import Console

from softdpg.cli import main
from softdpg.errors import UserError
from softdpg.runs.checkpoint import Checkpoint, newest_first
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.display import RunDisplay
from softdpg.runs.flags import settings_class
from softdpg.runs.training import train


def test_a_run_that_ends_before_learning_starts_says_so(tmp_path, capsys):
    assert train(tiny_config(steps=50, learning_starts=50), tmp_path / "run") == 0
    assert "nothing will be learned: the first 50 steps are random (--learning-starts)" in capsys.readouterr().err


def test_a_run_directory(tmp_path, capsys):
    out = tmp_path / "new" / "run"
    config = tiny_config(steps=300, evaluate_every=120, checkpoint_every=100)
    assert train(config, out) == 0

    stored = json.loads((out / "config.json").read_text())
    expected = {"algo": "soft-ddpg", "seed": 0, "evaluate_every": 120, "evaluation_episodes": 2}
    assert expected.items() <= stored.items()
    expected = {"sigma": 0.2, "n_samples": 4, "net_arch": [16, 16]}
    assert expected.items() <= stored["hyperparameters"].items()
    assert {"softdpg", "jax", "gymnasium", "python"} <= stored["versions"].keys()
    assert {"system", "processor", "cores", "threads"} == stored["machine"].keys()
    assert RunConfig.from_json(stored) == config.resolved()

    with (out / "evaluations.csv").open() as file:
        header, *rows = csv.reader(file)
    assert header == ["step", "mean", "std", "return_1", "return_2"]
    assert [row[0] for row in rows] == ["120", "240", "300"]  # the last step is evaluated as well
    for row in rows:
        _, mean, std, *returns = map(float, row)
        assert (mean, std) == (np.mean(returns), np.std(returns))

    status = RunDirectory(out).read_status()
    assert (status["state"], status["step"], status["steps"]) == ("finished", 300, 300)
    assert status["seconds"] > 0
    assert "time/total_timesteps" in (out / "progress.csv").read_text()
    assert list(out.glob("events.out.tfevents.*"))
    assert len(checkpoints(out)) == 2
    assert not (out / "replay_buffer.bin").exists()

    from softdpg import SoftDDPG
    from softdpg.runs.environments import make_env
    from softdpg.runs.learner import load_learner

    env = make_env(config.env)
    observations = np.random.default_rng(0).normal(size=(5, *env.observation_space.shape)).astype(np.float32)
    ours = load_learner(config.resolved(), env, out / "model.safetensors").predict(observations)[0]
    np.testing.assert_array_equal(ours, SoftDDPG.load(out / "model.zip").predict(observations)[0])

    capsys.readouterr()
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert train(config, out) == 0
    assert "already finished" in capsys.readouterr().out
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    with pytest.raises(UserError, match=r"other settings: --steps is 700, not 300; --gamma is 0.9, not 0.99"):
        train(replace(config, steps=700, gamma=0.9), out)


def test_a_full_disk_stops_with_a_message_and_an_intact_checkpoint(small_tmpfs, capsys):
    out = small_tmpfs / "run"
    strange_envs.set_fault(partial(strange_envs.fill, small_tmpfs), 250)
    assert train(SHORT, out) == 1
    newest = next(newest_first(out / "checkpoints"))
    assert isinstance(newest, Checkpoint)
    assert newest.step == 200
    printed = capsys.readouterr().err
    assert f"the disk is full ({out}); resume from the checkpoint at step 200 with:" in printed
    assert "Traceback" not in printed


@pytest.mark.extended
def test_memory_does_not_grow(tmp_path):
    """Resident size after 50,000 and after 300,000 steps, with evaluations and checkpoints on the way."""
    settings = {"steps": 300_000, "n_envs": 10, "train_freq": 50, "buffer_size": 10_000}
    config = tiny_config(SHORT.env, "ddpg", **settings, evaluate_every=10_000, checkpoint_every=5_000)
    note = partial(strange_envs.note_memory, tmp_path / "sizes", 29_990)  # in the life of one environment
    assert run(config, tmp_path / "run", partial(strange_envs.set_fault, note, 5_000)) == 0
    early, late = map(int, (tmp_path / "sizes").read_text().split())
    assert late == pytest.approx(early, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--env", "Qendulum"],
            "no environment 'Qendulum'; did you mean Pendulum-v1, phys2d/Pendulum-v0? (give your own environment with "
            "its module, mypackage.envs:MyEnv-v0 or ./my_env.py:MyEnv-v0)",
        ),
        (
            ["--env", "CartPole-v1", "--algo", "ddpg"],
            "CartPole-v1 has a Discrete action space; ddpg needs a Box, soft-td3 does not",
        ),
        (["--algo", "ddpg", "--sigma", "0.1"], "--sigma applies to --algo soft-ddpg, soft-td3 only"),
        (["--algo", "soft-ddpg", "--samples", "0"], "--samples must be at least 1, got 0"),
        (["--tau", "2"], "--tau must be between 0 and 1, got 2.0"),
        (["--seed", "-1"], "--seed must be at least 0, got -1"),
        (["--n-envs", "100000000"], "--n-envs must be between 1 and 1,000, got 100,000,000"),
        (
            ["--evaluation-episodes", "100000000"],
            "--evaluation-episodes must be between 1 and 1,000, got 100,000,000",
        ),
        (["--sigma", "auto"], "--sigma auto needs --actor-gradient smoothed and --samples of at least 4"),
        (["--algo", "soft-ddpg", "--samples", "5"], "--samples must be even for antithetic pairs (w, -w), got 5"),
        (["--steps-after-score", "10"], "--steps-after-score applies with --stop-at-score only"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(tmp_path, arguments, message, monkeypatch, capsys):
    out = tmp_path / "run"
    env = [] if "--env" in arguments else ["--env", "Pendulum-v1"]
    monkeypatch.setattr(sys, "argv", ["softdpg", "train", *env, *arguments, "--out", str(out)])
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code, capsys.readouterr().err) == (2, f"softdpg: error: {message}\n")
    assert not out.exists()


def test_directories_that_are_not_ours_are_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    config = tiny_config()
    with pytest.raises(UserError, match=r"is not empty \(thesis.tex\) and not the directory of a run"):
        train(config, tmp_path)
    with pytest.raises(UserError, match=r"thesis.tex is not a directory"):
        train(config, tmp_path / "thesis.tex")
    with pytest.raises(UserError, match="cannot write to --out /proc/run: "):
        train(config, "/proc/run")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_the_command_line_gives_back_every_setting(tmp_path):
    """What an interrupted run prints is the run itself."""
    import tyro

    for config in (
        RunConfig("Pendulum-v1"),
        tiny_config(
            "Ant-v5", seed=7, estimator="centered", sigma=0.5, antithetic=False, tau=0.01, action_layer="input"
        ),
        RunConfig("Ant-v5", "ddpg", learning_rate=3e-4, exploration_noise=0.0),
    ):
        settings = tyro.cli(settings_class(), args=config.resolved().arguments())
        assert settings.config().resolved() == config.resolved()


def test_help_loads_neither_jax_nor_torch():
    code = (
        "import sys; sys.argv = ['softdpg', 'train', '--help']\n"
        "from softdpg.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'jax', 'torch', 'ray', 'stable_baselines3'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_progress_ends_at_100_percent():
    console = Console(file=io.StringIO(), width=200)
    display = RunDisplay("title", 300, console)
    display.LINE_EVERY = -1.0
    for step in (100, 304):  # the last rollout is done to its end
        display.update(step)
    assert "300/300" in console.file.getvalue()
    assert "304" not in console.file.getvalue()
