"""A run directory with something missing, damaged or foreign is refused and left as it was; nothing is lost."""

import json
import shutil

import numpy as np
import pytest
import strange_envs
from processes import SHORT, assert_same_results, blocked, checkpoints, contents, tiny_config

from softdpg.errors import UserError
from softdpg.runs import checkpoint
from softdpg.runs.directory import RunDirectory
from softdpg.runs.environments import SeededEpisodes, make_env
from softdpg.runs.learner import make_training_learner
from softdpg.runs.training import train


@pytest.fixture
def copy(tmp_path):
    return lambda run: shutil.copytree(run, tmp_path / "run")


def assert_refused(run, message):
    before = contents(run)
    with pytest.raises(UserError, match=message) as error:
        train(SHORT, run)
    assert "--restart starts over" in str(error.value)
    assert contents(run) == before


@pytest.mark.parametrize(
    "status", [b"", b"{", b"5", b"[]", b'{"state": "done"}', b'{"state": "finished"}', b"[" * 100_000]
)
def test_a_damaged_status_of_a_finished_run(finished, copy, status):
    run = copy(finished)
    (run / "status.json").write_bytes(status)
    assert_refused(run, r"status\.json")


def test_restart_sets_the_old_files_aside(finished, copy):
    run = copy(finished)
    (run / "status.json").write_bytes(b"")
    before = contents(run)
    assert train(SHORT, run, restart=True) == 0
    assert_same_results(finished, run)
    for name, old in before.items():
        if name not in ("config.json", "train.log"):
            assert (run / "before-restart-1" / name).read_bytes() == old
    assert train(SHORT, run, restart=True) == 0
    assert (run / "before-restart-2" / "evaluations.csv").exists()
    assert not (run / "before-restart-2" / "before-restart-1").exists()


def test_a_damaged_status_of_an_unfinished_run_does_not_matter(finished, unfinished, copy):
    run = copy(unfinished)
    (run / "status.json").write_bytes(b"")
    assert train(SHORT, run) == 0
    assert_same_results(finished, run)


def test_a_missing_replay_buffer(unfinished, copy):
    run = copy(unfinished)
    (run / "replay_buffer.bin").unlink()
    assert_refused(run, r"has checkpoints but no replay_buffer.bin")


def test_missing_checkpoints(unfinished, copy):
    run = copy(unfinished)
    shutil.rmtree(run / "checkpoints")
    assert_refused(run, "had checkpoints that are gone")
    (run / "model.safetensors").unlink()
    assert_refused(run, "had checkpoints that are gone")  # evaluated at 200, so one was made at 100


def test_all_checkpoints_damaged(unfinished, copy, capsys):
    run = copy(unfinished)
    for name in checkpoints(run):
        (run / "checkpoints" / name / "SHA256SUMS").write_bytes(b"")
    assert_refused(run, "no usable checkpoint is left")


def flip(path, offset):
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def offset_of(record):
    """In ``replay_buffer.bin``: 2 + 2 numbers of observations, 1 of the action, 3 more; 150 + 4096 slots."""
    return 4096 + record * 4 * 8


def test_a_flipped_byte_of_the_buffer(unfinished, finished, copy, capsys):
    run = copy(unfinished)
    flip(run / "replay_buffer.bin", offset_of(250))  # not in the checkpoint of step 200
    assert train(SHORT, run) == 0
    printed = capsys.readouterr()
    assert "does not hold the transitions that were written to it" in printed.err
    assert "resuming from the checkpoint at step 200" in printed.out
    assert_same_results(finished, run)


def test_a_flipped_byte_that_all_checkpoints_need(unfinished, copy):
    run = copy(unfinished)
    flip(run / "replay_buffer.bin", offset_of(180))
    assert_refused(run, "no usable checkpoint is left .*does not hold the transitions")


def test_the_buffer_of_another_run(unfinished, copy, tmp_path):
    run = copy(unfinished)
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"run": "0" * 32}))
    before = contents(run)
    with pytest.raises(UserError, match=r"replay_buffer.bin is the replay buffer of another run"):
        train(SHORT, run)
    assert contents(run) == before


def test_names_outside_and_links_are_not_written_to(unfinished, finished, copy, tmp_path):
    run = copy(unfinished)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    names = ["evaluations.csv", "progress.csv", "status.json.tmp", "evaluations.csv.tmp", "model.safetensors.tmp"]
    names += ["model.zip", "model.zip.tmp", "replay_buffer.bin.tmp", "train.log", "checkpoints/000000000400.tmp"]
    for name in names:
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(precious)
    strange_envs.set_fault("raise", 30)  # a traceback for train.log
    assert train(SHORT, run) == 1
    strange_envs.FAULT = None
    assert train(SHORT, run) == 0
    assert_same_results(finished, run)
    assert precious.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious", "run"]


