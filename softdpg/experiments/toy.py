"""``softdpg toy``: the paper's Figure 1. Train on the toy of Section 4 and compare each critic with the exact one.

The exact critic is Q of the learned policy, or Q_sigma for a smoothed critic. Both are the step r(a) plus a constant
(``softdpg.theory.toy``). Both have an infinite horizon, because the algorithms bootstrap at time limits. Smoothed
actions are clipped as in Algorithm 1.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from softdpg import paper
from softdpg.algorithms import registry
from softdpg.errors import UserError
from softdpg.runs import files
from softdpg.runs.config import RunConfig
from softdpg.runs.process import use_one_thread

ACTIONS = np.linspace(-1, 1, 801)
EPISODE = 50  # steps
_NUMBERS = ("critic", "slope", "action", "late_actions", "episode_return")
LAST, EVERY = 1_000, 20  # the policy changes until the end, so its action is recorded every 20 of the last 1,000 steps


@dataclass(frozen=True)
class ToySettings:
    """Arguments of ``softdpg toy``. The paper gives none for its Figure 1.

    :param seeds: Runs of each algorithm.
    :param steps: Environment steps of a run. The first 1,000 are uniformly random.
    :param epsilon: Half the width of the rewarded interval.
    :param gamma: Discount factor. The critic needs steps in proportion to 1 / (1 - gamma).
    :param sigma: Smoothing parameter.
    :param batch_size: Transitions of an update.
    :param action_layer: Hidden layer of the critic at which the action enters.
    :param workers: Number of processes at a time, with one thread each.
    :param algos: Names of algorithms, except those of other libraries.
    """

    seeds: int = 3
    steps: int = 5_000
    epsilon: float = 0.05
    gamma: float = 0.9
    sigma: float = 0.2
    batch_size: int = 64
    action_layer: Literal["second", "input"] = "second"
    workers: int = 2
    algos: Annotated[tuple[str, ...], tyro.conf.arg(metavar="ALGO [ALGO ...]")] = paper.STUDY_ALGORITHMS

    def check(self) -> None:
        """Raise ``UserError`` for the first invalid argument."""
        for name, low in (("seeds", 1), ("steps", 1_001), ("batch_size", 1), ("workers", 1)):
            if getattr(self, name) < low:
                raise UserError(f"--{name.replace('_', '-')} must be at least {low}, got {getattr(self, name)}")
        if not 0 < self.epsilon <= 0.5:
            raise UserError(f"--epsilon must be in (0, 0.5], got {self.epsilon}")
        if not 0 <= self.gamma < 1:
            raise UserError(f"--gamma must be in [0, 1), got {self.gamma}")
        if not self.sigma > 0:
            raise UserError(f"--sigma must be positive, got {self.sigma}")
        for name in self.algos:
            if registry.find(name).origin == "peer":
                raise UserError(f"--algos must be algorithms of softdpg, got {name}, which belongs to another library")


@dataclass(frozen=True)
class ToyRun:
    """The result of one run.

    :param algorithm: name in the registry
    :param seed: seed of the run
    :param critic: Q(s, .) on ``ACTIONS``
    :param slope: |dQ/da| on ``ACTIONS``
    :param action: action of the final policy
    :param late_actions: actions of the policy during the last ``LAST`` steps
    :param episode_return: return of one episode of the final policy
    """

    algorithm: str
    seed: int
    critic: np.ndarray
    slope: np.ndarray
    action: float
    late_actions: np.ndarray
    episode_return: float

    def exact(self, settings: ToySettings) -> np.ndarray:
        """Return the exact critic on ``ACTIONS``."""
        from softdpg.theory.toy import Toy

        toy = Toy(settings.epsilon, settings.gamma)
        return toy.critic(ACTIONS, self.action, settings.sigma if registry.find(self.algorithm).smoothed else 0.0)


def measures(run: ToyRun, settings: ToySettings) -> dict[str, float]:
    """Return the numbers of the table for one run."""
    from softdpg.theory.toy import Toy

    exact = run.exact(settings)
    difference = run.critic - exact
    offset = float(difference.mean())
    return {
        "error": float(np.sqrt(np.mean(difference**2))),
        "offset": offset,
        "shape error": float(np.sqrt(np.mean((difference - offset) ** 2))),
        "total variation": float(np.abs(np.diff(run.critic)).sum()),
        "greedy action": float(ACTIONS[np.argmax(run.critic)]),
        "learned action": run.action,
        "return": run.episode_return,
        "late return": EPISODE * float(Toy(settings.epsilon).reward(run.late_actions).mean()),
    }


def train_runs(settings: ToySettings, jobs: list[tuple[str, int]], out: Path, console: Console) -> list[ToyRun]:
    """Train in parallel processes with a live display. Each run is stored when it ends.

    :param settings: settings of the study
    :param jobs: pairs of algorithm and seed
    :param out: directory of the stored runs
    :param console: where to print
    """
    use_one_thread()  # the children inherit the variables, before they import JAX
    context = multiprocessing.get_context("spawn")
    console.print(f"Training {len(jobs)} agents for {settings.steps:,} steps each", highlight=False)
    steps, stop = context.Array("q", len(jobs), lock=False), context.Value("b", 0, lock=False)
    workers = min(settings.workers, len(jobs))
    with (
        ProcessPoolExecutor(workers, context, initializer=_share, initargs=(steps, stop)) as pool,
        _stop_on_error(pool, stop),
        _display(console) as progress,
    ):
        futures = [pool.submit(train_one, settings, *job, slot, out) for slot, job in enumerate(jobs)]
        totals = {name: settings.steps * sum(job[0] == name for job in jobs) for name, _ in jobs}
        tasks = {name: progress.add_task(name, total=total) for name, total in totals.items()}
        while not all(future.done() for future in futures):
            _raise_first(futures)
            for name, task in tasks.items():
                progress.update(task, completed=sum(steps[i] for i, job in enumerate(jobs) if job[0] == name))
            wait(futures, timeout=0.25)
        for name, task in tasks.items():
            progress.update(task, completed=totals[name])
        return [future.result() for future in futures]


@contextmanager
def _stop_on_error(pool: ProcessPoolExecutor, stop: Any) -> Iterator[None]:
    """Stop the training in the child processes on any error or Ctrl-C, because the pool waits for them."""
    try:
        yield
    except BaseException:
        stop.value = 1
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _raise_first(futures: list[Future[ToyRun]]) -> None:
    for future in futures:
        if future.done():
            future.result()


def _display(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<20}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )


_steps: Any = None  # in a child process: shared step counters of all runs, and the request to stop
_stop: Any = None


def _share(steps: Any, stop: Any) -> None:
    global _steps, _stop
    _steps, _stop = steps, stop


def train_one(settings: ToySettings, algorithm: str, seed: int, slot: int, out: Path) -> ToyRun:
    """Train one agent, evaluate its critic and store the result. This runs in a child process.

    :param settings: settings of the study
    :param algorithm: name in the registry
    :param seed: seed of the run
    :param slot: index of the run's step counter
    :param out: directory of the stored runs
    """
    if _stop.value:
        raise InterruptedError("stopped before the start")
    import gymnasium as gym
    import jax
    from stable_baselines3.common.callbacks import BaseCallback

    from softdpg.runs.learner import make_learner

    state, late_actions = np.ones(1, np.float32), []

    class Follow(BaseCallback):
        def _on_step(self) -> bool:
            _steps[slot] = self.num_timesteps
            if self.num_timesteps > settings.steps - LAST and self.num_timesteps % EVERY == 0:
                late_actions.append(float(self.model.predict(state, deterministic=True)[0][0]))
            return not _stop.value

    env = gym.make("softdpg/Toy-v0", epsilon=settings.epsilon, length=EPISODE)
    entry = registry.find(algorithm)
    config = RunConfig(
        "softdpg/Toy-v0",
        algorithm,
        seed=seed,
        gamma=settings.gamma,
        batch_size=settings.batch_size,
        action_layer=settings.action_layer,
        sigma=settings.sigma if entry.smoothed else None,
    )
    model = make_learner(config.resolved(), env)
    model.learn(settings.steps, callback=Follow())

    actions = ACTIONS[:, None].astype(np.float32)
    observations = np.ones_like(actions)
    params, critic = model.policy.qf_state.params, model.policy.qf
    slope = jax.grad(lambda a: critic.apply(params, observations, a)[0].sum())(actions)
    observation, _ = env.reset(seed=seed)
    total, done = 0.0, False
    while not done:
        observation, reward, terminated, truncated, _ = env.step(model.predict(observation, deterministic=True)[0])
        total, done = total + float(reward), terminated or truncated
    run = ToyRun(
        algorithm,
        seed,
        np.asarray(critic.apply(params, observations, actions)[0], np.float64),
        np.abs(np.asarray(slope, np.float64))[:, 0],
        float(model.predict(state, deterministic=True)[0][0]),
        np.array(late_actions),
        total,
    )
    save(run, settings, out)
    return run


def path_of(out: Path, algorithm: str, seed: int) -> Path:
    """Return the file of one run."""
    return out / "runs" / f"{algorithm}-seed-{seed}.npz"


def save(run: ToyRun, settings: ToySettings, out: Path) -> None:
    """Store a run together with its settings."""
    path, contents = path_of(out, run.algorithm, run.seed), io.BytesIO()
    numbers: dict[str, Any] = {name: np.asarray(getattr(run, name)) for name in _NUMBERS}
    np.savez(contents, settings=_string(settings), **numbers)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace_file(path, contents.getvalue())


def load(settings: ToySettings, out: Path, algorithm: str, seed: int) -> ToyRun | None:
    """Return the stored run, or None if there is none with these settings."""
    try:
        with np.load(io.BytesIO(files.read_bytes(path_of(out, algorithm, seed), files.ARRAYS))) as stored:
            if str(stored["settings"]) != _string(settings):
                return None
            critic, slope, action, late_actions, episode_return = (stored[name] for name in _NUMBERS)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return ToyRun(algorithm, seed, critic, slope, float(action), late_actions, float(episode_return))


def _string(settings: ToySettings) -> str:
    """Return the settings that affect the result of a run: neither the number of runs nor that of processes."""
    relevant = {key: value for key, value in asdict(settings).items() if key not in ("seeds", "workers", "algos")}
    return json.dumps(relevant, sort_keys=True)


def run(settings: ToySettings, out: Path) -> None:
    """Train the agents that are not stored yet, print the table and draw the figure.

    :param settings: settings of the study
    :param out: directory of the stored runs and the figure
    """
    settings.check()
    from softdpg.experiments.toy_report import draw, print_table

    console = Console()
    jobs = [(algorithm, seed) for seed in range(settings.seeds) for algorithm in reversed(settings.algos)]
    stored = {job: load(settings, out, *job) for job in jobs}
    missing = [job for job, found in stored.items() if found is None]
    runs = [found for found in stored.values() if found is not None]
    if missing:
        runs += train_runs(settings, missing, out, console)
    print_table(console, runs, settings)
    console.print(f"wrote {draw(runs, settings, out / 'toy.png')}", soft_wrap=True)
