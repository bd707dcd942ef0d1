"""All settings of one training run: what the command line takes and what ``config.json`` holds."""

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from inspect import signature
from pathlib import Path
from typing import Any

from softdpg import paper
from softdpg.algorithms import registry
from softdpg.algorithms.goals import GOAL_SELECTIONS
from softdpg.algorithms.hyperparameters import HYPERPARAMETERS, at_least, has_type, stored_type, type_name
from softdpg.errors import UserError, near_matches
from softdpg.runs.env_kwargs import EnvKwargs

FORMAT = 2  # of config.json; files of format 1, of version 0.1.0, have no number
# In config.json beside the environment, where the others are one level further down. None where there is no such thing.
_PROMINENT = ("estimator", "sigma", "n_samples")
_LIMIT = 10**15  # of what is counted
_LONGEST_ID = 200  # characters
_INTEGERS = {
    **{"seed": at_least(0), "steps": at_least(1), "evaluate_every": at_least(1)},
    **{"evaluation_episodes": at_least(1), "checkpoint_every": at_least(1), "n_envs": at_least(1)},
    **{"after_crossing": at_least(0), "n_sampled_goal": at_least(1)},
}
_HER_SETTINGS = ("n_sampled_goal", "goal_selection_strategy")
_LATER = ("env_kwargs", "normalize", "her", *_HER_SETTINGS)  # in config.json only where they are used


