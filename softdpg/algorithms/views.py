"""The networks of a policy as SB3 shows them: callable, with ``state_dict`` and ``parameters``, and as text."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import torch as th

from softdpg.algorithms.parameters import ParameterArray, Parameters, to_flat

if TYPE_CHECKING:
    from softdpg.algorithms.policies import DDPGPolicy


class NetworkView:
    """One network with its current weights, as SB3 shows it; other attributes are those of the flax module.

    :param policy: the policy that has the network
    :param name: ``actor``, ``actor_target``, ``critic`` or ``critic_target``
    :param module: its flax module
    """

    def __init__(self, policy: "DDPGPolicy", name: str, module: Any) -> None:
        self.policy, self.name, self.module = policy, name, module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "module" not in self.__dict__:  # asked for while a copy is being made
            raise AttributeError(name)
        return getattr(self.module, name)

    def __call__(self, observations: Any) -> Any:
        """Return actions ``(batch, m)`` scaled to [-1, 1] for a batch of observations."""
        return self.module.apply(self.params, self.policy.prepare_obs(_arrays(observations))[0])

    @property
    def params(self) -> Any:
        """The current weights, as flax takes them."""
        state = self.policy.actor_state if self.name.startswith("actor") else self.policy.qf_state
        return state.target_params if self.name.endswith("target") else state.params

    def state_dict(self) -> Parameters:
        """Return the weights by name, those of a features extractor first, as in SB3."""
        prefix = f"{self.name}."
        weights = {key.removeprefix(prefix): w for key, w in self.policy.state_dict().items() if key.startswith(prefix)}
        return dict(sorted(weights.items(), key=lambda item: not item[0].startswith("features_extractor.")))

    def named_parameters(self) -> Iterator[tuple[str, ParameterArray]]:
        """Return names and weights."""
        return iter(self.state_dict().items())

    def parameters(self) -> Iterator[ParameterArray]:
        """Return the weights."""
        return iter(self.state_dict().values())


class ActorView(NetworkView):
    """The actor, which can predict and be saved without the critics."""

    @property
    def predict(self) -> Callable[..., Any]:
        """The policy's ``predict``, which uses this network."""
        return self.policy.predict

    def save(self, path: str | Path) -> None:
        """Save the policy's settings and the weights of the actor for :meth:`load`."""
        weights = {f"{self.name}.{key}": weight for key, weight in self.state_dict().items()}
        data = self.policy._get_constructor_parameters()
        th.save({"policy_class": type(self.policy), "data": data, "state_dict": weights}, path)

    @classmethod
    def load(cls, path: str | Path, device: th.device | str = "auto") -> "ActorView":
        """Load an actor that :meth:`save` has written; the critics of its policy are new.

        :param path: file
        :param device: ignored, as in the policy's ``load``
        """
        saved = th.load(path, map_location="cpu", weights_only=False)
        policy = saved["policy_class"](**saved["data"])
        policy.load_state_dict(saved["state_dict"], strict=False)
        return policy.actor


class CriticView(NetworkView):
    """The critics, which evaluate pairs of observations and actions."""

    def __call__(self, observations: Any, actions: Any = None) -> tuple[jax.Array, ...]:
        """Return the values ``(batch, 1)`` of each critic for actions ``(batch, m)`` scaled to [-1, 1]."""
        states = self.policy.prepare_obs(_arrays(observations))[0]
        values = self.policy.qf.apply(self.params, states, np.asarray(actions, np.float32).reshape(len(states), -1))
        return tuple(value[:, None] for value in values)


def _arrays(observations: Any) -> Any:
    if isinstance(observations, Mapping):
        return {name: np.asarray(part) for name, part in observations.items()}
    return np.asarray(observations)


def describe(policy: "DDPGPolicy") -> str:
    """Return the networks of a policy, layer by layer, with the number of their parameters."""
    lines = [f"{type(policy).__name__}("]
    for name, state in (("actor", "actor_state"), ("critic", "qf_state")):
        if not hasattr(policy, state):
            continue
        weights = to_flat(getattr(policy, state).params["params"])
        copies = policy.qf.n_critics if name == "critic" else 1
        size = sum(array.size for array in weights.values())
        lines.append(f"  ({name}): {f'{copies} networks of ' if copies > 1 else ''}{size // copies:,} parameters")
        for key, array in weights.items():
            lines.append(f"    {key}: {tuple(array.shape[1:] if name == 'critic' else array.shape)}")
    return "\n".join([*lines, f"  optimizer: {policy.optimizer_class.__name__}({_keywords(policy)})", ")"])


def _keywords(policy: "DDPGPolicy") -> str:
    return ", ".join(f"{name}={value}" for name, value in policy.optimizer_kwargs.items())
