"""``softdpg eval``: a trained policy evaluated anew, from weights that are numbers and nothing else."""

from pathlib import Path

import numpy as np

from softdpg.errors import UserError
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.environments import REPLAY, episode_seed, make_env


def evaluate_run(path: Path, *, episodes: int = 100, seed: int = 0, trust: bool = False) -> np.ndarray:
    """Returns ``(episodes,)`` of deterministic episodes of the run's policy, unfinished runs included.

    ``trust`` lets the run's settings name a module to import; see :func:`open_run`.
    """
    if episodes < 1:
        raise UserError(f"--episodes must be at least 1, not {episodes}")
    config, weights = open_run(path, trust=trust)
    env = make_env(config.env)
    from softdpg.runs.evaluation import Evaluator
    from softdpg.runs.learner import load_learner

    model = load_learner(config, env, weights)
    seeds = [episode_seed(seed, REPLAY, i) for i in range(episodes)]
    evaluator = Evaluator(config.env, min(episodes, 10))
    try:
        returns = [evaluator.returns(model, seeds[i : i + 10]) for i in range(0, episodes, 10)]
    except ValueError as error:
        raise UserError(str(error)) from None
    return np.concatenate(returns)


def open_run(path: Path, *, trust: bool = False) -> tuple[RunConfig, Path]:
    """Settings and weights of a run; ``UserError`` if there are none.

    Making an environment ``module:Id-v0`` imports that module. Settings from a stranger must not choose what code is
    run, so such a run is opened only with ``trust``.
    """
    directory = RunDirectory(path)
    config = RunConfig.from_json(directory.read_config()).resolved()
    if ":" in config.env and not trust:
        raise UserError(f"{directory.path} asks for the module of {config.env!r}, which is imported only with --trust")
    if not directory.model.exists():
        raise UserError(f"{directory.path} has no weights yet; they come with the first checkpoint")
    return config, directory.model
