"""Replay buffers in memory and on disk, hindsight replay, and batches from any SB3 buffer.

The command line reads the names below, so this file imports neither JAX nor torch.
"""

from typing import Literal, get_args

GOAL_PARTS = ("observation", "achieved_goal", "desired_goal")  # Box parts of a goal environment's Dict observation
GoalSelection = Literal["future", "final", "episode"]
GOAL_SELECTIONS: tuple[str, ...] = get_args(GoalSelection)
