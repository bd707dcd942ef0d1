"""A craft with eight thrusters that are on or off, each with a power: an environment with mixed actions.

Importing this module registers ``Thrusters-v0`` with Gymnasium. Train on it with

    softdpg train --env examples.thrusters:Thrusters-v0 --algo soft-td3 --steps 30000 --out runs/thrusters
"""

from typing import Any

import gymnasium as gym
import numpy as np

N = 8  # thrusters, 45 degrees apart
PUSH = 0.05  # metres per step that one thruster moves the craft at full power
RADIUS = 0.05  # within 5 cm of the goal is at the goal
STEPS = 50  # time limit
ANGLES = 2 * np.pi * np.arange(N) / N
DIRECTIONS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)


class Thrusters(gym.Env):
    """``Thrusters-v0``: fly to a goal that never moves and is not observed, and stay there.

    **Observation** ``Box(-0.5, 0.5, (2,), float32)``: x and y of the craft, in metres.

    **Action**: a Dict with one entry for each of the eight thrusters.

    | key | space | meaning |
    | --- | --- | --- |
    | ``on`` | ``MultiBinary(8)`` | which thrusters fire |
    | ``power`` | ``Box(0.2, 1, (8,), float32)`` | how strongly they do; a thruster that is off has no power |

    A step moves the craft by 0.05 m times the sum of the thrusts; the walls of the arena stop it. A thruster that is on
    pushes with at least a fifth of its power, so that a craft at rest has to switch thrusters off or balance them.

    **Starting state**: the craft is placed uniformly in the arena, outside the goal.

    **Reward**: 1 within 0.05 m of the goal, otherwise 0.

    **Episode end**: truncated after 50 steps, never terminated.

    **Ceiling** of the return: 50; about 46 on average on the shortest paths.

    **Version history**: v0, as above.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012
    goal = np.array([0.25, 0.25], np.float32)

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-0.5, 0.5, (2,), np.float32)
        self.action_space = gym.spaces.Dict(
            on=gym.spaces.MultiBinary(N), power=gym.spaces.Box(0.2, 1.0, (N,), np.float32)
        )
        self.position = np.zeros(2, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Place the craft at random."""
        super().reset(seed=seed)
        while True:
            self.position = self.np_random.uniform(-0.5, 0.5, 2).astype(np.float32)
            if not self._at_goal():
                return self.position.copy(), {}

    def step(self, action: dict[str, np.ndarray]) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Fire the thrusters."""
        thrust = np.asarray(action["on"]) * np.asarray(action["power"])
        self.position = np.clip(self.position + PUSH * thrust @ DIRECTIONS, -0.5, 0.5).astype(np.float32)
        success = self._at_goal()
        return self.position.copy(), float(success), False, False, {"is_success": success}

    def _at_goal(self) -> bool:
        return bool(np.linalg.norm(self.position - self.goal) < RADIUS)


gym.register("Thrusters-v0", entry_point=f"{__name__}:Thrusters", max_episode_steps=STEPS)
