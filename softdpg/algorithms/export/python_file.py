"""A policy as one Python file that needs NumPy alone."""

import base64
import inspect
import io
import json
import textwrap
from pathlib import Path

import numpy as np

from softdpg.algorithms.export import numpy_policy
from softdpg.algorithms.export.description import Description

_HEAD = '"""A policy: ``predict(observation)`` gives its action. Made by softdpg; needs NumPy alone.\n\n{about}\n"""\n'
_TAIL = '''

def predict(observation: Any) -> np.ndarray:
    """Action in the environment's own units for one observation or a batch of them."""
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
    """Write the text of ``numpy_policy`` with ``predict`` and the numbers: an ``.npz`` file in base64."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **description.arrays)
    _, _, code = inspect.getsource(numpy_policy).partition('"""\n\n')
    about = "\n".join(f"{key}: {value}" for key, value in metadata.items())
    tail = _TAIL.format(
        spec=json.dumps(description.spec),
        numbers="\n".join(textwrap.wrap(base64.b64encode(file.getvalue()).decode(), 118)),
    )
    path.write_text(_HEAD.format(about=about) + "import base64\nimport io\nimport json\n" + code + tail)
