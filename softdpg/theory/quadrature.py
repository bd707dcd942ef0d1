"""Gaussian expectations by quadrature, and the Gaussian smoothing built on them (paper, section 3.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from scipy.special import gammaln

Array = np.ndarray
TAIL = 12.0  # the standard normal density beyond this point is below 1e-31


@dataclass(frozen=True)
class Quadrature:
    """A rule with E[f(w)] = sum_k weights[k] * f(nodes[k]) for w ~ N(0, I).

    :param nodes: shape (k, m)
    :param weights: shape (k,)
    :param coarse: a rule of lower order; the difference of the two estimates the error of this one
    """

    nodes: Array
    weights: Array
    coarse: Quadrature | None = None

    def expect(self, values: Array) -> Array:
        """E[f(w)] for values of shape (..., k) on the nodes; shape (...)."""
        return values @ self.weights


@lru_cache(maxsize=32)
def gauss_hermite(dim: int, order: int = 32) -> Quadrature:
    """Tensor-product Gauss-Hermite rule: exact for polynomials up to degree 2 * order - 1 in each coordinate."""
    x, p = hermegauss(order)
    p = p / p.sum()
    nodes = np.stack(np.meshgrid(*[x] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    weights = np.prod(np.stack(np.meshgrid(*[p] * dim, indexing="ij"), axis=-1), axis=-1).reshape(-1)
    return Quadrature(nodes, weights, gauss_hermite(dim, order - 8) if order >= 32 else None)


def gauss_legendre_panels(breaks: tuple[float, ...] = (), order: int = 16) -> Quadrature:
    """One-dimensional rule for integrands that are smooth except at the points ``breaks`` of the w axis.

    Gauss-Hermite converges slowly across a kink or a jump. Here each panel, at most half a unit wide, is smooth.
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
    """Definition 3.1: f_sigma(x) = E[f(x + sigma w)].

    :param f: maps points (..., k, m) to values (..., k)
    :param x: shape (..., m)
    :return: shape (...)
    """
    return rule.expect(f(x[..., None, :] + sigma * rule.nodes))


def smooth_gradient(f: Callable[[Array], Array], x: Array, sigma: float, rule: Quadrature) -> Array:
    """Definition 3.2, the score-function form: grad f_sigma(x) = E[f(x + sigma w) w / sigma].

    :param f: maps points (..., k, m) to values (..., k)
    :param x: shape (..., m)
    :return: shape (..., m)
    """
    values = f(x[..., None, :] + sigma * rule.nodes)
    return (values * rule.weights) @ rule.nodes / sigma


def mean_norm(dim: int) -> float:
    """E||w||_2 = sqrt(2) Gamma((m + 1) / 2) / Gamma(m / 2) for w ~ N(0, I_m); below sqrt(m) for every m."""
    return float(np.sqrt(2) * np.exp(gammaln((dim + 1) / 2) - gammaln(dim / 2)))
