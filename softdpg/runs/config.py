"""All settings of one training run: what the command line takes and what ``config.json`` holds."""

import shlex
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from softdpg import paper
from softdpg.errors import UserError


def _hyperparameter(default: Any) -> Any:
    return field(default=default, metadata={"group": "hyperparameters"})


@dataclass(frozen=True)
class RunConfig:
    """Settings that decide the result of a run. The defaults are the paper's, where it states them."""

    env: str
    """Gymnasium id of an environment with a Box action space, e.g. softdpg/AntDiscrete-v0 or Ant-v5."""
    algo: Literal["ddpg", "soft-ddpg"] = "soft-ddpg"
    """The algorithm."""
    steps: int = paper.TOTAL_TIMESTEPS
    """Environment steps of the whole run."""
    seed: int = 0
    """Seed of weights, exploration, sampling and environments."""
    estimator: Annotated[Literal["paper", "centered"] | None, tyro.conf.arg(metavar="{paper,centered}")] = None
    """Soft DDPG's actor gradient: paper (Algorithm 1, the default) or centered (unclipped score, baseline)."""
    sigma: Annotated[float | None, tyro.conf.arg(metavar="FLOAT")] = None
    """Soft DDPG's smoothing, in actions scaled to [-1, 1]. 0.2 unless given."""
    n_samples: Annotated[int | None, tyro.conf.arg(name="samples", metavar="INT")] = None
    """Soft DDPG's number of smoothing samples N. 50 unless given."""
    antithetic: Annotated[bool | None, tyro.conf.arg(metavar="{True,False}")] = _hyperparameter(None)
    """Draw Soft DDPG's noise in pairs (w, -w). Unless given: only with the centered estimator."""
    learning_rate: float = _hyperparameter(paper.HYPERPARAMETERS["learning_rate"])
    """Adam's step size for the actor."""
    qf_learning_rate: float = _hyperparameter(paper.HYPERPARAMETERS["qf_learning_rate"])
    """Adam's step size for the critic."""
    buffer_size: int = _hyperparameter(paper.HYPERPARAMETERS["buffer_size"])
    """Transitions in the replay buffer."""
    learning_starts: int = _hyperparameter(1_000)
    """Steps with uniformly random actions before learning starts."""
    batch_size: int = _hyperparameter(paper.HYPERPARAMETERS["batch_size"])
    """Transitions in a minibatch."""
    tau: float = _hyperparameter(paper.HYPERPARAMETERS["tau"])
    """Polyak coefficient of the target networks."""
    gamma: float = _hyperparameter(paper.HYPERPARAMETERS["gamma"])
    """Discount factor."""
    train_freq: int = _hyperparameter(1)
    """Environment steps between two updates."""
    gradient_steps: int = _hyperparameter(1)
    """Gradient steps in an update."""
    exploration_noise: float = _hyperparameter(0.1)
    """Standard deviation of the Gaussian exploration noise, in actions scaled to [-1, 1]."""
    net_arch: tuple[int, ...] = _hyperparameter(paper.HYPERPARAMETERS["net_arch"])
    """Hidden units of each layer, actor and critic."""
    action_layer: Literal["input", "second"] = _hyperparameter("second")
    """Where the action enters the critic."""
    evaluate_every: int = paper.EVALUATION_EVERY
    """Steps between two evaluations; the last step is evaluated as well."""
    evaluation_episodes: int = paper.EVALUATION_EPISODES
    """Deterministic episodes of an evaluation."""
    checkpoint_every: int = 10_000
    """Steps between two checkpoints; each is taken at the first episode end after that."""

    def resolved(self) -> "RunConfig":
        """The same settings with Soft DDPG's defaults filled in; ``UserError`` for values that cannot be."""
        soft = {"estimator": "paper", "sigma": paper.SIGMA, "n_samples": paper.N_SAMPLES}
        soft |= {"antithetic": self.estimator == "centered"}
        given = [_flag(name) for name in soft if getattr(self, name) is not None]
        if self.algo == "ddpg" and given:
            raise UserError(f"{given[0]} applies to --algo soft-ddpg only")
        filled = self
        if self.algo == "soft-ddpg":
            filled = replace(self, **{k: v for k, v in soft.items() if getattr(self, k) is None})  # type: ignore[arg-type]
        filled._check()
        return filled

    def _check(self) -> None:
        at_least = {"seed": 0, "learning_starts": 0, "gradient_steps": 1, "train_freq": 1, "batch_size": 1}
        at_least |= {"steps": 1, "buffer_size": 1, "evaluate_every": 1, "evaluation_episodes": 1, "checkpoint_every": 1}
        for name, least in at_least.items():
            if getattr(self, name) < least:
                raise UserError(f"{_flag(name)} must be at least {least}, not {getattr(self, name)}")
        if self.n_samples is not None and self.n_samples < 1:
            raise UserError(f"--samples must be at least 1, not {self.n_samples}")
        for name in ("sigma", "learning_rate", "qf_learning_rate"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise UserError(f"{_flag(name)} must be a positive number, not {value}")
        for name in ("tau", "gamma"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{_flag(name)} must be between 0 and 1, not {getattr(self, name)}")
        if not 0 <= self.exploration_noise < float("inf"):
            raise UserError(f"--exploration-noise must not be negative, not {self.exploration_noise}")
        if not self.net_arch or min(self.net_arch) < 1:
            raise UserError(f"--net-arch takes positive numbers of units, not {self.net_arch}")

    def to_json(self) -> dict[str, Any]:
        """The settings as they stand in ``config.json``."""
        return {
            **{
                name: getattr(self, name)
                for name in ("algo", "estimator", "env", "seed", "steps", "sigma", "n_samples")
            },
            "hyperparameters": {name: _plain(getattr(self, name)) for name in _HYPERPARAMETERS},
            "evaluation": {"every": self.evaluate_every, "episodes": self.evaluation_episodes},
            "checkpoint": {"every": self.checkpoint_every},
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "RunConfig":
        """The settings in a ``config.json``; ``UserError`` if it is none."""
        try:
            flat = {name: stored[name] for name in ("algo", "estimator", "env", "seed", "steps", "sigma", "n_samples")}
            hyperparameters = dict(stored["hyperparameters"])
            hyperparameters["net_arch"] = tuple(hyperparameters["net_arch"])
            return cls(
                **flat,
                **hyperparameters,
                evaluate_every=stored["evaluation"]["every"],
                evaluation_episodes=stored["evaluation"]["episodes"],
                checkpoint_every=stored["checkpoint"]["every"],
            )
        except (KeyError, TypeError) as error:
            raise UserError(f"config.json does not hold the settings of a run ({error})") from None

    def differences(self, other: "RunConfig") -> list[str]:
        """One phrase for each setting in which two runs differ, naming its flag and both values."""
        return [
            f"{_flag(f.name)} is {getattr(self, f.name)}, not {getattr(other, f.name)}"
            for f in fields(self)
            if getattr(self, f.name) != getattr(other, f.name)
        ]

    def arguments(self) -> list[str]:
        """The command-line arguments of ``softdpg train`` that give these settings."""
        defaults = RunConfig(self.env)
        arguments = ["--env", self.env]
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name != "env" and value is not None and value != getattr(defaults, f.name):
                values = value if isinstance(value, tuple) else (value,)
                arguments += [_flag(f.name), *map(str, values)]
        return arguments

    def command(self, out: Path) -> str:
        """The shell command that starts this run in ``out``, or goes on with it."""
        return shlex.join(["softdpg", "train", *self.arguments(), "--out", str(out)])


_HYPERPARAMETERS = [f.name for f in fields(RunConfig) if f.metadata.get("group") == "hyperparameters"]


def _flag(name: str) -> str:
    return "--samples" if name == "n_samples" else "--" + name.replace("_", "-")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
