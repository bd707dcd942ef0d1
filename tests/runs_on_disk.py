"""Run directories with known numbers, written as `softdpg train` writes them."""

import csv
import json
from pathlib import Path

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS
from softdpg.runs.config import RunConfig

HYPERPARAMETERS = {**paper.HYPERPARAMETERS, "action_layer": "second", "learning_starts": 1000}


def make_foreign(run: Path) -> None:
    """Make a run look as if another user, or another machine, had made it."""
    config = json.loads((run / "config.json").read_text())
    del config["signature"]
    (run / "config.json").write_text(json.dumps(config))


def write_run(
    directory: Path,
    env: str,
    algorithm: str,
    seed: int,
    means: list[float],
    *,
    every: int = paper.EVALUATION_EVERY,
    steps: int | None = None,
    state: str = "finished",
    sigma: float = paper.SIGMA,
    n_samples: int = paper.N_SAMPLES,
    **hyperparameters: object,
) -> Path:
    """A run evaluated every ``every`` steps with the given means; ``steps`` is where it is to end."""
    known = ALGORITHMS[algorithm]
    soft = {"sigma": sigma, "n_samples": n_samples, "estimator": known.hyperparameters.get("estimator")}
    values = {**HYPERPARAMETERS, **(soft if known.smoothed else {}), **known.preset, **hyperparameters}
    steps = steps or every * len(means)
    directory.mkdir(parents=True)
    config = {
        **RunConfig(env, known.base, steps, seed, every, 10, **values).to_json(),
        "versions": {"jax": "0.9.0", "softdpg": "0.1.0"},
        "commit": "0123abc",
        "machine": {"cpu": 'a <fast> CPU, "quoted"', "cores": 2},
    }
    (directory / "config.json").write_text(json.dumps(config))
    status = {"state": state, "step": every * len(means), "steps": steps, "updated": "2026-01-01T00:00:00+00:00"}
    (directory / "status.json").write_text(json.dumps({**status, "seconds": 36.0, "message": ""}))
    with (directory / "evaluations.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["step", "mean", "std", *(f"return_{i}" for i in range(1, 11))])
        for i, mean in enumerate(means, start=1):
            writer.writerow([every * i, mean, 1.0, *[mean - 1.0, mean + 1.0] * 5])
    return directory


def write_runs(root: Path, env: str, algorithm: str, curves: list[list[float]], **settings: object) -> None:
    """One run a seed, ``curves[seed]`` being its evaluations."""
    name = "-".join([env.replace("/", "_"), algorithm, *(f"{key}{value}" for key, value in settings.items())])
    for seed, means in enumerate(curves):
        write_run(root / name / str(seed), env, algorithm, seed, means, **settings)
