"""What goes wrong inside a run is one line, exit code 1 and a traceback in train.log; after the repair it resumes."""

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
import strange_envs
from processes import SHORT, assert_same_results, blocked, tiny_config
from safetensors.numpy import load_file, save_file

from softdpg.errors import UserError
from softdpg.experiments import local
from softdpg.runs import process
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.display import say, speak_any_encoding, unless_closed
from softdpg.runs.environments import DivergedError, Evaluator
from softdpg.runs.session import Session
from softdpg.runs.trained import evaluate_run
from softdpg.runs.training import train

EARLY = replace(SHORT, steps=40)  # it ends before an update


def test_after_a_repair_the_run_resumes(tmp_path, capsys, finished):
    out = tmp_path / "run"
    strange_envs.set_fault("raise", 330)
    assert train(SHORT, out) == 1
    message = "error after step 329: RuntimeError: the motor is on fire"
    assert_one_line(out, message, capsys.readouterr().err, "the checkpoint at step 300 with:")
    strange_envs.FAULT = None
    assert train(SHORT, out) == 0
    assert_same_results(finished, out)


def assert_one_line(out, message, printed, where):
    assert message in printed
    assert f"resume from {where}" in printed
    assert "Traceback" not in printed
    assert len(printed.splitlines()) == 2  # the second is the command
    assert "Traceback (most recent call last)" in (out / "train.log").read_text()
    status = RunDirectory(out).read_status()
    assert (status["state"], message in status["message"]) == ("failed", True)


def test_a_return_that_is_not_finite_fails_the_run(tmp_path, capsys):
    out = tmp_path / "run"
    strange_envs.set_fault("reward", 50)  # an episode of an evaluation comes to it before it ends at 70
    assert train(EARLY, out) == 1
    assert "the return of an evaluation is NaN or infinite" in capsys.readouterr().err
    assert RunDirectory(out).read_status()["state"] == "failed"
    assert len((out / "evaluations.csv").read_text().splitlines()) == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_policy_that_diverged(value):
    class Diverged:
        def predict(self, observation, *, deterministic):
            return np.full((len(observation), 1), value, np.float32), None

    with pytest.raises(DivergedError, match="the policy diverged"):
        Evaluator(RunConfig("Pendulum-v1"), 2).returns(Diverged(), [1, 2])


def test_a_run_that_diverges_fails_and_its_weights_are_not_evaluated(tmp_path, capsys):
    out = tmp_path / "run"
    assert train(replace(SHORT, learning_rate=1e30), out) == 1
    printed = capsys.readouterr().err
    assert "the policy diverged" in printed
    assert RunDirectory(out).read_status()["state"] == "failed"


def test_weights_that_are_not_finite_are_refused(tmp_path, finished):
    shutil.copytree(finished, tmp_path / "run")
    weights = load_file(finished / "model.safetensors")
    name = next(iter(weights))
    weights[name] = np.full_like(weights[name], np.nan)
    save_file(weights, tmp_path / "run" / "model.safetensors")
    with pytest.raises(UserError, match="weights that are NaN or infinite"):
        evaluate_run(tmp_path / "run", episodes=1, trust=True)


def _give_up_soon():
    process.GRACE, process._MARGIN = 0.1, 1000.0


def test_a_hung_step_ends_soon_after_sigterm(tmp_path):
    out = tmp_path / "run"
    with blocked(SHORT, out, 30, before=_give_up_soon) as (run, _):
        os.kill(run.pid, signal.SIGTERM)
        run.join()
    assert run.exitcode == 128 + signal.SIGTERM
    assert RunDirectory(out).read_status()["state"] == "interrupted"
    assert "interrupted within a step that lasts longer than 0.1 s" in out.with_suffix(".log").read_text()


def command(*arguments, **options):
    environment = os.environ | options.pop("env", {})
    line = [sys.executable, "-m", "softdpg", *map(str, arguments)]
    return subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def test_characters_that_the_encoding_lacks(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii"))
    speak_any_encoding()
    say("1.0 ± 0.5 é")
    assert written.getvalue() == b"1.0 +- 0.5 ?\n"


def test_a_reader_that_is_gone(tmp_path):
    """What is printed after the pipe was closed goes nowhere, and nothing is raised."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as stream:
        for _ in range(2):
            with unless_closed(stream):
                print("a line", file=stream)


TINY = ["--algo", "ddpg", "--net-arch", 8, 8, "--batch-size", 8, "--buffer-size", 500, "--evaluation-episodes", 1]


@pytest.mark.extended
def test_standard_output_in_ascii(tmp_path):
    process = command(
        *("train", "--env", "Pendulum-v1", "--steps", 20, "--evaluate-every", 10, "--out", tmp_path / "run", *TINY),
        env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"},
    )
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert b"+- 0.0" in out
    assert b"\xc2\xb1" not in out


@pytest.mark.extended
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

    def fail():
        raise OSError(28, "No space left on device")

    with Session(SHORT.resolved(), RunDirectory(tmp_path), [])._quiet_threads():
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
        assert train(SHORT, target) == 1
        assert capsys.readouterr().err == f"softdpg: the disk is full ({target})\n"
        assert not (target / "config.json").exists()
    finally:
        subprocess.run(["umount", "-l", str(target)], check=True)


@pytest.mark.extended
def test_processes_of_reproduce_do_not_import_from_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("gymnasium", "numpy", "json", "rich", "tyro"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')")
    child = local.start_run(tiny_config("Nope-v0", "ddpg"), tmp_path / "run")
    assert child.wait() == 2
    assert local.failure_message(tmp_path / "run", 2).startswith("no environment 'Nope-v0'")
    assert not (tmp_path / "imported").exists()
