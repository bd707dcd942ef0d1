"""The finishing lines of the race: for each of the 22 columns of Tables 1 and 2 the better of the paper's two means.

MountainCar's two (19.36 and -1) are below what reaching the goal pays, so that there the line is the goal itself:
100 with discrete rewards; with continuous ones, where the cost of the actions is taken off these 100, the threshold of
90 from which Gymnasium counts it as solved.
"""

from softdpg.paper.environments import ENVIRONMENTS, Rewards
from softdpg.paper.protocol import PAPER_ALGORITHMS
from softdpg.paper.scores import PAPER_SCORES

# The race's own protocol: who takes part unless said otherwise, seeds, and the steps after which a run ends.
CONTENDERS = ("soft-td3", "sbx-sac", "sbx-td3")
RACE_SEEDS = 3
RACE_BUDGET = 300_000

_GOALS = {"softdpg/MountainCarDiscrete-v0": 100.0, "MountainCarContinuous-v0": 90.0}
_REWARDS: tuple[Rewards, ...] = ("discrete", "continuous")


def _better_mean(name: str, rewards: Rewards) -> float:
    scores = (PAPER_SCORES[name].score(rewards, algorithm) for algorithm in PAPER_ALGORITHMS)
    return max(score.mean for score in scores if score)


# By Gymnasium id, discrete rewards first, in the order of the tables.
FINISHING_LINES: dict[str, float] = {
    environment.env_id(rewards): _GOALS.get(environment.env_id(rewards), _better_mean(name, rewards))
    for rewards in _REWARDS
    for name, environment in ENVIRONMENTS.items()
}
