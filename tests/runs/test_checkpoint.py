"""Checkpoints are whole or not used; damage to any file of the newest falls back to the one before."""

import errno
import os
import subprocess

import numpy as np
import pytest

from softdpg.runs.checkpoint import Checkpoint, DamagedCheckpointError, newest_first, read, write

FILES = ["arrays.safetensors", "state.json", "evaluations.csv", "SHA256SUMS"]


def example(step):
    arrays = {"actor/kernel": np.arange(6, dtype=np.float32).reshape(2, 3) + step, "step": np.array(step, np.int32)}
    return Checkpoint(
        step, arrays, {"random": [step, 0.5, None]}, {"evaluations.csv": f"step,mean\n{step},1.0\n".encode()}
    )


def assert_equal(left, right):
    assert (left.step, left.state, left.files) == (right.step, right.state, right.files)
    assert left.arrays.keys() == right.arrays.keys()
    for name, array in left.arrays.items():
        np.testing.assert_array_equal(array, right.arrays[name])
        assert (array.dtype, array.shape) == (right.arrays[name].dtype, right.arrays[name].shape)


def test_round_trip_and_the_last_two_are_kept(tmp_path):
    for step in (100, 9_900, 20_000):
        write(tmp_path / "checkpoints", example(step))
    found = list(newest_first(tmp_path / "checkpoints"))
    assert [checkpoint.step for checkpoint in found] == [20_000, 9_900]
    assert_equal(found[0], example(20_000))


def test_sums_are_those_of_sha256sum(tmp_path):
    write(tmp_path, example(100))
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path / "000000000100", check=True)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["empty", "truncated", "one bit", "missing"])
def test_damage_falls_back(tmp_path, name, damage):
    for step in (100, 200):
        write(tmp_path, example(step))
    path = tmp_path / "000000000200" / name
    contents = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "one bit":
        path.write_bytes(contents[:-2] + bytes([contents[-2] ^ 1]) + contents[-1:])
    else:
        path.write_bytes(contents[: len(contents) // 2] if damage == "truncated" else b"")
    damaged, before = newest_first(tmp_path)
    assert isinstance(damaged, DamagedCheckpointError)
    assert "000000000200" in str(damaged)
    assert_equal(before, example(100))
    write(tmp_path, example(200))  # the run comes past that step again
    assert_equal(next(newest_first(tmp_path)), example(200))


@pytest.mark.parametrize("failing_call", range(1, 7))
def test_a_write_that_fails_leaves_the_earlier_ones(tmp_path, monkeypatch, failing_call):
    """Wherever the disk turns out to be full, the earlier checkpoint is the newest, and nothing is left over."""
    write(tmp_path, example(100))
    calls, fsync = 0, os.fsync

    def full_disk(fd):
        nonlocal calls
        calls += 1
        if calls == failing_call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", full_disk)
    if failing_call <= 5:
        with pytest.raises(OSError, match="No space left"):
            write(tmp_path, example(200))
        assert [path.name for path in tmp_path.iterdir()] == ["000000000100"]
        assert_equal(read(tmp_path / "000000000100"), example(100))
    else:  # the last one is after the rename: the new checkpoint is there and whole
        with pytest.raises(OSError, match="No space left"):
            write(tmp_path, example(200))
        assert_equal(next(newest_first(tmp_path)), example(200))


def test_what_a_kill_in_the_middle_leaves_is_ignored(tmp_path):
    write(tmp_path, example(100))
    (tmp_path / "000000000200.tmp").mkdir()
    (tmp_path / "000000000200.tmp" / "state.json").write_text("{")
    assert [checkpoint.step for checkpoint in newest_first(tmp_path)] == [100]
    write(tmp_path, example(200))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000000000100", "000000000200"]


def test_no_checkpoints(tmp_path):
    assert list(newest_first(tmp_path / "none")) == []
