"""Saving and loading with SB3's methods, for parameters of JAX networks."""

import inspect
import io
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch as th
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.save_util import load_from_zip_file, open_path, save_to_zip_file
from stable_baselines3.common.type_aliases import GymEnv

from softdpg.algorithms.parameters import Parameters, from_flat, to_flat
from softdpg.algorithms.policies import DDPGPolicy

# Arguments for which None means that the saved value stays.
_AS_SAVED = ("policy_kwargs", "replay_buffer_class", "replay_buffer_kwargs", "antithetic")
_OPTIMIZERS = {"actor.optimizer": "actor_state", "critic.optimizer": "qf_state", "sigma.optimizer": "sigma_state"}
SelfAlgorithm = TypeVar("SelfAlgorithm", bound="SavedAlgorithm")


class SavedAlgorithm(OffPolicyAlgorithm):
    """``save``, ``load``, ``get_parameters`` and ``set_parameters`` of SB3 for a :class:`DDPGPolicy`."""

    policy: DDPGPolicy

    def get_parameters(self) -> dict[str, Parameters]:
        """Return the parameters of the model as dictionaries of arrays that NumPy, JAX and PyTorch accept.

        :return: ``"policy"``: weights by name, see :meth:`DDPGPolicy.state_dict`; ``"actor.optimizer"``,
            ``"critic.optimizer"`` (and ``"sigma.optimizer"`` of a learned sigma): the states of the optimisers
        """
        policy = getattr(self.policy, "_orig_mod", self.policy)  # inside torch.compile's wrapper
        return {"policy": policy.state_dict()} | {
            name: to_flat(self._optimizer(attribute)) for name, attribute in self._optimizers().items()
        }

    def set_parameters(
        self,
        load_path_or_dict: str | Path | io.BufferedIOBase | dict[str, Any],
        exact_match: bool = True,
        device: th.device | str = "auto",
    ) -> None:
        """Set parameters from a dictionary like that of :meth:`get_parameters`, or from a saved model.

        Raises ``ValueError`` for wrong names of objects and ``RuntimeError`` for wrong names or shapes of arrays; the
        parameters then stay as they were.

        :param load_path_or_dict: the dictionary, or path or file of a model of the same class
        :param exact_match: require all objects and all their arrays; False to set only some
        :param device: ignored: parameters stay where they are
        """
        if isinstance(load_path_or_dict, dict):
            params = load_path_or_dict
        else:
            _check_saver(type(self), load_path_or_dict)
            _, params, _ = load_from_zip_file(load_path_or_dict, device="cpu", load_data=False)
        optimizers = self._optimizers()
        expected = {"policy", *optimizers}
        for name in params:
            if name not in expected:
                raise ValueError(f"{name!r} has no parameters; expected {', '.join(sorted(expected))}")
        if exact_match and params.keys() != expected:
            raise ValueError(f"parameters of {sorted(expected - params.keys())} are missing (exact_match=True)")
        optimizer_states = {
            attribute: from_flat(self._optimizer(attribute), params[name], exact_match)
            for name, attribute in optimizers.items()
            if name in params
        }
        self.policy.load_state_dict(params.get("policy", {}), strict=exact_match)
        for attribute, new in optimizer_states.items():
            state = getattr(self.policy, attribute).replace(step=new["step"], opt_state=new["state"])
            setattr(self.policy, attribute, state)

    load_parameters = set_parameters  # its name in Stable-Baselines 2

    def _optimizers(self) -> dict[str, str]:
        return {name: attr for name, attr in _OPTIMIZERS.items() if getattr(self.policy, attr) is not None}

    def _optimizer(self, attribute: str) -> dict[str, Any]:
        state = getattr(self.policy, attribute)
        return {"step": state.step, "state": state.opt_state}

    def save(
        self,
        path: str | Path | io.BufferedIOBase,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """Save the model in a zip file of SB3's format, its parameters as PyTorch tensors; see SB3."""
        left_out = (set(exclude or ()) | set(self._excluded_save_params())) - set(include or ()) | {"policy"}
        data = {name: value for name, value in self.__dict__.items() if name not in left_out}
        params = {
            name: {key: th.from_numpy(np.array(array)) for key, array in arrays.items()}
            for name, arrays in self.get_parameters().items()
        }
        save_to_zip_file(path, data | {"saved_by": _family_name(type(self))}, params, pytorch_variables={})

    @classmethod
    def load(
        cls: type[SelfAlgorithm],
        path: str | Path | io.BufferedIOBase,
        env: GymEnv | str | None = None,
        device: th.device | str = "auto",
        custom_objects: dict[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        **kwargs: Any,
    ) -> SelfAlgorithm:
        """Load a model that this class has saved, as in SB3.

        :param env: environment, or its id
        :param kwargs: arguments of the constructor that replace the saved ones, with the constructor's checks.
            ``policy_kwargs`` must stay as it was, because it shapes the networks
        """
        data = _check_saver(cls, path)
        known = inspect.signature(cls.__init__).parameters.keys() | data.keys()
        for name in kwargs:
            if name not in known:
                raise TypeError(f"{cls.__name__}.load() got an unexpected argument {name!r}")
        kwargs = {name: value for name, value in kwargs.items() if value is not None or name not in _AS_SAVED}
        if "stats_window_size" in kwargs:
            kwargs["_stats_window_size"] = kwargs.pop("stats_window_size")
        if "qf_learning_rate" in kwargs:
            kwargs["_qf_follows"] = kwargs["qf_learning_rate"] is None
        return super().load(
            path,
            maybe_make_env(env, 0) if isinstance(env, str) else env,
            device,
            custom_objects,
            print_system_info,
            force_reset,
            **kwargs,
        )


def _family_name(algorithm: type[SavedAlgorithm]) -> str:
    """Return the name of the class of this package that ``algorithm`` is, or inherits from."""
    return next(base.__name__ for base in algorithm.__mro__ if base.__module__.startswith("softdpg."))


def _check_saver(algorithm: type[SavedAlgorithm], path: str | Path | io.BufferedIOBase) -> dict[str, Any]:
    """Return the saved attributes that are plain values; raise ``ValueError`` if another class has saved them."""
    file = open_path(path, "r", suffix="zip")
    try:
        with zipfile.ZipFile(file) as archive:
            data = json.loads(archive.read("data"))
    except (zipfile.BadZipFile, KeyError, ValueError):
        raise ValueError(f"{path} is not a saved model: it wasn't a zip-file in SB3's format") from None
    finally:
        if file is not path:
            file.close()
    saver, loader = _saver(data), f"softdpg.{_family_name(algorithm)}"
    if saver != loader:
        raise ValueError(f"{path} was saved by {saver} and cannot be loaded as {loader}")
    return data


def _saver(data: dict[str, Any]) -> str:
    """Return the class that saved a model in SB3's format, as far as its file tells."""
    if "saved_by" in data:
        return f"softdpg.{data['saved_by']}"
    policy_class = data.get("policy_class")
    module = policy_class.get("__module__", "") if isinstance(policy_class, dict) else ""
    library, _, rest = module.partition(".")
    name = rest.partition(".")[0].upper()
    if name == "COMMON":  # the policy that SB3's PPO and A2C share
        name = "PPO" if "clip_range" in data else "A2C"
    if name == "TD3" and data.get("policy_kwargs", {}).get("n_critics") == 1:
        name = "DDPG"  # which is TD3 with one critic there
    return f"{library}.{name}" if name else "another algorithm"
