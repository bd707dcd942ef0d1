"""The runs of a reproduction as jobs: their settings, and directories named by what a run is.

Targets do not appear in a path, so a run that two targets ask for is done once.
"""

from pathlib import Path

from softdpg import paper
from softdpg.engines import Job
from softdpg.errors import UserError
from softdpg.runs.config import RunConfig

MARKER = ".softdpg-runs"


def variant(spec: paper.RunSpec) -> str:
    """The algorithm with its smoothing, e.g. ``soft-ddpg-sigma0.2-n50``."""
    return spec.algo if spec.sigma is None else f"{spec.algo}-sigma{spec.sigma:g}-n{spec.n_samples}"


def make_job(spec: paper.RunSpec, out: Path) -> Job:
    """The job of one run below ``out``, e.g. in ``AntDiscrete-v0/soft-ddpg-sigma0.2-n50/seed-0``."""
    algorithm = paper.ALGORITHMS[spec.algo]
    config = RunConfig(
        env=spec.env,
        algo=algorithm.algo,
        estimator=algorithm.estimator,
        seed=spec.seed,
        steps=spec.steps,
        sigma=spec.sigma,
        n_samples=spec.n_samples,
    ).resolved()
    name = f"{spec.env.removeprefix('softdpg/').replace('/', '-')}/{variant(spec)}/seed-{spec.seed}"
    return Job(name, config, out / name)


def claim(out: Path, jobs: list[Job]) -> None:
    """Mark ``out`` as a directory of runs; ``UserError``, with nothing written, if it is something else.

    Runs that are there already must have the settings of their jobs.
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is not a directory")
    if out.is_dir() and not (out / MARKER).exists() and any(out.iterdir()):
        raise UserError(f"--out {out} is not empty and not a directory of softdpg reproduce")
    for job in jobs:
        if job.directory.config.exists():
            differences = job.config.differences(RunConfig.from_json(job.directory.read_config()))
            if differences:
                raise UserError(f"{job.path} holds a run with other settings: " + "; ".join(differences))
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / MARKER).write_text("Directories of runs, made by softdpg reproduce.\n")
    except OSError as error:
        raise UserError(f"cannot write to --out {out}: {error.strerror}") from None
