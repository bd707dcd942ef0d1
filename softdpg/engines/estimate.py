"""How long a reproduction will take, before it starts."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from softdpg import paper
from softdpg.engines import Job


class Speeds(NamedTuple):
    """Steps a second of one run on one core, evaluations left out."""

    exact: float
    smoothed: float  # N = 50


# Steps a second of processor time on one core of a 2-core AMD EPYC virtual machine, with the paper's settings.
TYPICAL: dict[str, Speeds] = {
    "Ant": Speeds(69, 45),
    "HalfCheetah": Speeds(77, 51),
    "Hopper": Speeds(69, 60),
    "Walker2d": Speeds(74, 50),
    "Humanoid": Speeds(50, 30),
    "InvertedPendulum": Speeds(88, 66),
    "InvertedDoublePendulum": Speeds(79, 71),
    "BipedalWalker": Speeds(65, 44),
    "LunarLander": Speeds(74, 64),
    "Pendulum": Speeds(83, 64),
    "MountainCar": Speeds(82, 72),
}


def estimated_seconds(jobs: Sequence[Job], slots: int) -> float:
    """Wall time of the steps that are left, from speeds recorded in the runs so far and typical ones elsewhere."""
    recorded = _recorded(jobs)
    seconds = []
    for job in jobs:
        left = job.config.steps - int(job.directory.read_status().get("step", 0))
        seconds.append(left / recorded.get(_kind(job), typical_speed(job)))
    return max(sum(seconds) / slots, max(seconds, default=0.0))


def typical_speed(job: Job) -> float:
    """Steps a second expected of a run that has no like; the time of an update grows linearly with N."""
    name = job.config.env.removeprefix("softdpg/").rsplit("-v")[0].removesuffix("Discrete").removesuffix("Continuous")
    middle = Speeds(*(median(column) for column in zip(*TYPICAL.values(), strict=True)))
    exact, smoothed = (1 / speed for speed in TYPICAL.get(name, middle))
    samples = job.config.n_samples or 0
    return 1 / (exact + (smoothed - exact) * samples / paper.N_SAMPLES)


def _recorded(jobs: Iterable[Job]) -> dict[tuple[object, ...], float]:
    """Speeds of the runs that are under way or done, by kind."""
    speeds: dict[tuple[object, ...], list[float]] = {}
    for job in jobs:
        status = job.directory.read_status()
        if status.get("step", 0) >= 10_000 and status.get("seconds", 0) > 0:
            speeds.setdefault(_kind(job), []).append(status["step"] / status["seconds"])
    return {kind: median(values) for kind, values in speeds.items()}


def _kind(job: Job) -> tuple[object, ...]:
    return job.config.env, job.config.algorithm.name, job.config.n_samples
