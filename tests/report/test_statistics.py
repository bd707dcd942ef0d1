"""Statistics against hand-worked values, closed forms and slow plain versions."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softdpg.report.statistics import (
    Spent,
    average_runtime,
    compare,
    interquartile_mean,
    mean_std,
    probability_of_improvement,
    runtime_ratio,
)

scores = st.lists(st.integers(-5, 5), min_size=1, max_size=6).map(lambda values: np.array(values, dtype=float))


def test_std_is_the_sample_standard_deviation():
    # Deviations -3, -1, 1, 3: the sum of squares is 20, over n - 1 = 3.
    assert mean_std(np.array([1.0, 3.0, 5.0, 7.0])) == (4.0, pytest.approx(math.sqrt(20 / 3)))
    assert mean_std(np.array([4.0])) == (4.0, None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 10, 20, 30, 1000], 20.0),  # one cut at each end of five
        ([0, 10, 1000], 1010 / 3),  # none of three
        ([8, 1, 2, 3, 4, 5, 6, 7], 4.5),  # two at each end of eight
    ],
)
def test_interquartile_mean_by_hand(values, expected):
    assert interquartile_mean(np.array(values, dtype=float)).value == pytest.approx(expected)


def test_bootstrap_interval_against_the_exact_bootstrap_distribution():
    # All 5^5 resamples of five seeds, each equally likely: the interval's ends are quantiles of the exact
    # distribution, up to the sampling error of 9,999 resamples (0.16 % of probability at the 2.5 % quantile).
    values = np.array([3.0, 10.0, 11.0, 15.0, 40.0])
    grid = np.array(np.meshgrid(*[values] * 5)).reshape(5, -1)
    exact = np.sort(np.sort(grid, axis=0)[1:4].mean(axis=0))
    estimate = interquartile_mean(values)
    assert exact[int(0.020 * exact.size)] <= estimate.low <= exact[int(0.030 * exact.size)]
    assert exact[int(0.970 * exact.size)] <= estimate.high <= exact[int(0.980 * exact.size)]


def test_interval_is_reproducible_and_missing_for_one_seed():
    values = np.array([1.0, 2.0, 4.0])
    assert interquartile_mean(values) == interquartile_mean(values)
    assert interquartile_mean(values[:1]) == (1.0, None, None)
    assert compare(values[:1], values) == ((1 / 6, None, None), None)


@settings(max_examples=25)
@given(scores, scores)
def test_probability_of_improvement_counts_pairs(x, y):
    plain = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in x for b in y) / (len(x) * len(y))
    assert compare(x, y).probability.value == pytest.approx(plain)


def test_p_value_is_that_of_all_splits():
    # 5 against 5, separated: 2 of C(10, 5) = 252 splits are as extreme. 3 against 3: 2 of 20.
    low, high = np.arange(5.0), np.arange(10.0, 15.0)
    assert compare(high, low).p_value == pytest.approx(2 / 252)
    assert compare(high, low).probability == (1.0, 1.0, 1.0)
    assert compare(high[:3], low[:3]).p_value == pytest.approx(2 / 20)
    assert compare(low, low).p_value == 1.0
    assert compare(np.ones(5), np.ones(5)) == ((0.5, 0.5, 0.5), 1.0)


def test_average_over_environments_is_stratified():
    # In each environment alone the share is 1 or 0 whatever is drawn, so resampling within environments has no
    # spread; pooling the environments would.
    low, high = np.array([0.0, 1.0]), np.array([5.0, 6.0])
    assert probability_of_improvement([(high, low), (low + 100, high + 100)]) == (0.5, 0.5, 0.5)
    mixed = probability_of_improvement([(high, low), (np.array([0.0, 2.0]), np.array([1.0, 1.0]))])
    # The second environment's share is the number of twos among two samples over 2: 0, 1/2 or 1.
    assert mixed == (0.75, 0.5, 1.0)


def spent(*seeds):
    """What seeds spent: positive costs reached the target, negative ones did not."""
    costs = np.array(seeds, dtype=float)
    return Spent(np.abs(costs), costs > 0)


def test_average_runtime_by_hand():
    assert average_runtime(spent(4, 8)) == 6.0
    assert average_runtime(spent(4, 8, -24)) == 18.0  # 36 for two successes
    assert average_runtime(spent(-24, -24, 12)) == 60.0
    assert average_runtime(spent(-24, -24)) == math.inf


def test_runtime_ratio_is_the_geometric_mean_over_tasks():
    # 12 / 3 and 9 / 1: the second X has no success, and all that it spent counts.
    found = runtime_ratio([(spent(4, 8, -12), spent(3)), (spent(-4, -5), spent(1))])
    assert found == (pytest.approx(6.0), None, None)


def test_runtime_ratio_interval_against_the_exact_bootstrap_distribution():
    """Plain version: all resamples of three and three seeds in two tasks, each equally likely: 27 values for each."""
    x, y = spent(2, 9, -20), spent(5, 6, -30)
    far = spent(10, 12, 40), spent(7, 21, 8)

    def logs(one):
        seeds = list(zip(one.costs, one.reached, strict=True))
        resamples = [[sum(column) for column in zip(*chosen, strict=True)] for chosen in product(seeds, repeat=3)]
        return np.log([cost / max(successes, 1) for cost, successes in resamples])

    task = [np.subtract.outer(logs(a), logs(b)).ravel() for a, b in ((x, y), far)]
    exact = np.sort(np.exp(np.add.outer(*task).ravel() / 2))
    assert exact.size == 27**4
    found = runtime_ratio([(x, y), far])
    assert found.value == pytest.approx(math.sqrt((31 / 2) / (41 / 2) * (62 / 36)))
    assert exact[int(0.020 * exact.size)] <= found.low <= exact[int(0.030 * exact.size)]
    assert exact[int(0.970 * exact.size)] <= found.high <= exact[int(0.980 * exact.size)]
    assert found == runtime_ratio([(x, y), far])


def test_cost_and_success_of_a_seed_stay_together():
    # Of seeds (1, reached) and (99, missed): 2 / 2, 100 / 1 or 198 / 1, with probabilities 1/4, 1/2 and 1/4.
    assert runtime_ratio([(spent(1, -99), spent(1, 1))]) == pytest.approx((100.0, 1.0, 198.0))
