"""The buffer on disk: a rewind restores it exactly, a changed byte is detected, and every failure is an error."""

import os
import pickle
import subprocess

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from transitions import assert_same_samples, spaces_of, transition

from softdpg.replay.disk import DiskReplayBuffer


@pytest.mark.parametrize("checkpoint", [5, 16, 40])
def test_rewind_brings_back_the_window_of_a_checkpoint(tmp_path, checkpoint):
    """Transitions added after a checkpoint, as before a kill, change nothing of what it sees."""
    expected = ReplayBuffer(16, *spaces_of(), device="cpu")
    killed = DiskReplayBuffer(16, *spaces_of(), path=tmp_path / "replay.bin", slack=2000)
    for t in range(checkpoint):
        expected.add(*transition(t))
        killed.add(*transition(t))
    for t in range(checkpoint, checkpoint + 700):
        killed.add(*transition(t))
    resumed = DiskReplayBuffer(16, *spaces_of(), path=tmp_path / "replay.bin", slack=2000)
    assert resumed.size() == 0
    resumed.rewind(checkpoint)
    assert_same_samples(expected, resumed)
    for t in range(checkpoint, checkpoint + 30):
        expected.add(*transition(t))
        resumed.add(*transition(t))
        assert_same_samples(expected, resumed, number=t)


def test_a_window_that_was_overwritten_is_not_given_out(tmp_path):
    buffer = DiskReplayBuffer(10, *spaces_of(), path=tmp_path / "replay.bin", slack=2048)
    for t in range(12):
        buffer.add(*transition(t))
    assert buffer.holds(12)
    assert not buffer.holds(2059)  # not written yet
    for t in range(12, 2059):
        buffer.add(*transition(t))
    assert not buffer.holds(12)  # record 2 lay in the slot that record 2060 may take
    assert buffer.holds(2059)
    with pytest.raises(ValueError, match="no longer holds the 10 transitions before number 12"):
        DiskReplayBuffer(10, *spaces_of(), path=tmp_path / "replay.bin", slack=2048).rewind(12)


def test_reset_forgets_everything(tmp_path):
    buffer = DiskReplayBuffer(10, *spaces_of(), path=tmp_path / "replay.bin")
    for t in range(25):
        buffer.add(*transition(t))
    buffer.reset()
    assert (buffer.size(), buffer.count, buffer.holds(25)) == (0, 0, False)
    buffer.add(*transition(7))
    np.testing.assert_array_equal(buffer.sample(4).actions.numpy(), np.repeat(transition(7)[2], 4, axis=0))


def test_pickle_keeps_the_reference_to_the_file(tmp_path):
    buffer = DiskReplayBuffer(16, *spaces_of(), path=tmp_path / "replay.bin", slack=8)
    for t in range(20):
        buffer.add(*transition(t))
    buffer.flush()
    assert_same_samples(buffer, pickle.loads(pickle.dumps(buffer)))


def test_foreign_files_and_other_layouts_are_refused_and_left_alone(tmp_path):
    foreign = tmp_path / "notes.txt"
    foreign.write_text("mine")
    with pytest.raises(ValueError, match="not a replay buffer of this layout"):
        DiskReplayBuffer(10, *spaces_of(), path=foreign)
    assert foreign.read_text() == "mine"
    DiskReplayBuffer(10, *spaces_of(), path=tmp_path / "replay.bin").close()
    with pytest.raises(ValueError, match="not a replay buffer of this layout"):
        DiskReplayBuffer(11, *spaces_of(), path=tmp_path / "replay.bin")


def test_arguments_it_does_not_support(tmp_path):
    box = spaces.Box(-1, 1, (3,))
    with pytest.raises(ValueError, match="optimize_memory_usage"):
        DiskReplayBuffer(10, box, box, path=tmp_path / "a", optimize_memory_usage=True)
    with pytest.raises(ValueError, match="Box observation and action spaces, got Dict and Box"):
        DiskReplayBuffer(10, spaces.Dict({"a": box}), box, path=tmp_path / "b")
    with pytest.raises(ValueError, match="slack must be at least 0, got -1"):
        DiskReplayBuffer(10, box, box, path=tmp_path / "c", slack=-1)


