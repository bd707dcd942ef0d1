"""The finishing lines of the race, against the numbers of the paper's tables."""

import gymnasium as gym

from softdpg import paper


def test_the_line_is_the_better_of_the_two_means():
    lines = paper.FINISHING_LINES
    assert len(lines) == 22
    discrete, continuous = list(lines)[:11], list(lines)[11:]
    assert [lines[env] for env in discrete] == [
        *(271.93, 1698.09, 22.29, 79.53, 580.11, 10383.10, 19284.25),
        *(25.42, 99.03, 2182.19, 100.0),
    ]
    assert [lines[env] for env in continuous] == [
        *(3742.10, 4275.58, 1243.69, 2218.03, 2496.36, 892.73, 9343.24),
        *(76.95, 273.11, -149.60, 90.0),
    ]
    assert discrete == [environment.discrete for environment in paper.ENVIRONMENTS.values()]
    assert lines["MountainCarContinuous-v0"] == gym.spec("MountainCarContinuous-v0").reward_threshold
