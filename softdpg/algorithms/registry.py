"""The algorithms, one entry each. Command line, runs, tables, figures and report follow from it.

Light: classes are named by their import path and loaded when one is made. An algorithm of one's own is one entry too::

    register(Algorithm("my-ddpg", "My DDPG", "mypackage.my_ddpg:MyDDPG", "ours", hyperparameters={"gamma": 0.99}))

The command imports the modules named in the environment variable ``SOFTDPG_PLUGINS`` (separated by commas), and so do
the processes that it starts; a call of :func:`register` in such a module is all that is needed.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, NamedTuple

from softdpg.algorithms.hyperparameters import HYPERPARAMETERS, Hyperparameter
from softdpg.errors import EXTRAS, UserError, near_matches, require_extra


class Style(NamedTuple):
    """Colour (Okabe and Ito's palette first; lighter on dark), the same dashes and marker in matplotlib and plotly."""

    color: str
    dark_color: str
    dash: tuple[float, ...]
    plotly_dash: str
    marker: str
    plotly_marker: str


@dataclass(frozen=True)
class Algorithm:
    """One entry.

    :param name: on the command line and in files: lower case, digits and hyphens
    :param label: in tables and figures
    :param target: ``module:Class`` with the constructor of SB3's off-policy algorithms
    :param origin: ``"paper"`` (the paper has numbers of it), ``"ours"``, or ``"peer"``, another library's
    :param summary: one line for the help of the command line
    :param hyperparameters: the names it takes, each with its default here; None leaves it to the class
    :param variant_of: name of the entry of which this one is a special case; what is not given here is taken from there
    :param preset: the hyperparameters that make the variant: together with ``variant_of`` they identify it
    :param exact_resume: whether a killed run goes on from a checkpoint; one that cannot starts over
    :param style: one of those that are left unless given
    """

    name: str
    label: str
    target: str = ""
    origin: Literal["paper", "ours", "peer"] = "ours"
    summary: str = ""
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    variant_of: str = ""
    preset: Mapping[str, Any] = field(default_factory=dict)
    exact_resume: bool = True
    style: Style | None = None

    @property
    def base(self) -> str:
        """The name under which settings are stored: that of the entry of which this is a variant, or its own."""
        return self.variant_of or self.name

    @property
    def smoothed(self) -> bool:
        """Whether its critic is smoothed by sigma."""
        return "sigma" in self.hyperparameters

    def load(self) -> Any:
        """Import the class."""
        module, _, name = self.target.partition(":")
        if module in EXTRAS["peers"]:
            require_extra("peers", self.name)
        try:
            return getattr(import_module(module), name)
        except ImportError as error:
            raise UserError(f"cannot import {self.target}, the class of {self.name}: {error}") from None


_ENTRIES: dict[str, Algorithm] = {}
_PLUGINS_VARIABLE = "SOFTDPG_PLUGINS"
_SPARE_STYLES = (
    Style("#6A3D9A", "#B79BE0", (6, 1.5, 1, 1.5), "9px,3px,2px,3px", "h", "hexagon"),
    Style("#B15928", "#E0A070", (3, 1), "5px,2px", "P", "cross"),
    Style("#5C5C5C", "#ABABAB", (2, 3), "3px,5px", "d", "diamond-tall"),
)


def register(algorithm: Algorithm, *hyperparameters: Hyperparameter) -> Algorithm:
    """Add an algorithm, and those of its hyperparameters that the table does not have yet. Returns the whole entry."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", algorithm.name):
        raise ValueError(f"name must be lower case letters, digits and hyphens, got {algorithm.name!r}")
    if algorithm.name in _ENTRIES:
        raise ValueError(f"name {algorithm.name!r} is taken")
    table = HYPERPARAMETERS | {hyperparameter.name: hyperparameter for hyperparameter in hyperparameters}
    values = {**algorithm.hyperparameters, **algorithm.preset}
    target, resumes = algorithm.target, algorithm.exact_resume
    if algorithm.variant_of:
        base = _ENTRIES[algorithm.variant_of]
        values, target, resumes = {**base.hyperparameters, **values}, target or base.target, base.exact_resume
    for name, value in values.items():
        if name not in table:
            raise ValueError(f"hyperparameters: {name!r} is not in the table; pass a Hyperparameter to register")
        wrong = "" if value is None else table[name].wrong(value)
        if wrong:
            raise ValueError(f"hyperparameters: {name} {wrong}")
    style = algorithm.style or _SPARE_STYLES[len(_ENTRIES) % len(_SPARE_STYLES)]
    changes = {"target": target, "hyperparameters": values, "exact_resume": resumes, "style": style}
    entry = Algorithm(**{**vars(algorithm), **changes})
    HYPERPARAMETERS.update(table)
    _ENTRIES[entry.name] = entry
    return entry


def unregister(name: str) -> None:
    """Take an algorithm out again."""
    del _ENTRIES[name]


class _Registry(Mapping[str, Algorithm]):
    """The entries by name, in the order of tables and figures; those of plugins last."""

    def __getitem__(self, name: str) -> Algorithm:
        _load_plugins()
        return _ENTRIES[name]

    def __iter__(self) -> Iterator[str]:
        _load_plugins()
        return iter(tuple(_ENTRIES))

    def __len__(self) -> int:
        _load_plugins()
        return len(_ENTRIES)


ALGORITHMS = _Registry()
_loaded: set[str] = set()


def _load_plugins() -> None:
    for module in filter(None, os.environ.get(_PLUGINS_VARIABLE, "").split(",")):
        if module not in _loaded:
            _loaded.add(module)  # first: the module itself may look at the registry
            try:
                import_module(module)
            except ImportError as error:
                raise UserError(f"{_PLUGINS_VARIABLE}: cannot import {module!r}: {error}") from None


def find(name: str) -> Algorithm:
    """The entry of that name; ``UserError`` if there is none."""
    if name not in ALGORITHMS:
        known = list(ALGORITHMS)
        more = f"{_PLUGINS_VARIABLE} names the modules that add others"
        raise UserError(f"no algorithm {name!r}{near_matches(name, known)} (algorithms: {', '.join(known)}; {more})")
    return ALGORITHMS[name]


def identify(name: str, hyperparameters: Mapping[str, Any]) -> Algorithm:
    """The entry meant by a name and hyperparameters: itself, or the variant whose preset they contain."""
    named = find(name)
    values = {**named.preset, **{key: value for key, value in hyperparameters.items() if value is not None}}
    variants = [entry for entry in ALGORITHMS.values() if entry.variant_of == named.base]
    fitting = [entry for entry in variants if entry.preset.items() <= values.items()]
    return max(fitting, key=lambda entry: len(entry.preset), default=ALGORITHMS[named.base])


def having(hyperparameter: str) -> list[str]:
    """Names of the algorithms that have a hyperparameter, variants left out."""
    return [e.name for e in ALGORITHMS.values() if hyperparameter in e.hyperparameters and not e.variant_of]


# The paper's settings where it states them; the rest are choices of ours.
_DDPG = {
    "learning_rate": 1e-4,
    "qf_learning_rate": 1e-4,
    "buffer_size": 1_000_000,
    "learning_starts": 1_000,
    "batch_size": 256,
    "tau": 0.005,
    "gamma": 0.99,
    "train_freq": 1,
    "gradient_steps": 1,
    "exploration_noise": 0.1,
    "net_arch": (400, 300),
    "action_layer": "second",
}
_TD3 = _DDPG | {
    "learning_rate": 1e-3,
    "qf_learning_rate": 1e-3,
    "action_layer": "input",
    "n_critics": 2,
    "layer_norm": False,
    "policy_delay": 2,
    "target_policy_noise": 0.2,
    "target_noise_clip": 0.5,
    "n_steps": 1,
}
# What an update costs: Soft TD3 has small networks and batches, and several updates in one call.
_SMALL = {"net_arch": (128, 128), "batch_size": 128, "train_freq": 8, "gradient_steps": 8}
# What can be set of other libraries' algorithms; unless it is, they have their own defaults.
_PEER = dict.fromkeys(
    (
        *("learning_rate", "buffer_size", "learning_starts", "batch_size", "tau", "gamma", "train_freq"),
        *("gradient_steps", "net_arch"),
    )
)
_PEER_TD3 = _PEER | dict.fromkeys(("exploration_noise", "policy_delay", "target_policy_noise", "target_noise_clip"))

DEFAULT = "soft-ddpg"  # of ``softdpg train``
RECOMMENDED = "soft-td3"  # for a task of one's own; the default of ``softdpg tune``

for _entry in (
    Algorithm(
        "ddpg",
        "DDPG",
        "softdpg.algorithms.ddpg:DDPG",
        "paper",
        "Deep Deterministic Policy Gradient, the paper's baseline",
        _DDPG,
        style=Style("#0072B2", "#56B4E9", (4, 1.5), "7px,3px", "s", "square"),
    ),
    Algorithm(
        "soft-ddpg",
        "Soft DDPG",
        "softdpg.algorithms.soft_ddpg:SoftDDPG",
        "paper",
        "Algorithm 1 of the paper",
        {"estimator": "paper", "sigma": 0.2, "n_samples": 50, "antithetic": False} | _DDPG,
        style=Style("#D55E00", "#FF9447", (), "solid", "o", "circle"),
    ),
    Algorithm(
        "soft-ddpg-centered",
        "Soft DDPG, centered (ours)",
        summary="Soft DDPG with the centered estimator",
        hyperparameters={"antithetic": True},
        variant_of="soft-ddpg",
        preset={"estimator": "centered"},
        style=Style("#009E73", "#3FD6A8", (1, 1.2), "2px,2px", "D", "diamond"),
    ),
    Algorithm(
        "td3",
        "TD3",
        "softdpg.algorithms.td3:TD3",
        "ours",
        "Twin Delayed DDPG on our update",
        _TD3,
        style=Style("#332288", "#8F85DB", (2, 2), "3px,3px", "X", "x"),
    ),
    Algorithm(
        "td3-small",
        "Small TD3",
        summary="TD3 with the sizes of Soft TD3 and nothing else of it: what does a cheap step carry alone?",
        variant_of="td3",
        preset=_SMALL,
        style=Style("#44AA99", "#7FD4C6", (4, 1, 1, 1, 1, 1), "7px,2px,2px,2px,2px,2px", "d", "diamond-tall"),
    ),
    Algorithm(
        "soft-td3",
        "Soft TD3 (ours)",
        "softdpg.algorithms.soft_td3:SoftTD3",
        "ours",
        "smoothed target on two normalised critics: the one to use",
        {"estimator": "centered", "sigma": 0.2, "n_samples": 4, "antithetic": True}
        | _TD3
        | _SMALL
        | {"action_layer": "second", "layer_norm": True, "actor_layer_norm": True}
        | {"standardize": True, "embedding": False}
        | {"smooth_target": True, "actor_gradient": "exact", "minimum": "none"}
        | {"exploration_noise": 0.2, "noise_color": 1.0, "random_episodes": 0.05}
        | {"n_steps": 3, "adam_b1": 0.5, "learning_starts": 5_000, "saturation_penalty": 1e-3},
        style=Style("#AA3377", "#E58BB8", (), "solid", "*", "star"),
    ),
    Algorithm(
        "ocpg",
        "oCPG",
        summary="Saglam and Kalogerias (2024): TD3 with a two-point action gradient and an unsmoothed target",
        hyperparameters={**_TD3, "noise_color": 0.0, "actor_layer_norm": False, "standardize": False, "adam_b1": 0.9}
        | {"saturation_penalty": 0.0, "minimum": "samples"},
        variant_of="soft-td3",
        preset={"smooth_target": False, "target_policy_noise": 0.0, "actor_gradient": "smoothed", "n_samples": 2},
        style=Style("#661100", "#C98A7A", (2, 1, 1, 1), "4px,2px,2px,2px", "h", "hexagon"),
    ),
    Algorithm(
        "sbx-sac",
        "SAC (SBX)",
        "sbx:SAC",
        "peer",
        "SBX's Soft Actor-Critic with its own defaults",
        _PEER | dict.fromkeys(("qf_learning_rate", "policy_delay")),
        exact_resume=False,
        style=Style("#3B3B3B", "#D0D0D0", (5, 1, 1, 1), "8px,2px,2px,2px", "^", "triangle-up"),
    ),
    Algorithm(
        "sbx-sac-small",
        "Small SAC (SBX)",
        origin="peer",
        summary="SBX's SAC with the sizes of Soft TD3 and its own defaults otherwise",
        variant_of="sbx-sac",
        preset=_SMALL,
        style=Style("#777777", "#9A9A9A", (3, 2), "5px,3px", "8", "octagon"),
    ),
    Algorithm(
        "sbx-td3",
        "TD3 (SBX)",
        "sbx:TD3",
        "peer",
        "SBX's TD3 with its own defaults",
        _PEER_TD3 | {"qf_learning_rate": None},
        exact_resume=False,
        style=Style("#E69F00", "#F2C45A", (2, 1), "4px,2px", "v", "triangle-down"),
    ),
    Algorithm(
        "sbx-crossq",
        "CrossQ (SBX)",
        "sbx:CrossQ",
        "peer",
        "SBX's CrossQ with its own defaults",
        {key: value for key, value in _PEER.items() if key != "tau"} | {"qf_learning_rate": None, "policy_delay": None},
        exact_resume=False,
        style=Style("#882255", "#D77FA8", (7, 2), "11px,4px", "p", "pentagon"),
    ),
    Algorithm(
        "sb3-sac",
        "SAC (SB3)",
        "stable_baselines3:SAC",
        "peer",
        "Stable-Baselines3's Soft Actor-Critic with its own defaults",
        _PEER,
        exact_resume=False,
        style=Style("#999933", "#CFCF6B", (1, 2), "2px,4px", "<", "triangle-left"),
    ),
    Algorithm(
        "sb3-td3",
        "TD3 (SB3)",
        "stable_baselines3:TD3",
        "peer",
        "Stable-Baselines3's TD3 with its own defaults",
        _PEER_TD3,
        exact_resume=False,
        style=Style("#117733", "#63C084", (3, 1, 1, 1, 1, 1), "5px,2px,2px,2px,2px,2px", ">", "triangle-right"),
    ),
):
    register(_entry)
