"""Estimators of Gaussian smoothing against functions whose smoothing is known in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from softdpg.algorithms.smoothing import (
    centered_gradient,
    gaussian_perturbations,
    log_sigma_gradient,
    paper_gradient,
    perturbed,
    smoothed_value,
)

C = jnp.array([0.7, -1.3])
A = jnp.array([[2.0, 0.5], [0.5, -1.0]])
STEP_AT = 0.1
BATCH = 4_000  # independent estimates, from which each test takes mean and standard error
N = 50
STANDARD_ERRORS = 5  # a correct estimator fails with probability 6e-7


def linear(x):
    return jnp.einsum("nib,i->nb", x, C) + 3.0


def quadratic(x):
    return jnp.einsum("nib,ij,njb->nb", x, A, x)


def exponential(x):
    return jnp.exp(jnp.einsum("nib,i->nb", x, C))


def step(x):
    return (x[:, 0] > STEP_AT).astype(jnp.float32)


def exact(f, x, sigma):
    """Smoothed value and gradient: linear and quadratic by moments, exp by its mgf, step by the normal cdf and pdf."""
    if f is linear:
        return float(x @ C + 3.0), np.asarray(C)
    if f is quadratic:
        return float(x @ A @ x + sigma**2 * jnp.trace(A)), np.asarray(2 * A @ x)
    if f is exponential:
        value = float(jnp.exp(x @ C + sigma**2 * (C @ C) / 2))
        return value, value * np.asarray(C)
    z = (float(x[0]) - STEP_AT) / sigma
    return float(norm.cdf(z)), np.array([norm.pdf(z) / sigma, 0.0])


def estimates(f, x, sigma, estimator, antithetic, low=-jnp.inf, high=jnp.inf, seed=0):
    """(BATCH,) estimates of the value and (BATCH, m) estimates of the gradient, each from N draws."""
    points = jnp.broadcast_to(x[:, None], (len(x), BATCH))
    w = gaussian_perturbations(jax.random.key(seed), N, points.shape, antithetic)
    samples = perturbed(points, w, sigma, low, high)
    values = f(samples)
    if estimator == "paper":
        gradient = paper_gradient(points, samples, values, sigma)
    else:
        gradient = centered_gradient(w, values, sigma, antithetic)
    return np.asarray(smoothed_value(values), np.float64), np.asarray(gradient, np.float64).T


def assert_mean(samples, expected):
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    np.testing.assert_array_less(np.abs(samples.mean(axis=0) - expected), STANDARD_ERRORS * error + 1e-4)


@pytest.mark.parametrize("antithetic", [False, True])
@pytest.mark.parametrize("estimator", ["paper", "centered"])
@pytest.mark.parametrize("f", [linear, quadratic, exponential, step])
def test_mean_is_the_closed_form(f, estimator, antithetic):
    x = jnp.array([0.15, -0.4])
    value, gradient = exact(f, x, sigma=0.3)
    values, gradients = estimates(f, x, 0.3, estimator, antithetic)
    assert_mean(values, value)
    assert_mean(gradients, gradient)


@pytest.mark.parametrize(
    ("f", "antithetic", "factor"),
    # N independent draws with a leave-one-out baseline, or N / 2 pairs, which also cancel all that is even in w.
    [
        (linear, False, 40),
        (linear, True, 20),
        (quadratic, True, 1.4),
        (exponential, False, 3.5),
        (exponential, True, 2.2),
        (step, False, 2.3),
        (step, True, 1.4),
    ],
)
def test_centered_has_less_variance(f, antithetic, factor):
    x = jnp.array([0.15, -0.4])
    paper = estimates(f, x, 0.3, "paper", False)[1].var(axis=0).sum()
    centered = estimates(f, x, 0.3, "centered", antithetic)[1].var(axis=0).sum()
    assert centered * factor < paper


def test_variance_of_paper_grows_with_the_level_of_f_and_that_of_centered_does_not():
    x = jnp.array([0.15, -0.4])
    variances = {
        (estimator, level): estimates(lambda a, c=level: linear(a) + c, x, 0.3, estimator, False)[1].var()
        for estimator in ("paper", "centered")
        for level in (0.0, 100.0)
    }
    # f is about 103 instead of 3: the variance of f w / sigma grows with its square.
    assert variances["paper", 100.0] > 500 * variances["paper", 0.0]
    np.testing.assert_allclose(variances["centered", 100.0], variances["centered", 0.0], rtol=1e-3)


@pytest.mark.parametrize("level", [-10.0, 10.0])
def test_clip_bias_of_paper_and_none_in_centered(level):
    """A constant has gradient zero. Near a bound ``paper`` reports the mean of the clipped draw times the constant."""
    sigma, x = 0.2, jnp.array([0.9])
    d = (1 - 0.9) / sigma
    # E[clip(x + sigma w, -1, 1) - x]; the lower bound is 9.5 sigma away
    clip_mean = -sigma * (norm.pdf(d) - d * norm.sf(d))
    bias = level * clip_mean / sigma**2

    def constant(a):
        return jnp.full((len(a), BATCH), level)

    paper = estimates(constant, x, sigma, "paper", False, -1, 1)[1]
    assert_mean(paper, bias)
    # Negative returns push the action into the bound (a positive gradient at +0.9), positive ones away from it.
    assert np.sign(paper.mean()) == -np.sign(level)
    assert abs(bias) > 9
    for antithetic in (False, True):
        np.testing.assert_allclose(estimates(constant, x, sigma, "centered", antithetic, -1, 1)[1], 0, atol=1e-4)


def test_centered_is_the_gradient_of_the_smoothed_clipped_function():
    """For f(a) = a the smoothing of clip has derivative P(-1 < x + sigma w < 1)."""
    sigma, x = 0.2, 0.9
    inside = norm.cdf((1 - x) / sigma) - norm.cdf((-1 - x) / sigma)
    for antithetic in (False, True):
        gradients = estimates(lambda a: a[:, 0], jnp.array([x]), sigma, "centered", antithetic, -1, 1)[1]
        assert_mean(gradients, inside)


def test_leave_one_out_equals_the_plain_sum():
    rng = np.random.default_rng(0)
    w, f = rng.normal(size=(7, 2, 3)), rng.normal(size=(7, 3))
    expected = np.zeros((2, 3))
    for i in range(7):
        baseline = (f.sum(axis=0) - f[i]) / 6
        expected += w[i] * (f[i] - baseline) / (7 * 0.3)
    np.testing.assert_allclose(centered_gradient(jnp.array(w), jnp.array(f), 0.3), expected, rtol=2e-5, atol=1e-6)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 3), st.booleans())
@settings(max_examples=10)
def test_perturbations_have_the_shape_asked_for(pairs, batch, m, antithetic):
    w = gaussian_perturbations(jax.random.key(1), 2 * pairs, (m, batch), antithetic)
    assert w.shape == (2 * pairs, m, batch)
    if antithetic:
        np.testing.assert_array_equal(w[pairs:], -w[:pairs])
    assert len(np.unique(np.abs(w))) == w.size // (2 if antithetic else 1)


def test_perturbations_are_standard_normal_and_independent():
    w = np.asarray(gaussian_perturbations(jax.random.key(2), 50, (3, 256)), np.float64)
    flat = w.swapaxes(1, 2).reshape(-1, 3)
    np.testing.assert_allclose(flat.mean(axis=0), 0, atol=5 / np.sqrt(len(flat)))
    np.testing.assert_allclose(np.cov(flat.T), np.eye(3), atol=5 * np.sqrt(2 / len(flat)))
    # Across samples and across states of the batch, too.
    between = np.corrcoef(w[:, 0, :2].T)[0, 1]
    assert abs(between) < 5 / np.sqrt(50)


X, W, VALUES = jnp.zeros((2, 4)), jnp.zeros((6, 2, 4)), jnp.zeros((6, 4))  # m = 2, a batch of 4, N = 6


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (perturbed, (X[:, 0], W, 0.1), r"w must have rank 2, not 3: \(6, 2, 4\)"),
        (perturbed, (X, W[:, :, 0], 0.1), r"w must have rank 3, not 2: \(6, 2\)"),
        (perturbed, (X[0, 0], W[0, 0], 0.1), r"x must have rank 1, not 0: \(\)"),
        (perturbed, (X, W, X), r"sigma must have rank 0 or 1, not 2: \(2, 4\)"),
        (paper_gradient, (X, W, VALUES, X), r"sigma must have rank 0 or 1, not 2"),
        (centered_gradient, (W, VALUES, X), r"sigma must have rank 0 or 1, not 2"),
        (smoothed_value, (VALUES[0, 0],), r"values must have rank 1, not 0: \(\)"),
        (paper_gradient, (X[0, 0], W[0, 0], VALUES[0, 0], 0.1), r"x must have rank 1, not 0: \(\)"),
        (paper_gradient, (X, W[0], VALUES, 0.1), r"points must have rank 3, not 2: \(2, 4\)"),
        (paper_gradient, (X, W, VALUES[:, 0], 0.1), r"values must have rank 2, not 1: \(6,\)"),
        (paper_gradient, (X[:, 0], W[:, :, 0], VALUES, 0.1), r"values must have rank 1, not 2: \(6, 4\)"),
        (centered_gradient, (W[:, 0, 0], VALUES[:, 0], 0.1), r"w must have rank 2, not 1: \(6,\)"),
        (centered_gradient, (W, VALUES[:, 0], 0.1), r"values must have rank 2, not 1: \(6,\)"),
        (log_sigma_gradient, (W, VALUES[:, 0]), r"values must have rank 2, not 1: \(6,\)"),
        (centered_gradient, (W, W, 0.1, True), r"values must have rank 2, not 3: \(6, 2, 4\)"),
    ],
)
def test_wrong_ranks_are_named(function, arguments, message):
    """Without the batch's axis every one of these would broadcast, or fail far away."""
    with pytest.raises(AssertionError, match=message):
        function(*arguments)


def test_right_ranks_with_and_without_a_batch():
    for batch in ((), (4,), (4, 3)):
        x, w, values = jnp.zeros((2, *batch)), jnp.zeros((6, 2, *batch)), jnp.zeros((6, *batch))
        assert perturbed(x, w, 0.1).shape == w.shape
        assert smoothed_value(values).shape == batch
        assert paper_gradient(x, w, values, 0.1).shape == x.shape
        assert centered_gradient(w, values, 0.1).shape == centered_gradient(w, values, 0.1, True).shape == x.shape
