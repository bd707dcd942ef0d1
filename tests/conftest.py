"""Settings that all tests share, made before JAX or torch is imported."""

import os
import sys
from importlib import import_module
from pathlib import Path

import hypothesis
import pytest

# Test processes run side by side: one thread each. Most of their time is XLA compiling networks of a few units, so it
# does without optimisations. With them, as users have them: XLA_FLAGS=--xla_cpu_multi_thread_eigen=false pytest ...
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0")
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# The processes share what they compiled.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("softdpg", deadline=None)
hypothesis.settings.load_profile("softdpg")


@pytest.fixture(scope="module")
def ablations():
    """The contenders of the ablation, registered for the tests of one file: their names."""
    from softdpg.algorithms import registry

    module = "softdpg.algorithms.ablation"
    sys.modules.pop(module, None)  # its import is what registers them
    names = list(import_module(module).ABLATIONS)
    yield names
    for name in names:
        registry.unregister(name)
