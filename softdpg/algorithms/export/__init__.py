"""A trained policy for the world outside: ONNX, one Python file with NumPy, or safetensors.

Each takes an observation as the environment gives it, normalises it if the policy was trained so, and returns the
action in the environment's own units. Nothing of softdpg, JAX or torch is needed to run it.
"""

from pathlib import Path

from stable_baselines3.common.vec_env import VecNormalize

from softdpg.algorithms.export.description import Description, describe
from softdpg.algorithms.export.onnx_file import write_onnx
from softdpg.algorithms.export.python_file import write_python
from softdpg.algorithms.export.safetensors_file import read_safetensors, write_safetensors
from softdpg.algorithms.policies import DDPGPolicy

__all__ = ["Description", "describe", "export_policy", "read_safetensors"]

_WRITERS = {".onnx": write_onnx, ".py": write_python, ".safetensors": write_safetensors}


def export_policy(
    policy: DDPGPolicy, path: str | Path, normalize: VecNormalize | None = None, about: dict[str, str] | None = None
) -> Path:
    """Write the deterministic policy to ``path``; its ending is the format: ``.onnx``, ``.py`` or ``.safetensors``.

    :param normalize: the wrapper whose observation statistics the policy was trained with, if any
    :param about: further facts for the file's metadata
    """
    from softdpg import __version__

    path = Path(path)
    if path.suffix not in _WRITERS:
        raise ValueError(f"path must end in {', '.join(_WRITERS)}, not in {path.suffix or 'nothing'!r}")
    _WRITERS[path.suffix](describe(policy, normalize), path, {"softdpg": __version__, **(about or {})})
    return path
