"""One thread a process: runs side by side do not fight over cores, and results repeat.

They would not otherwise: JAX splits its work by the number of threads, so another number gives other last digits.
"""

import os
from collections.abc import MutableMapping

_EIGEN = "--xla_cpu_multi_thread_eigen="


def use_one_thread(environ: MutableMapping[str, str] = os.environ) -> None:
    """Set the variables that JAX, torch and BLAS read when they are first imported. Those already set stay."""
    # NPROC is the size of JAX's own thread pools.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"):
        environ.setdefault(name, "1")
    flags = environ.get("XLA_FLAGS", "")
    if _EIGEN not in flags:
        environ["XLA_FLAGS"] = f"{flags} {_EIGEN}false".strip()
