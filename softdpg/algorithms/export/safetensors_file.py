"""A policy as a safetensors file: the arrays, and beside them what a reader needs to know to use them."""

import json
from pathlib import Path

from safetensors import safe_open
from safetensors.numpy import save_file

from softdpg.algorithms.export.description import Description


def write_safetensors(description: Description, path: Path, metadata: dict[str, str]) -> None:
    """Write the arrays, and the rest as JSON in the file's metadata under ``policy``."""
    policy = json.dumps({"spec": description.spec, "dtypes": description.dtypes})
    save_file(description.arrays, path, metadata | {"policy": policy})


def read_safetensors(path: str | Path) -> Description:
    """The policy in a file of :func:`write_safetensors`: a function from observation to action, in NumPy."""
    with safe_open(path, framework="numpy") as file:
        policy = json.loads(file.metadata()["policy"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    return Description(policy["spec"], arrays, tuple(policy["dtypes"]))
