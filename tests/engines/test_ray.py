"""The Ray engine: a cluster that loses a node in the middle of a run, and addresses that lead nowhere."""

import socket
import time

import pytest
from processes import checkpoints, start, tiny_config

from softdpg.engines import Job
from softdpg.engines.ray import RayEngine, check_address
from softdpg.errors import UserError
from softdpg.studies.reproduce import reproduce

ray = pytest.importorskip("ray")


def test_a_node_is_lost_and_its_run_goes_on_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_worker_niceness", "0")  # other tests run beside this one
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    engine = RayEngine(cluster.address)
    try:
        assert engine.slots == 2
        jobs = [Job(f"seed-{seed}", tiny_config(seed=seed, steps=2000), tmp_path / f"seed-{seed}") for seed in range(2)]
        engine.start(jobs)
        deadline = time.monotonic() + 240
        while not all(checkpoints(job.path) for job in jobs):
            assert time.monotonic() < deadline
            assert not engine.ended()
            time.sleep(0.05)
        cluster.remove_node(nodes[0], allow_graceful=False)
        ended = []
        while len(ended) < 2:
            assert time.monotonic() < deadline
            ended += engine.ended()
            time.sleep(0.1)
        assert [end.exit_code for end in ended] == [0, 0]
    finally:
        engine.stop()
        cluster.shutdown()
    logs = [(job.path / "train.log").read_text() for job in jobs]
    resumed = [job for job, log in zip(jobs, logs, strict=True) if "going on from the checkpoint" in log]
    assert len(resumed) == 1
    # The run that moved gives what it gives when it is left alone.
    whole = start(resumed[0].config, tmp_path / "whole")
    whole.join()
    for name in ("evaluations.csv", "model.safetensors"):
        assert (resumed[0].path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_unreachable_addresses_fail_at_once(tmp_path):
    with socket.socket() as listener:  # a port that is taken but not listened to
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(UserError, match=f"no Ray cluster at {address}: .*refused"):
            reproduce("table1", tmp_path / "runs", engine="ray", address=address)
        assert time.monotonic() - began < 10
        assert not (tmp_path / "runs").exists()
    for address in ("nowhere", "host:port", "ray://"):
        with pytest.raises(UserError, match="--address takes host:port, ray://host:port or auto"):
            check_address(address)
    check_address("auto")
