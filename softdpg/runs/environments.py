"""Environments of a run: made by id, checked, seeded episode by episode, and played for evaluations.

An id may name a module, ``mypackage.envs:MyEnv-v0``, or a file, ``./my_env.py:MyEnv-v0``. Importing it runs its code.
So :func:`make_env` must get its id from the command line or from a user who trusts where it comes from; the settings of
a run directory are neither.
"""

import importlib
import itertools
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from softdpg.envs.box2d import NewWorld
from softdpg.errors import UserError, near_matches, one_line
from softdpg.replay import GOAL_PARTS
from softdpg.replay.spaces import SpaceError, check_action_space, check_shape
from softdpg.runs.config import RunConfig

TRAINING, EVALUATION, REPLAY = range(3)  # the streams of seeds of a run
_PARTS = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)  # of a Dict observation
_LONGEST = 10_000  # steps after which an evaluation cuts an episode without a time limit
_OWN_ENVIRONMENTS = "give your own environment with its module, mypackage.envs:MyEnv-v0 or ./my_env.py:MyEnv-v0"
_LIBRARIES = (
    "ale_py",
    "gymnasium_robotics",
    "highway_env",
    "metaworld",
    "minigrid",
    "shimmy",
)  # register when imported


def make_env(
    env_id: str, env_kwargs: Mapping[str, Any] = {}, render_mode: str | None = None, wrapper: str | None = None
) -> gym.Env:
    """Make an environment with Box or Dict observations; raise ``UserError`` if that is impossible.

    :param env_id: its Gymnasium id; a module in front of a colon is imported first
    :param env_kwargs: arguments of its constructor, and of ``gymnasium.make``
    :param render_mode: what ``render`` returns; None for an environment that is not rendered
    :param wrapper: ``module:Class`` of a wrapper around the environment; the module is imported
    """
    registered = _import_module_of(env_id)
    arguments = dict(env_kwargs) | ({"render_mode": render_mode} if render_mode else {})  # not every class takes it
    try:
        env = gym.make(registered, **arguments)
    except (gym.error.UnregisteredEnv, gym.error.DeprecatedEnv):
        raise UserError(f"no environment {env_id!r}{_hint(env_id, registered)}") from None
    except (Exception, SystemExit) as error:  # from the environment's module or constructor
        raise UserError(f"cannot make environment {env_id!r}: {one_line(error) or type(error).__name__}") from None
    env = env if wrapper is None else _wrapped(env, wrapper)
    try:
        _check_spaces(env, env_id)
    except UserError:
        env.close()
        raise
    assert env.spec is not None
    return NewWorld(env) if env.spec.id.startswith("BipedalWalker") else env


def _wrapped(env: gym.Env, wrapper: str) -> gym.Env:
    """Put a wrapper ``module:Class`` around an environment; raise ``UserError`` if that is impossible."""
    name = _import_module_of(wrapper, "--env-wrapper")
    module = wrapper.rpartition(":")[0]
    module = Path(module).stem if module.endswith(".py") else module
    make = getattr(sys.modules.get(module), name, None)
    if not callable(make):
        raise UserError(f"--env-wrapper {wrapper}: the module has no class or function {name!r}")
    try:
        wrapped = make(env)
    except Exception as error:  # from the wrapper's own code
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"--env-wrapper {wrapper} cannot wrap {env}: {cause}") from None
    if not isinstance(wrapped, gym.Env):
        raise UserError(f"--env-wrapper {wrapper} must return a Gymnasium environment, got {type(wrapped).__name__}")
    return wrapped


def _hint(env_id: str, registered: str) -> str:
    """Return what to do about an unknown id, as the end of a sentence."""
    if names_a_module(env_id):
        near = near_matches(registered, list(gym.registry))
        return f"; its module {env_id.rpartition(':')[0]} is imported, but does not register {registered!r}{near}"
    near = near_matches(registered, list(gym.registry))
    installed = [library for library in _LIBRARIES if find_spec(library)]
    libraries = f"; of a library that registers its own, {', '.join(f'{name}:{env_id}' for name in installed)}"
    return f"{near}{libraries if installed and not near else ''} ({_OWN_ENVIRONMENTS})"


