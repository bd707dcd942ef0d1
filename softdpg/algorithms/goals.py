"""What hindsight replay asks of an environment, and the ways to choose a goal."""

from typing import Literal, get_args

GOAL_PARTS = ("observation", "achieved_goal", "desired_goal")  # of a Dict observation, each a Box
GoalSelection = Literal["future", "final", "episode"]
GOAL_SELECTIONS: tuple[str, ...] = get_args(GoalSelection)
