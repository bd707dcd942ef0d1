"""``--track``: the real packages get the evaluations of a run, offline."""

import pytest
from processes import tiny_config

from softdpg.runs.training import train


@pytest.mark.extended
def test_wandb_offline_gets_a_record_in_the_run_directory(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert train(tiny_config("Pendulum-v1", "ddpg", steps=60), tmp_path / "run", track="wandb") == 0
    (record,) = (tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb")
    assert b"eval/mean_reward" in record.read_bytes()


@pytest.mark.extended
def test_mlflow_has_one_run_also_after_it_was_resumed(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    for steps in (60, 90):
        assert train(tiny_config("Pendulum-v1", "ddpg", steps=steps), tmp_path / "run", track="mlflow") == 0
    (found,) = mlflow.search_runs(experiment_names=["softdpg"], output_format="list")
    assert found.data.params["env"] == "Pendulum-v1"
    history = mlflow.MlflowClient().get_metric_history(found.info.run_id, "eval/mean_reward")
    assert [point.step for point in history] == [60, 90]
