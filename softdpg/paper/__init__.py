"""What the paper ran and what it reported, as data.

Section 6 (Table 1, Figure 2), the appendix on sensitivity (Figure 3), the hyperparameter table and the appendix
on additional environments (Table 2, Figure 4).
"""

from softdpg.paper.environments import ENV_IDS, ENVIRONMENTS, FIGURE_ROWS, Environment, Rewards, expand_env
from softdpg.paper.lines import CONTENDERS, FINISHING_LINES, RACE_BUDGET, RACE_SEEDS
from softdpg.paper.protocol import (
    BASELINE,
    EVALUATION_EPISODES,
    EVALUATION_EVERY,
    FINAL_FRACTION,
    HYPERPARAMETERS,
    METHOD,
    N_SAMPLES,
    PAPER_ALGORITHMS,
    SEEDS,
    SIGMA,
    STUDY_ALGORITHMS,
    TOTAL_TIMESTEPS,
)
from softdpg.paper.scores import PAPER_SCORES, Score, Scores
from softdpg.paper.targets import SWEEPS, SWEPT, TARGETS, Sweep, Target

__all__ = [
    "BASELINE",
    "CONTENDERS",
    "ENVIRONMENTS",
    "ENV_IDS",
    "EVALUATION_EPISODES",
    "EVALUATION_EVERY",
    "FIGURE_ROWS",
    "FINAL_FRACTION",
    "FINISHING_LINES",
    "HYPERPARAMETERS",
    "METHOD",
    "N_SAMPLES",
    "PAPER_ALGORITHMS",
    "PAPER_SCORES",
    "RACE_BUDGET",
    "RACE_SEEDS",
    "SEEDS",
    "SIGMA",
    "STUDY_ALGORITHMS",
    "SWEEPS",
    "SWEPT",
    "TARGETS",
    "TOTAL_TIMESTEPS",
    "Environment",
    "Rewards",
    "Score",
    "Scores",
    "Sweep",
    "Target",
    "expand_env",
]
