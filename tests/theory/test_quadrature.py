import numpy as np
import pytest
from scipy.special import ndtr

from softdpg.theory.quadrature import gauss_hermite, gauss_legendre_panels, mean_norm, smooth, smooth_gradient


@pytest.mark.parametrize("dim", [1, 2])
def test_gauss_hermite_moments(dim):
    rule = gauss_hermite(dim)
    w = rule.nodes
    assert rule.expect(np.ones(len(w))) == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose((w * rule.weights[:, None]).T @ w, np.eye(dim), atol=1e-13)
    assert rule.expect(w[:, 0] ** 8) == pytest.approx(105, rel=1e-12)  # 7!! = 105


def test_smoothed_sine_in_two_dimensions():
    direction, x, sigma = np.array([1.5, -0.7]), np.array([0.3, 0.4]), 0.6
    rule = gauss_hermite(2)
    damping = np.exp(-(sigma**2) * direction @ direction / 2)
    assert smooth(lambda y: np.sin(y @ direction), x, sigma, rule) == pytest.approx(damping * np.sin(x @ direction))
    np.testing.assert_allclose(
        smooth_gradient(lambda y: np.sin(y @ direction), x, sigma, rule), damping * np.cos(x @ direction) * direction
    )


def test_panels_integrate_jumps_exactly():
    rule = gauss_legendre_panels((0.3, 1.7))
    inside = (rule.nodes[:, 0] > 0.3) & (rule.nodes[:, 0] < 1.7)
    assert rule.expect(inside.astype(float)) == pytest.approx(ndtr(1.7) - ndtr(0.3), abs=1e-14)
    assert gauss_legendre_panels((0.0,)).expect(np.abs(gauss_legendre_panels((0.0,)).nodes[:, 0])) == pytest.approx(
        np.sqrt(2 / np.pi), abs=1e-14
    )


def test_mean_norm():
    assert mean_norm(1) == pytest.approx(np.sqrt(2 / np.pi))
    assert mean_norm(2) == pytest.approx(np.sqrt(np.pi / 2))
    assert mean_norm(3) == pytest.approx(2 * np.sqrt(2 / np.pi))


@pytest.mark.parametrize("rule", [gauss_hermite(1), gauss_legendre_panels()])
def test_the_coarse_rule_estimates_the_error(rule):
    f = np.exp(1.5 * rule.nodes[:, 0])
    coarse = np.exp(1.5 * rule.coarse.nodes[:, 0])
    exact = np.exp(1.5**2 / 2)
    assert abs(rule.expect(f) - exact) <= abs(rule.expect(f) - rule.coarse.expect(coarse)) + 1e-12