@pytest.mark.parametrize("name", ["checkpoints", "replay_buffer.bin"])
def test_links_in_place_of_what_a_run_writes_to(unfinished, copy, tmp_path, name):
    run = copy(unfinished)
    outside = tmp_path / "outside"
    (run / name).rename(outside)
    (run / name).symlink_to(outside)
    before = contents(outside) if outside.is_dir() else outside.read_bytes()
    try:
        code = train(SHORT, run)
    except UserError:
        code = 2
    assert code in (1, 2)
    assert before == (contents(outside) if outside.is_dir() else outside.read_bytes())


@pytest.mark.parametrize("missing", ["random/jax", "last_observation", "_n_updates", "episodes", "ep_info_buffer"])
def test_a_restore_that_fails_changes_nothing(unfinished, copy, missing):
    run = copy(unfinished)
    directory, env = RunDirectory(run), SeededEpisodes(make_env(SHORT.env), 0)
    model = make_training_learner(SHORT.resolved(), directory, [env])
    found = next(checkpoint.newest_first(directory.checkpoints))
    arrays = {name: array for name, array in found.arrays.items() if name != missing}
    state = {name: value for name, value in found.state.items() if name != missing}
    with pytest.raises(checkpoint.DamagedCheckpointError):
        checkpoint.restore(model, [env], checkpoint.Checkpoint(found.step, arrays, state, {}))
    assert (model.num_timesteps, model._n_updates, model.replay_buffer.count, env.episode) == (0, 0, 0, 0)
    assert len(model.ep_info_buffer or ()) == 0
    assert checkpoint.restore(model, [env], found)
    assert (model.num_timesteps, model.replay_buffer.count) == (300, 300)


def test_an_environment_with_a_memory_resumes_but_not_bit_for_bit(tmp_path, capsys):
    config = tiny_config("strange_envs:Remembering-v0", "ddpg", steps=300, checkpoint_every=100)
    strange_envs.set_fault("raise", 230)
    assert train(config, tmp_path / "run") == 1
    strange_envs.FAULT = None
    assert train(config, tmp_path / "run") == 0
    assert "does not start the same from the same seed; resuming, but not bit for bit" in capsys.readouterr().err


def test_deleting_the_lock_admits_no_second_writer(tmp_path):
    out = tmp_path / "run"
    with blocked(SHORT, out, 20):
        for path in out.glob("*lock*"):
            path.unlink()
        with pytest.raises(UserError, match="another process is working on"):
            train(SHORT, out)
        assert RunDirectory(out).locked()
    assert not RunDirectory(out).locked()


def test_the_finished_model_loads_anywhere_and_touches_nothing(finished, copy, tmp_path):
    from softdpg import DDPG

    run = copy(finished)
    before = contents(finished)
    moved = tmp_path / "elsewhere.zip"
    (run / "model.zip").rename(moved)
    shutil.rmtree(run)
    observations = np.ones((3, 2), np.float32)
    model = DDPG.load(moved, env=make_env(SHORT.env))
    expected = DDPG.load(finished / "model.zip").predict(observations)[0]
    np.testing.assert_array_equal(model.predict(observations)[0], expected)
    model.learn(20)
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere.zip"]
    assert contents(finished) == before


def test_checkpoints_come_as_promised_with_updates_far_apart(tmp_path):
    """The first end of a rollout after each multiple of 150: 192, 320, 512 and, at the end, 640."""
    config = tiny_config(SHORT.env, "ddpg", steps=600, train_freq=64)
    made = []
    original = checkpoint.write
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "write", lambda path, one: (made.append(one.step), original(path, one)))
        assert train(config, tmp_path / "run") == 0
    assert made == [192, 320, 512, 640]


def test_more_steps_extend_a_finished_run(tmp_path, finished, capsys):
    """With its buffer kept it becomes the longer run, byte for byte."""
    from dataclasses import replace

    longer = replace(SHORT, steps=500)
    assert train(longer, tmp_path / "whole") == 0
    assert train(SHORT, tmp_path / "run", keep_buffer=True) == 0
    assert train(longer, tmp_path / "run") == 0
    assert_same_results(tmp_path / "whole", tmp_path / "run")
    status = RunDirectory(tmp_path / "run").read_status()
    assert (status["state"], status["step"], status["steps"]) == ("finished", 500, 500)
    with pytest.raises(UserError, match="other settings: --steps is 400, not 500"):
        train(SHORT, tmp_path / "run")


@pytest.mark.extended
def test_more_steps_without_the_buffer_fill_it_anew(finished, copy, capsys):
    """A run that fails at any step of it resumes from there, and ends as if it had not failed."""
    from dataclasses import replace

    longer = replace(SHORT, steps=800)
    run = copy(finished)
    rows = (run / "evaluations.csv").read_text()
    whole = shutil.copytree(run, run.with_name("whole"))
    assert train(longer, whole) == 0
    assert "its replay buffer is gone" in capsys.readouterr().err
    assert (whole / "evaluations.csv").read_text().startswith(rows)
    assert (whole / "model.safetensors").read_bytes() != (finished / "model.safetensors").read_bytes()
    for step in (10, 330):
        strange_envs.set_fault("raise", step)
        assert train(longer, run) == 1
        strange_envs.FAULT = None
    assert train(longer, run) == 0
    assert_same_results(whole, run)
