"""The runs of a reproduction or a race as jobs: their settings, and directories named by what a run is.

Targets do not appear in a path, so a run that two targets ask for is done once.
"""

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

from softdpg import paper
from softdpg.algorithms import registry
from softdpg.engines import Job
from softdpg.errors import UserError
from softdpg.runs.config import RunConfig

MARKER = ".softdpg-runs"
_SHORT = {"n_samples": "n"}  # in the name of a directory


def runs(
    targets: Iterable[str],
    *,
    steps: int = paper.TOTAL_TIMESTEPS,
    seeds: int = paper.SEEDS,
    envs: Sequence[str] | None = None,
    algos: Sequence[str] = paper.PAPER_ALGORITHMS,
    evaluate_every: int = paper.EVALUATION_EVERY,
) -> list[RunConfig]:
    """The runs of the given targets of the paper, each once.

    ``envs`` (names for :func:`paper.expand_env`) replaces the targets' own environments. A sweep leaves out algorithms
    that do not have its parameter. Seeds vary slowest: wherever a reproduction is stopped, its comparisons have as
    equal numbers of seeds as possible.
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
    """The algorithm with its smoothing, as in ``...-sigma0.2-n50``."""
    values = {key: getattr(config, key) for key in paper.SWEPT}
    shown = [f"{_SHORT.get(key, key)}{_text(value)}" for key, value in values.items() if value is not None]
    return "-".join([config.algorithm.name, *shown])


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace(":", "-")


def make_job(config: RunConfig, out: Path) -> Job:
    """The job of one run below ``out``, in ``ENVIRONMENT/VARIANT/seed-N``."""
    config = config.resolved()
    env = config.env.rpartition(":")[2].removeprefix("softdpg/").replace("/", "-")
    name = f"{env}/{variant(config)}/seed-{config.seed}"
    return Job(name, config, out / name)


def claim(out: Path, jobs: list[Job]) -> None:
    """Mark ``out`` as a directory of runs; ``UserError``, with nothing written, if it is something else.

    Runs that are there already must have the settings of their jobs.
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is not a directory")
    if out.is_dir() and not (out / MARKER).exists() and any(out.iterdir()):
        raise UserError(f"--out {out} is not empty and not a directory of softdpg reproduce or race")
    for job in jobs:
        if job.directory.config.exists():
            differences = job.config.differences(RunConfig.from_json(job.directory.read_config()).resolved())
            if differences:
                raise UserError(f"{job.path} holds a run with other settings: " + "; ".join(differences))
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / MARKER).write_text("Directories of runs, made by softdpg reproduce or race.\n")
    except OSError as error:
        raise UserError(f"cannot write to --out {out}: {error.strerror}") from None
