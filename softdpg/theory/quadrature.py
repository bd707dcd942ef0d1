"""Gaussian smoothing by quadrature (paper, section 3.3), derivatives and limits, each with an estimate of its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike
from scipy.special import gammaln

from softdpg.theory.check import FORMULA, largest, sum_operations

Array = np.ndarray
TAIL = 12.0  # the standard normal density beyond this point is below 1e-31


@dataclass(frozen=True)
class Quadrature:
    """Hold a rule with E[f(w)] = sum_k weights[k] * f(nodes[k]) for w ~ N(0, I).

    :param nodes: shape (k, m)
    :param weights: shape (k,)
    :param coarse: a rule of lower order; the difference between the two estimates the error of this one
    """

    nodes: Array
    weights: Array
    coarse: Quadrature | None = None

    def expect(self, values: Array) -> Array:
        """Return E[f(w)], shape (...), for values of shape (..., k) on the nodes."""
        return values @ self.weights

    @property
    def operations(self) -> float:
        """Count the roundings of an expectation: those of f at a node, and of the sum."""
        return FORMULA + sum_operations(len(self.weights))


@lru_cache(maxsize=32)
def gauss_hermite(dim: int, order: int = 32) -> Quadrature:
    """Make a tensor-product Gauss-Hermite rule.

    :param dim: dimension m of w
    :param order: nodes along each coordinate; exact for polynomials of degree up to 2 * order - 1 in each
    """
    x, p = hermegauss(order)
    p = p / p.sum()
    nodes = np.stack(np.meshgrid(*[x] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    weights = np.prod(np.stack(np.meshgrid(*[p] * dim, indexing="ij"), axis=-1), axis=-1).reshape(-1)
    return Quadrature(nodes, weights, gauss_hermite(dim, order - 8) if order >= 32 else None)


def gauss_legendre_panels(breaks: tuple[float, ...] = (), order: int = 16) -> Quadrature:
    """Make a one-dimensional rule for integrands with kinks or jumps, across which Gauss-Hermite converges slowly.

    :param breaks: values of w at which the integrand is not smooth; panels, at most half a unit wide, meet there
    :param order: nodes in each panel
    """
    inner = [b for b in breaks if abs(b) < TAIL]
    edges = np.unique(np.concatenate([np.arange(-TAIL, TAIL + 0.25, 0.5), inner]))
    x, p = leggauss(order)
    nodes, weights = [], []
    for left, right in pairwise(edges):
        points = (left + right) / 2 + (right - left) / 2 * x
        nodes.append(points)
        weights.append((right - left) / 2 * p * np.exp(-(points**2) / 2) / np.sqrt(2 * np.pi))
    coarse = gauss_legendre_panels(breaks, order - 6) if order >= 16 else None
    return Quadrature(np.concatenate(nodes)[:, None], np.concatenate(weights), coarse)


def smooth(f: Callable[[Array], Array], x: Array, sigma: float, rule: Quadrature) -> Array:
    """Smooth a function (definition 3.1): f_sigma(x) = E[f(x + sigma w)].

    :param f: maps points (..., k, m) to values (..., k)
    :param x: shape (..., m)
    :param sigma: smoothing parameter
    :param rule: quadrature over w
    :return: shape (...)
    """
    return rule.expect(f(x[..., None, :] + sigma * rule.nodes))


def smooth_gradient(f: Callable[[Array], Array], x: Array, sigma: float, rule: Quadrature) -> Array:
    """Differentiate f_sigma by its score form (definition 3.2): grad f_sigma(x) = E[f(x + sigma w) w / sigma].

    :param f: maps points (..., k, m) to values (..., k)
    :param x: shape (..., m)
    :param sigma: smoothing parameter
    :param rule: quadrature over w
    :return: shape (..., m)
    """
    values = f(x[..., None, :] + sigma * rule.nodes)
    return (values * rule.weights) @ rule.nodes / sigma


def mean_norm(dim: int) -> float:
    """Return E||w||_2 = sqrt(2) Gamma((m + 1) / 2) / Gamma(m / 2) for w ~ N(0, I_m); below sqrt(m) for every m."""
    return float(np.sqrt(2) * np.exp(gammaln((dim + 1) / 2) - gammaln(dim / 2)))


def quadrature_error(f: Callable[[Quadrature], ArrayLike], rule: Quadrature) -> tuple[Array, float]:
    """Return f(rule), and its largest difference to f with the rule of lower order.

    :param f: maps a rule to a number or an array
    :param rule: the rule of higher order
    """
    assert rule.coarse is not None
    fine = np.asarray(f(rule))
    return fine, largest(fine - np.asarray(f(rule.coarse)))


def finite_difference(
    f: Callable[[Array], Array | float], x: Array, rounding: float, step: float = 1e-3
) -> tuple[Array, float]:
    """Differentiate f at x by the five-point stencil, and estimate the error.

    The estimate is the difference to the stencil with twice the step, plus the rounding of f divided by the step.

    :param f: maps (p,) to a value of any shape
    :param x: shape (p,)
    :param rounding: bound on the rounding error of f
    :param step: distance between the points
    :return: gradient of shape f(x).shape + (p,), error estimate
    """
    fine, rough = _five_point(f, x, step), _five_point(f, x, 2 * step)
    return fine, largest(fine - rough) + 1.5 * rounding / step  # (8 + 8 + 1 + 1) / 12 = 1.5


def _five_point(f: Callable[[Array], Array | float], x: Array, step: float) -> Array:
    partial = []
    for unit in np.eye(x.size):
        near = np.asarray(f(x + step * unit)) - np.asarray(f(x - step * unit))
        far = np.asarray(f(x + 2 * step * unit)) - np.asarray(f(x - 2 * step * unit))
        partial.append((8 * near - far) / (12 * step))
    return np.stack(partial, axis=-1)


def limit_at_zero(
    f: Callable[[float], Array], sigma: float, rounding: Callable[[float], float], levels: int = 5
) -> tuple[Array, float]:
    """Extrapolate f(sigma) to sigma = 0 by Richardson's method, and estimate the error.

    For a smooth integrand a Gaussian expectation has an expansion in sigma^2. The estimate is twice the last
    correction, plus twice the rounding of f at the smallest sigma: the product of (4^j + 1) / (4^j - 1) is below 2.

    :param f: maps sigma to an array
    :param sigma: where to start
    :param rounding: maps sigma to a bound on the rounding error of f(sigma)
    :param levels: how often to halve sigma
    """
    row = [f(sigma)]
    error = np.inf
    for level in range(1, levels + 1):
        new = [f(sigma / 2**level)]
        for j, previous in enumerate(row, start=1):
            new.append(new[-1] + (new[-1] - previous) / (4**j - 1))
        error = largest(new[-1] - row[-1])
        row = new
    return row[-1], 2 * error + 2 * rounding(sigma / 2**levels)
