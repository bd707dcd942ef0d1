"""What importing an algorithm costs: no warning, and no module that it does not need."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from softdpg import DDPG, TD3, SoftDDPG, SoftTD3
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.extended
def test_import_is_silent_and_loads_no_more_than_it_needs():
    done = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    loaded = set(done.stdout.split())
    assert {"jax", "flax", "optax", "stable_baselines3"} <= loaded
    assert not loaded & {"sbx", "tensorflow_probability", "matplotlib", "pandas", "scipy", "plotly", "onnx", "ray"}
