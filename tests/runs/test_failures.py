"""What goes wrong inside a run is one line, exit code 1 and a traceback in train.log; after the repair it goes on."""

import contextlib
import os
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import strange_envs
from processes import checkpoints, start, tiny_config, wait_for

from softdpg.errors import UserError
from softdpg.runs.directory import RunDirectory
from softdpg.runs.evaluate_run import evaluate_run
from softdpg.runs.evaluation import DivergedError, Evaluator
from softdpg.runs.training import train

ENV = "strange_envs:Timed-v0"


@pytest.fixture(autouse=True)
def no_fault(monkeypatch):
    monkeypatch.setattr(strange_envs, "FAULT", None)


def config(steps=400, **settings):
    return tiny_config(ENV, "ddpg", steps=steps, evaluate_every=200, checkpoint_every=100, **settings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    assert train(config(), out) == 0
    return out


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("reward", "error after step 330: the reward of step 330 is NaN or infinite"),
        ("observation", "error after step 330: the observation of step 330 is NaN or infinite"),
        ("shape", "error after step 329: an observation has shape (1,), the observation space (2,)"),
        ("raise", "error after step 329: RuntimeError: the motor is on fire"),
        ("exit", "error after step 329: SystemExit: 0"),
    ],
)
def test_a_fault_of_the_environment(tmp_path, capsys, whole, kind, message):
    out = tmp_path / "run"
    strange_envs.set_fault(kind, 330)
    assert train(config(), out) == 1
    printed = capsys.readouterr().err
    assert message in printed
    assert "go on from the checkpoint at step 300 with:" in printed
    assert "Traceback" not in printed
    assert len(printed.splitlines()) == 2  # the second is the command
    assert "Traceback (most recent call last)" in (out / "train.log").read_text()
    status = RunDirectory(out).read_status()
    assert (status["state"], message in status["message"]) == ("failed", True)

    strange_envs.FAULT = None
    assert train(config(), out) == 0
    for name in ("evaluations.csv", "model.safetensors"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()


def test_a_return_that_is_not_finite_fails_the_run(tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"
    monkeypatch.setattr(strange_envs, "FAULT", ("reward", 50))  # an evaluation's episode comes before it ends at 70
    assert train(config(steps=20, learning_starts=100), out) == 1
    assert "the return of an evaluation is NaN or infinite" in capsys.readouterr().err
    assert RunDirectory(out).read_status()["state"] == "failed"
    assert len((out / "evaluations.csv").read_text().splitlines()) == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_policy_that_diverged(value):
    class Diverged:
        def predict(self, observation, *, deterministic):
            return np.full((len(observation), 1), value, np.float32), None

    with pytest.raises(DivergedError, match="the policy diverged"):
        Evaluator("Pendulum-v1", 2).returns(Diverged(), [1, 2])


def test_a_run_that_diverges_fails_and_its_weights_are_not_evaluated(tmp_path, capsys):
    out = tmp_path / "run"
    assert train(config(learning_rate=1e30), out) == 1
    printed = capsys.readouterr().err
    assert "the policy diverged" in printed
    assert RunDirectory(out).read_status()["state"] == "failed"


def test_weights_that_are_not_finite_are_refused(tmp_path, whole):
    import shutil

    from safetensors.numpy import load_file, save_file

    shutil.copytree(whole, tmp_path / "run")
    weights = load_file(whole / "model.safetensors")
    name = next(iter(weights))
    weights[name] = np.full_like(weights[name], np.nan)
    save_file(weights, tmp_path / "run" / "model.safetensors")
    with pytest.raises(UserError, match="weights that are NaN or infinite"):
        evaluate_run(tmp_path / "run", episodes=1, trust=True)


def _hang_soon(kind, step):
    strange_envs.set_fault(kind, step)
    from softdpg.runs import signals

    signals.GRACE = 1.0


def test_a_hung_step_ends_soon_after_sigterm(tmp_path):
    out = tmp_path / "run"
    process = start(config(steps=10_000), out, before=partial(_hang_soon, "hang", 330))
    wait_for(lambda: RunDirectory(out).read_status().get("state") == "running" and len(checkpoints(out)) == 2, process)
    process.join(1)  # it hangs by now, or does so soon
    os.kill(process.pid, signal.SIGTERM)
    process.join(10)
    assert process.exitcode == 128 + signal.SIGTERM
    assert RunDirectory(out).read_status()["state"] == "interrupted"
    assert "interrupted within a step that lasts longer than 1 s" in out.with_suffix(".log").read_text()


def command(*arguments, **options):
    environment = os.environ | options.pop("env", {})
    line = [sys.executable, "-m", "softdpg", *map(str, arguments)]
    return subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


TINY = ["--algo", "ddpg", "--net-arch", 8, 8, "--batch-size", 8, "--buffer-size", 500, "--evaluation-episodes", 1]


def test_standard_output_in_ascii(tmp_path):
    process = command(
        *("train", "--env", "Pendulum-v1", "--steps", 20, "--evaluate-every", 10, "--out", tmp_path / "run", *TINY),
        env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"},
    )
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert b"+- 0.0" in out
    assert b"\xc2\xb1" not in out


def test_a_closed_pipe_does_not_end_a_run(tmp_path):
    process = command(
        *("train", "--env", "Pendulum-v1", "--steps", 200, "--evaluate-every", 20, "--learning-starts", 100),
        *("--out", tmp_path / "run", *TINY),
    )
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait() == 0, err
    assert err == b""
    assert RunDirectory(tmp_path / "run").read_status()["state"] == "finished"


def test_a_traceback_of_a_thread_goes_to_the_log(tmp_path, capsys):
    """As TensorBoard's thread has it when the disk is full."""
    import threading

    from softdpg.runs.session import Session

    def fail():
        raise OSError(28, "No space left on device")

    with Session(config().resolved(), RunDirectory(tmp_path), [])._quiet_threads():
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
    assert "No space left on device" in (tmp_path / "train.log").read_text()
    assert capsys.readouterr().err == ""


def test_a_disk_that_is_full_before_the_first_byte(tmp_path, capsys):
    target = tmp_path / "full"
    target.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(target)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a tmpfs needs root")
    try:
        with (target / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(1024))
        (target / "filler").rename(target / "train.log")  # which a run directory may have from the start
        assert train(config(), target) == 1
        assert capsys.readouterr().err == f"softdpg: the disk is full ({target})\n"
        assert not (target / "config.json").exists()
    finally:
        subprocess.run(["umount", "-l", str(target)], check=True)


def test_processes_of_reproduce_do_not_import_from_the_current_directory(tmp_path, monkeypatch):
    from softdpg.engines import process

    monkeypatch.chdir(tmp_path)
    for name in ("gymnasium", "numpy", "json", "rich", "tyro"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')")
    child = process.start(tiny_config("Nope-v0", "ddpg"), tmp_path / "run")
    assert child.wait() == 2
    assert process.reason(tmp_path / "run", 2).startswith("no environment 'Nope-v0'")
    assert not (tmp_path / "imported").exists()