def make_run_env(config: RunConfig, render_mode: str | None = None) -> gym.Env:
    """Make the environment of a run as its algorithm sees it; raise ``UserError`` if it cannot act in it.

    :param config: resolved settings
    :param render_mode: what ``render`` returns; None for an environment that is not rendered
    """
    env = make_env(config.env, config.env_kwargs, render_mode, config.env_wrapper)
    kind, algorithm = type(env.action_space).__name__, config.algorithm
    if not algorithm.acts_in(kind):
        takes = " or ".join(algorithm.action_spaces or ("Box",))
        env.close()
        raise UserError(f"{config.env} has a {kind} action space; {algorithm.name} needs a {takes}, soft-td3 does not")
    if not algorithm.relaxed or kind == "Box":
        return env
    from softdpg.wrappers import Relax  # imports JAX

    return Relax(env)


def names_a_module(env_id: str) -> bool:
    """Whether making this environment imports a module."""
    return ":" in env_id or env_id.endswith(".py")


def _import_module_of(env_id: str, flag: str = "--env") -> str:
    """Import the module of an id, which registers the environment; return the id that Gymnasium knows.

    The current directory is searched too, after all others.
    """
    module, _, name = env_id.rpartition(":")
    if env_id.endswith(".py"):  # a file without an id
        module, name = env_id, ""
    if not module:
        return env_id
    before = set(gym.registry)
    try:
        if module.endswith(".py"):
            _import_file(Path(module))
        else:
            _look_in(Path.cwd())
            importlib.import_module(module)
    except UserError:
        raise
    except BaseException as error:  # from the module's own code
        if isinstance(error, KeyboardInterrupt):
            raise
        raise UserError(
            f"cannot import the module of {flag} {env_id}: {type(error).__name__}: {one_line(error)}"
        ) from None
    if not name:
        raise UserError(f"--env {env_id} needs the id of an environment in it: {_ids_in(module, before)}")
    return name


def _ids_in(module: str, before: set[str]) -> str:
    """Return the ids that importing a module has registered, each as ``--env`` takes it."""
    new = sorted(gym.registry.keys() - before)
    none = f'it registers none; add gymnasium.register("MyEnv-v0", MyEnv) to {Path(module).name}'
    return " or ".join(f"--env {module}:{env_id}" for env_id in new) or none


def _import_file(path: Path) -> None:
    path = path.expanduser().absolute()
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    known = sys.modules.get(path.stem)
    if known is not None:
        if getattr(known, "__file__", None) == str(path):
            return
        raise UserError(f"the name of {path} is taken by the module {path.stem!r}; give the file another name")
    _look_in(path.parent)  # for what the file itself imports
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise


