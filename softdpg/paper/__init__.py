"""What the paper ran and what it reported, as data.

Section 6 (Table 1, Figure 2), the appendix on sensitivity (Figure 3), the hyperparameter table and the appendix
on additional environments (Table 2, Figure 4). Nothing is computed here but the lists of runs of each target.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

Rewards = Literal["discrete", "continuous"]


@dataclass(frozen=True)
class Environment:
    """One row of Table 1 or Table 2: an environment with its discrete and its continuous reward."""

    name: str
    label: str
    continuous: str
    table: Literal[1, 2]

    @property
    def discrete(self) -> str:
        """Gymnasium id of the discrete-reward variant."""
        return f"softdpg/{self.name}Discrete-v0"

    def env_id(self, rewards: Rewards) -> str:
        """Gymnasium id of the variant with the given rewards."""
        return self.discrete if rewards == "discrete" else self.continuous


# In the order of the tables.
ENVIRONMENTS: dict[str, Environment] = {
    environment.name: environment
    for environment in (
        Environment("Ant", "Ant", "Ant-v5", 1),
        Environment("HalfCheetah", "HalfCheetah", "HalfCheetah-v5", 1),
        Environment("Hopper", "Hopper", "Hopper-v5", 1),
        Environment("Walker2d", "Walker2d", "Walker2d-v5", 1),
        Environment("Humanoid", "Humanoid", "Humanoid-v5", 1),
        Environment("InvertedPendulum", "Inverted Pendulum", "InvertedPendulum-v5", 1),
        Environment("InvertedDoublePendulum", "Inverted Double Pendulum", "InvertedDoublePendulum-v5", 1),
        Environment("BipedalWalker", "BipedalWalker", "BipedalWalker-v3", 2),
        Environment("LunarLander", "LunarLander", "LunarLanderContinuous-v3", 2),
        Environment("Pendulum", "Pendulum", "Pendulum-v1", 2),
        Environment("MountainCar", "MountainCar", "MountainCarContinuous-v0", 2),
    )
}

# Rows of panels in the paper's figures; each is drawn for one kind of reward, see figures.py. Figure 2 shows
# the double pendulum before the single one, unlike Table 1.
FIGURE_ROWS: dict[int, tuple[tuple[str, ...], ...]] = {
    1: (("Ant", "HalfCheetah", "Hopper", "Walker2d"), ("Humanoid", "InvertedDoublePendulum", "InvertedPendulum")),
    2: (("BipedalWalker", "LunarLander", "Pendulum", "MountainCar"),),
}


@dataclass(frozen=True)
class Algorithm:
    """An algorithm as tables and figures name it, and the class and estimator behind it."""

    name: str
    label: str
    algo: Literal["ddpg", "soft-ddpg"]
    estimator: Literal["paper", "centered"] | None
    in_paper: bool


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("ddpg", "DDPG", "ddpg", None, in_paper=True),
        Algorithm("soft-ddpg", "Soft DDPG", "soft-ddpg", "paper", in_paper=True),
        Algorithm("soft-ddpg-centered", "Soft DDPG, centered (ours)", "soft-ddpg", "centered", in_paper=False),
    )
}
PAPER_ALGORITHMS = tuple(name for name, algorithm in ALGORITHMS.items() if algorithm.in_paper)

# The hyperparameter table. Keys are the keyword arguments of DDPG and SoftDDPG; what the table leaves open
# (exploration noise, warm-up, critic layout) has its default there.
SIGMA = 0.2
N_SAMPLES = 50
TOTAL_TIMESTEPS = 1_000_000
HYPERPARAMETERS: dict[str, float | int | tuple[int, ...]] = {
    "gamma": 0.99,
    "batch_size": 256,
    "tau": 0.005,
    "learning_rate": 1e-4,  # actor
    "qf_learning_rate": 1e-4,  # critic
    "buffer_size": 1_000_000,
    "net_arch": (400, 300),
}
SEEDS = 5

# The paper does not state its evaluation protocol; this one is ours. A seed's final score is the mean over the
# last tenth of its evaluations.
EVALUATION_EVERY = 5_000
EVALUATION_EPISODES = 10
FINAL_FRACTION = 0.1

# The sweeps of Figure 3, both on continuous Ant.
SENSITIVITY_ENV = "Ant-v5"
SENSITIVITY_SAMPLES = (10, 20, 50, 100)  # at SIGMA
SENSITIVITY_SIGMA = (0.001, 0.01, 0.1, 0.2, 0.5)  # at SENSITIVITY_SIGMA_N_SAMPLES
SENSITIVITY_SIGMA_N_SAMPLES = 10


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


@dataclass(frozen=True)
class RunSpec:
    """One training run. Equal specifications are the same run, whichever target asks for it.

    ``algo`` is a key of :data:`ALGORITHMS`; ``sigma`` and ``n_samples`` are None for DDPG.
    """

    env: str
    algo: str
    seed: int
    steps: int = TOTAL_TIMESTEPS
    sigma: float | None = None
    n_samples: int | None = None


# The targets that consist of runs. `toy` is one command of its own and `all` is everything.
TARGETS = ("table1", "table2", "sensitivity-samples", "sensitivity-sigma")


def _settings(target: str) -> list[tuple[float, int]]:
    """The pairs (sigma, N) at which a target runs Soft DDPG."""
    if target == "sensitivity-samples":
        return [(SIGMA, n) for n in SENSITIVITY_SAMPLES]
    if target == "sensitivity-sigma":
        return [(sigma, SENSITIVITY_SIGMA_N_SAMPLES) for sigma in SENSITIVITY_SIGMA]
    return [(SIGMA, N_SAMPLES)]


def target_envs(target: str) -> tuple[str, ...]:
    """Gymnasium ids of a target's environments, the discrete-reward ones first, in the paper's order."""
    if target in ("sensitivity-samples", "sensitivity-sigma"):
        return (SENSITIVITY_ENV,)
    if target not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(TARGETS)}, got {target!r}")
    rows = [environment for environment in ENVIRONMENTS.values() if target == f"table{environment.table}"]
    return tuple(row.discrete for row in rows) + tuple(row.continuous for row in rows)


def expand_env(name: str) -> tuple[str, ...]:
    """Gymnasium ids meant by a name: ``Ant`` is both variants, ``AntDiscrete`` one, any other name itself."""
    if name in ENVIRONMENTS:
        return ENVIRONMENTS[name].discrete, ENVIRONMENTS[name].continuous
    for environment in ENVIRONMENTS.values():
        if name in (f"{environment.name}Discrete", f"{environment.name}Discrete-v0"):
            return (environment.discrete,)
    return (name,)


def runs(
    targets: Iterable[str],
    *,
    steps: int = TOTAL_TIMESTEPS,
    seeds: int = SEEDS,
    envs: Sequence[str] | None = None,
    algos: Sequence[str] = PAPER_ALGORITHMS,
) -> list[RunSpec]:
    """The runs of the given targets, each once.

    ``envs`` (names for :func:`expand_env`) replaces the targets' own environments. DDPG has neither sigma nor N,
    so the sensitivity targets leave it out. Seeds vary slowest: wherever a reproduction is stopped, its
    comparisons have as equal numbers of seeds as possible.
    """
    unknown = [algo for algo in algos if algo not in ALGORITHMS]
    if unknown:
        raise ValueError(f"algos must be among {', '.join(ALGORITHMS)}, got {', '.join(unknown)}")
    found: dict[RunSpec, None] = {}
    for seed, target in product(range(seeds), targets):
        ids = target_envs(target) if envs is None else [env_id for name in envs for env_id in expand_env(name)]
        for env_id, algo in product(ids, algos):
            if algo != "ddpg":
                for sigma, n_samples in _settings(target):
                    found[RunSpec(env_id, algo, seed, steps, sigma, n_samples)] = None
            elif not target.startswith("sensitivity"):
                found[RunSpec(env_id, algo, seed, steps)] = None
    return list(found)
