"""Jobs: the runs of a reproduction or a benchmark, each with its settings and its directory.

A directory is named by the settings of its run and not by the target that asks for it, so a run that belongs to two
targets is made once.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Protocol

from softdpg import paper
from softdpg.algorithms import registry
from softdpg.errors import UserError
from softdpg.runs import files
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory

MARKER = ".softdpg-runs"
_SHORT = {"n_samples": "n"}  # in the name of a directory


@dataclass(frozen=True)
class Job:
    """One run and its directory.

    :param name: ``ENVIRONMENT/VARIANT/seed-N``
    :param config: settings of the run
    :param path: the run directory
    """

    name: str
    config: RunConfig
    path: Path

    @property
    def directory(self) -> RunDirectory:
        """The run directory."""
        return RunDirectory(self.path)


@dataclass(frozen=True)
class Ended:
    """A job whose process has ended.

    :param job: the job
    :param exit_code: 0 if the run is finished
    :param message: one line that says why the run failed
    """

    job: Job
    exit_code: int
    message: str = ""


class Engine(Protocol):
    """Something that executes jobs in the background. Results do not depend on the engine."""

    slots: int
    """How many jobs run at the same time."""

    def start(self, jobs: Sequence[Job]) -> None:
        """Accept all jobs; those beyond the number of slots wait."""

    def ended(self) -> list[Ended]:
        """Return the jobs that have ended since the last call."""

    def stop(self) -> None:
        """End all jobs, each with a checkpoint if possible, and release resources."""


def runs(
    targets: Iterable[str],
    *,
    steps: int = paper.TOTAL_TIMESTEPS,
    seeds: int = paper.SEEDS,
    envs: Sequence[str] | None = None,
    algos: Sequence[str] = paper.PAPER_ALGORITHMS,
    evaluate_every: int = paper.EVALUATION_EVERY,
) -> list[RunConfig]:
    """Return the runs of some targets of the paper, each once.

    The seed varies slowest. An interrupted reproduction therefore has similar numbers of seeds everywhere.

    :param targets: names in ``paper.TARGETS``
    :param steps: environment steps of a run
    :param seeds: number of seeds
    :param envs: environments instead of the targets' own; names for :func:`paper.expand_env`
    :param algos: names in the registry; a sweep leaves out algorithms that do not have its hyperparameter
    :param evaluate_every: steps between two evaluations
    """
    found: dict[RunConfig, None] = {}
    for seed, name in product(range(seeds), targets):
        if name not in paper.TARGETS:
            raise ValueError(f"target must be one of {', '.join(paper.TARGETS)}, got {name!r}")
        target = paper.TARGETS[name]
        ids = target.envs if envs is None else [env_id for env in envs for env_id in paper.expand_env(env)]
        for env_id, algo in product(ids, algos):
            defaults = registry.find(algo).hyperparameters
            smoothing = {key: defaults[key] for key in paper.SWEPT if key in defaults}
            for settings in target.settings(defaults):
                found[RunConfig(env_id, algo, steps, seed, evaluate_every, **(smoothing | settings))] = None
    return list(found)


def variant(config: RunConfig) -> str:
    """Return the algorithm's name with its smoothing, for instance ``soft-ddpg-sigma0.2-n50``."""
    values = {key: getattr(config, key) for key in paper.SWEPT}
    shown = [f"{_SHORT.get(key, key)}{_string(value)}" for key, value in values.items() if value is not None]
    return "-".join([config.algorithm.name, *shown])


def _string(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace(":", "-")


def make_job(config: RunConfig, out: Path) -> Job:
    """Return the job of one run in ``out/ENVIRONMENT/VARIANT/seed-N``."""
    config = config.resolved()
    name = f"{config.env_name}/{variant(config)}/seed-{config.seed}"
    return Job(name, config, out / name)


@contextmanager
def claimed(out: Path, jobs: Sequence[Job]) -> Iterator[None]:
    """Mark ``out`` as a directory of runs and hold its lock. Raise ``UserError`` if it is in use or holds other things.

    :param out: the directory; new, empty or with the marker
    :param jobs: the jobs below it; a run that exists already must have the settings of its job
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is not a directory")
    names = {entry.name for entry in out.iterdir()} if out.is_dir() else set()
    if MARKER not in names and names - {files.LOCK, f"{MARKER}.tmp"}:  # a killed process may leave these two
        raise UserError(f"--out {out} is not empty and not a directory of softdpg reproduce or race")
    for job in jobs:
        if job.directory.config.exists():
            differences = job.config.differences(RunConfig.from_json(job.directory.read_config()).resolved())
            if differences:
                raise UserError(f"{job.path} holds a run with other settings: " + "; ".join(differences))
    with ExitStack() as stack:
        try:
            out.mkdir(parents=True, exist_ok=True)
            stack.enter_context(files.locked(out))
            files.replace_file(out / MARKER, b"Directories of runs, made by softdpg reproduce or race.\n")
        except OSError as error:
            if files.is_full(error):
                raise
            raise UserError(f"cannot write to --out {out}: {error.strerror}") from None
        yield
