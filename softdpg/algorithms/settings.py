"""The hyperparameters of the algorithms: type, range and search range of each, in one table.

Defaults and help stand where a user reads them, in the signature and the docstring of each class;
:func:`read_signature` reads them from there without importing JAX. The flags of ``softdpg train``, ``config.json``,
``softdpg tune`` and the checks of the constructors follow from this table. This module imports neither JAX nor torch.
"""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple, get_args, get_origin

import numpy as np


@dataclass(frozen=True)
class Linear:
    """A schedule of the remaining progress (from 1 to 0), as in SB3; ``linear:0.5:0.1`` on the command line.

    :param start: value at the beginning
    :param end: value at the end
    """

    start: float
    end: float

    def __call__(self, progress_remaining: float) -> float:
        """Return the value at this remaining progress."""
        return self.end + (self.start - self.end) * progress_remaining


def parse_schedule(string: str) -> Linear:
    """Parse ``linear:START:END``; raise ``ValueError`` for any other string."""
    kind, *numbers = string.split(":")
    if kind != "linear" or len(numbers) != 2:
        raise ValueError(f"not a schedule: {string!r} (linear:START:END)")
    return Linear(*map(float, numbers))


# Ranges. Each returns what is wrong with a value, as the end of a sentence that begins with its name, or "".

Check = Callable[[Any], str]


def at_least(least: int) -> Check:
    """Accept values from ``least`` on."""
    return lambda value: "" if value >= least else f"must be at least {least}, got {value}"


def between(least: int, most: int) -> Check:
    """Accept values from ``least`` to ``most``."""
    return lambda value: "" if least <= value <= most else f"must be between {least:,} and {most:,}, got {value:,}"


def positive(value: Any) -> str:
    """Accept finite numbers above 0."""
    return "" if 0 < value < float("inf") else f"must be a positive number, got {value}"


def not_negative(value: Any) -> str:
    """Accept finite numbers from 0 on."""
    return "" if 0 <= value < float("inf") else f"must be a finite number of at least 0, got {value}"


def fraction(value: Any) -> str:
    """Accept numbers from 0 to 1."""
    return "" if 0 <= value <= 1 else f"must be between 0 and 1, got {value}"


def below_one(value: Any) -> str:
    """Accept numbers from 0 up to, but not including, 1."""
    return "" if 0 <= value < 1 else f"must be at least 0 and below 1, got {value}"


def units(value: Any) -> str:
    """Accept at least one layer with at least one unit each."""
    return "" if value and min(value) >= 1 else f"must list positive numbers of units, got {value}"


def smoothing_scale(value: Any) -> str:
    """Accept a positive number, ``auto``, or a schedule of positive numbers."""
    if not isinstance(value, str):
        return positive(value)
    if value == "auto":
        return ""
    try:
        schedule = parse_schedule(value)
    except ValueError:
        return f"must be a positive number, auto or linear:START:END, got {value}"
    return positive(schedule.start) or positive(schedule.end)


def exploration_scale(value: Any) -> str:
    """Accept a number from 0 on, or ``sigma``."""
    return not_negative(value) if not isinstance(value, str) else ""


def anything(value: Any) -> str:
    """Accept every value of the type."""
    return ""


@dataclass(frozen=True)
class Range:
    """Where ``softdpg tune`` searches for a value: between two bounds, on a logarithmic scale or not."""

    low: float
    high: float
    log: bool = False


Choices = tuple[Any, ...]
"""Values that ``softdpg tune`` chooses from."""


@dataclass(frozen=True)
class Hyperparameter:
    """One row of the table.

    :param name: name on the command line and in files
    :param type: ``int``, ``float``, ``bool``, ``str``, ``tuple[int, ...]``, a ``Literal`` or a union of these
    :param check: range of a value that has the type
    :param argument: keyword of the class, or ``policy_kwargs.net_arch`` for a part of one; the name unless given
    :param convert: from the value here to what the class takes
    :param flag: on the command line; the name with hyphens unless given
    :param search: where ``softdpg tune`` searches; None for what it leaves alone
    :param description: its help text, unless the docstring of the class has it
    """

    name: str
    type: Any
    check: Check = anything
    argument: str = ""
    convert: Callable[[Any], Any] = lambda value: value
    flag: str = ""
    search: Range | Choices | None = None
    description: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "argument", self.argument or self.name)
        object.__setattr__(self, "flag", self.flag or "--" + self.name.replace("_", "-"))

    @property
    def help(self) -> str:
        """The description of the argument in the first class that has it."""
        if self.description:
            return self.description
        parameter = self.argument.removeprefix("policy_kwargs.")
        texts = (read_signature(target).help.get(parameter, "") for target in _DOCUMENTED)
        found = next(filter(None, texts), "")
        return f"{found[:1].upper()}{found[1:]}." if found else ""

    def wrong(self, value: Any) -> str:
        """Return what is wrong with a value, as for :data:`Check`; empty if nothing is."""
        if not has_type(value, self.type):
            return f"must be {type_name(self.type)}, got {repr(value)[:100]}"
        return self.check(value)


