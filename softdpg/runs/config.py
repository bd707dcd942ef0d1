"""The settings of one training run: what the command line takes and what ``config.json`` holds."""

import ast
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from softdpg import paper
from softdpg.algorithms import registry
from softdpg.algorithms.settings import HYPERPARAMETERS, at_least, between, has_type, stored_type, type_name
from softdpg.errors import UserError, near_matches
from softdpg.replay import GoalSelection
from softdpg.runs.files import FileError, parse_value

FORMAT = 3  # of config.json
ENV_KWARGS_METAVAR = "KEY:VALUE [KEY:VALUE ...]"  # in the help of the command line
_LARGEST = 10**15  # limit of every integer
_LONGEST_ID = 1_000  # characters
_MOST_ENVS = 1_000  # each is an object in memory
POLICIES = ("MlpPolicy", "CnnPolicy")
_LATER = ("env_wrapper", "policy")  # settings that a config.json of this format may lack
_HER_SETTINGS = ("n_sampled_goal", "goal_selection_strategy")


class EnvKwargs(dict[str, Any]):
    """Arguments of an environment's constructor, as values of JSON. Immutable by convention, so that it has a hash."""

    def __init__(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__({str(name): _with_lists(value) for name, value in dict(values).items()})

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self))

    def __str__(self) -> str:
        return " ".join(self.strings()) or "not given"

    def strings(self) -> list[str]:
        """Format each argument as ``KEY:VALUE``, the form that :func:`parse_env_kwargs` reads."""
        return [f"{name}:{_format_literal(value)}" for name, value in self.items()]

    def wrong(self) -> str:
        """Return what is wrong, as the end of a sentence that begins with their name; empty if nothing is."""
        for name, value in self.items():
            if not name.isidentifier():
                return f"must have Python identifiers as names, got {name[:50]!r}"
            if name in _RESERVED_KWARGS:
                return f"cannot have {name}: {_RESERVED_KWARGS[name]}"
            wrong = _wrong_in_json({"env_kwargs": {name: value}})
            if wrong:
                return f"{name} {wrong}"
        size = len(json.dumps(self))
        return "" if size <= _LONGEST_KWARGS else f"must have at most {_LONGEST_KWARGS:,} characters, got {size:,}"

    def has_strings(self) -> bool:
        """Whether any value is a string, which may name a file, a module or anything else."""
        return any(map(_has_strings, self.values()))


def parse_env_kwargs(strings: Iterable[str]) -> EnvKwargs:
    """Parse arguments of the form ``KEY:VALUE`` or ``KEY=VALUE``; raise ``UserError`` for any other.

    Values are Python literals; nothing is evaluated. A value that is no literal is a string, unless it begins with a
    bracket or a quote.
    """
    values: dict[str, Any] = {}
    for string in strings:
        match = _KEY_VALUE.fullmatch(string)
        if match is None:
            raise UserError(f"--env-kwargs takes KEY:VALUE, got {string!r}")
        name, value = match.groups()
        if name in values:
            raise UserError(f"--env-kwargs has {name} twice")
        values[name] = _parse_literal(name, value.strip())
    found = EnvKwargs(values)
    wrong = found.wrong()
    if wrong:
        raise UserError(f"--env-kwargs {wrong}")
    return found


_KEY_VALUE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)[:=](.*)", re.S)
_OPENS_A_LITERAL = ("(", "[", "{", "'", '"')  # a value that begins with one of these is not a bare string
_NO_LITERAL = (ValueError, SyntaxError, MemoryError, RecursionError)
_RESERVED_KWARGS = {"render_mode": "softdpg watch sets it", "id": "use --env"}
_DEEPEST = 20  # levels of tuples in a value
_LONGEST_KWARGS = 100_000  # characters in config.json


def _parse_literal(name: str, string: str) -> Any:
    try:
        return ast.literal_eval(string)
    except _NO_LITERAL:
        if string.startswith(_OPENS_A_LITERAL):
            raise UserError(f"--env-kwargs {name}: {string!r} is not a Python literal") from None
        return string


def _format_literal(value: Any) -> str:
    """Return the shortest string that :func:`_parse_literal` reads back as ``value``."""
    if isinstance(value, str) and value == value.strip() and not value.startswith(_OPENS_A_LITERAL):
        try:
            ast.literal_eval(value)
        except _NO_LITERAL:
            return value
    return repr(value)


def _with_lists(value: Any, depth: int = 0) -> Any:
    """Replace tuples by lists, as JSON has them."""
    if depth > _DEEPEST:
        return value
    if isinstance(value, list | tuple):
        return [_with_lists(item, depth + 1) for item in value]
    return {key: _with_lists(item, depth + 1) for key, item in value.items()} if isinstance(value, dict) else value


