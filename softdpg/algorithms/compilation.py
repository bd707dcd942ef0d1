"""How XLA compiles the update."""

from functools import cache

import jax


@cache
def compiler_options() -> dict[str, str] | None:
    """Options for ``jax.jit``: on a CPU, Eigen's matrix products and not YNNPACK's, which take 4 % more of an update.

    None where this version of JAX does not know the option. Asking starts JAX, so it is not done on import.
    """
    options = {"xla_cpu_experimental_ynn_fusion_type": ""}
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return None
    return options
