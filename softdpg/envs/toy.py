"""The toy of section 4: one state, one action, a reward in a narrow interval."""

from typing import Any

import gymnasium as gym
import numpy as np

from softdpg.envs.discrete_reward import reject_unknown
from softdpg.envs.rules.base import check_count, check_number, check_positive

_WIDTH = 401  # pixels of a picture


class Toy(gym.Env[np.ndarray, np.ndarray]):
    """``softdpg/Toy-v0``: a single state and a reward that is flat but for a narrow interval of actions.

    **Observation** ``Box(0, 1, (1,), float32)``: always ``[1]``.

    **Action** ``Box(-1, 1, (1,), float32)``: the number a that is rewarded or not.

    **Starting state**: the one state.

    **Reward**

    | where | reward |
    | --- | --- |
    | \\|a - center\\| < epsilon | 1 |
    | otherwise | 0 |

    **Episode end**: truncated after ``length`` steps, never terminated. The end says nothing about the state, so an
    algorithm that bootstraps through truncation learns Q(a) = r(a) + gamma V with V = 1 / (1 - gamma) under an optimal
    policy.

    **Memory** none. **Ceiling** of the return: ``length``.

    **Version history**: v0, 0.1.0.

    Args:
        epsilon: half the width of the rewarded interval, > 0; 0.05, so that 1 in 20 uniform actions is rewarded.
        length: steps of an episode.
        center: middle of the rewarded interval, in [-1, 1].
        render_mode: None or ``"rgb_array"``: the interval in green, the last action as a black line.
    """

    summary = "1 a step where |a - 0.5| < 0.05, else 0"
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(
        self,
        *,
        epsilon: float = 0.05,
        length: int = 50,
        center: float = 0.5,
        render_mode: str | None = None,
        **unknown: Any,
    ):
        reject_unknown("Toy", set(unknown), {"Toy": {"epsilon", "length", "center", "render_mode"}})
        self.epsilon = check_positive("epsilon", epsilon)
        self.length = check_count("length", length)
        self.center = check_number("center", center)
        if not -1.0 <= self.center <= 1.0:
            raise ValueError(f"center must be in [-1, 1], got {center!r}")
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self._steps = 0
        self._last_action: float | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self._steps, self._last_action = 0, None
        return np.ones(1, dtype=np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Score the action; the state stays."""
        self._steps, self._last_action = self._steps + 1, float(action[0])
        reward = 1.0 if abs(self._last_action - self.center) < self.epsilon else 0.0
        return np.ones(1, dtype=np.float32), reward, False, self._steps >= self.length, {}

    def render(self) -> np.ndarray | None:
        """The actions from -1 to 1: those that are rewarded in green, the last one black; ``(40, 401, 3)``."""
        if self.render_mode is None:
            return None
        actions = np.linspace(-1.0, 1.0, _WIDTH)
        picture = np.full((40, _WIDTH, 3), 255, np.uint8)
        picture[:, np.abs(actions - self.center) < self.epsilon] = (40, 160, 80)
        if self._last_action is not None:
            picture[:, np.abs(actions - self._last_action).argmin()] = 0
        return picture

    def ceiling(self) -> float:
        """Return the largest return of an episode."""
        return float(self.length)