def has_type(value: Any, kind: Any) -> bool:
    """Return whether a value has a hyperparameter's type; integers are floats, booleans are not integers."""
    if get_origin(kind) is Literal:
        return value in get_args(kind) and isinstance(value, str)
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(has_type(item, get_args(kind)[0]) for item in value)
    if get_args(kind):  # a union
        return any(has_type(value, part) for part in get_args(kind))
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def stored_type(kind: Any) -> Any:
    """Return the type without its range: what can be read from a file, whatever this version makes of it."""
    return str if get_origin(kind) is Literal else kind


def type_name(kind: Any) -> str:
    """Return a type in words."""
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        return "a list of numbers"
    if get_args(kind):
        return " or ".join(type_name(part) for part in get_args(kind) if part is not type(None))
    return {int: "an integer", float: "a number", bool: "True or False", str: "a string"}[kind]


_RATES = Range(1e-5, 3e-3, log=True)

HYPERPARAMETERS: dict[str, Hyperparameter] = {
    row.name: row
    for row in (
        Hyperparameter("estimator", Literal["paper", "centered"]),
        Hyperparameter(
            "sigma",
            float | str,
            smoothing_scale,
            convert=lambda value: parse_schedule(value) if isinstance(value, str) and ":" in value else value,
            search=Range(0.05, 0.5, log=True),
        ),
        Hyperparameter("n_samples", int, at_least(1), flag="--samples", search=(4, 8, 16, 32)),
        Hyperparameter("antithetic", bool),
        Hyperparameter("learning_rate", float, not_negative, search=_RATES),
        Hyperparameter("qf_learning_rate", float, not_negative, search=_RATES),
        Hyperparameter(
            "adam_b1",
            float,
            below_one,
            argument="policy_kwargs.optimizer_kwargs",
            convert=lambda b1: {"b1": b1},
            description="Exponential decay rate of Adam's first moment.",
        ),
        Hyperparameter("buffer_size", int, at_least(1)),
        Hyperparameter("learning_starts", int, at_least(0)),
        Hyperparameter("batch_size", int, at_least(1), search=(64, 128, 256, 512)),
        Hyperparameter("tau", float, fraction, search=Range(1e-3, 5e-2, log=True)),
        Hyperparameter("gamma", float, fraction, search=(0.95, 0.98, 0.99, 0.995)),
        Hyperparameter("train_freq", int, at_least(1)),
        Hyperparameter("gradient_steps", int, at_least(1)),
        Hyperparameter(
            "exploration_noise",
            float | Literal["sigma"],
            exploration_scale,
            argument="action_noise",
            search=Range(0.05, 0.5),
        ),
        Hyperparameter(
            "net_arch",
            tuple[int, ...],
            units,
            argument="policy_kwargs.net_arch",
            convert=list,
            search=((64, 64), (256, 256), (400, 300)),
        ),
        Hyperparameter(
            "qf_net_arch",
            tuple[int, ...],
            units,
            argument="policy_kwargs.qf_net_arch",
            convert=list,
            description="Units of each hidden layer of the critics, if they differ from --net-arch.",
        ),
        Hyperparameter(
            "renorm_warmup_steps",
            int,
            at_least(0),
            argument="policy_kwargs.renorm_warmup_steps",
            description="Updates before batch renormalisation replaces batch normalisation.",
        ),
        Hyperparameter("n_critics", int, at_least(1), argument="policy_kwargs.n_critics"),
        Hyperparameter("layer_norm", bool, argument="policy_kwargs.layer_norm"),
        Hyperparameter("batch_norm", bool, argument="policy_kwargs.batch_norm"),
        Hyperparameter("standardize", bool, argument="policy_kwargs.standardize"),
        Hyperparameter("action_layer", Literal["input", "second"], argument="policy_kwargs.action_layer"),
        Hyperparameter("noise_color", float, not_negative, search=(0.0, 1.0)),
        Hyperparameter("random_episodes", float, fraction, search=(0.0, 0.05)),
        Hyperparameter("saturation_penalty", float, not_negative),
        Hyperparameter("policy_delay", int, at_least(1), search=(1, 2)),
        Hyperparameter("target_policy_noise", float, not_negative, search=Range(0.05, 0.5)),
        Hyperparameter("target_noise_clip", float, not_negative),
        Hyperparameter("smooth_target", bool),
        Hyperparameter("actor_gradient", Literal["auto", "exact", "smoothed", "straight-through"]),
        Hyperparameter("critic_reduction", Literal["min", "mean"]),
        Hyperparameter("n_steps", int, at_least(1)),
    )
}


