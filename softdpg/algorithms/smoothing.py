"""Gaussian smoothing of a function of an action: one pure JAX function for each equation.

For ``f : R^m -> R`` and ``w ~ N(0, I)`` the smoothed function and its gradient are (section 3.3 of the paper)

    f_sigma(x)      = E[ f(x + sigma w) ]
    grad f_sigma(x) = E[ f(x + sigma w) w ] / sigma

Both are estimated from N samples of ``w``. The functions here take the samples and the values of ``f`` at the
perturbed points, never ``f`` itself: the caller decides how to make the N evaluations.

Shapes: the components of an action come first and the batch last, ``x`` is ``(m, ...)``, because a CPU vectorises over
a long last axis. Samples and perturbed points are ``(N, m, ...)``; values of ``f`` are ``(N, ...)``. Every function
asserts the rank of its arguments: a missing axis would otherwise broadcast into wrong numbers silently.
"""

import jax
import jax.numpy as jnp
import numpy as np

Scale = float | np.ndarray | jax.Array  # sigma: one number, or one for each component of the action, (m,)


def gaussian_perturbations(
    key: jax.Array, n_samples: int, shape: tuple[int, ...], antithetic: bool = False
) -> jax.Array:
    """Sample ``w_i ~ N(0, I)`` for i = 1, ..., N, independently for every entry of ``shape``.

    :param key: JAX random key
    :param n_samples: N; even if ``antithetic``
    :param shape: shape of the points to perturb, ``(m, ...)``
    :param antithetic: make the second half of the samples the negative of the first, ``w_{i + N/2} = -w_i``
    :return: ``(N, *shape)``
    """
    if not antithetic:
        return jax.random.normal(key, (n_samples, *shape))
    half = jax.random.normal(key, (n_samples // 2, *shape))
    # A product with the signs: to concatenate the halves, XLA would sample each of them again.
    signs = jnp.array([1.0, -1.0]).reshape(2, *[1] * half.ndim)
    return (signs * half).reshape(n_samples, *shape)


def perturbed(x: jax.Array, w: jax.Array, sigma: Scale, low: float = -jnp.inf, high: float = jnp.inf) -> jax.Array:
    """Compute the perturbed points ``clip(x + sigma w_i, low, high)`` (lines 4 and 7 of Algorithm 1).

    :param x: ``(m, ...)``
    :param w: samples, ``(N, m, ...)``
    :param sigma: scale of the noise, a number or one per component, ``(m,)``
    :param low: lower bound of every component
    :param high: upper bound of every component
    :return: ``(N, m, ...)``
    """
    assert_ranks(w=(w, jnp.ndim(x) + 1), x=(x, max(jnp.ndim(x), 1)))
    return jnp.clip(x + _by_component(sigma, x) * w, low, high)


def smoothed_value(values: jax.Array) -> jax.Array:
    """Estimate ``f_sigma(x) = E[f(x + sigma w)]`` by the mean of the N values.

    :param values: ``f`` at the perturbed points, ``(N, ...)``
    :return: ``(...)``
    """
    assert_ranks(values=(values, max(jnp.ndim(values), 1)))
    return values.mean(axis=0)


def paper_gradient(x: jax.Array, points: jax.Array, values: jax.Array, sigma: Scale) -> jax.Array:
    """Estimate ``grad f_sigma(x)`` as line 8 of Algorithm 1 does: ``mean_i (a_i - x) f(a_i) / sigma^2``.

    ``a_i`` are the perturbed points, clipped or not. Clipping makes the mean of ``a_i - x`` nonzero, and the estimate
    is biased by that mean times the level of ``f``. Near a bound the bias points outwards if ``f`` is negative and
    inwards if ``f`` is positive, whatever the slope of ``f``.

    :param x: ``(m, ...)``
    :param points: ``a_i``, ``(N, m, ...)``
    :param values: ``f(a_i)``, ``(N, ...)``
    :param sigma: scale of the noise, a number or ``(m,)``
    :return: ``(m, ...)``
    """
    assert_ranks(x=(x, max(jnp.ndim(x), 1)), points=(points, jnp.ndim(x) + 1), values=(values, jnp.ndim(x)))
    return _mean((points - x) * values[:, None]) / _by_component(sigma, x) ** 2


def centered_gradient(w: jax.Array, values: jax.Array, sigma: Scale, antithetic: bool = False) -> jax.Array:
    """Estimate ``grad f_sigma(x)`` without the bias from clipping and with less variance.

    The score is that of the unclipped sample, ``w_i / sigma``, while ``values`` may be those of ``a -> f(clip(a))``.
    This is the gradient of that clipped function, smoothed, so the identity at the top of this module holds exactly.
    A baseline ``b_i`` that does not depend on ``w_i`` is subtracted from each value, which leaves the mean unchanged:

        mean_i w_i (f_i - b_i) / sigma,    b_i = mean of the other values (leave-one-out)

    The two halves of an antithetic pair share a baseline, which cancels:

        mean over pairs of w_i (f(x + sigma w_i) - f(x - sigma w_i)) / (2 sigma)

    :param w: samples, ``(N, m, ...)``
    :param values: ``f`` at the (clipped) perturbed points, ``(N, ...)``
    :param sigma: scale of the noise, a number or ``(m,)``
    :param antithetic: the samples are antithetic pairs in the order of :func:`gaussian_perturbations`
    :return: ``(m, ...)``
    """
    assert_ranks(w=(w, max(jnp.ndim(w), 2)), values=(values, jnp.ndim(w) - 1))
    n_samples = len(values)
    sigma = _by_component(sigma, w[0])
    if antithetic:
        plus, minus = jnp.split(values, 2)
        return _mean(w[: n_samples // 2] * (plus - minus)[:, None]) / (2 * sigma)
    # f_i - mean of the others = (f_i - mean of all) N / (N - 1)
    advantages = (values - values.mean(axis=0)) * (n_samples / (n_samples - 1))
    return _mean(w * advantages[:, None]) / sigma


def gate_gradient(u: jax.Array, gain: jax.Array, sigma: Scale) -> jax.Array:
    """Estimate the derivative of ``E[f]`` by ``u`` where ``f`` is on if ``u + sigma w > 0`` and off otherwise.

    The expectation over ``w`` is exact, ``phi(u / sigma) / sigma * mean_i (f_i(on) - f_i(off))``, where ``phi`` is the
    density of N(0, 1) and i counts the samples of everything else.

    :param u: ``(...)``
    :param gain: ``f_i(on) - f_i(off)``, ``(N, ...)``
    :param sigma: scale of the noise of this gate, a number
    :return: ``(...)``
    """
    assert_ranks(gain=(gain, jnp.ndim(u) + 1), sigma=(sigma, 0))  # type: ignore[arg-type]
    return _density(u / sigma) / sigma * gain.mean(axis=0)


def choice_gradient(u: jax.Array, perturbed_u: jax.Array, values: jax.Array, sigma: Scale) -> jax.Array:
    """Estimate the gradient of ``E[f]`` by ``u`` where ``f`` takes the option with the largest ``u_j + sigma_j w_j``.

    With the noise of the other options fixed, option j wins if ``u_j + sigma_j w_j`` exceeds the largest of the others,
    ``M_ij``. The expectation over ``w_j`` is exact:

        mean_i phi((M_ij - u_j) / sigma_j) / sigma_j * (f_i(j) - f_i(best other))

    :param u: ``(k, ...)``
    :param perturbed_u: ``u + sigma w_i``, ``(N, k, ...)``
    :param values: ``f_i`` with each option taken, ``(k, N, ...)``
    :param sigma: scale of the noise, ``(k,)``
    :return: ``(k, ...)``
    """
    k = len(u)
    assert_ranks(perturbed_u=(perturbed_u, jnp.ndim(u) + 1), values=(values, jnp.ndim(u) + 1), sigma=(sigma, 1))  # type: ignore[arg-type]
    if k == 1:
        return jnp.zeros_like(u)
    gradients = []
    for j in range(k):
        others = jnp.array([i for i in range(k) if i != j])
        rivals = perturbed_u[:, others]
        best = jnp.take_along_axis(values[others], jnp.argmax(rivals, axis=1)[None], axis=0)[0]
        weight = _density((rivals.max(axis=1) - u[j]) / sigma[j]) / sigma[j]  # type: ignore[index]
        gradients.append((weight * (values[j] - best)).mean(axis=0))
    return jnp.stack(gradients)


def _density(x: jax.Array) -> jax.Array:
    """Density of N(0, 1)."""
    return jnp.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)


def log_sigma_gradient(w: jax.Array, values: jax.Array) -> jax.Array:
    """Estimate ``d/d log sigma_j E[f(x + sigma w)] = E[f(x + sigma w) (w_j^2 - 1)]`` from antithetic pairs.

    Both halves of a pair have the same ``w_j^2``, so only their mean counts. The mean of the other pairs is subtracted
    as a baseline, which leaves the expectation unchanged.

    :param w: samples, ``(N, m, ...)``, in the order of :func:`gaussian_perturbations`
    :param values: ``f`` at the perturbed points, ``(N, ...)``
    :return: ``(m,)``, the mean over all further axes
    """
    assert_ranks(w=(w, max(jnp.ndim(w), 2)), values=(values, jnp.ndim(w) - 1))
    pairs = len(values) // 2
    means = (values[:pairs] + values[pairs:]) / 2
    advantages = (means - means.mean(axis=0)) * (pairs / (pairs - 1))
    terms = advantages[:, None] * (w[:pairs] ** 2 - 1)
    return terms.mean(axis=(0, *range(2, terms.ndim)))


def _by_component(sigma: Scale, x: jax.Array) -> Scale:
    """Reshape sigma so that it multiplies ``x``, ``(m, ...)``, component by component."""
    assert jnp.ndim(sigma) <= 1, f"sigma must have rank 0 or 1, not {jnp.ndim(sigma)}: {jnp.shape(sigma)}"
    return sigma if jnp.ndim(sigma) == 0 else jnp.reshape(sigma, (-1, *[1] * (jnp.ndim(x) - 1)))


def assert_ranks(**arguments: tuple[jax.Array | np.ndarray, int]) -> None:
    """Assert the rank of each named array. Shapes are static, so this costs nothing in a compiled call."""
    for name, (array, rank) in arguments.items():
        assert jnp.ndim(array) == rank, f"{name} must have rank {rank}, not {jnp.ndim(array)}: {jnp.shape(array)}"


def _mean(terms: jax.Array) -> jax.Array:
    """Average over the samples, ``(N, m, ...)`` to ``(m, ...)``.

    A product, whose operands XLA computes first; a sum would be fused with the sampling and run state by state.
    """
    n_samples = len(terms)
    return jnp.tensordot(jnp.full(n_samples, 1 / n_samples, terms.dtype), terms, axes=1, precision="highest")