def test_platforms_without_posix_fallocate(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate")
    buffer = DiskReplayBuffer(10, *spaces_of(), path=tmp_path / "replay.bin")
    buffer.add(*transition(0))
    assert (tmp_path / "replay.bin").stat().st_blocks * 512 >= 10 * 4 * 11
    np.testing.assert_array_equal(buffer.sample(1).actions.numpy(), transition(0)[2])


@pytest.fixture
def small_tmpfs(tmp_path):
    """A file system of 4 MiB."""
    target = tmp_path / "small"
    target.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(target)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a tmpfs needs root")
    yield target
    subprocess.run(["umount", "-l", str(target)], check=True)


def test_a_full_disk_is_an_error_and_not_a_bus_error(small_tmpfs):
    buffer = DiskReplayBuffer(100_000, *spaces_of((400,)), path=small_tmpfs / "replay.bin")
    with pytest.raises(OSError, match="No space left on device"):
        buffer.add(*transition(0, obs_shape=(400,)))
    assert buffer.size() == 0


def test_a_short_slack_keeps_the_checkpoints_of_a_full_buffer(tmp_path):
    """Reserving ahead must not take more than the slack allows: 5/8 of it may be added after a checkpoint."""
    buffer = DiskReplayBuffer(50, *spaces_of(), path=tmp_path / "replay.bin", slack=400)
    for t in range(2000):
        buffer.add(*transition(t))
        if t >= 249:
            assert buffer.holds(t + 1 - 250), t


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 300, 730, 1234])
def test_checksums_find_any_changed_byte_of_the_window_and_no_other(tmp_path, count, n_envs):
    def buffer():
        return DiskReplayBuffer(100 * n_envs, *spaces_of(), n_envs=n_envs, path=tmp_path / "replay.bin", slack=400)

    first = buffer()
    for t in range(count):
        first.add(*transition(t, n_envs))
    sums = first.checksums()
    assert len(sums) <= 2 + 100 // first._block
    for t in range(count, count + 200):
        first.add(*transition(t, n_envs))
    again = buffer()
    again.rewind(count, sums)
    np.testing.assert_array_equal(again.checksums(), sums)

    rng = np.random.default_rng(count)
    oldest = max(count - 100, 0)
    header = (tmp_path / "replay.bin").stat().st_size - again.slots * again._record_bytes
    for t in {oldest, count - 1, *rng.integers(oldest, max(count, 1), 5)} if count else ():
        offset = header + int(t) % again.slots * again._record_bytes + int(rng.integers(again._record_bytes))
        with (tmp_path / "replay.bin").open("r+b") as file:
            for _ in range(2):
                file.seek(offset)
                byte = file.read(1)[0]
                file.seek(offset)
                file.write(bytes([byte ^ 4]))
                file.flush()
                if _ == 0:
                    with pytest.raises(ValueError, match="does not hold the transitions that were written to it"):
                        buffer().rewind(count, sums)
    outside = header + (count + 5) % again.slots * again._record_bytes  # a record that the checkpoint does not have
    with (tmp_path / "replay.bin").open("r+b") as file:
        file.seek(outside)
        file.write(b"changed!")
    buffer().rewind(count, sums)


def test_the_buffer_of_another_run_is_refused(tmp_path):
    DiskReplayBuffer(10, *spaces_of(), path=tmp_path / "replay.bin", run="a").close()
    with pytest.raises(ValueError, match="is the replay buffer of another run"):
        DiskReplayBuffer(10, *spaces_of(), path=tmp_path / "replay.bin", run="b")
    DiskReplayBuffer(10, *spaces_of(), path=tmp_path / "replay.bin", run="a").close()


def test_a_link_or_a_pipe_in_the_place_of_the_file_is_refused(tmp_path):
    DiskReplayBuffer(10, *spaces_of(), path=tmp_path / "other.bin").close()
    before = (tmp_path / "other.bin").read_bytes()
    (tmp_path / "link.bin").symlink_to(tmp_path / "other.bin")
    (tmp_path / "dangling.bin").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe.bin")
    for name in ("link.bin", "dangling.bin", "pipe.bin"):
        with pytest.raises((OSError, ValueError), match=r"symbolic links|not a replay buffer"):
            DiskReplayBuffer(10, *spaces_of(), path=tmp_path / name)
    (tmp_path / "new.bin.tmp").symlink_to(tmp_path / "other.bin")
    DiskReplayBuffer(10, *spaces_of(), path=tmp_path / "new.bin").close()
    assert (tmp_path / "other.bin").read_bytes() == before
    assert not (tmp_path / "nothing").exists()
