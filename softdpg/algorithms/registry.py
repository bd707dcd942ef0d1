"""The algorithms by name, one entry each; command line, runs, tables, figures and report follow from the entries.

A class is named by its import path and imported when a model is made, so that this module stays light. To add an
algorithm of your own, call :func:`register` in a module of yours and name that module in the environment variable
``SOFTDPG_PLUGINS`` (separate several with commas)::

    register(Algorithm("my-ddpg", "My DDPG", "mypackage.my_ddpg:MyDDPG"))
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

from softdpg.algorithms.settings import HYPERPARAMETERS, Hyperparameter, read_signature
from softdpg.errors import EXTRAS, UserError, near_matches, one_line, require_extra


@dataclass(frozen=True)
class Algorithm:
    """One entry.

    :param name: name on the command line and in files: lower case letters, digits and hyphens
    :param label: name in tables and figures
    :param target: ``module:Class`` with the constructor of SB3's off-policy algorithms
    :param origin: ``"paper"`` (the paper reports scores of it), ``"softdpg"``, or ``"peer"`` (another library)
    :param summary: one line for the help of the command line
    :param hyperparameters: defaults by name, where they differ from those in the signature of the class; None leaves
        the default to the class
    :param variant_of: name of the entry of which this one is a special case, and whose fields it inherits
    :param preset: the hyperparameters that make the variant; together with ``variant_of`` they identify it
    :param exact_resume: whether an interrupted run resumes from a checkpoint; otherwise it starts over
    :param action_spaces: kinds of action spaces that it takes, by the names of Gymnasium's classes; empty for ``Box``,
        and for all of them if it has ``n_samples``
    :param relaxed: whether it sees every action space as a Box: see :class:`~softdpg.wrappers.Relax`
    """

    name: str
    label: str
    target: str = ""
    origin: Literal["paper", "softdpg", "peer"] = "softdpg"
    summary: str = ""
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    variant_of: str = ""
    preset: Mapping[str, Any] = field(default_factory=dict)
    exact_resume: bool = True
    action_spaces: tuple[str, ...] = ()
    relaxed: bool = False

    @property
    def base(self) -> str:
        """The name under which runs are stored: that of the entry of which this is a variant, or its own."""
        return self.variant_of or self.name

    @property
    def smoothed(self) -> bool:
        """Whether it has a smoothing scale sigma."""
        return "sigma" in self.hyperparameters

    def acts_in(self, kind: str) -> bool:
        """Whether it takes an action space of this kind, the name of one of Gymnasium's classes."""
        if self.action_spaces:
            return kind in self.action_spaces
        return self.relaxed or kind == "Box" or "n_samples" in self.hyperparameters

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


