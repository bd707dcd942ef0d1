"""Run directories that version 0.1.0 made (``config.json`` without a format): read, resumed, evaluated, reported.

The archive holds a finished run, one that was killed after its checkpoint at step 209 of 400, and the evaluations that
the second one had in 0.1.0 when it was left alone.
"""

import json
import tarfile
from pathlib import Path

import pytest

from softdpg.errors import UserError
from softdpg.results import reading
from softdpg.runs.config import FORMAT, RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.evaluate_run import evaluate_run
from softdpg.runs.training import train

ARCHIVE = Path(__file__).parent / "data" / "run-0.1.0.tar.gz"


@pytest.fixture
def old(tmp_path):
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def test_settings_are_read(old):
    stored = RunDirectory(old / "finished").read_config()
    assert "format" not in stored
    config = RunConfig.from_json(stored).resolved()
    assert (config.algo, config.estimator, config.antithetic) == ("soft-ddpg", "centered", True)
    assert (config.n_samples, config.net_arch, config.steps) == (4, (8, 8), 300)
    assert config.algorithm.name == "soft-ddpg-centered"
    assert RunConfig.from_json(config.to_json()) == config
    assert config.to_json()["format"] == FORMAT == 2


def test_a_later_format_is_refused():
    with pytest.raises(UserError, match=r"config\.json has format 3; this version reads up to 2"):
        RunConfig.from_json({"format": 3})


def test_a_killed_run_goes_on_as_0_1_0_would_have(old):
    config = RunConfig.from_json(json.loads((old / "killed" / "config.json").read_text()))
    assert train(config, old / "killed") == 0
    whole = (old / "evaluations-of-the-whole-run.csv").read_text()
    assert (old / "killed" / "evaluations.csv").read_text() == whole
    assert len(whole.splitlines()) == 1 + 4


def test_a_finished_run_is_evaluated_and_reported(old):
    assert evaluate_run(old / "finished", episodes=2).shape == (2,)
    runs, warnings = reading.read(old)
    assert warnings == []
    assert {(run.name, run.algorithm, run.state, len(run.means)) for run in runs} == {
        ("finished", "soft-ddpg-centered", "finished", 3),
        ("killed", "soft-ddpg", "running", 2),
    }
