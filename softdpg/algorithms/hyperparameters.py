"""The hyperparameters that an algorithm of the registry can take: type, meaning, range, and the argument behind each.

Which of them an algorithm has, and their defaults, stands in its entry; see :mod:`softdpg.algorithms.registry`. The
flags of ``softdpg train``, ``config.json`` and the arguments of the classes follow from this table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from softdpg.algorithms.schedules import parse_schedule

Check = Callable[[Any], str]
"""What is wrong with a value, as the end of a sentence that begins with the hyperparameter's name; empty if nothing."""


def at_least(least: int) -> Check:
    """Values from ``least`` on."""
    return lambda value: "" if value >= least else f"must be at least {least}, not {value}"


def positive(value: Any) -> str:
    """Finite numbers above 0."""
    return "" if 0 < value < float("inf") else f"must be a positive number, not {value}"


def not_negative(value: Any) -> str:
    """Finite numbers from 0 on."""
    return "" if 0 <= value < float("inf") else f"must not be negative, not {value}"


def factor(value: Any) -> str:
    """Finite numbers from 1 on."""
    return "" if 1 <= value < float("inf") else f"must be a finite number from 1 on, not {value}"


def fraction(value: Any) -> str:
    """Numbers from 0 to 1."""
    return "" if 0 <= value <= 1 else f"must be between 0 and 1, not {value}"


def below_one(value: Any) -> str:
    """Numbers from 0 up to 1, without 1."""
    return "" if 0 <= value < 1 else f"must be at least 0 and below 1, not {value}"


def units(value: Any) -> str:
    """At least one layer, and at least one unit in each."""
    return "" if value and min(value) >= 1 else f"takes positive numbers of units, not {value}"


def smoothing_scale(value: Any) -> str:
    """A positive number, ``auto``, or the text of a schedule of positive numbers."""
    if not isinstance(value, str):
        return positive(value)
    if value == "auto":
        return ""
    try:
        schedule = parse_schedule(value)
    except ValueError:
        return f"must be a positive number, auto or linear:START:END, not {value}"
    return positive(schedule.start) or positive(schedule.end)


def exploration_scale(value: Any) -> str:
    """A number from 0 on, or ``sigma``."""
    return not_negative(value) if not isinstance(value, str) else ""


def schedule_or_value(value: Any) -> Any:
    """The schedule that a text means, or the value itself."""
    return parse_schedule(value) if isinstance(value, str) and ":" in value else value


def anything(value: Any) -> str:
    """Every value of the type."""
    return ""


def itself(value: Any) -> Any:
    """The value as it is."""
    return value


@dataclass(frozen=True)
class Range:
    """Where ``softdpg tune`` looks for a value: between two bounds, on a logarithmic scale or not."""

    low: float
    high: float
    log: bool = False


Choices = tuple[Any, ...]
"""Values that ``softdpg tune`` chooses from."""


@dataclass(frozen=True)
class Hyperparameter:
    """One row of the table.

    :param type: ``int``, ``float``, ``bool``, ``str``, ``tuple[int, ...]``, a ``Literal`` or a union of these
    :param help: one sentence for the help of the command line
    :param check: of a value that has the type
    :param convert: from the setting to what the class takes
    :param argument: keyword of the class, ``policy_kwargs.net_arch`` for a part of one; the name unless given
    :param flag: on the command line; the name with hyphens unless given
    :param search: where ``softdpg tune`` looks for it; None for what it leaves alone
    """

    name: str
    type: Any
    help: str
    check: Check = anything
    argument: str = ""
    convert: Callable[[Any], Any] = itself
    flag: str = ""
    search: Range | Choices | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "argument", self.argument or self.name)
        object.__setattr__(self, "flag", self.flag or "--" + self.name.replace("_", "-"))

    def wrong(self, value: Any) -> str:
        """What is wrong with a value, as for :data:`Check`; empty if nothing."""
        if not has_type(value, self.type):
            return f"must be {type_name(self.type)}, not {value!r}"
        return self.check(value)


def has_type(value: Any, kind: Any) -> bool:
    """Whether a value is of a type that a hyperparameter may have; integers are floats, booleans are no integers."""
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
    """The type without its range: what can be read from a file, whatever this version makes of it."""
    return str if get_origin(kind) is Literal else kind


def type_name(kind: Any) -> str:
    """A type in words."""
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        return "a list of numbers"
    if get_args(kind):
        return " or ".join(map(type_name, get_args(kind)))
    return {int: "an integer", float: "a number", bool: "True or False", str: "text"}[kind]


_RATES = Range(1e-5, 3e-3, log=True)
_TAUS = Range(1e-3, 5e-2, log=True)