# Signatures and docstrings


class Signature(NamedTuple):
    """What the source of an algorithm's class says.

    :param defaults: default of each argument of the constructor
    :param policy_defaults: of each argument of the policy, where the class sets it
    :param help: description of each argument
    """

    defaults: dict[str, Any]
    policy_defaults: dict[str, Any]
    help: dict[str, str]


# The classes whose docstrings are the help texts; the first that describes an argument counts.
_DOCUMENTED = tuple(
    f"softdpg.algorithms.{target}"
    for target in ("soft_td3:SoftTD3", "soft_ddpg:SoftDDPG", "td3:TD3", "ddpg:DDPG", "policies:DDPGPolicy")
)


@cache
def read_signature(target: str) -> Signature:
    """Read constructor defaults, ``policy_defaults`` and parameter descriptions of a class from its source.

    Parsing the file takes milliseconds where importing the class would load JAX and torch. A default that is not a
    literal counts as None. A class whose source cannot be found has nothing to tell.

    :param target: ``module:Class``
    """
    module, _, name = target.partition(":")
    spec = find_spec(module) if module else None
    source = spec.loader.get_source(module) if spec and hasattr(spec.loader, "get_source") else None  # type: ignore[union-attr]
    classes = (node for node in ast.parse(source or "").body if isinstance(node, ast.ClassDef) and node.name == name)
    found = next(classes, None)
    if found is None:
        return Signature({}, {}, {})
    defaults: dict[str, Any] = {}
    policy_defaults: dict[str, Any] = {}
    for node in found.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            args = node.args
            positional = args.args[len(args.args) - len(args.defaults) :]
            given = [*zip(positional, args.defaults, strict=True), *zip(args.kwonlyargs, args.kw_defaults, strict=True)]
            defaults = {argument.arg: _literal(value) for argument, value in given}
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "policy_defaults":
            policy_defaults = _literal(node.value) or {}
    return Signature(defaults, policy_defaults, _parameters(ast.get_docstring(found) or ""))


def _literal(node: ast.expr | None) -> Any:
    try:
        return None if node is None else ast.literal_eval(node)
    except ValueError:
        return None


def _parameters(docstring: str) -> dict[str, str]:
    """Return the text of each ``:param name:``, without markup."""
    fields = re.findall(r"^:param (\w+): (.*?)(?=^:|^\S|\Z)", docstring, re.MULTILINE | re.DOTALL)
    plain = ((name, re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", text).replace("``", "")) for name, text in fields)
    return {name: " ".join(text.split()) for name, text in plain}


# Checks of constructor arguments, which may also be schedules, NumPy numbers or objects of SB3


def check_argument(name: str, value: Any) -> None:
    """Raise ``ValueError`` if ``value`` is invalid for the argument ``name`` of an algorithm or a policy.

    :param name: name of the argument, which may be one for which the table has another name
    :param value: a value of the table's type, a NumPy number, or for learning rates and sigma a schedule
    """
    hyperparameter = next(
        row for row in HYPERPARAMETERS.values() if row.argument.removeprefix("policy_kwargs.") == name
    )
    if callable(value) and (name == "sigma" or name.endswith("learning_rate")):
        value = value(1.0)
    value = value.item() if isinstance(value, np.generic) else value
    wrong = hyperparameter.wrong(value)
    if wrong:
        raise ValueError(f"{name} {wrong}")


def check_integer(name: str, value: Any, least: int) -> None:
    """Raise ``ValueError`` unless ``value`` is an integer of at least ``least``."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Raise ``ValueError`` unless ``value`` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ``ValueError`` unless ``value`` is one of ``choices``."""
    if value not in choices:
        quoted = [f'"{choice}"' for choice in choices]
        raise ValueError(f"{name} must be {', '.join(quoted[:-1])} or {quoted[-1]}, got {value!r}")
