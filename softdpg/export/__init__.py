"""Export a trained policy to ONNX, to a Python file that needs only NumPy, or to safetensors.

An exported policy takes an observation of the environment, normalises it if the policy was trained with
``VecNormalize``, and returns an action in the environment's units. It needs neither softdpg nor JAX nor torch.
"""

from pathlib import Path

from stable_baselines3.common.vec_env import VecNormalize

from softdpg.algorithms.policies import DDPGPolicy
from softdpg.export.description import Description, describe
from softdpg.export.files import read_safetensors, write_python, write_safetensors
from softdpg.export.onnx_graph import write_onnx

__all__ = ["Description", "describe", "export_policy", "read_safetensors"]

_WRITERS = {".onnx": write_onnx, ".py": write_python, ".safetensors": write_safetensors}


def export_policy(
    policy: DDPGPolicy, path: str | Path, normalize: VecNormalize | None = None, about: dict[str, str] | None = None
) -> Path:
    """Write the deterministic policy to a file and return its path.

    :param policy: the policy of a model
    :param path: file to write; its suffix chooses the format: ``.onnx``, ``.py`` or ``.safetensors``
    :param normalize: the wrapper whose observation statistics the policy was trained with, if any
    :param about: further entries for the file's metadata
    """
    from softdpg import __version__

    path = Path(path)
    if path.suffix not in _WRITERS:
        raise ValueError(f"path must end in one of {', '.join(_WRITERS)}, got {str(path)!r}")
    _WRITERS[path.suffix](describe(policy, normalize), path, {"softdpg": __version__, **(about or {})})
    return path
