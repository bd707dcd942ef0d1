"""The networks of a policy one by one, as SB3 shows them: ``model.actor``, ``model.critic_target`` and so on."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch as th

from softdpg.algorithms.parameters import ParameterArray, Parameters

if TYPE_CHECKING:
    from softdpg.algorithms.policies import DDPGPolicy


class NetworkView:
    """One network with its weights as they are now. All that is not here is the flax module's.

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

    def state_dict(self) -> Parameters:
        """The weights by name; those of a features extractor are first, as in SB3."""
        prefix = f"{self.name}."
        weights = {key.removeprefix(prefix): w for key, w in self.policy.state_dict().items() if key.startswith(prefix)}
        return dict(sorted(weights.items(), key=lambda item: not item[0].startswith("features_extractor.")))

    def named_parameters(self) -> Iterator[tuple[str, ParameterArray]]:
        """Names and weights."""
        return iter(self.state_dict().items())

    def parameters(self) -> Iterator[ParameterArray]:
        """The weights."""
        return iter(self.state_dict().values())


class ActorView(NetworkView):
    """The actor, which can act and be saved without the critics."""

    @property
    def predict(self) -> Callable[..., Any]:
        """That of the policy, which acts with this network."""
        return self.policy.predict

    def save(self, path: str | Path) -> None:
        """Write what :meth:`load` needs: the policy's settings and the weights of the actor."""
        weights = {f"{self.name}.{key}": weight for key, weight in self.state_dict().items()}
        data = self.policy._get_constructor_parameters()
        th.save({"policy_class": type(self.policy), "data": data, "state_dict": weights}, path)

    @classmethod
    def load(cls, path: str | Path, device: th.device | str = "auto") -> "ActorView":
        """The actor that :meth:`save` has written, in a policy whose critics are new.

        :param device: of no effect, as in the policy's ``load``
        """
        saved = th.load(path, map_location="cpu", weights_only=False)
        policy = saved["policy_class"](**saved["data"])
        policy.load_state_dict(saved["state_dict"], strict=False)
        return policy.actor
