"""What the algorithms ask of observation and action spaces."""

import numpy as np
from gymnasium import spaces


def check_spaces(observation_space: spaces.Space, action_space: spaces.Space) -> None:
    """Raise a ``ValueError`` that says what is accepted, unless the algorithms can work with these spaces."""
    if not isinstance(action_space, spaces.Box):
        raise ValueError(f"env must have a Box action space (continuous actions), not {action_space}")
    if not np.all(np.isfinite(action_space.low)) or not np.all(np.isfinite(action_space.high)):
        raise ValueError(f"env must have a bounded action space, with finite low and high, not {action_space}")
    parts = observation_space.values() if isinstance(observation_space, spaces.Dict) else [observation_space]
    if not all(isinstance(part, spaces.Box | spaces.MultiBinary) for part in parts):
        raise ValueError(f"env must have a Box or MultiBinary observation space or a Dict of them: {observation_space}")


def float32_space(space: spaces.Space) -> spaces.Space:
    """Return the space with every floating-point part in float32, so that a buffer made for it keeps float32."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: float32_space(part) for key, part in space.items()})
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32)
    return space


def all_finite(observations: np.ndarray | dict[str, np.ndarray]) -> bool:
    """Whether an observation, or each part of a Dict observation, is free of NaN and infinity."""
    parts = observations.values() if isinstance(observations, dict) else [observations]
    return all(bool(np.isfinite(part).all()) for part in parts)
