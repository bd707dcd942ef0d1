"""Settings that all tests share, made before JAX or torch is imported."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import hypothesis
import pytest

# Test processes run side by side: one thread each. Most of their time is XLA compiling networks of a few units, so it
# does without optimisations. `make test-all` runs the tests of the update with them, as users have them.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false",
)
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# The processes share what they compiled.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

# The tests' runs are signed with a key of the tests, not with that of whoever runs them.
os.environ["XDG_STATE_HOME"] = str(Path(__file__).parents[1] / ".pytest_cache" / "state")

# The same commit gives the same verdict everywhere: hypothesis generates the same examples and remembers none.
# `make test-random` loads the other profile, which looks for new ones. No deadlines: they measure the machine.
hypothesis.settings.register_profile("softdpg", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("random", deadline=None, database=None, print_blob=True)
hypothesis.settings.load_profile("softdpg")


@pytest.fixture
def small_tmpfs(tmp_path):
    """A file system of 8 MiB."""
    target = tmp_path / "small"
    target.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(target)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a tmpfs needs root")
    yield target
    subprocess.run(["umount", "-l", str(target)], check=True)


@pytest.fixture(scope="module")
def ablations():
    """Register the algorithms of the ablation for the tests of one file; return their names."""
    from softdpg.algorithms import registry

    module = "benchmarks.ablation"
    sys.modules.pop(module, None)  # its import is what registers them
    names = list(import_module(module).ABLATIONS)
    yield names
    for name in names:
        registry.unregister(name)