def _look_in(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.append(str(directory))


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
    if isinstance(actions, spaces.Box) and not actions.is_bounded():
        raise UserError(f"{env_id} has an unbounded action space; softdpg needs finite bounds")
    try:
        check_action_space(actions)
    except SpaceError as error:
        raise UserError(f"{env_id}: {error}") from None


def check_normalizable(env: gym.Env, env_id: str) -> None:
    """Raise ``UserError`` unless ``--normalize`` applies to the observations of an environment."""
    space = env.observation_space
    parts = list(space.values()) if isinstance(space, spaces.Dict) else [space]
    boxes = [part for part in parts if isinstance(part, spaces.Box)]
    if not boxes:
        raise UserError(f"--normalize applies to Box observations; {env_id} has none")
    if any(box.dtype == np.uint8 and len(box.shape) == 3 for box in boxes):
        raise UserError(f"--normalize does not apply to images, which {env_id} has; they are divided by 255 anyway")


def check_goals(env: gym.Env, env_id: str) -> None:
    """Raise ``UserError`` unless ``--her`` can work with an environment."""
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
        raise UserError(f"--her needs compute_reward(achieved_goal, desired_goal, info), which {env_id} lacks")


def episode_seed(seed: int, stream: int, *number: int) -> int:
    """Return a seed for one episode, independent of every other stream and number.

    :param seed: seed of the run
    :param stream: :data:`TRAINING`, :data:`EVALUATION` or :data:`REPLAY`
    :param number: numbers that identify the episode in its stream
    """
    return int(np.random.SeedSequence(seed, spawn_key=(stream, *number)).generate_state(1)[0])


class SeededEpisodes(gym.Wrapper):
    """Seed every reset from the run's seed and the episode's number, and record the actions of the episode.

    The state of an environment is then a function of two integers and the actions so far, whatever random generators
    it has. So a run can resume from any step without a snapshot of the environment.

    :param env: the environment
    :param seed: seed of the run
    :param index: number of the environment among the parallel ones
    """

    def __init__(self, env: gym.Env, seed: int, index: int = 0) -> None:
        super().__init__(env)
        self.seed, self.index = seed, index
        self.episode = 0  # the number of the next reset
        self._actions: list[np.ndarray] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start the next episode; the caller's seed is ignored."""
        number = (self.episode, self.index) if self.index else (self.episode,)
        self.episode += 1
        self._actions = []
        observation, info = self.env.reset(seed=episode_seed(self.seed, TRAINING, *number), options=options)
        check_shape(observation, self.observation_space)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Record the action and take a step; raise ``ValueError`` for an invalid action or observation."""
        recorded = as_array(self.action_space, action)
        if not np.isfinite(recorded).all():
            raise ValueError(f"the policy diverged: its action is {action}")
        self._actions.append(recorded)
        observation, reward, terminated, truncated, info = self.env.step(action)
        check_shape(observation, self.observation_space)
        return observation, reward, terminated, truncated, info

    @property
    def actions(self) -> np.ndarray:
        """The actions of the current episode, ``(steps, m)``, as :func:`as_array` returns them."""
        space = self.action_space
        return np.stack(self._actions) if self._actions else np.empty((0, *array_shape(space)), space.dtype)

    def replay(self, recorded: np.ndarray) -> Any:
        """Return the action that :func:`as_array` recorded."""
        nested = isinstance(self.action_space, spaces.Tuple | spaces.Dict)
        return spaces.unflatten(self.action_space, recorded) if nested else recorded


def as_array(space: spaces.Space, action: Any) -> np.ndarray:
    """Return an action as one array from which it can be restored exactly; Tuple and Dict are flattened."""
    if isinstance(space, spaces.Tuple | spaces.Dict):
        return np.asarray(spaces.flatten(space, action), np.float64)
    return np.array(action)


def array_shape(space: spaces.Space) -> tuple[int, ...]:
    """Return the shape of what :func:`as_array` returns."""
    nested = isinstance(space, spaces.Tuple | spaces.Dict)
    return (spaces.flatdim(space),) if nested else (space.shape or ())


class Policy(Protocol):
    """Anything with SB3's ``predict``."""

    def predict(self, observation: Any, *, deterministic: bool) -> tuple[np.ndarray, object]:
        """Return actions ``(batch, m)`` for observations ``(batch, d)``, or a dict of them."""


class DivergedError(ValueError):
    """Raised when the actions of a policy are not finite."""


def stacked(observations: Sequence[Any]) -> Any:
    """Stack observations to a batch: an array, or a dict of arrays."""
    if isinstance(observations[0], Mapping):
        return {name: np.stack([parts[name] for parts in observations]) for name in observations[0]}
    return np.stack(observations)


def put(batch: Any, i: int, observation: Any) -> None:
    """Replace the ``i``-th observation of a batch."""
    if isinstance(batch, dict):
        for name, part in batch.items():
            part[i] = observation[name]
    else:
        batch[i] = observation


class Evaluator:
    """Play deterministic episodes in parallel environments, so that one forward pass serves all.

    :param config: resolved settings of the run
    :param episodes: number of environments, each of which plays one episode
    """

    def __init__(self, config: RunConfig, episodes: int) -> None:
        self.envs = [make_run_env(config) for _ in range(episodes)]

    def returns(self, policy: Policy, seeds: Sequence[int]) -> np.ndarray:
        """Return the undiscounted returns ``(len(seeds),)`` of deterministic episodes.

        Cut an episode without a time limit after 10,000 steps. Raise :class:`DivergedError` if an action is NaN or
        infinite, ``ValueError`` if a return is.

        :param policy: chooses the actions
        :param seeds: one seed per episode, at most as many as there are environments
        """
        envs = self.envs[: len(seeds)]
        # The batch keeps its size to the end: another size would need another compiled function.
        first = [env.reset(seed=seed)[0] for env, seed in zip(envs, seeds, strict=True)]
        check_shape(first[0], envs[0].observation_space)
        observations = stacked(first)
        returns = np.zeros(len(envs))
        playing = list(range(len(envs)))
        limited = envs[0].spec is not None and envs[0].spec.max_episode_steps is not None
        for _ in itertools.count() if limited else range(_LONGEST):
            if not playing:
                break
            actions, _ = policy.predict(observations, deterministic=True)
            space = envs[0].action_space
            if not all(np.isfinite(as_array(space, actions[i])).all() for i in playing):
                raise DivergedError("the policy diverged: its action is NaN or infinite")
            for i in playing.copy():
                observation, reward, terminated, truncated, _ = envs[i].step(actions[i])
                check_shape(observation, envs[i].observation_space)
                put(observations, i, observation)
                returns[i] += float(reward)
                if terminated or truncated:
                    playing.remove(i)
        if not np.isfinite(returns).all():
            raise ValueError(f"the return of an evaluation is NaN or infinite: {returns}")
        return returns

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()
