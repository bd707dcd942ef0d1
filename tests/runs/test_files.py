"""Untrusted files: links, pipes, devices, sizes, and invalid JSON."""

import errno
import fcntl
import json
import os
import stat

import pytest

from softdpg.errors import UserError
from softdpg.runs import files
from softdpg.runs.files import FileError


def test_reads_regular_files_within_the_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert files.read_bytes(path, 5) == b"12345"
    with pytest.raises(FileError, match="file has 5 bytes, more than 4"):
        files.read_bytes(path, 4)
    with pytest.raises(FileNotFoundError):
        files.read_bytes(tmp_path / "none", 5)


def test_pipes_devices_links_and_directories_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/hostname")
    for name, message in (("pipe", "is not a regular file"), ("link", "is a link"), (".", "is not a regular file")):
        with pytest.raises(FileError, match=message):
            files.read_bytes(tmp_path / name, 100)
    for device in ("/dev/zero", "/dev/null"):
        with pytest.raises(FileError, match="is not a regular file"):
            files.read_bytes(files.Path(device), 100)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"5", "not a JSON object"),
        (b"[1]", "not a JSON object"),
        (b"\xff{}", "not Unicode"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b'{"a": Infinity}', "Infinity is not a finite number"),
        (b'{"a": [NaN]}', "NaN is not a finite number"),
        (b'{"a": 1e999}', "1e999 is not a finite number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"a": "\\ud800"}', "text that is not Unicode"),
        (b'{"\\udfff": 1}', "text that is not Unicode"),
    ],
)
def test_untrusted_json(tmp_path, contents, message):
    path = tmp_path / "status.json"
    path.write_bytes(contents)
    with pytest.raises(FileError, match=rf"status.json.*{message}"):
        files.read_json(path)


@pytest.mark.parametrize("error", [errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
@pytest.mark.parametrize("files_too", [False, True])
def test_a_file_system_that_cannot_lock(tmp_path, monkeypatch, error, files_too):
    """A file serves where directories cannot be locked, as on NFS; where files cannot, one line says so."""
    flock = fcntl.flock

    def limited(fd, kind):
        if files_too or stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(error, os.strerror(error))
        flock(fd, kind)

    monkeypatch.setattr(files.fcntl, "flock", limited)
    if files_too:
        with pytest.raises(UserError, match=f"cannot lock {tmp_path}; choose .* that supports flock"):
            files.locked(tmp_path).__enter__()
        assert list(tmp_path.iterdir()) == []
        return
    with files.locked(tmp_path):
        assert files.is_locked(tmp_path)
        with pytest.raises(UserError, match=f"another process is working on {tmp_path}"):
            files.locked(tmp_path).__enter__()
    assert not files.is_locked(tmp_path)
    with files.locked(tmp_path):
        pass


def test_nothing_is_written_through_a_link(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    run = tmp_path / "run"
    run.mkdir()
    for name in ("status.json", "status.json.tmp", "evaluations.csv"):
        (run / name).symlink_to(precious)
    files.write_json(run / "status.json", {"a": 1})
    assert json.loads((run / "status.json").read_text()) == {"a": 1}
    assert not (run / "status.json").is_symlink()
    assert not (run / "status.json.tmp").is_symlink()
    with pytest.raises(OSError, match="symbolic links"):
        files.append(run / "evaluations.csv", b"row")
    (run / "checkpoints").symlink_to(tmp_path)
    with pytest.raises(FileError, match="checkpoints is a link"):
        files.make_directory(run / "checkpoints")
    os.mkfifo(run / "progress.csv")
    with pytest.raises((OSError, FileError)):
        files.append(run / "progress.csv", b"row")
    assert precious.read_text() == "mine"


def test_a_write_that_fails_leaves_the_old_contents_and_nothing_aside(tmp_path):
    path = tmp_path / "status.json"
    files.write_json(path, {"a": 1})
    os.mkdir(tmp_path / "status.json.tmp")
    with pytest.raises(OSError):  # noqa: PT011 (of one kind or another, by system)
        files.write_json(path, {"a": 2})
    os.rmdir(tmp_path / "status.json.tmp")
    assert files.read_json(path) == {"a": 1}
