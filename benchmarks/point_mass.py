"""Compare algorithms on the sparse point masses of ``examples/point_mass.py``, each with its own defaults.

    python benchmarks/point_mass.py    train 5 seeds of each and print the table; run it again to resume

``PointMass-v0`` pays 1 per step at a goal that never moves. ``PointMassGoal-v0`` costs 1 per step away from a goal that
changes with each episode, and is trained with hindsight replay. A run is evaluated every 1,000 steps by 100
deterministic episodes. It has solved the task if at least 95 of its last 100 episodes end at the goal. CPU seconds are
those of ``learn``, compilation included, on one thread.
"""

import json
import multiprocessing
import statistics
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import tyro

RESULTS = Path(__file__).with_name("results") / "point_mass.json"
TASKS = {"PointMass-v0": 20_000, "PointMassGoal-v0": 20_000}  # steps of a run
ALGORITHMS = {
    "Soft TD3 (softdpg)": "softdpg:SoftTD3",
    "SAC (SBX)": "sbx:SAC",
    "TD3 (SBX)": "sbx:TD3",
}
EVERY, EPISODES, SOLVED = 1_000, 100, 0.95


def run(job: tuple[str, str, int]) -> dict[str, Any]:
    """Train one algorithm with one seed; record success rate and CPU seconds after each ``EVERY`` steps."""
    from softdpg.runs.process import use_one_thread

    use_one_thread()
    from importlib import import_module

    from stable_baselines3 import HerReplayBuffer

    import examples.point_mass  # noqa: F401 (registers the environments)

    name, env_id, seed = job
    module, class_name = ALGORITHMS[name].split(":")
    settings: dict[str, Any] = {}
    if env_id == "PointMassGoal-v0":
        settings = dict(replay_buffer_class=HerReplayBuffer)
    policy = "MultiInputPolicy" if settings else "MlpPolicy"
    model = getattr(import_module(module), class_name)(policy, env_id, seed=seed, **settings)
    envs, rates, seconds = [gym.make(env_id) for _ in range(EPISODES)], [], [0.0]
    for _ in range(TASKS[env_id] // EVERY):
        start = time.process_time()
        model.learn(EVERY, reset_num_timesteps=False)
        seconds.append(round(seconds[-1] + time.process_time() - start, 2))
        rates.append(success_rate(model, envs))
    return {"algorithm": name, "env": env_id, "seed": seed, "success": rates, "cpu_seconds": seconds[1:]}


def success_rate(model: Any, envs: list[gym.Env]) -> float:
    """Return the fraction of deterministic episodes, one per environment, whose last step is at the goal."""
    observations = [env.reset(seed=seed)[0] for seed, env in enumerate(envs)]
    success = [False] * len(envs)
    going = list(range(len(envs)))
    while going:
        # One call for all, finished episodes included: another batch size would be compiled again.
        actions, _ = model.predict(stacked(observations), deterministic=True)
        for i in tuple(going):
            observations[i], _, terminated, truncated, info = envs[i].step(actions[i])
            if terminated or truncated:
                going.remove(i)
                success[i] = info["is_success"]
    return sum(success) / len(envs)


def stacked(observations: list[Any]) -> Any:
    """Stack the observations of several environments, key by key for a Dict."""
    if isinstance(observations[0], dict):
        return {key: np.stack([observation[key] for observation in observations]) for key in observations[0]}
    return np.stack(observations)


def table(runs: list[dict[str, Any]]) -> str:
    """Return a Markdown table: how many seeds of each algorithm solved each task, and when they first did (medians)."""
    lines = ["| | " + " | ".join(f"{env}, solved | first solved after" for env in TASKS) + " |"]
    lines.append("| --- |" + " --- |" * (2 * len(TASKS)))
    for name in ALGORITHMS:
        cells = []
        for env in TASKS:
            own = [run for run in runs if (run["algorithm"], run["env"]) == (name, env)]
            first = [(run, _first(run["success"])) for run in own if max(run["success"]) >= SOLVED]
            solved = sum(run["success"][-1] >= SOLVED for run in own)
            steps = statistics.median(EVERY * (i + 1) for _, i in first) if first else 0
            seconds = statistics.median(run["cpu_seconds"][i] for run, i in first) if first else 0
            after = f"{steps:,.0f} steps, {seconds:.0f} CPU s ({len(first)} of {len(own)})" if first else "never"
            cells += [f"{solved} of {len(own)}", after]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _first(rates: list[float]) -> int:
    return next(i for i, rate in enumerate(rates) if rate >= SOLVED)


def main(
    seeds: int = 5, first_seed: int = 1, workers: int = 1, algorithms: tuple[str, ...] = tuple(ALGORITHMS)
) -> None:
    """Do the runs that are not stored yet, one thread each, and print the table.

    Seed 0 is left out because the environments were designed with it.

    :param seeds: number of seeds
    :param first_seed: the first of them
    :param workers: processes to run at the same time
    :param algorithms: names of the algorithms
    """
    runs: list[dict[str, Any]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    done = {(run["algorithm"], run["env"], run["seed"]) for run in runs}
    jobs = [(name, env, seed) for seed in range(first_seed, first_seed + seeds) for env in TASKS for name in algorithms]
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=1) as pool:
        for result in pool.imap_unordered(run, [job for job in jobs if job not in done]):
            runs.append(result)
            print(result["algorithm"], result["env"], result["seed"], result["success"], flush=True)
            runs.sort(key=lambda run: (run["algorithm"], run["env"], run["seed"]))
            RESULTS.write_text("[\n" + ",\n".join(map(json.dumps, runs)) + "\n]\n")
    print(table(runs), end="")


if __name__ == "__main__":
    tyro.cli(main)
