"""Derivatives and limits from function values alone, each with an estimate of its own error."""

from collections.abc import Callable

import numpy as np

from softdpg.theory.check import largest

Array = np.ndarray
ROUNDING_OF_F = 1e-13  # relative: a linear system with condition number 1 / (1 - gamma) solved in float64


def finite_difference(f: Callable[[Array], Array | float], x: Array, step: float = 1e-3) -> tuple[Array, float]:
    """Gradient of f at x by the five-point stencil, and an estimate of its error.

    The estimate is the difference to the stencil with twice the step, plus what the step makes of the rounding of f.

    :param f: maps (p,) to a value of any shape
    :param x: shape (p,)
    :return: gradient of shape f(x).shape + (p,), error estimate
    """
    fine, rough = _five_point(f, x, step), _five_point(f, x, 2 * step)
    return fine, largest(fine - rough) + ROUNDING_OF_F * largest(np.asarray(f(x))) / step


def _five_point(f: Callable[[Array], Array | float], x: Array, step: float) -> Array:
    columns = []
    for unit in np.eye(x.size):
        near = np.asarray(f(x + step * unit)) - np.asarray(f(x - step * unit))
        far = np.asarray(f(x + 2 * step * unit)) - np.asarray(f(x - 2 * step * unit))
        columns.append((8 * near - far) / (12 * step))
    return np.stack(columns, axis=-1)


def limit_at_zero(f: Callable[[float], Array], sigma: float, levels: int = 5) -> tuple[Array, float]:
    """lim f(sigma) for sigma -> 0 by Richardson extrapolation, and the last correction as an error estimate.

    For a smooth integrand a Gaussian expectation has an expansion in sigma^2; sigma is halved ``levels`` times.
    """
    row = [f(sigma)]
    error = np.inf
    for level in range(1, levels + 1):
        new = [f(sigma / 2**level)]
        for j, previous in enumerate(row, start=1):
            new.append(new[-1] + (new[-1] - previous) / (4**j - 1))
        error = largest(new[-1] - row[-1])
        row = new
    return row[-1], error