HYPERPARAMETERS: dict[str, Hyperparameter] = {
    hyperparameter.name: hyperparameter
    for hyperparameter in (
        Hyperparameter(
            "estimator",
            Literal["paper", "centered"],
            "Gradient from smoothed values: paper (Algorithm 1) or centered (unclipped score, baseline).",
        ),
        Hyperparameter(
            "sigma",
            float | str,
            "Scale of the smoothing, in actions scaled to [-1, 1]: a number, auto (learned), or linear:START:END.",
            smoothing_scale,
            convert=schedule_or_value,
            search=Range(0.05, 0.5, log=True),
        ),
        Hyperparameter(
            "n_samples", int, "Number of smoothing samples N.", at_least(1), flag="--samples", search=(4, 8, 16, 32)
        ),
        Hyperparameter("antithetic", bool, "Draw the smoothing noise in pairs (w, -w)."),
        Hyperparameter("learning_rate", float, "Adam's step size for the actor.", positive, search=_RATES),
        Hyperparameter("qf_learning_rate", float, "Adam's step size for the critic.", positive, search=_RATES),
        Hyperparameter(
            "adam_b1",
            float,
            "Decay of Adam's mean of past gradients.",
            below_one,
            argument="policy_kwargs.optimizer_kwargs",
            convert=lambda b1: {"b1": b1},
        ),
        Hyperparameter("buffer_size", int, "Transitions in the replay buffer.", at_least(1)),
        Hyperparameter("learning_starts", int, "Steps with random actions before learning starts.", at_least(0)),
        Hyperparameter("batch_size", int, "Transitions in a minibatch.", at_least(1), search=(64, 128, 256, 512)),
        Hyperparameter("tau", float, "Polyak coefficient of the target networks.", fraction, search=_TAUS),
        Hyperparameter("gamma", float, "Discount factor.", fraction, search=(0.95, 0.98, 0.99, 0.995)),
        Hyperparameter("train_freq", int, "Environment steps between two updates.", at_least(1)),
        Hyperparameter("gradient_steps", int, "Gradient steps in an update.", at_least(1)),
        Hyperparameter(
            "exploration_noise",
            float | Literal["sigma"],
            "Standard deviation of the Gaussian exploration noise, in actions scaled to [-1, 1], or sigma for that of "
            "the smoothing.",
            exploration_scale,
            argument="action_noise",
            search=Range(0.05, 0.5),
        ),
        Hyperparameter(
            "net_arch",
            tuple[int, ...],
            "Hidden units of each layer, actor and critic.",
            units,
            argument="policy_kwargs.net_arch",
            convert=list,
            search=((64, 64), (256, 256), (400, 300)),
        ),
        Hyperparameter("n_critics", int, "Number of critics.", at_least(1), argument="policy_kwargs.n_critics"),
        Hyperparameter(
            "layer_norm", bool, "Layer normalisation in actor and critic.", argument="policy_kwargs.layer_norm"
        ),
        Hyperparameter(
            "actor_layer_norm", bool, "Layer normalisation in the actor.", argument="policy_kwargs.actor_layer_norm"
        ),
        Hyperparameter(
            "standardize",
            bool,
            "The networks see observations less their mean and over their standard deviation.",
            argument="policy_kwargs.standardize",
        ),
        Hyperparameter(
            "embedding",
            bool,
            "The critics also see an embedding of state and action that foretells the next state.",
            argument="policy_kwargs.embedding",
        ),
        Hyperparameter("action_layer", Literal["input", "second"], "Where the action enters the critic."),
        Hyperparameter(
            "noise_color", float, "Color of the exploration noise: 0 white, 1 pink.", not_negative, search=(0.0, 1.0)
        ),
        Hyperparameter(
            "random_episodes",
            float,
            "Share of the episodes that coloured noise drives alone.",
            fraction,
            search=(0.0, 0.05),
        ),
        Hyperparameter(
            "saturation_penalty", float, "Weight of the mean square of what tanh makes actions of.", not_negative
        ),
        Hyperparameter("policy_delay", int, "Updates of the critic for one of the actor.", at_least(1), search=(1, 2)),
        Hyperparameter(
            "target_policy_noise",
            float,
            "Standard deviation of the target action's noise.",
            not_negative,
            search=Range(0.05, 0.5),
        ),
        Hyperparameter("target_noise_clip", float, "Bound of the target action's noise.", not_negative),
        Hyperparameter("smooth_target", bool, "Smooth the Bellman target; False for one noisy target action."),
        Hyperparameter(
            "actor_gradient",
            Literal["smoothed", "exact"],
            "Gradient of the actor: smoothed, or the critic's derivative.",
        ),
        Hyperparameter(
            "minimum",
            Literal["samples", "means", "none"],
            "Least of the critics sample by sample, or of their means; none for the mean of the critics.",
        ),
        Hyperparameter("n_steps", int, "Steps of a return before it bootstraps.", at_least(1)),
    )
}
