"""What ``softdpg tune`` searches: the hyperparameters that have an effect, and the values of each."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gymnasium import spaces

from softdpg.algorithms.settings import HYPERPARAMETERS, Range
from softdpg.errors import UserError, near_matches
from softdpg.runs.config import RunConfig, flag

if TYPE_CHECKING:
    import optuna


def searched(base: RunConfig, params: Sequence[str] | None, actions: spaces.Space | None = None) -> list[str]:
    """Return the names of the hyperparameters to search.

    :param base: settings of the trials
    :param params: names or flags; by default all hyperparameters of the algorithm that have a range and an effect
    :param actions: the action space of the environment
    """
    own = [name for name in base.algorithm.hyperparameters if HYPERPARAMETERS[name].search is not None]
    useless = without_effect(base, actions)
    if params is None:
        return [name for name in own if name not in useless]
    by_flag = {flag(name).removeprefix("--"): name for name in own}
    names = []
    for given in params:
        name = by_flag.get(given.removeprefix("--").replace("_", "-"), given)
        if name not in own:
            known = ", ".join(by_flag)
            raise UserError(
                f"--params: {base.algo} has no {given!r} with a range{near_matches(given, list(by_flag))} ({known})"
            )
        if name in useless:
            raise UserError(f"--params: {given} has no effect {useless[name]}")
        names.append(name)
    return list(dict.fromkeys(names))


def without_effect(base: RunConfig, actions: spaces.Space | None) -> dict[str, str]:
    """Return the hyperparameters without an effect, and why, as the end of a sentence.

    :param base: settings of the trials
    :param actions: the action space of the environment
    """
    config, found = base.resolved(), {}
    if config.batch_norm:
        found["tau"] = "with --batch-norm, which has no target networks"
    numbers = actions is None or any(isinstance(part, spaces.Box) for part in _leaves(actions))
    if not numbers:
        reason = "on discrete actions, which have a scale of their own"
        found |= {"sigma": reason, "exploration_noise": reason}
    elif config.smooth_target is False and (
        config.actor_gradient == "exact" or (config.actor_gradient == "auto" and isinstance(actions, spaces.Box))
    ):
        reason = "with --smooth-target False and the exact gradient, which do not smooth"
        found |= {"sigma": reason, "n_samples": reason}
    return {name: why for name, why in found.items() if not (name == "sigma" and config.exploration_noise == "sigma")}


def _leaves(space: spaces.Space) -> list[spaces.Space]:
    if isinstance(space, spaces.Tuple | spaces.Dict):
        parts = space.values() if isinstance(space, spaces.Dict) else space
        return [leaf for part in parts for leaf in _leaves(part)]
    return [space]


def distribution(base: RunConfig, name: str) -> Any:
    """Return where to search for a hyperparameter, as Optuna describes it; the default is always in it.

    :param base: settings of the trials
    :param name: of the hyperparameter
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    space, default = HYPERPARAMETERS[name].search, _default(base, name)
    if isinstance(space, Range):
        low, high = (space.low, space.high) if default is None else (min(space.low, default), max(space.high, default))
        return FloatDistribution(low, high, log=space.log)
    choices = list(space or ())
    # Optuna stores numbers, strings and Booleans.
    return CategoricalDistribution(
        [_stored(value) for value in (choices if default is None or default in choices else [default, *choices])]
    )


def _default(base: RunConfig, name: str) -> Any:
    """Return a default that the search can represent: not a schedule or ``auto``, nor the own one of a peer."""
    value, space = getattr(base.resolved(), name), HYPERPARAMETERS[name].search
    if isinstance(space, Range) and (not isinstance(value, int | float) or (space.log and value <= 0)):
        return None
    return value


def defaults(base: RunConfig, names: Sequence[str]) -> dict[str, Any]:
    """Return the values of trial 0, as Optuna stores them.

    :param base: settings of the trials
    :param names: the hyperparameters to search
    """
    values = {name: _default(base, name) for name in names}
    return {name: _stored(value) for name, value in values.items() if value is not None}


def suggest(trial: "optuna.Trial", base: RunConfig, names: Sequence[str]) -> None:
    """Choose the values of a trial. Trial 0 has the defaults: what they do not have is not chosen.

    :param trial: Optuna's trial
    :param base: settings of the trials
    :param names: the hyperparameters to search
    """
    for name in names:
        space = distribution(base, name)
        if trial.number == 0 and name not in defaults(base, names):
            continue
        if name == "random_episodes" and trial.params.get("noise_color") == 0:
            continue  # they need coloured noise
        if hasattr(space, "choices"):
            trial.suggest_categorical(name, space.choices)
        else:
            trial.suggest_float(name, space.low, space.high, log=space.log)


def _stored(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, tuple) else value


def value_of(stored: Any) -> Any:
    """Return the value of a hyperparameter from what Optuna stores."""
    is_tuple = isinstance(stored, str) and stored.startswith("[")
    return tuple(json.loads(stored)) if is_tuple else stored