@dataclass(frozen=True, init=False)
class RunConfig:
    """Settings that decide the result of a run.

    Hyperparameters are given by name, ``RunConfig("Ant-v5", sigma=0.3)``, and read the same way,
    ``config.sigma``; None means the algorithm's own default, which :meth:`resolved` fills in.

    :param env: Gymnasium id of an environment with a Box action space
    :param algo: name of an algorithm in the registry
    :param steps: environment steps of the whole run
    :param seed: of weights, exploration, sampling and environments
    :param evaluate_every: steps between two evaluations; the last step is evaluated as well
    :param evaluation_episodes: deterministic episodes of an evaluation
    :param checkpoint_every: steps between two checkpoints
    :param n_envs: environments side by side; each takes a step before an update
    :param goal: the run ends where two evaluations in a row have a mean of at least this, the crossing
    :param after_crossing: or so many steps later, but at ``steps`` at the latest
    :param env_kwargs: arguments of the environment's constructor
    :param normalize: observations are normalised by their running mean and variance
    :param her: hindsight replay, for environments with goals
    :param n_sampled_goal: with ``her``: transitions with another goal for one with its own
    :param goal_selection_strategy: with ``her``: which goals that were reached take the place of the one that was set
    :param hyperparameters: pairs (name, value), sorted, without those that are None
    """

    env: str
    algo: str
    steps: int
    seed: int
    evaluate_every: int
    evaluation_episodes: int
    checkpoint_every: int
    n_envs: int
    goal: float | None
    after_crossing: int
    env_kwargs: EnvKwargs
    normalize: bool
    her: bool
    n_sampled_goal: int
    goal_selection_strategy: str
    hyperparameters: tuple[tuple[str, Any], ...]

    def __init__(
        self,
        env: str,
        algo: str = registry.DEFAULT,
        steps: int = paper.TOTAL_TIMESTEPS,
        seed: int = 0,
        evaluate_every: int = paper.EVALUATION_EVERY,
        evaluation_episodes: int = paper.EVALUATION_EPISODES,
        checkpoint_every: int = 10_000,
        n_envs: int = 1,
        goal: float | None = None,
        after_crossing: int = 0,
        env_kwargs: Mapping[str, Any] = EnvKwargs(),
        normalize: bool = False,
        her: bool = False,
        n_sampled_goal: int = 4,
        goal_selection_strategy: str = "future",
        hyperparameters: Iterable[tuple[str, Any]] = (),
        **more: Any,
    ) -> None:
        given = {name: value for name, value in {**dict(hyperparameters), **more}.items() if value is not None}
        values = {
            "env": env,
            "algo": algo,
            "steps": steps,
            "seed": seed,
            "evaluate_every": evaluate_every,
            "evaluation_episodes": evaluation_episodes,
            "checkpoint_every": checkpoint_every,
            "n_envs": n_envs,
            "goal": goal,
            "after_crossing": after_crossing,
            "env_kwargs": EnvKwargs(env_kwargs),
            "normalize": normalize,
            "her": her,
            "n_sampled_goal": n_sampled_goal,
            "goal_selection_strategy": goal_selection_strategy,
            "hyperparameters": tuple(sorted((name, _frozen(value)) for name, value in given.items())),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """A hyperparameter; None if it is not given, or the algorithm has none of that name."""
        given = dict(self.__dict__.get("hyperparameters", ()))
        if name not in HYPERPARAMETERS and name not in given:
            raise AttributeError(f"a run has no setting {name!r}")
        return given.get(name)

    @property
    def algorithm(self) -> registry.Algorithm:
        """The entry of the registry; ``UserError`` if there is none."""
        return registry.identify(self.algo, dict(self.hyperparameters))

    def with_hyperparameters(self, changes: Mapping[str, Any]) -> "RunConfig":
        """The same settings with some hyperparameters changed; None takes one out."""
        merged: Any = {**dict(self.hyperparameters), **changes}.items()
        return replace(self, hyperparameters=merged)

    def resolved(self) -> "RunConfig":
        """The same settings with the algorithm's defaults filled in; ``UserError`` for values that cannot be."""
        given, entry = dict(self.hyperparameters), self.algorithm
        for name, value in registry.find(self.algo).preset.items():
            if given.get(name, value) != value:
                raise UserError(f"--algo {self.algo} has {flag(name)} {value}, not {given[name]}")
        for name in given:
            if name not in HYPERPARAMETERS:
                raise UserError(f"no hyperparameter {name!r}{near_matches(name, list(HYPERPARAMETERS))}")
            if name not in entry.hyperparameters:
                raise UserError(f"{flag(name)} applies to --algo {', '.join(registry.having(name))} only")
        usual = dict(entry.hyperparameters)
        if self.her and usual.get("n_steps"):  # rewards of later steps were for another goal
            usual["n_steps"] = 1
        filled = replace(self, algo=entry.base).with_hyperparameters({**usual, **given})
        filled._check()
        return filled

    def _check(self) -> None:
        for name, wrong in self._wrong():
            raise UserError(f"{flag(name)} {wrong}")

    def _wrong(self) -> Iterator[tuple[str, str]]:
        """Settings whose values, of the right type, cannot be, and why."""
        for name, check in _INTEGERS.items():
            value = getattr(self, name)
            wrong = check(value) or (f"must be less than {_LIMIT:,}" if value >= _LIMIT else "")
            if wrong:
                yield name, wrong
        for name, value in self.hyperparameters:
            wrong = HYPERPARAMETERS[name].wrong(value) if name in HYPERPARAMETERS else ""
            if wrong:
                yield name, wrong
        if self.goal is not None and not abs(self.goal) <= sys.float_info.max:
            yield "goal", f"must be a finite number, not {self.goal}"
        if self.after_crossing and self.goal is None:
            yield "after_crossing", "applies with --goal only"
        wrong = self.env_kwargs.wrong()
        if wrong:
            yield "env_kwargs", wrong
        if self.goal_selection_strategy not in GOAL_SELECTIONS:
            yield "goal_selection_strategy", f"must be {' or '.join(GOAL_SELECTIONS)}"
        if self.her and (self.n_steps or 1) > 1:
            yield "her", f"applies with --n-steps 1 only, not {self.n_steps}"
        for name in _HER_SETTINGS:
            if not self.her and getattr(self, name) != _default(name):
                yield name, "applies with --her only"

    def to_json(self) -> dict[str, Any]:
        """The settings as they stand in ``config.json``."""
        given = dict(self.hyperparameters)
        others = [name for name in self._ordered(given) if name not in _PROMINENT]
        # What is at its default, and was not there in the beginning, is left out.
        settings = {
            "format": FORMAT,
            "algo": self.algo,
            "env": self.env,
            "seed": self.seed,
            "steps": self.steps,
            "n_envs": self.n_envs,
            **{name: given.get(name) for name in _PROMINENT},
            "hyperparameters": {name: _plain(given[name]) for name in others},
            "evaluation": {"every": self.evaluate_every, "episodes": self.evaluation_episodes},
            "checkpoint": {"every": self.checkpoint_every},
        }
        if self.goal is not None:
            settings |= {"goal": self.goal, "after_crossing": self.after_crossing}
        later: dict[str, Any] = {"env_kwargs": dict(self.env_kwargs), "normalize": self.normalize, "her": self.her}
        if self.her:
            later |= {name: getattr(self, name) for name in _HER_SETTINGS}
        return settings | {name: value for name, value in later.items() if value}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "RunConfig":
        """The settings in a ``config.json``, of format 1 as well; ``UserError`` if it holds none."""
        version = stored.get("format", 1)
        if version not in (1, FORMAT):
            raise UserError(f"config.json has format {version!r}; this version reads up to {FORMAT}")
        for key in ("hyperparameters", "env_kwargs"):
            if not isinstance(stored.get(key, {}), dict):
                raise UserError(f"config.json: {key} must be an object")
        try:
            config = cls(
                **{name: stored[name] for name in ("algo", "env", "seed", "steps")},
                **{name: stored[name] for name in _PROMINENT},
                hyperparameters=stored["hyperparameters"].items(),
                evaluate_every=stored["evaluation"]["every"],
                evaluation_episodes=stored["evaluation"]["episodes"],
                checkpoint_every=stored["checkpoint"]["every"],
                n_envs=stored.get("n_envs", 1),
                goal=stored.get("goal"),
                after_crossing=stored.get("after_crossing", 0),
                **{name: stored[name] for name in _LATER if name in stored},
            )
        except KeyError as error:
            raise UserError(f"config.json does not hold the settings of a run (config.json has no {error})") from None
        except TypeError as error:
            raise UserError(f"config.json does not hold the settings of a run ({error})") from None
        kinds = {"env": str, "algo": str, **dict.fromkeys(_INTEGERS, int)}
        kinds |= {"normalize": bool, "her": bool, "goal_selection_strategy": str}
        for name, kind in kinds.items():
            if not has_type(getattr(config, name), kind):
                raise UserError(f"config.json: {name} must be {type_name(kind)}, not {getattr(config, name)!r}")
        if not has_type(config.goal, float | None):
            raise UserError(f"config.json: goal must be a number, not {config.goal!r}")
        for name, value in config.hyperparameters:
            if name in HYPERPARAMETERS and not has_type(value, stored_type(HYPERPARAMETERS[name].type)):
                raise UserError(f"config.json: {name} {HYPERPARAMETERS[name].wrong(value)}")
        for name, wrong in config._wrong():
            raise UserError(f"config.json: {name} {wrong}")
        if not config.env.isprintable() or len(config.env) > _LONGEST_ID:
            raise UserError(f"config.json: env must be the id of an environment, not {config.env[:50]!r}")
        return config

    def differences(self, other: "RunConfig") -> list[str]:
        """One phrase for each setting in which two runs differ, naming its flag and both values."""
        mine, others = self.flat(), other.flat()
        return [
            f"{flag(name)} is {mine.get(name)}, not {others.get(name)}"
            for name in self._ordered({**mine, **others})
            if mine.get(name) != others.get(name)
        ]

    def arguments(self) -> list[str]:
        """The command-line arguments of ``softdpg train`` that give these settings."""
        entry = self.algorithm
        usual = {**RunConfig(self.env).flat(), **entry.hyperparameters}
        shown = {name: value for name, value in usual.items() if name != "env" and name not in entry.preset}
        arguments = []
        for name in self._ordered(flat := self.flat()):
            value = flat[name]
            if value == shown.get(name):
                continue
            if isinstance(value, bool) and name not in HYPERPARAMETERS:
                arguments.append(flag(name))  # it is off unless given
            else:
                arguments += [flag(name), *_texts(value)]
        return arguments

    def command(self, out: Path) -> str:
        """The shell command that starts this run in ``out``, or goes on with it."""
        return shlex.join(["softdpg", "train", *self.arguments(), "--out", str(out)])

    def flat(self) -> dict[str, Any]:
        """All settings by name, hyperparameters last."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "hyperparameters"}
        return own | dict(self.hyperparameters)

    @staticmethod
    def _ordered(names: Iterable[str]) -> list[str]:
        """Settings of the run first, then hyperparameters as in their table."""
        order = [*(f.name for f in fields(RunConfig)), *HYPERPARAMETERS]
        return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def flag(name: str) -> str:
    """The flag of a setting on the command line."""
    return HYPERPARAMETERS[name].flag if name in HYPERPARAMETERS else "--" + name.replace("_", "-")


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _default(name: str) -> Any:
    return signature(RunConfig).parameters[name].default


def _texts(value: Any) -> list[str]:
    if isinstance(value, EnvKwargs):
        return value.texts()
    return list(map(str, value if isinstance(value, tuple) else (value,)))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
