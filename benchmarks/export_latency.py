"""Measure the time of one action of an exported policy beside ``predict``, on one thread.

Writes benchmarks/results/export_latency.json and prints the table of docs/tutorials/deploying.md.
"""

import importlib.util
import json
import os
import sys
import tempfile
import time
from pathlib import Path

# NumPy and JAX read these when they are imported.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NPROC": "1"}
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import gymnasium as gym
import numpy as np
import onnxruntime

from softdpg import SoftDDPG
from softdpg.export import read_safetensors
from softdpg.runs.process import provenance

ENVS = ("softdpg/PendulumDiscrete-v0", "softdpg/HalfCheetahDiscrete-v0", "softdpg/HumanoidDiscrete-v0")
OUT = Path(__file__).parent / "results" / "export_latency.json"


def policies(env_id: str, folder: Path):
    env = gym.make(env_id)
    model = SoftDDPG("MlpPolicy", env, seed=0, buffer_size=10)
    spec = importlib.util.spec_from_file_location("exported", model.export(folder / "policy.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.export(folder / "policy.onnx"), options)
    observation, _ = env.reset(seed=0)
    yield "predict", lambda: model.predict(observation, deterministic=True)[0]
    yield "ONNX (onnxruntime)", lambda: session.run(None, {"observation": observation[None]})[0][0]
    yield "NumPy file", lambda: module.predict(observation)
    stored = read_safetensors(model.export(folder / "policy.safetensors"))
    yield "safetensors (read into NumPy)", lambda: stored(observation)


def microseconds(act, repeats: int = 2_000) -> float:
    """Return the median time of a call."""
    for _ in range(100):
        act()
    times = np.empty(repeats)
    for i in range(repeats):
        start = time.perf_counter()
        act()
        times[i] = time.perf_counter() - start
    return float(np.median(times) * 1e6)


def main() -> None:
    measured: dict[str, dict[str, float]] = {}
    worst = 0.0
    for env_id in ENVS:
        with tempfile.TemporaryDirectory() as folder:
            row = measured.setdefault(env_id, {})
            actors = dict(policies(env_id, Path(folder)))
            expected = actors["predict"]()
            for name, act in actors.items():
                worst = max(worst, float(np.max(np.abs(act() - expected))))
                row[name] = round(microseconds(act), 1)
    machine = provenance()["machine"]
    OUT.write_text(json.dumps({"microseconds": measured, "difference": worst, "machine": machine}, indent=2) + "\n")
    names = list(next(iter(measured.values())))
    print("| | " + " | ".join(names) + " |\n| --- |" + " ---: |" * len(names))
    for env_id, row in measured.items():
        print(f"| {env_id.split('/')[1]} | " + " | ".join(f"{row[name]:.0f} µs" for name in names) + " |")
    print(f"\nlargest difference from predict: {worst:.1e}", file=sys.stderr)


if __name__ == "__main__":
    main()
