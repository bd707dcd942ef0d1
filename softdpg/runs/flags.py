"""The flags of ``softdpg train``: one for each setting of a run and for each hyperparameter of any algorithm."""

from collections.abc import Mapping
from dataclasses import MISSING, field, make_dataclass
from inspect import signature
from typing import Annotated, Any, Literal, get_args, get_origin

import tyro

from softdpg.algorithms import registry
from softdpg.algorithms.goals import GoalSelection
from softdpg.algorithms.hyperparameters import HYPERPARAMETERS, Hyperparameter, has_type, type_name
from softdpg.errors import UserError
from softdpg.runs.config import RunConfig, flag
from softdpg.runs.env_kwargs import ENV_KWARGS_METAVAR, EnvKwargs, parse

_SETTINGS: dict[str, tuple[Any, str]] = {
    "env": (
        str,
        "Gymnasium id of an environment with a Box action space, e.g. Ant-v5; of your own: mypackage.envs:MyEnv-v0 or "
        "./my_env.py:MyEnv-v0.",
    ),
    "env_kwargs": (
        tuple[str, ...],
        "Arguments of the environment's constructor, as in width:0.1; values are literals of Python, or bare text.",
    ),
    "steps": (int, "Environment steps of the whole run."),
    "seed": (int, "Seed of weights, exploration, sampling and environments."),
    "evaluate_every": (int, "Steps between two evaluations; the last step is evaluated as well."),
    "evaluation_episodes": (int, "Deterministic episodes of an evaluation."),
    "checkpoint_every": (int, "Steps between two checkpoints."),
    "n_envs": (int, "Environments side by side; each takes a step before an update."),
    "goal": (float | None, "End where two evaluations in a row have a mean of at least this."),
    "after_crossing": (int, "With --goal: go on for so many steps after it was reached."),
    "normalize": (bool, "Normalise observations by their running mean and variance."),
    "her": (bool, "Hindsight replay, for an environment with goals: a Dict observation and compute_reward."),
    "n_sampled_goal": (int, "With --her: transitions with another goal for one with its own."),
    "goal_selection_strategy": (
        GoalSelection,
        "With --her: the other goal is one reached later in the episode, at its end, or anywhere in it.",
    ),
}


def settings_class(defaults: Mapping[str, Any] | None = None) -> Any:
    """A dataclass for tyro, with a field for each flag; its method ``config()`` gives the :class:`RunConfig`.

    :param defaults: values, from a file, that hold where a flag is not given
    """
    given = dict(defaults or {})
    given["env_kwargs"] = tuple(EnvKwargs(given.get("env_kwargs", {})).texts())
    columns: list[tuple[str, Any, Any]] = []
    settings = {**_SETTINGS, "algo": (Literal[tuple(registry.ALGORITHMS)], _algorithms())}
    for name, parameter in signature(RunConfig).parameters.items():
        if name in settings:
            kind, text = settings[name]
            if name in given and not has_type(given[name], kind):
                raise UserError(f"{flag(name)} must be {type_name(kind)}, not {given[name]!r}")
            default = given.get(name, MISSING if parameter.default is parameter.empty else parameter.default)
            metavar = ENV_KWARGS_METAVAR if name == "env_kwargs" else None
            columns.append((name, Annotated[kind, tyro.conf.arg(help=text, metavar=metavar)], field(default=default)))
    columns += [
        (name, Annotated[hyperparameter.type | None, _hyperparameter(hyperparameter)], field(default=given.get(name)))
        for name, hyperparameter in HYPERPARAMETERS.items()
    ]
    return make_dataclass("Settings", columns, namespace={"config": _config, "__doc__": "Settings of the run."})


def _config(settings: Any) -> RunConfig:
    return RunConfig(**(vars(settings) | {"env_kwargs": parse(settings.env_kwargs)}))


def _algorithms() -> str:
    lines = [f"{name}: {entry.summary or entry.label}." for name, entry in registry.ALGORITHMS.items()]
    return " ".join(["The algorithm.", *lines])


def _hyperparameter(hyperparameter: Hyperparameter) -> Any:
    defaults: dict[str, list[str]] = {}
    for entry in registry.ALGORITHMS.values():
        value = entry.hyperparameters.get(hyperparameter.name)
        if value is not None:
            defaults.setdefault(_text(value), []).append(entry.name)
    shown = [f"{value} ({', '.join(names)})" for value, names in defaults.items()]
    default = next(iter(defaults)) if len(defaults) == 1 else ", ".join(shown)
    text = f"{hyperparameter.help} Default: {default}." if defaults else hyperparameter.help
    return tyro.conf.arg(
        name=hyperparameter.flag.removeprefix("--"),
        metavar=_metavar(hyperparameter.type),
        help=text,
        help_behavior_hint="",
    )


def _metavar(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"{{{','.join(get_args(kind))}}}"
    if get_origin(kind) is tuple:
        return "INT [INT ...]"
    if get_args(kind):
        return "|".join(map(_metavar, get_args(kind)))
    return {int: "INT", float: "FLOAT", bool: "{True,False}", str: "TEXT"}[kind]


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
