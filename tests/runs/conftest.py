"""Runs that several files of tests share."""

import pytest
import strange_envs
from processes import SHORT, checkpoints

from softdpg.runs.training import train


@pytest.fixture(autouse=True)
def no_fault(monkeypatch):
    monkeypatch.setattr(strange_envs, "FAULT", None)


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A run of ``SHORT`` that was left alone."""
    path = tmp_path_factory.mktemp("finished") / "run"
    assert train(SHORT, path) == 0
    return path


@pytest.fixture(scope="session")
def unfinished(tmp_path_factory):
    """A run of ``SHORT`` that failed within step 330, with checkpoints of 200 and 300."""
    path = tmp_path_factory.mktemp("unfinished") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strange_envs, "FAULT", ("raise", 330))
        assert train(SHORT, path) == 1
    assert checkpoints(path) == ["000000000200", "000000000300"]
    return path
