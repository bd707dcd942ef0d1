"""Two custom environments: a point mass with a sparse reward, with a fixed goal and with changing goals for HER.

Importing this module registers ``PointMass-v0`` and ``PointMassGoal-v0`` with Gymnasium. Both ids then work in
``gym.make``, in models of Stable-Baselines3 and softdpg, and on the command line:

    softdpg train --env examples.point_mass:PointMass-v0 --algo soft-td3 --steps 20000 --out runs/point_mass
"""

from typing import Any

import gymnasium as gym
import numpy as np

SIDE = 1.0  # metres: the arena is a square around the origin
RADIUS = 0.05  # within 5 cm of the goal is at the goal
SPEED = 0.1  # metres per step along each axis, at full action
STEPS = 50  # time limit: crossing the arena takes 10
SIZE = 200  # width and height of a rendered frame, in pixels


class _Arena(gym.Env):
    """The common part: a square of 1 by 1 metre and a mass that moves in it."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        self.render_mode = render_mode
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.place = gym.spaces.Box(-SIDE / 2, SIDE / 2, (2,), np.float32)
        self.position, self.goal = np.zeros(2, np.float32), np.zeros(2, np.float32)

    def _anywhere(self) -> np.ndarray:
        return self.np_random.uniform(self.place.low, self.place.high).astype(np.float32)

    def _anywhere_but_at_the_goal(self) -> np.ndarray:
        while at_goal(position := self._anywhere(), self.goal):
            pass
        return position

    def _move(self, action: np.ndarray) -> None:
        velocity = SPEED * np.clip(np.asarray(action, np.float32), -1.0, 1.0)
        self.position = np.clip(self.position + velocity, self.place.low, self.place.high)

    def render(self) -> np.ndarray | None:
        """Render the arena from above: the goal in green, the mass in black."""
        if self.render_mode is None:
            return None
        picture = np.full((SIZE, SIZE, 3), 255, np.uint8)
        y, x = SIDE / 2 * np.mgrid[1 : -1 : SIZE * 1j, -1 : 1 : SIZE * 1j]
        for centre, radius, colour in ((self.goal, RADIUS, (40, 160, 80)), (self.position, 0.01, (0, 0, 0))):
            picture[np.hypot(x - centre[0], y - centre[1]) < radius] = colour
        return picture


def at_goal(position: np.ndarray, goal: np.ndarray) -> Any:
    """Tell whether positions ``(..., 2)`` are within ``RADIUS`` of goals ``(..., 2)``: Booleans ``(...)``."""
    return np.linalg.norm(position - goal, axis=-1) < RADIUS


class PointMass(_Arena):
    """``PointMass-v0``: find a goal that never moves and is not observed, and stay there.

    **Observation** ``Box(-0.5, 0.5, (2,), float32)``: x and y of the mass, in metres.

    **Action** ``Box(-1, 1, (2,), float32)``: the velocity along x and y. A step moves the mass by 0.1 m times the
    action; the walls of the arena stop it.

    **Starting state**: the mass is placed uniformly in the arena, outside the goal.

    **Reward**

    | where | reward |
    | --- | --- |
    | within 0.05 m of the goal | 1 |
    | otherwise | 0 |

    **Episode end**: truncated after 50 steps, never terminated. ``info["is_success"]`` says whether the mass is at the
    goal.

    **Ceiling** of the return: 50; about 47 on average on the shortest paths. A uniformly random policy reaches the
    goal in about 1 of 6 episodes.

    **Arguments**: ``goal``, (0.25, 0.25) by default; ``render_mode``, None or ``"rgb_array"``.

    **Version history**: v0, as above.
    """

    def __init__(self, goal: tuple[float, float] = (0.25, 0.25), render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.observation_space = self.place
        self.goal = np.array(goal, np.float32)
        if not self.observation_space.contains(self.goal):
            raise ValueError(f"goal must be two numbers in [-0.5, 0.5], got {goal!r}")

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Place the mass at random."""
        super().reset(seed=seed)
        self.position = self._anywhere_but_at_the_goal()
        return self.position.copy(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Move the mass."""
        self._move(action)
        success = bool(at_goal(self.position, self.goal))
        return self.position.copy(), float(success), False, False, {"is_success": success}


class PointMassGoal(_Arena):
    """``PointMassGoal-v0``: reach a goal that changes with each episode; made for hindsight replay.

    **Observation**: a Dict, as ``HerReplayBuffer`` requires, of three ``Box(-0.5, 0.5, (2,), float32)`` in metres.

    | key | meaning |
    | --- | --- |
    | ``observation`` | x and y of the mass |
    | ``achieved_goal`` | the same: where the mass is |
    | ``desired_goal`` | x and y of the goal |

    **Action** and motion: those of ``PointMass-v0``.

    **Starting state**: goal and mass are placed uniformly in the arena, the mass outside the goal.

    **Reward**: ``compute_reward(achieved_goal, desired_goal, info)``

    | where | reward |
    | --- | --- |
    | within 0.05 m of the goal | 0 |
    | otherwise | -1 |

    **Episode end**: that of ``PointMass-v0``.

    **Ceiling** of the return: 0; about -4 on average on the shortest paths.

    **Arguments**: ``render_mode``, None or ``"rgb_array"``.

    **Version history**: v0, as above.
    """

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.observation_space = gym.spaces.Dict(
            observation=self.place, achieved_goal=self.place, desired_goal=self.place
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Place goal and mass at random."""
        super().reset(seed=seed)
        self.goal = self._anywhere()
        self.position = self._anywhere_but_at_the_goal()
        return self._observation(), {}

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Move the mass."""
        self._move(action)
        reward = float(self.compute_reward(self.position, self.goal, {}))
        return self._observation(), reward, False, False, {"is_success": reward == 0.0}

    def compute_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any) -> np.ndarray:
        """Return the rewards ``(...)`` for achieved and desired goals ``(..., 2)``; HER calls this with new goals."""
        return np.where(at_goal(achieved_goal, desired_goal), 0.0, -1.0).astype(np.float32)

    def _observation(self) -> dict[str, np.ndarray]:
        position = self.position.copy()
        return {"observation": position, "achieved_goal": position.copy(), "desired_goal": self.goal.copy()}


for _class in (PointMass, PointMassGoal):
    gym.register(f"{_class.__name__}-v0", entry_point=f"{__name__}:{_class.__name__}", max_episode_steps=STEPS)
