"""Make the policies of the zoo from finished runs: for each task the best policy that reaches its target score.

    python benchmarks/make_zoo.py runs/race [DIR ...] [--episodes 100]

Each candidate plays ``--episodes`` episodes of the seed 0, which choose the best one. That one plays as many again, of
the seed 1, which are its published score: the choice does not flatter it. A task whose best policy stays below the
target score gets none. A policy that is there is replaced only by a better one.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from scipy import stats

from softdpg import paper, zoo
from softdpg.algorithms.registry import DEFAULT
from softdpg.export import export_policy
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory, find_runs
from softdpg.runs.environments import make_env
from softdpg.runs.learner import load_learner
from softdpg.runs.trained import evaluate_run

CHOICE, SCORE = 0, 1  # seeds of the episodes
_SETTINGS = ("steps", "evaluate_every", "evaluation_episodes", "stop_at_score", "steps_after_score", "hyperparameters")


def candidates(directories: tuple[Path, ...], tasks: tuple[str, ...]) -> dict[str, list[RunDirectory]]:
    """Return the finished runs of the default algorithm by Gymnasium id, for the tasks that the benchmark has."""
    found: dict[str, list[RunDirectory]] = {}
    for run in (run for root in directories for run in find_runs(root)):
        stored = run.read_config()
        config = RunConfig.from_json(stored)
        if len(str(stored["commit"])) != 40:
            print(f"{run.path}: left out, its code was not that of a commit: {stored['commit']}")
            continue
        task = zoo.task_name(config.env)
        usable = config.algo == DEFAULT and not config.env_kwargs and not config.normalize
        finished = run.read_status().get("state") == "finished" and run.model.exists()
        if usable and finished and config.env in paper.TARGET_SCORES and (not tasks or task in tasks):
            found.setdefault(config.env, []).append(run)
    return found


def entry_of(run: RunDirectory, returns: np.ndarray) -> dict[str, Any]:
    """Return what the JSON file of a policy says."""
    stored = run.read_config()
    half = float(stats.t.ppf(0.975, len(returns) - 1) * returns.std(ddof=1) / np.sqrt(len(returns)))
    mean = float(returns.mean())
    return {
        "env": stored["env"],
        "algo": stored["algo"],
        "target_score": paper.TARGET_SCORES[stored["env"]],
        "score": round(mean, 3),
        "std": round(float(returns.std(ddof=1)), 3),
        "interval": [round(mean - half, 3), round(mean + half, 3)],
        "episodes": len(returns),
        "steps": run.read_status()["step"],
        "cpu_seconds": round(run.training_seconds(), 1),
        "seed": stored["seed"],
        "commit": stored["commit"],
        "versions": stored["versions"],
        "settings": {name: stored[name] for name in _SETTINGS},
    }


def save(run: RunDirectory, entry: dict[str, Any], out: Path) -> None:
    """Write the two files of a policy."""
    stored = RunConfig.from_json(run.read_config()).resolved()
    model = load_learner(stored, make_env(stored.env), run.model)
    path = out / f"{zoo.task_name(stored.env)}.safetensors"
    export_policy(model.policy, path)  # which checks that the exported actor acts like the model
    path.chmod(0o644)
    path.with_suffix(".json").write_text(json.dumps(entry, indent=1) + "\n", encoding="utf-8")


def main(
    runs: tyro.conf.Positional[tuple[Path, ...]],
    tasks: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[TASK ...]")] = (),
    episodes: int = 100,
    out: Path = zoo.POLICIES,
) -> None:
    """Make the policies of the zoo.

    Args:
        runs: Directories with run directories of softdpg race or softdpg train anywhere below them.
        tasks: Tasks such as Walker2dDiscrete or Walker2d-v5. Default: all with finished runs.
        episodes: Episodes that choose a policy, and as many again that score it.
        out: Directory of the policies.
    """
    present = {entry.env: entry.score for entry in zoo.entries()} if out == zoo.POLICIES else {}
    for env, found in candidates(runs, tasks).items():
        means = [evaluate_run(run.path, episodes=episodes, seed=CHOICE).mean() for run in found]
        best = int(np.argmax(means))
        entry = entry_of(found[best], evaluate_run(found[best].path, episodes=episodes, seed=SCORE))
        target = entry["target_score"]
        text = f"{zoo.task_name(env)}: {entry['score']:.1f} (target score {target:g}), the best of {len(found)} runs"
        if entry["score"] < target:
            print(f"{text}: left out, it does not reach the target score")
        elif entry["score"] <= present.get(env, -np.inf):
            print(f"{text}: left out, the zoo has {present[env]:.1f}")
        else:
            save(found[best], entry, out)
            print(text)


if __name__ == "__main__":
    tyro.cli(main)
