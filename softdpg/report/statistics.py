"""Statistics over seeds, with the definitions of Agarwal et al. (2021), "Deep RL at the edge of the statistical
precipice" (rliable) and of COCO (Hansen et al., 2021), computed by scipy.

Scores and costs have shape (seeds,), one value per seed. Intervals are 95 % percentile bootstrap intervals over seeds,
resampled independently within each environment and algorithm (stratified). The random generator is fixed, so that the
same values give the same interval.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 9_999
BOOTSTRAP_SEED = 0


class Estimate(NamedTuple):
    """A value and its interval; no interval if some sample has a single seed."""

    value: float
    low: float | None
    high: float | None


class Comparison(NamedTuple):
    """P(X > Y) over the seeds of two algorithms, and the p-value of the test that it is 1/2."""

    probability: Estimate
    p_value: float | None


def mean_std(scores: Array) -> tuple[float, float | None]:
    """Return the mean and the sample standard deviation, sqrt(sum (x_i - mean)^2 / (n - 1)); None for a single seed.

    :param scores: one score per seed
    """
    return float(scores.mean()), float(scores.std(ddof=1)) if len(scores) > 1 else None


def interquartile_mean(scores: Array) -> Estimate:
    """Return the mean of the scores without floor(n / 4) of them at each end, with its interval.

    :param scores: one score per seed
    """
    return _estimate(lambda x, axis=-1: stats.trim_mean(x, 0.25, axis=axis), [scores])


def compare(x: Array, y: Array) -> Comparison:
    """Return the probability of improvement of X over Y in one environment, with a two-sided Mann-Whitney test.

    The test goes through all splits of the pooled seeds into two groups (9,999 random splits from 8 seeds each). It
    therefore holds for few seeds and for ties, where the bootstrap interval is too narrow: three seeds that all beat
    three others give the interval [1, 1] and p = 0.1.

    :param x: scores of the seeds of X
    :param y: scores of the seeds of Y
    """
    probability = probability_of_improvement([(x, y)])
    if min(len(x), len(y)) < 2:
        return Comparison(probability, None)
    method = stats.PermutationMethod(n_resamples=RESAMPLES, rng=np.random.default_rng(BOOTSTRAP_SEED))
    return Comparison(probability, float(stats.mannwhitneyu(x, y, method=method).pvalue))


def probability_of_improvement(pairs: Sequence[tuple[Array, Array]]) -> Estimate:
    """Return P(X > Y) averaged over environments, with its interval.

    In one environment it is the fraction of pairs with x_i > y_j, ties counting 1/2. This is U / (n m), with U the
    Mann-Whitney statistic.

    :param pairs: scores of the seeds of X and of Y, one pair per environment
    """

    def statistic(*samples: Array, axis: int = -1) -> Array:
        fractions = [
            stats.mannwhitneyu(x, y, axis=axis, method="asymptotic").statistic / (x.shape[axis] * y.shape[axis])
            for x, y in zip(samples[::2], samples[1::2], strict=True)
        ]
        return np.mean(fractions, axis=0)

    return _estimate(statistic, [sample for pair in pairs for sample in pair])


class Spent(NamedTuple):
    """What the seeds of an algorithm spent on a task.

    :param costs: cost until a seed reached the target score, or of its whole budget, ``(seeds,)``
    :param reached: whether it reached the target score, ``(seeds,)``
    """

    costs: Array
    reached: NDArray[np.bool_]


def average_runtime(spent: Spent) -> float:
    """Return the average runtime (ART) of COCO: the cost of all seeds, divided by the number that reached the target.

    :param spent: what the seeds spent
    :return: infinite if no seed reached the target
    """
    successes = int(spent.reached.sum())
    return float(spent.costs.sum()) / successes if successes else inf


def runtime_ratio(pairs: Sequence[tuple[Spent, Spent]]) -> Estimate:
    """Return the average runtime of X divided by that of Y, the geometric mean over tasks, with its interval.

    Where no seed reached the target, in a task or in a resample of one, the cost of all seeds stands for the average
    runtime. It is a lower bound.

    :param pairs: what the seeds of X and of Y spent, positive costs, one pair per task
    """
    spent = [one for pair in pairs for one in pair]

    def statistic(*indices: NDArray[np.intp], axis: int = -1) -> Array:
        logs = [
            np.log(costs[chosen].sum(axis=axis) / np.maximum(reached[chosen].sum(axis=axis), 1))
            for (costs, reached), chosen in zip(spent, indices, strict=True)
        ]
        return np.exp(np.mean([x - y for x, y in zip(logs[::2], logs[1::2], strict=True)], axis=0))

    # Indices are resampled, so that the cost of a seed and whether it reached the target stay together.
    return _estimate(statistic, [np.arange(len(costs)) for costs, _ in spent])


def _estimate(statistic: Callable[..., Array], samples: Sequence[NDArray[Any]]) -> Estimate:
    value = float(statistic(*samples))
    if min(map(len, samples)) < 2:
        return Estimate(value, None, None)
    interval = stats.bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(BOOTSTRAP_SEED),
    ).confidence_interval
    return Estimate(value, float(interval.low), float(interval.high))
