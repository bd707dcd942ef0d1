"""The numbers of Tables 1 and 2."""

from typing import NamedTuple

from softdpg.paper.environments import Rewards


class Score(NamedTuple):
    """Mean and standard deviation over seeds, as printed in the paper."""

    mean: float
    std: float


class Scores(NamedTuple):
    """One row of Table 1 or Table 2."""

    discrete_ddpg: Score
    discrete_soft_ddpg: Score
    continuous_ddpg: Score
    continuous_soft_ddpg: Score

    def score(self, rewards: Rewards, algorithm: str) -> Score | None:
        """The cell of an algorithm; None where the paper has none, as for the centered estimator."""
        return self._asdict().get(f"{rewards}_{algorithm.replace('-', '_')}")


PAPER_SCORES: dict[str, Scores] = {
    name: Scores(*(Score(*cell) for cell in row))
    for name, row in {
        # Table 1
        "Ant": ((190.56, 60.23), (271.93, 5.54), (1703.54, 696.72), (3742.10, 721.19)),
        "HalfCheetah": ((1599.42, 350.34), (1698.09, 223.51), (4275.58, 657.75), (188.81, 1483.14)),
        "Hopper": ((14.85, 4.29), (22.29, 9.26), (1243.69, 567.00), (883.59, 144.27)),
        "Walker2d": ((12.52, 4.13), (79.53, 46.71), (2218.03, 1036.51), (1650.24, 381.54)),
        "Humanoid": ((580.11, 320.87), (143.89, 14.73), (2496.36, 695.18), (437.65, 2.81)),
        "InvertedPendulum": ((10275.08, 53.76), (10383.10, 3.35), (892.73, 81.95), (857.69, 132.33)),
        "InvertedDoublePendulum": ((14678.94, 4693.22), (19284.25, 58.15), (280.40, 34.71), (9343.24, 22.42)),
        # Table 2
        "BipedalWalker": ((16.13, 6.22), (25.42, 5.46), (76.95, 164.00), (-80.48, 23.73)),
        "LunarLander": ((99.03, 3.13), (98.56, 5.17), (273.11, 3.77), (-787.54, 252.02)),
        "Pendulum": ((1797.67, 860.55), (2182.19, 19.22), (-149.60, 2.84), (-156.72, 3.28)),
        "MountainCar": ((15.06, 9.40), (19.36, 0.93), (-1.00, 0.00), (-1.00, 0.00)),
    }.items()
}
