"""``softdpg eval``: a trained policy evaluated anew, from weights that are numbers and nothing else."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from softdpg.errors import UserError
from softdpg.runs.config import RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.env_kwargs import EnvKwargs
from softdpg.runs.environments import REPLAY, episode_seed, make_env
from softdpg.runs.modules import names_a_module


def evaluate_run(
    path: Path,
    *,
    episodes: int = 100,
    seed: int = 0,
    env_id: str | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> np.ndarray:
    """Returns ``(episodes,)`` of deterministic episodes of the run's policy, unfinished runs included.

    For ``env_id``, ``env_kwargs`` and ``trust`` see :func:`open_run`.
    """
    if episodes < 1:
        raise UserError(f"--episodes must be at least 1, not {episodes}")
    config, weights = open_run(path, env_id=env_id, env_kwargs=env_kwargs, trust=trust)
    env = make_env(config.env, config.env_kwargs)
    from softdpg.runs.evaluation import Evaluator
    from softdpg.runs.learner import load_learner
    from softdpg.runs.normalization import player

    policy = player(load_learner(config, env, weights))
    seeds = [episode_seed(seed, REPLAY, i) for i in range(episodes)]
    evaluator = Evaluator(config.env, min(episodes, 10), config.env_kwargs)
    try:
        returns = [evaluator.returns(policy, seeds[i : i + 10]) for i in range(0, episodes, 10)]
    except ValueError as error:
        raise UserError(str(error)) from None
    return np.concatenate(returns)


def open_run(
    path: Path, *, env_id: str | None = None, env_kwargs: Mapping[str, Any] | None = None, trust: bool = False
) -> tuple[RunConfig, Path]:
    """Settings and weights of a run; ``UserError`` if there are none.

    Making an environment ``module:Id-v0`` imports that module, and a text among an environment's arguments may name a
    file or anything else. Settings from a stranger must not choose what code is run or which files are read, so such a
    run is opened only with ``trust``, or with ``env_id`` and ``env_kwargs`` of the user's own in place of the run's.
    """
    directory = RunDirectory(path)
    config = RunConfig.from_json(directory.read_config()).resolved()
    if env_id is not None:
        config = replace(config, env=env_id)
    elif names_a_module(config.env) and not trust:
        raise UserError(f"{directory.path} asks for the module of {config.env!r}, which is imported only with --trust")
    if env_kwargs is not None:
        config = replace(config, env_kwargs=EnvKwargs(env_kwargs))
    elif config.env_kwargs.holds_text() and not trust:
        raise UserError(
            f"{directory.path} has texts among the arguments of its environment ({str(config.env_kwargs)[:200]!r}), "
            "which are used only with --trust, or given with --env-kwargs"
        )
    if not directory.model.exists():
        raise UserError(f"{directory.path} has no weights yet; they come with the first checkpoint")
    return config, directory.model
