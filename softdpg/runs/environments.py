"""Environments for runs: found by id, checked, and seeded episode by episode."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from softdpg.algorithms.goals import GOAL_PARTS
from softdpg.algorithms.shapes import check_shape
from softdpg.envs.box2d import NewWorld
from softdpg.errors import UserError, near_matches
from softdpg.runs.modules import HOW, import_module_of

_PARTS = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)  # of a Dict observation
# The streams of seeds of a run.
TRAINING, EVALUATION, REPLAY = range(3)


def episode_seed(seed: int, stream: int, *number: int) -> int:
    """A seed for one episode, independent of every other stream's and number's."""
    return int(np.random.SeedSequence(seed, spawn_key=(stream, *number)).generate_state(1)[0])


class SeededEpisodes(gym.Wrapper):
    """Seeds every reset from the run's seed and the episode's number, and keeps the actions of the episode.

    The state of an environment is then a function of two integers and the actions so far, whatever random generators
    it holds, so a run can go on from any step without a snapshot of the environment.

    :param index: the environment's number among those that run side by side
    """

    def __init__(self, env: gym.Env, seed: int, index: int = 0) -> None:
        super().__init__(env)
        self.seed, self.index = seed, index
        self.episode = 0  # the number of the next reset
        self._actions: list[np.ndarray] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start the next episode; the caller's seed is not used."""
        number = (self.episode, self.index) if self.index else (self.episode,)
        self.episode += 1
        self._actions = []
        observation, info = self.env.reset(seed=episode_seed(self.seed, TRAINING, *number), options=options)
        check_shape(observation, self.observation_space)
        return observation, info

    def step(self, action: np.ndarray) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, remembering the action; ``ValueError`` for an action or observation that cannot be."""
        if not np.isfinite(action).all():
            raise ValueError(f"the policy diverged: its action is {action}")
        self._actions.append(np.array(action))
        observation, reward, terminated, truncated, info = self.env.step(action)
        check_shape(observation, self.observation_space)
        return observation, reward, terminated, truncated, info

    @property
    def actions(self) -> np.ndarray:
        """The actions of the present episode, ``(steps, m)``."""
        space = self.action_space
        return np.stack(self._actions) if self._actions else np.empty((0, *(space.shape or ())), space.dtype)


def _check_spaces(env: gym.Env, env_id: str) -> None:
    observations, actions = env.observation_space, env.action_space
    if isinstance(observations, spaces.Dict):
        for name, part in observations.items():
            if not isinstance(part, _PARTS):
                raise UserError(
                    f"{env_id} has a {type(part).__name__} as part {name!r} of its observation; softdpg needs "
                    f"{', '.join(kind.__name__ for kind in _PARTS[:-1])} or {_PARTS[-1].__name__}"
                )
    elif not isinstance(observations, spaces.Box):
        raise UserError(
            f"{env_id} has a {type(observations).__name__} observation space; softdpg needs a Box, or a Dict of parts"
        )
    if not isinstance(actions, spaces.Box):
        raise UserError(f"{env_id} has a {type(actions).__name__} action space; softdpg needs a Box")
    if not actions.is_bounded():
        raise UserError(f"{env_id} has an unbounded action space; softdpg needs finite bounds")


def check_normalizable(env: gym.Env, env_id: str) -> None:
    """``UserError`` unless there are observations to normalise."""
    space = env.observation_space
    parts = list(space.values()) if isinstance(space, spaces.Dict) else [space]
    boxes = [part for part in parts if isinstance(part, spaces.Box)]
    if not boxes:
        raise UserError(f"--normalize applies to Box observations; {env_id} has none")
    if any(box.dtype == np.uint8 and len(box.shape) == 3 for box in boxes):
        raise UserError(f"--normalize does not apply to images, as {env_id} has them; they are divided by 255 anyway")


def check_goals(env: gym.Env, env_id: str) -> None:
    """``UserError`` unless hindsight replay can work with the environment."""
    observations: Any = env.observation_space
    parts = observations.spaces if isinstance(observations, spaces.Dict) else {}
    missing = [name for name in GOAL_PARTS if not isinstance(parts.get(name), spaces.Box)]
    if missing:
        raise UserError(
            f"--her needs an environment with goals, a Dict observation with the parts {', '.join(GOAL_PARTS)}; "
            f"{env_id} has no Box {missing[0]!r}"
        )
    if parts["achieved_goal"].shape != parts["desired_goal"].shape:
        raise UserError(f"--her needs achieved and desired goals of one shape; those of {env_id} differ")
    if not env.has_wrapper_attr("compute_reward"):
        raise UserError(f"--her needs compute_reward(achieved_goal, desired_goal, info), which {env_id} has not")


def make_env(env_id: str, env_kwargs: Mapping[str, Any] = {}, render_mode: str | None = None) -> gym.Env:
    """Make an environment with Box actions, and Box or Dict observations; ``UserError`` if there is none of that name.

    An id with a module imports it, see :mod:`softdpg.runs.modules`.

    :param env_kwargs: arguments of its constructor, and of ``gymnasium.make``
    """
    registered = import_module_of(env_id)
    arguments = dict(env_kwargs) | ({"render_mode": render_mode} if render_mode else {})  # which not every class takes
    try:
        env = gym.make(registered, **arguments)
    except (gym.error.UnregisteredEnv, gym.error.DeprecatedEnv):
        near = near_matches(registered, list(gym.registry))
        raise UserError(f"no environment {env_id!r}{near} ({HOW})") from None
    except Exception as error:  # of the environment's own module and constructor
        raise UserError(f"cannot make environment {env_id!r}: {' '.join(str(error).split())}") from None
    try:
        _check_spaces(env, env_id)
    except UserError:
        env.close()
        raise
    assert env.spec is not None
    return NewWorld(env) if env.spec.id.startswith("BipedalWalker") else env