def _wrong_in_json(value: Any) -> str:
    """Return why a file of JSON would not give a value back, as the end of a sentence; empty if it would."""
    try:
        if parse_value(json.dumps(value)) == value:
            return ""
    except FileError as error:
        return str(error)
    except (TypeError, ValueError, RecursionError):
        pass
    return "must be finite numbers, strings, True, False, None, lists or dictionaries of these"


def _has_strings(value: Any) -> bool:
    if isinstance(value, list | dict):
        return any(map(_has_strings, [*value, *value.values()] if isinstance(value, dict) else value))
    return isinstance(value, str)


def _setting(help: str, default: Any = None, check: Callable[[Any], str] | None = None) -> Any:
    """Declare a setting: the help of its flag, its default, and a check of values that have its type."""
    return field(default=default, metadata={"help": help, "check": check})


@dataclass(frozen=True, init=False)
class RunConfig:
    """Settings that decide the result of a run, each with its type, default, range and help.

    Hyperparameters of the algorithm are given by name, ``RunConfig("Ant-v5", sigma=0.3)``, and read the same way,
    ``config.sigma``. None stands for the algorithm's default, which :meth:`resolved` fills in.

    :param env: Gymnasium id of the environment
    :param settings: further settings by position, in the order of the fields below
    :param named: further settings, and hyperparameters, by name
    """

    env: str = field(
        metadata={
            "help": "Gymnasium id of an environment, e.g. Ant-v5. Your own environments: "
            "mypackage.envs:MyEnv-v0 or ./my_env.py:MyEnv-v0."
        }
    )
    algo: str = _setting("The algorithm.", registry.DEFAULT)
    steps: int = _setting("Environment steps of the whole run.", paper.TOTAL_TIMESTEPS, at_least(1))
    seed: int = _setting("Seed of weights, exploration, sampling and environments.", 0, at_least(0))
    evaluate_every: int = _setting(
        "Steps between two evaluations; the last step is evaluated too.", paper.EVALUATION_EVERY, at_least(1)
    )
    evaluation_episodes: int = _setting(
        "Deterministic episodes per evaluation.", paper.EVALUATION_EPISODES, between(1, _MOST_ENVS)
    )
    checkpoint_every: int = _setting("Steps between two checkpoints.", 10_000, at_least(1))
    n_envs: int = _setting(
        "Number of parallel environments; each takes a step before an update.", 1, between(1, _MOST_ENVS)
    )
    stop_at_score: float | None = _setting("Stop when two evaluations in a row have a mean of at least this score.")
    steps_after_score: int = _setting("With --stop-at-score: train for this many steps more.", 0, at_least(0))
    env_kwargs: EnvKwargs = _setting(  # noqa: RUF009 (it returns a field)
        "Arguments of the environment's constructor, e.g. width:0.1. Values are Python literals or bare strings.",
        EnvKwargs(),
    )
    normalize: bool = _setting("Normalise observations by their running mean and variance.", False)
    her: bool = _setting(
        "Use hindsight experience replay. The environment needs a Dict observation with goals and compute_reward.",
        False,
    )
    n_sampled_goal: int = _setting("With --her: relabelled transitions per original transition.", 4, at_least(1))
    goal_selection_strategy: GoalSelection = _setting(  # noqa: RUF009
        "With --her: take the new goal from later in the episode, from its end, or from anywhere in it.", "future"
    )
    env_wrapper: str | None = _setting(
        "A wrapper around the environment, mypackage.wrappers:MyWrapper or ./my_wrapper.py:MyWrapper: a class or "
        "function that takes the environment. With --her it must pass compute_reward on."
    )
    policy: str | None = _setting(
        "MlpPolicy or CnnPolicy. Default: CnnPolicy for images of at least 36 x 36 pixels. Dict observations always "
        "have MultiInputPolicy.",
        check=lambda value: "" if value in (None, *POLICIES) else f"must be {' or '.join(POLICIES)}, got {value}",
    )
    hyperparameters: tuple[tuple[str, Any], ...] = ()  # pairs (name, value), sorted, without those that are None

    def __init__(self, env: str, *settings: Any, **named: Any) -> None:
        positional = dict(zip(SETTINGS, (env, *settings), strict=False))
        if len(settings) >= len(SETTINGS) or positional.keys() & named.keys():
            raise TypeError("a setting of RunConfig is given twice")
        given = positional | named
        values = {name: given.pop(name, setting.default) for name, setting in SETTINGS.items()}
        hyperparameters = {**dict(given.pop("hyperparameters", ())), **given}
        values["env_kwargs"] = EnvKwargs(values["env_kwargs"])
        values["hyperparameters"] = tuple(
            sorted((name, _frozen(value)) for name, value in hyperparameters.items() if value is not None)
        )
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Return a hyperparameter; None if it is not given, or the algorithm has none of that name."""
        given = dict(self.__dict__.get("hyperparameters", ()))
        if name not in HYPERPARAMETERS and name not in given:
            raise AttributeError(f"a run has no setting {name!r}")
        return given.get(name)

    @property
    def algorithm(self) -> registry.Algorithm:
        """The entry of the registry; raises ``UserError`` if there is none."""
        return registry.identify(self.algo, dict(self.hyperparameters))

    def with_hyperparameters(self, changes: Mapping[str, Any]) -> "RunConfig":
        """Return the same settings with some hyperparameters changed; None removes one."""
        merged: Any = {**dict(self.hyperparameters), **changes}.items()
        return replace(self, hyperparameters=merged)

    def resolved(self) -> "RunConfig":
        """Return the same settings with the algorithm's defaults filled in; raise ``UserError`` for invalid values."""
        given, entry = dict(self.hyperparameters), self.algorithm
        for name, value in registry.find(self.algo).preset.items():
            if given.get(name, value) != value:
                raise UserError(f"--algo {self.algo} has {flag(name)} {value}, not {given[name]}")
        for name in given:
            if name not in HYPERPARAMETERS:
                raise UserError(f"no hyperparameter {name!r}{near_matches(name, list(HYPERPARAMETERS))}")
            if name not in entry.hyperparameters:
                raise UserError(f"{flag(name)} applies to --algo {', '.join(registry.having(name))} only")
        defaults = dict(entry.hyperparameters)
        if self.her and defaults.get("n_steps"):  # the rewards of later steps were computed for another goal
            defaults["n_steps"] = 1
        values = {**defaults, **given}
        if "qf_learning_rate" in values and values["qf_learning_rate"] is None:  # as in the classes
            values["qf_learning_rate"] = values["learning_rate"]
        filled = replace(self, algo=entry.base).with_hyperparameters(values)
        for name, wrong in filled._invalid():
            raise UserError(f"{flag(name)} {wrong}")
        return filled

    def _invalid(self) -> Iterator[tuple[str, str]]:
        """Yield the settings of the right type with an invalid value, and what is wrong with it."""
        for name, setting in SETTINGS.items():
            value, check = getattr(self, name), setting.metadata.get("check")
            too_large = f"must be less than {_LARGEST:,}" if type(value) is int and value >= _LARGEST else ""
            wrong = (check(value) if check else "") or too_large
            if wrong:
                yield name, wrong
        for name, value in self.hyperparameters:
            wrong = HYPERPARAMETERS[name].wrong(value) if name in HYPERPARAMETERS else ""
            if wrong:
                yield name, wrong
        if not self.env.isprintable() or len(self.env) > _LONGEST_ID:
            yield "env", f"must be the id of an environment, got {self.env[:50]!r}"
        if self.stop_at_score is not None and not abs(self.stop_at_score) <= sys.float_info.max:
            yield "stop_at_score", f"must be a finite number, got {self.stop_at_score}"
        if self.steps_after_score and self.stop_at_score is None:
            yield "steps_after_score", "applies with --stop-at-score only"
        wrong = self.env_kwargs.wrong()
        if wrong:
            yield "env_kwargs", wrong
        if not has_type(self.goal_selection_strategy, GoalSelection):
            yield "goal_selection_strategy", f"must be {type_name(GoalSelection)}"
        if self.her and (self.n_steps or 1) > 1:
            yield "her", f"applies with --n-steps 1 only, not {self.n_steps}"
        wrapper = self.env_wrapper
        if wrapper is not None and not (
            re.fullmatch(r"[^:]+:[A-Za-z_]\w*", wrapper) and wrapper.isprintable() and len(wrapper) <= _LONGEST_ID
        ):
            yield "env_wrapper", f"must be module:Class or file.py:Class, got {wrapper[:50]!r}"
        for name in _HER_SETTINGS:
            if not self.her and getattr(self, name) != SETTINGS[name].default:
                yield name, "applies with --her only"

    def to_json(self) -> dict[str, Any]:
        """Return the settings as ``config.json`` holds them."""
        hyperparameters = {name: value for name, value in self.flat().items() if name not in SETTINGS}
        settings = {name: getattr(self, name) for name in SETTINGS}
        return {"format": FORMAT, **settings, "hyperparameters": hyperparameters}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "RunConfig":
        """Read the settings in a ``config.json``; raise ``UserError`` if it does not hold valid ones."""
        if stored.get("format") != FORMAT:
            raise UserError(f"config.json has format {stored.get('format')!r}; this version of softdpg reads {FORMAT}")
        for key in (*SETTINGS, "hyperparameters"):
            if key not in stored and key not in _LATER:
                raise UserError(f"config.json does not hold the settings of a run: it has no {key!r}")
        stored = {**dict.fromkeys(_LATER), **stored}
        for key in ("hyperparameters", "env_kwargs"):
            if not isinstance(stored[key], dict):
                raise UserError(f"config.json: {key} must be an object")
        for name, setting in SETTINGS.items():
            wrong = wrong_type(stored[name], stored_type(setting.type)) if name != "env_kwargs" else ""
            if wrong:
                raise UserError(f"config.json: {name} {wrong}")
        values: dict[str, Any] = {name: stored[name] for name in (*SETTINGS, "hyperparameters")}
        config = cls(**values)
        for name, value in config.hyperparameters:
            if name in HYPERPARAMETERS and not has_type(value, stored_type(HYPERPARAMETERS[name].type)):
                raise UserError(f"config.json: {name} {HYPERPARAMETERS[name].wrong(value)}")
        try:
            hash(config)
        except TypeError:
            raise UserError("config.json: hyperparameters must be numbers, strings or lists of these") from None
        for name, wrong in config._invalid():
            raise UserError(f"config.json: {name} {wrong}")
        return config

    def differences(self, other: "RunConfig") -> list[str]:
        """Return one phrase for each setting in which two runs differ, with its flag and both values."""
        mine, others = self.flat(), other.flat()
        return [
            f"{flag(name)} is {mine.get(name)}, not {others.get(name)}"
            for name in _ordered({**mine, **others})
            if mine.get(name) != others.get(name)
        ]

    def arguments(self) -> list[str]:
        """Return the command-line arguments of ``softdpg train`` that give these settings."""
        entry, settings = self.algorithm, self.flat()
        defaults = {**RunConfig(self.env).flat(), **entry.hyperparameters}
        implied = {name: value for name, value in defaults.items() if name != "env" and name not in entry.preset}
        arguments = []
        for name, value in settings.items():
            if value == implied.get(name):
                continue
            if isinstance(value, bool) and name not in HYPERPARAMETERS:
                arguments.append(flag(name))  # a switch, which is off unless given
            else:
                arguments += [flag(name), *_strings(value)]
        return arguments

    @property
    def modules(self) -> list[str]:
        """The modules that are imported for the run: their names, or the paths of their files."""
        return [name.rpartition(":")[0] for name in (self.env, self.env_wrapper or "") if ":" in name]

    @property
    def env_name(self) -> str:
        """The environment's id without its module, as it can stand in the name of a directory."""
        name = self.env.rpartition(":")[2].removeprefix("softdpg/")
        return re.sub(r"[^A-Za-z0-9._-]", "-", name).strip(".-") or "env"

    def default_out(self) -> Path:
        """Return the run directory of ``softdpg train`` without ``--out``."""
        return Path("runs", self.env_name, self.algorithm.name, f"seed-{self.seed}")

    def command(self, out: Path) -> str:
        """Return the shell command that starts or resumes this run in ``out``."""
        return shlex.join(["softdpg", "train", *self.arguments(), "--out", str(out)])

    def flat(self) -> dict[str, Any]:
        """Return all settings by name: those of the run, then the hyperparameters, each in the order of its table."""
        own, given = {name: getattr(self, name) for name in SETTINGS}, dict(self.hyperparameters)
        return own | {name: given[name] for name in _ordered(given)}


SETTINGS = {setting.name: setting for setting in fields(RunConfig) if setting.name != "hyperparameters"}
"""The fields of :class:`RunConfig` that are settings of every run, by name."""


def flag(name: str) -> str:
    """Return the flag of a setting on the command line."""
    return HYPERPARAMETERS[name].flag if name in HYPERPARAMETERS else "--" + name.replace("_", "-")


def wrong_type(value: Any, kind: Any) -> str:
    """Return what is wrong with the type of a value, as the end of a sentence; empty if nothing is."""
    if has_type(value, kind):
        return ""
    return f"must be {type_name(float if kind == float | None else kind)}, got {repr(value)[:100]}"


def _ordered(names: Iterable[str]) -> list[str]:
    order = [*SETTINGS, *HYPERPARAMETERS]
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _strings(value: Any) -> list[str]:
    if isinstance(value, EnvKwargs):
        return value.strings()
    return list(map(str, value if isinstance(value, tuple) else (value,)))
