"""A checkpoint with right checksums and contents that no run writes: the one before it serves."""

import hashlib
import json
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import SHORT, assert_same_results
from safetensors.numpy import load, save
from test_untrusted_files import json_files

from softdpg.errors import UserError
from softdpg.runs.directory import RunDirectory
from softdpg.runs.environments import SeededEpisodes, make_env
from softdpg.runs.learner import make_training_learner
from softdpg.runs.session import Session
from softdpg.runs.training import train

NEWEST = "000000000300"


def rewrite(run, name, contents, step=NEWEST):
    """Replace a file of a checkpoint and its checksum."""
    directory = run / "checkpoints" / step
    (directory / name).write_bytes(contents)
    sums = (directory / "SHA256SUMS").read_text().splitlines()
    new = f"{hashlib.sha256(contents).hexdigest()}  {name}"
    (directory / "SHA256SUMS").write_text("".join(f"{new if line.endswith(name) else line}\n" for line in sums))


def change_state(run, change, step=NEWEST):
    state = json.loads((run / "checkpoints" / step / "state.json").read_text())
    change(state)
    rewrite(run, "state.json", json.dumps(state).encode(), step)


def put(*keys):
    """Put the last of ``keys`` at the place that the others name."""
    *parents, last, value = keys

    def change(state):
        for key in parents:
            state = state[key]
        state[last] = value

    return change


STATES = {
    "episode infos of another kind": put("ep_info_buffer", ["x"]),
    "an episode without a return": put("ep_info_buffer", [{}]),
    "successes of another kind": put("ep_success_buffer", [[]]),
    "no noises": put("action_noise", None),
    "a noise too many": put("action_noise", [[1, 1]]),
    "a negative counter": put("_n_updates", -1),
    "a counter of thousands of digits": put("_episode_num", 10**4000),
    "another step": put("num_timesteps", 299),
    "environments too many": put("episodes", [1, 2]),
    "another run": put("run", "0" * 32),
    "more transitions than there were": put("buffer_count", 10**6),
    "a position beyond NumPy's generator": put("random", "numpy", [10**9, 0, 0.0]),
    "Python's generator": put("random", "python", [3, [1, 2], None]),
    "the generator of the actions": put("random", "action_space", {}),
    "no generators": put("random", 5),
    "a next checkpoint in the past": put("supervisor", "next_checkpoint", -1e18),
    "no supervisor": put("supervisor", []),
    "seconds of another kind": put("supervisor", "cpu", "train", "x"),
}
ARRAYS = {
    "three numbers of NumPy's generator": ("random/numpy", lambda array: array[:3]),
    "floats of NumPy's generator": ("random/numpy", lambda array: array.astype(np.float32)),
    "half a key": ("random/jax", lambda array: array[:1]),
    "actions of another shape": ("episodes/0/actions", lambda array: np.zeros((3, 7), np.float32)),
    "infinite actions": ("episodes/0/actions", lambda array: array * np.inf),
    "other checksums": ("buffer/checksums", lambda array: array + 1),
    "weights that are NaN": ("critic", lambda array: array * np.nan),
    "weights of another shape": ("actor", lambda array: array[..., None]),
}
TABLES = {"evaluations.csv": b"step,mean,std\n1\n", "timings.csv": b"\xff\n", "progress.csv": b"\xff"}


def change_array(run, name, change):
    path = run / "checkpoints" / NEWEST / "arrays.safetensors"
    arrays = load(path.read_bytes())
    found = next(key for key in arrays if key.startswith(name) and arrays[key].dtype != np.int32)
    rewrite(run, path.name, save(arrays | {found: np.ascontiguousarray(change(arrays[found]))}))


@pytest.fixture(scope="module")
def workplace(unfinished, tmp_path_factory):
    """A copy of the unfinished run, and what resumes it again and again."""
    run = shutil.copytree(unfinished, tmp_path_factory.mktemp("impossible") / "run")
    config, env = SHORT.resolved(), SeededEpisodes(make_env(SHORT.env), 0)
    directory = RunDirectory(run)
    model = make_training_learner(config, directory, [env])
    session = Session(config, directory, [env])

    def resumed_at(corrupt):
        shutil.rmtree(run / "checkpoints")
        shutil.copytree(unfinished / "checkpoints", run / "checkpoints")
        corrupt(run)
        session.resume(model)
        return model.num_timesteps

    return resumed_at


def test_without_a_change_the_newest_serves(workplace):
    assert workplace(lambda run: None) == 300
    assert workplace(lambda run: change_state(run, lambda state: None)) == 300


@pytest.mark.parametrize("what", STATES)
def test_a_state_that_no_run_writes(workplace, capsys, what):
    assert workplace(lambda run: change_state(run, STATES[what])) == 200
    assert_warned(capsys)


@pytest.mark.parametrize("what", ARRAYS)
def test_arrays_that_no_run_writes(workplace, capsys, what):
    assert workplace(lambda run: change_array(run, *ARRAYS[what])) == 200
    assert_warned(capsys)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_no_run_writes(workplace, capsys, name):
    assert workplace(lambda run: rewrite(run, name, TABLES[name])) == 200
    assert_warned(capsys)


def assert_warned(capsys):
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("softdpg: warning: checkpoint not usable, falling back to the one before: the checkpoint of")


def test_the_command_itself_falls_back(unfinished, finished, tmp_path, capsys):
    """The results are those of a run that was left alone."""
    run = shutil.copytree(unfinished, tmp_path / "run")
    change_state(run, STATES["episode infos of another kind"])
    assert train(SHORT, run) == 0
    printed = capsys.readouterr()
    assert "falling back to the one before" in printed.err
    assert "resuming from the checkpoint at step 200" in printed.out
    assert_same_results(finished, run)


def test_without_any_usable_checkpoint_nothing_changes(unfinished, tmp_path):
    run = shutil.copytree(unfinished, tmp_path / "run")
    for step in ("000000000200", NEWEST):
        change_state(run, STATES["episode infos of another kind"], step)
    before = (run / "evaluations.csv").read_bytes()
    with pytest.raises(UserError, match=r"no usable checkpoint is left .* --restart starts over"):
        train(SHORT, run)
    assert (run / "evaluations.csv").read_bytes() == before


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_state_is_used_or_not(workplace, unfinished, data):
    """Whatever ``state.json`` holds, the run resumes from the newest checkpoint or from the one before."""
    state = json.loads((unfinished / "checkpoints" / NEWEST / "state.json").read_text())
    contents = data.draw(json_files(state))
    assert workplace(lambda run: rewrite(run, "state.json", contents)) in (200, 300)
