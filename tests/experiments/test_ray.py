"""The Ray engine: a cluster that loses a node in the middle of a run, and addresses that lead nowhere."""

import os
import socket
import threading
import time
from pathlib import Path

import pytest
from gated_env import VARIABLE
from processes import checkpoints, tiny_config

from softdpg.errors import UserError
from softdpg.experiments.execute import execute, make_engine
from softdpg.experiments.jobs import Job
from softdpg.experiments.ray import check_address
from softdpg.experiments.reproduce import reproduce
from softdpg.runs.training import train

TESTS = Path(__file__).parents[1]


@pytest.mark.extended
def test_a_node_is_lost_and_its_run_resumes_elsewhere(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster
    from rich.console import Console

    gate = tmp_path / "gate"
    monkeypatch.setenv(VARIABLE, str(gate))  # before the cluster starts: its workers inherit it
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS.parent)]))
    monkeypatch.setenv("RAY_worker_niceness", "0")  # other tests run beside this one
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    jobs = [
        Job(f"env/algo/seed-{seed}", tiny_config("gated_env:Gated-v0", seed=seed, steps=600), tmp_path / str(seed))
        for seed in range(2)
    ]
    lost = []

    def lose_a_node():
        """Neither run can finish before the gate opens, so each of these states lasts until it is seen."""
        try:
            while not all(checkpoints(job.path) for job in jobs):
                time.sleep(0.05)
            cluster.remove_node(nodes[0], allow_graceful=False)
            while not lost:  # the node's processes are killed, and with them its run
                lost.extend(job for job in jobs if not job.directory.locked())
                time.sleep(0.05)
        finally:
            gate.touch()

    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        cluster.wait_for_nodes()
        engine = make_engine("ray", cluster.address, None)
        assert engine.slots == 2
        killer = threading.Thread(target=lose_a_node, daemon=True)
        killer.start()
        assert execute(engine, jobs, jobs, Console()) == 0
        killer.join()
    finally:
        cluster.shutdown()
    assert len(lost) == 1
    logs = {job: (job.path / "train.log").read_text() for job in jobs}
    assert [job for job, log in logs.items() if "resuming from the checkpoint" in log] == lost
    # The run that moved gives what it gives when it is left alone.
    assert train(lost[0].config, tmp_path / "whole") == 0
    for name in ("evaluations.csv", "model.safetensors"):
        assert (lost[0].path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_an_address_without_a_cluster_is_refused_before_ray_is_asked(tmp_path):
    with socket.socket() as listener:  # a port that is taken but not listened to
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(UserError, match=f"no Ray cluster at {address}: .*refused"):
            reproduce("table1", tmp_path / "runs", engine="ray", address=address)
        assert not (tmp_path / "runs").exists()
    for address in ("nowhere", "host:port", "ray://"):
        with pytest.raises(UserError, match="--address must be host:port, ray://host:port or auto"):
            check_address(address)
    check_address("auto")
