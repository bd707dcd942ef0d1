"""Checkpoints are whole or not used; damage to any file of the newest falls back to the one before."""

import errno
import hashlib
import json
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


def sums_of(directory):
    return directory / "000000000100" / "SHA256SUMS"


def test_names_that_no_checkpoint_has_are_not_read(tmp_path):
    """A line ``../../.bashrc`` would else make a resumed run write that file."""
    write(tmp_path / "checkpoints", example(100))
    (tmp_path / "outside").write_bytes(b"harm")
    sums = sums_of(tmp_path / "checkpoints")
    for name in ("../../outside", "model.zip", str(tmp_path / "outside"), ""):
        line = f"{hashlib.sha256(b'harm').hexdigest()}  {name}\n"
        whole = sums.read_text()
        sums.write_text(whole + line)
        with pytest.raises(DamagedCheckpointError, match="names a file that no checkpoint has"):
            read(sums.parent)
        sums.write_text(whole)
    assert_equal(read(sums.parent), example(100))


@pytest.mark.parametrize("lines", [0, 1, 2])
def test_a_truncated_list_of_sums_is_damage(tmp_path, lines):
    write(tmp_path, example(100))
    whole = sums_of(tmp_path).read_text().splitlines(keepends=True)
    assert len(whole) == 3
    sums_of(tmp_path).write_text("".join(whole[:lines]))
    with pytest.raises(DamagedCheckpointError):
        read(tmp_path / "000000000100")


def test_links_and_pipes_in_a_checkpoint_are_damage(tmp_path):
    write(tmp_path / "other", example(100))
    for name in FILES:
        write(tmp_path / "run", example(100))
        path = tmp_path / "run" / "000000000100" / name
        path.unlink()
        path.symlink_to(tmp_path / "other" / "000000000100" / name)
        with pytest.raises(DamagedCheckpointError, match="is a link"):
            read(path.parent)
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(DamagedCheckpointError, match="not a regular file"):
            read(path.parent)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "000000000100").symlink_to(tmp_path / "other" / "000000000100")
    assert list(newest_first(tmp_path / "linked")) == []
    (tmp_path / "all").symlink_to(tmp_path / "other")
    assert list(newest_first(tmp_path / "all")) == []
    with pytest.raises(ValueError, match="all is a link"):
        write(tmp_path / "all", example(200))
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["000000000100"]


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3"])
def test_arrays_of_types_that_numpy_has_not_are_damage(tmp_path, dtype):
    size = 2 if dtype == "BF16" else 1
    header = json.dumps({"a": {"dtype": dtype, "shape": [1], "data_offsets": [0, size]}}).encode()
    contents = len(header).to_bytes(8, "little") + header + bytes(size)
    write(tmp_path, example(100))
    path = tmp_path / "000000000100"
    before = hashlib.sha256((path / "arrays.safetensors").read_bytes()).hexdigest()
    (path / "arrays.safetensors").write_bytes(contents)
    sums = sums_of(tmp_path).read_text().replace(before, hashlib.sha256(contents).hexdigest())
    sums_of(tmp_path).write_text(sums)
    with pytest.raises(DamagedCheckpointError, match=f"numbers of type {dtype} are not supported"):
        read(path)
