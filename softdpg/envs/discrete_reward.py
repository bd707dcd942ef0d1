"""The wrapper that replaces a base environment's reward by that of a rule."""

import dataclasses
import inspect
from typing import Any, ClassVar, Generic, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.wrappers import OrderEnforcing

from softdpg.envs.rules import Rule
from softdpg.envs.rules.base import check_flag
from softdpg.errors import MissingExtraError

RuleT = TypeVar("RuleT", bound=Rule)


def reject_unknown(name: str, unknown: set[str], accepted: dict[str, set[str]]) -> None:
    """Raise ``ValueError`` for unknown keyword arguments, and list the accepted ones by their owner."""
    if unknown:
        lists = "; ".join(f"{owner}: {', '.join(sorted(names))}" for owner, names in accepted.items())
        raise ValueError(f"{name} got an unknown argument {', '.join(map(repr, sorted(unknown)))}. Accepted: {lists}")


def constructor_arguments(env_class: type) -> set[str]:
    """Return the keyword arguments that a Gymnasium environment class accepts.

    Arguments taken by ``**kwargs`` are those of the next class. Users cannot set what a MuJoCo environment itself
    passes on to ``MujocoEnv``.
    """
    names: set[str] = set()
    for cls in env_class.__mro__:
        if "__init__" not in vars(cls):
            continue
        parameters = list(inspect.signature(vars(cls)["__init__"]).parameters.values())[1:]
        names.update(p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
        if all(p.kind != p.VAR_KEYWORD for p in parameters):
            break
    return names - {"model_path", "observation_space"}


class _BaseMetadata:
    """``metadata`` of the base environment, on the class (where ``gymnasium.make`` looks for render modes) and off."""

    def __get__(self, env: "DiscreteReward[Any] | None", owner: "type[DiscreteReward[Any]]") -> dict[str, Any]:
        return owner.base_class().metadata if env is None else env.env.metadata


class DiscreteReward(OrderEnforcing, Generic[RuleT]):
    """A base environment with its reward replaced by that of a rule.

    Subclasses name the base environment and the rule, and summarise the rule in one line. Their ``start_rule`` and
    ``apply_rule`` pass physical quantities to the rule. The wrapper takes the place of Gymnasium's
    ``OrderEnforcing``, whose check it inherits, instead of adding a layer to each step.

    Args:
        observe_progress: append the rule's memory to the observation, each entry scaled to [-1, 1], so that the task is
            Markov.
        kwargs: the rule's arguments, and those of the base environment.
    """

    base_id: ClassVar[str]
    rule_class: ClassVar[type[Rule]]
    summary: ClassVar[str]
    ceiling_note: ClassVar[str] = ""
    metadata = _BaseMetadata()
    rule: RuleT

    def __init__(self, *, observe_progress: bool = False, **kwargs: Any):
        rule_names = {field.name for field in dataclasses.fields(self.rule_class) if field.init}
        base_names = constructor_arguments(self.base_class())
        reject_unknown(
            type(self).__name__,
            set(kwargs) - rule_names - base_names,
            {"its reward rule": rule_names | {"observe_progress"}, self.base_id: base_names},
        )
        self.rule = self.rule_class(**{name: value for name, value in kwargs.items() if name in rule_names})  # type: ignore[assignment]
        base_kwargs = {name: value for name, value in kwargs.items() if name not in rule_names}
        super().__init__(self.base_class()(**(gym.spec(self.base_id).kwargs | base_kwargs)))
        self._observe_progress = check_flag("observe_progress", observe_progress) and bool(self.rule.progress_names())
        if self._observe_progress:
            self.observation_space = self._extended_space()

    @classmethod
    def base_class(cls) -> type[gym.Env]:
        """Return the class of the base environment, importing its simulator."""
        try:
            return load_env_creator(str(gym.spec(cls.base_id).entry_point))  # type: ignore[return-value]
        except gym.error.DependencyNotInstalled:
            # The modules of the environments have the names of the extras.
            raise MissingExtraError(cls.__module__.rsplit(".", 1)[-1], cls.__name__) from None

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override]
        """The specification of the registered id: its arguments alone rebuild base, rule and wrapper."""
        return self.env.spec

    def start_rule(self, info: dict[str, Any]) -> None:
        """Start the rule's episode, given the ``info`` of the base environment's reset."""
        self.rule.reset()  # type: ignore[attr-defined]

    def apply_rule(self, observation: np.ndarray, terminated: bool, info: dict[str, Any]) -> float:
        """Pass the physical quantities of the step to the rule, return its reward and add its state to ``info``."""
        raise NotImplementedError

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Reset the base environment, then the rule."""
        observation, info = super().reset(seed=seed, options=options)
        self.start_rule(info)
        if self._observe_progress:
            observation = self._extended(observation)
        return observation, info

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Step the base environment and score the step by the rule."""
        if not self._has_reset:
            raise gym.error.ResetNeeded("Cannot call env.step() before calling env.reset()")
        observation, dense_reward, terminated, truncated, info = self.env.step(action)
        info["dense_reward"] = dense_reward
        reward = self.apply_rule(observation, terminated, info)
        if self._observe_progress:
            observation = self._extended(observation)
        return observation, reward, terminated, truncated, info

    def _extended(self, observation: np.ndarray) -> np.ndarray:
        return np.concatenate((observation, np.array(self.rule.progress(), dtype=observation.dtype)))

    def _extended_space(self) -> gym.spaces.Box:
        base = self.env.observation_space
        assert isinstance(base, gym.spaces.Box)
        ones = np.ones(len(self.rule.progress_names()), dtype=base.dtype)
        low, high = np.concatenate((base.low, -ones)), np.concatenate((base.high, ones))
        return gym.spaces.Box(low, high, dtype=base.dtype.type)