def register(algorithm: Algorithm, *hyperparameters: Hyperparameter) -> Algorithm:
    """Add an algorithm and return its completed entry.

    The hyperparameters are the arguments of the class that are in the table, with the defaults of its signature and
    of its ``policy_defaults``; those in the entry replace them.

    :param algorithm: the entry
    :param hyperparameters: hyperparameters of the class that the table does not have yet
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", algorithm.name):
        raise ValueError(f"name must be lower case letters, digits and hyphens, got {algorithm.name!r}")
    if algorithm.name in _ENTRIES:
        raise ValueError(f"name {algorithm.name!r} is taken")
    table = HYPERPARAMETERS | {hyperparameter.name: hyperparameter for hyperparameter in hyperparameters}
    values = {**algorithm.hyperparameters, **algorithm.preset}
    changes: dict[str, Any] = {}
    if algorithm.variant_of:
        base = _ENTRIES[algorithm.variant_of]
        values = {**base.hyperparameters, **values}
        changes = {name: getattr(base, name) for name in ("exact_resume", "action_spaces", "relaxed")}
        changes["target"] = algorithm.target or base.target
    elif algorithm.origin != "peer":  # the peers' signatures are their own
        values = {**_defaults(algorithm.target, table), **values}
    for name, value in values.items():
        if name not in table:
            raise ValueError(f"hyperparameters: {name!r} is not in the table; pass a Hyperparameter to register")
        wrong = "" if value is None else table[name].wrong(value)
        if wrong:
            raise ValueError(f"hyperparameters: {name} {wrong}")
    entry = Algorithm(**{**vars(algorithm), **changes, "hyperparameters": values})
    HYPERPARAMETERS.update(table)
    _ENTRIES[entry.name] = entry
    return entry


def unregister(name: str) -> None:
    """Remove an algorithm."""
    del _ENTRIES[name]


def _defaults(target: str, table: Mapping[str, Hyperparameter]) -> dict[str, Any]:
    """Return the default of each hyperparameter that a class has, as its source states it."""
    signature = read_signature(target)
    policy = {f"policy_kwargs.{name}": value for name, value in signature.policy_defaults.items()}
    arguments = {**signature.defaults, **policy}
    found = {name: arguments[row.argument] for name, row in table.items() if row.argument in arguments}
    if "adam_b1" in found:  # one entry of optimizer_kwargs
        found["adam_b1"] = found["adam_b1"]["b1"]
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


class _Registry(Mapping[str, Algorithm]):
    """The entries by name in the order of tables and figures, those of plugins last."""

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
            _loaded.add(module)  # first, because the module itself may read the registry
            try:
                import_module(module)
            except (Exception, SystemExit) as error:  # from the module's own code
                _loaded.discard(module)
                kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
                raise UserError(f"{_PLUGINS_VARIABLE}: cannot import {module!r}: {kind}{one_line(error)}") from None


def find(name: str) -> Algorithm:
    """Return the entry of that name; raise ``UserError`` if there is none."""
    if name not in ALGORITHMS:
        known = list(ALGORITHMS)
        more = f"modules named in {_PLUGINS_VARIABLE} add others"
        raise UserError(f"no algorithm {name!r}{near_matches(name, known)} (algorithms: {', '.join(known)}; {more})")
    return ALGORITHMS[name]


def identify(name: str, hyperparameters: Mapping[str, Any]) -> Algorithm:
    """Return the entry of a name and hyperparameters: itself, or the variant whose preset they contain."""
    named = find(name)
    values = {**named.preset, **{key: value for key, value in hyperparameters.items() if value is not None}}
    variants = [entry for entry in ALGORITHMS.values() if entry.variant_of == named.base]
    fitting = [entry for entry in variants if entry.preset.items() <= values.items()]
    return max(fitting, key=lambda entry: len(entry.preset), default=ALGORITHMS[named.base])


def having(hyperparameter: str) -> list[str]:
    """Return the names of the algorithms that have a hyperparameter, without variants."""
    return [e.name for e in ALGORITHMS.values() if hyperparameter in e.hyperparameters and not e.variant_of]


# Sizes that make an update cheap: those of Soft TD3.
_SMALL = {"net_arch": (128, 128), "batch_size": 128, "train_freq": 8, "gradient_steps": 8}
# Hyperparameters of other libraries' algorithms; None leaves the default to the library.
_PEER = dict.fromkeys(
    (
        *("learning_rate", "buffer_size", "learning_starts", "batch_size", "tau", "gamma", "train_freq"),
        *("gradient_steps", "net_arch"),
    )
)
_PEER_TD3 = _PEER | dict.fromkeys(("exploration_noise", "policy_delay", "target_policy_noise", "target_noise_clip"))

DEFAULT = "soft-td3"  # of ``softdpg train`` and ``softdpg tune``

for _entry in (
    Algorithm(
        "ddpg",
        "DDPG",
        "softdpg.algorithms.ddpg:DDPG",
        "paper",
        "Deep Deterministic Policy Gradient, the paper's baseline",
    ),
    Algorithm(
        "soft-ddpg",
        "Soft DDPG (centered)",
        "softdpg.algorithms.soft_ddpg:SoftDDPG",
        summary="Soft DDPG with the centered estimator, the default of the class",
        hyperparameters={"antithetic": True},
    ),
    Algorithm(
        "soft-ddpg-paper",
        "Soft DDPG (paper)",
        origin="paper",
        summary="Soft DDPG with the paper's estimator: Algorithm 1 to the letter",
        hyperparameters={"antithetic": False},
        variant_of="soft-ddpg",
        preset={"estimator": "paper"},
    ),
    Algorithm(
        "td3",
        "TD3",
        "softdpg.algorithms.td3:TD3",
        summary="Twin Delayed DDPG",
    ),
    Algorithm(
        "td3-small",
        "Small TD3",
        summary="TD3 with the network and batch sizes of Soft TD3",
        variant_of="td3",
        preset=_SMALL,
    ),
    Algorithm(
        "soft-td3",
        "Soft TD3",
        "softdpg.algorithms.soft_td3:SoftTD3",
        summary="smoothed target on two normalised critics; recommended",
    ),
    Algorithm(
        "ocpg",
        "oCPG",
        summary="Saglam and Kalogerias (2024): TD3 with a two-point action gradient and an unsmoothed target",
        hyperparameters={"net_arch": (400, 300), "action_layer": "input", "layer_norm": False, "standardize": False}
        | {"learning_starts": 1_000, "batch_size": 256, "train_freq": 1, "gradient_steps": 1, "n_steps": 1}
        | {"exploration_noise": 0.1, "noise_color": 0.0, "random_episodes": 0.0, "adam_b1": 0.9}
        | {"saturation_penalty": 0.0, "critic_reduction": "min"},
        variant_of="soft-td3",
        preset={"smooth_target": False, "actor_gradient": "smoothed", "n_samples": 2},
    ),
    Algorithm(
        "sbx-sac",
        "SAC (SBX)",
        "sbx:SAC",
        "peer",
        "SBX's Soft Actor-Critic with its own defaults",
        _PEER | dict.fromkeys(("qf_learning_rate", "policy_delay")),
        exact_resume=False,
    ),
    Algorithm(
        "sbx-sac-small",
        "Small SAC (SBX)",
        origin="peer",
        summary="SBX's SAC with the network and batch sizes of Soft TD3",
        variant_of="sbx-sac",
        preset=_SMALL,
    ),
    Algorithm(
        "sbx-td3",
        "TD3 (SBX)",
        "sbx:TD3",
        "peer",
        "SBX's TD3 with its own defaults",
        _PEER_TD3 | {"qf_learning_rate": None},
        exact_resume=False,
    ),
    Algorithm(
        "sbx-crossq",
        "CrossQ (SBX)",
        "sbx:CrossQ",
        "peer",
        "SBX's CrossQ with its own defaults",
        {key: value for key, value in _PEER.items() if key != "tau"}
        | dict.fromkeys(("qf_learning_rate", "policy_delay", "qf_net_arch", "renorm_warmup_steps")),
        exact_resume=False,
    ),
    Algorithm(
        "sbx-crossq-small",
        "Small CrossQ (SBX)",
        origin="peer",
        summary="SBX's CrossQ with the actor and batch size of Soft TD3 and critics of 256 x 256",
        variant_of="sbx-crossq",
        preset=_SMALL | {"qf_net_arch": (256, 256), "renorm_warmup_steps": 20_000, "learning_starts": 5_000},
    ),
    Algorithm(
        "sb3-sac",
        "SAC (SB3)",
        "stable_baselines3:SAC",
        "peer",
        "Stable-Baselines3's Soft Actor-Critic with its own defaults",
        _PEER,
        exact_resume=False,
    ),
    Algorithm(
        "sb3-td3",
        "TD3 (SB3)",
        "stable_baselines3:TD3",
        "peer",
        "Stable-Baselines3's TD3 with its own defaults",
        _PEER_TD3,
        exact_resume=False,
    ),
    Algorithm(
        "sb3-dqn",
        "DQN (SB3)",
        "stable_baselines3:DQN",
        "peer",
        "Stable-Baselines3's DQN with its own defaults",
        _PEER | {"train_freq": 4},  # as it is there; the last rollout is done to its end
        exact_resume=False,
        action_spaces=("Discrete",),
    ),
    Algorithm(
        "qr-dqn",
        "QR-DQN (SB3-contrib)",
        "sb3_contrib:QRDQN",
        "peer",
        "SB3-contrib's QR-DQN with its own defaults",
        _PEER | {"train_freq": 4},  # as it is there; the last rollout is done to its end
        exact_resume=False,
        action_spaces=("Discrete",),
    ),
    Algorithm(
        "sb3-ppo",
        "PPO (SB3)",
        "stable_baselines3:PPO",
        "peer",
        "Stable-Baselines3's PPO with its own defaults",
        dict.fromkeys(("learning_rate", "batch_size", "gamma", "net_arch")),
        exact_resume=False,
        action_spaces=("Box", "Discrete", "MultiDiscrete", "MultiBinary"),
    ),
    Algorithm(
        "sbx-sac-relaxed",
        "Relaxed SAC (SBX)",
        "sbx:SAC",
        "peer",
        "SBX's SAC with its own defaults on a thresholded Box",
        _PEER | dict.fromkeys(("qf_learning_rate", "policy_delay")),
        exact_resume=False,
        relaxed=True,
    ),
    Algorithm(
        "td3-relaxed",
        "Relaxed TD3",
        "softdpg.algorithms.td3:TD3",
        summary="TD3 on a thresholded Box",
        relaxed=True,
    ),
):
    register(_entry)
