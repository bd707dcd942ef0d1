"""Write a policy as Python code that needs only NumPy, or as safetensors; read the latter."""

import base64
import inspect
import io
import json
import textwrap
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from softdpg.export import numpy_policy
from softdpg.export.description import Description

_HEAD = '"""A policy: ``predict(observation)`` returns its action. Written by softdpg, needs NumPy.\n\n{about}\n"""\n'
_TAIL = '''

def predict(observation: Any) -> Any:
    """Return the action for one observation, or the actions for a batch, in the environment's units."""
    return act(SPEC, ARRAYS, observation)


def _arrays(text: str) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False) as file:
        return dict(file)


SPEC = json.loads({spec!r})
ARRAYS = _arrays("""
{numbers}
""")
'''


def write_python(description: Description, path: Path, metadata: dict[str, str]) -> None:
    """Write the code of ``numpy_policy``, ``predict`` and the arrays, which are an ``.npz`` file in base64.

    :param description: the policy
    :param path: file to write
    :param metadata: entries for the docstring of the file
    """
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **description.arrays)
    _, _, code = inspect.getsource(numpy_policy).partition('"""\n\n')
    about = "\n".join(f"{key}: {value}" for key, value in metadata.items())
    tail = _TAIL.format(
        spec=json.dumps(description.spec),
        numbers="\n".join(textwrap.wrap(base64.b64encode(file.getvalue()).decode(), 118)),
    )
    path.write_text(_HEAD.format(about=about) + "import base64\nimport io\nimport json\n" + code + tail)


def write_safetensors(description: Description, path: Path, metadata: dict[str, str]) -> None:
    """Write the arrays to a safetensors file, and the rest as JSON to its metadata under ``policy``.

    :param description: the policy
    :param path: file to write
    :param metadata: further entries for the metadata
    """
    policy = json.dumps({"spec": description.spec, "dtypes": description.dtypes})
    save_file(description.arrays, path, metadata | {"policy": policy})


def read_safetensors(path: str | Path) -> Description:
    """Read a policy that was exported to safetensors; call it with an observation to get an action.

    :param path: a file that :func:`export_policy` wrote
    """
    with safe_open(path, framework="numpy") as file:
        policy = json.loads(file.metadata()["policy"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    return Description(policy["spec"], arrays, tuple(policy["dtypes"]))
