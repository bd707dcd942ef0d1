"""``softdpg eval``, ``watch`` and ``export``: the policy of a run evaluated, rendered to a video, or exported.

None of them executes code from the files of a run: weights are numbers only, and settings are checked.
"""

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ctypes.util import find_library
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from softdpg.errors import UserError
from softdpg.runs.config import EnvKwargs, RunConfig
from softdpg.runs.directory import RunDirectory
from softdpg.runs.environments import REPLAY, Evaluator, Policy, episode_seed, make_run_env, names_a_module
from softdpg.zoo import ZooPolicy

VIDEO_FORMATS = (".mp4", ".gif")
ExportFormat = Literal["onnx", "numpy", "safetensors"]
SUFFIXES: dict[ExportFormat, str] = {"onnx": ".onnx", "numpy": ".py", "safetensors": ".safetensors"}
_SIDE_BY_SIDE = 10  # episodes


def open_run(
    path: Path, *, env_id: str | None = None, env_kwargs: Mapping[str, Any] | None = None, trust: bool = False
) -> tuple[RunConfig, Path]:
    """Return the settings and the weights of a run; raise ``UserError`` if there are none.

    Making an environment ``module:Id-v0`` imports that module, and a string among an environment's arguments may name a
    file or anything else. Untrusted settings must not choose what code is executed or which files are read. So such a
    run needs ``trust``, or ``env_id`` and ``env_kwargs`` of the user's own in place of the run's, unless this user made
    it, see :mod:`softdpg.runs.ownership`.

    :param path: the run directory
    :param env_id: an environment in place of the run's own
    :param env_kwargs: arguments of the environment in place of the run's own
    :param trust: whether to import the module and use the strings that the run names
    """
    directory = RunDirectory(path)
    stored = directory.read_config()
    made = RunConfig.from_json(stored)
    trust = trust or directory.is_own(stored, made)
    config = made.resolved()
    if env_id is not None:
        config = replace(config, env=env_id)
    elif names_a_module(config.env) and not trust:
        raise UserError(
            f"{directory.path} asks for the module of {config.env!r}, which is imported only with --trust: this user "
            "did not make the run here, or its directory, settings or module have changed since"
        )
    if config.env_wrapper and not trust:
        raise UserError(
            f"{directory.path} asks for the wrapper {config.env_wrapper!r}, which is imported only with --trust: this "
            "user did not make the run here, or its directory, settings or module have changed since"
        )
    if env_kwargs is not None:
        config = replace(config, env_kwargs=EnvKwargs(env_kwargs))
    elif config.env_kwargs.has_strings() and not trust:
        raise UserError(
            f"{directory.path} has strings among the arguments of its environment ({str(config.env_kwargs)[:200]!r}); "
            "use --trust, or give --env-kwargs"
        )
    if not directory.model.exists():
        raise UserError(f"{directory.path} has no weights yet; they come with the first checkpoint")
    return config, directory.model


def evaluate_run(source: Path | ZooPolicy, *, episodes: int = 100, seed: int = 0, **opening: Any) -> np.ndarray:
    """Return the returns ``(episodes,)`` of deterministic episodes of a run's policy.

    :param source: the run directory; the run may be unfinished. Or a policy of the zoo
    :param episodes: number of episodes
    :param seed: of the episodes
    :param opening: ``env_id``, ``env_kwargs`` and ``trust``, as in :func:`open_run`
    """
    _check_episodes(episodes)
    config, load = _open(source, **opening)
    policy = load(make_run_env(config))
    seeds = [episode_seed(seed, REPLAY, i) for i in range(episodes)]
    evaluator = Evaluator(config, min(episodes, _SIDE_BY_SIDE))
    try:
        starts = range(0, episodes, _SIDE_BY_SIDE)
        return np.concatenate([evaluator.returns(policy, seeds[i : i + _SIDE_BY_SIDE]) for i in starts])
    except ValueError as error:
        raise UserError(str(error)) from None


def watch(
    source: Path | ZooPolicy, *, out: Path | None = None, episodes: int = 1, seed: int = 0, **opening: Any
) -> Path:
    """Render deterministic episodes of a run's policy to a video; return its path.

    :param source: the run directory; the run may be unfinished. Or a policy of the zoo
    :param out: the video, ending in .mp4 or .gif; ``video.mp4`` in the run directory, or NAME.mp4 for a policy of the
        zoo, unless given
    :param episodes: number of episodes
    :param seed: of the episodes
    :param opening: ``env_id``, ``env_kwargs`` and ``trust``, as in :func:`open_run`
    """
    config, load = _open(source, **opening)
    out = out or (Path(f"{source.entry.name}.mp4") if isinstance(source, ZooPolicy) else source / "video.mp4")
    if out.suffix.lower() not in VIDEO_FORMATS:
        raise UserError(f"--out must end in {' or '.join(VIDEO_FORMATS)}, got {out.suffix or 'nothing'!r}")
    _check_episodes(episodes)
    _check_parent(out)
    choose_gl()
    env = _make_rendered(config)
    policy = load(env)
    try:
        with (
            _replacing(out, "video") as unfinished,
            _writer(unfinished, int(env.metadata.get("render_fps", 30))) as video,
        ):
            for episode in range(episodes):
                _play(env, policy, episode_seed(seed, REPLAY, episode), video)
    finally:
        env.close()
    return out


def export_run(path: Path, *, to: ExportFormat = "onnx", out: Path | None = None, **opening: Any) -> Path:
    """Write the policy of a run to a file for use without softdpg; return its path.

    :param path: the run directory; the run may be unfinished
    :param to: the format
    :param out: the file; ``policy`` with the suffix of the format, in the run directory, unless given
    :param opening: ``env_id``, ``env_kwargs`` and ``trust``, as in :func:`open_run`
    """
    config, weights = open_run(path, **opening)
    out = out or path / f"policy{SUFFIXES[to]}"
    if out.suffix != SUFFIXES[to]:
        raise UserError(f"--out must end in {SUFFIXES[to]} for --to {to}, got {out.suffix or 'nothing'!r}")
    _check_parent(out)
    env = make_run_env(config)
    from softdpg.runs.learner import load_learner

    model = load_learner(config, env, weights)
    try:
        with _replacing(out, "policy") as unfinished:
            model.export(unfinished)
    except ValueError as error:
        raise UserError(str(error)) from None
    finally:
        env.close()
    return out


def _open(source: Path | ZooPolicy, **opening: Any) -> tuple[RunConfig, Callable[[Any], Policy]]:
    """Return settings that name the environment, and a function that makes the policy for it."""
    if isinstance(source, ZooPolicy):
        env = opening.get("env_id") or source.entry.env
        return RunConfig(
            env, source.entry.algo, env_kwargs=EnvKwargs(opening.get("env_kwargs") or {})
        ), lambda _: source
    config, weights = open_run(source, **opening)

    def load(env: Any) -> Policy:
        from softdpg.runs.learner import load_learner, policy_of

        return policy_of(load_learner(config, env, weights))

    return config, load


def _check_episodes(episodes: int) -> None:
    if episodes < 1:
        raise UserError(f"--episodes must be at least 1, got {episodes}")


def _check_parent(out: Path) -> None:
    if not out.absolute().parent.is_dir():
        raise UserError(f"--out {out}: there is no directory {out.absolute().parent}")


@contextmanager
def _replacing(out: Path, name: str) -> Iterator[Path]:
    """Let the ``with`` block write a file, and move it to ``out`` if that succeeds.

    It is written in a new directory with an unpredictable name, so that no link can wait in its place.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=out.absolute().parent) as aside:
            unfinished = Path(aside) / f"{name}{out.suffix}"
            yield unfinished
            unfinished.replace(out)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}; choose another place with --out") from None


def _play(env: Any, policy: Policy, seed: int, video: Any) -> None:
    observation, _ = env.reset(seed=seed)
    terminated = truncated = False
    video.append_data(env.render())
    while not (terminated or truncated):
        action, _ = policy.predict(observation, deterministic=True)
        observation, _, terminated, truncated, _ = env.step(action)
        video.append_data(env.render())


def _make_rendered(config: RunConfig) -> Any:
    """Make the environment of a run for a video; raise ``UserError`` if it returns no images."""
    plain = make_run_env(config)
    modes = list(plain.metadata.get("render_modes") or [])
    plain.close()
    if "rgb_array" not in modes:
        raise UserError(
            f"cannot make a video of {config.env}: its metadata has the render_modes {modes}. Its class needs "
            'metadata = {"render_modes": ["rgb_array"]}, the argument render_mode, which softdpg watch sets to '
            '"rgb_array", and render(), which returns an image'
        )
    env = make_run_env(config, render_mode="rgb_array")
    env.reset()
    try:
        image: Any = env.render()
    except Exception as error:  # of many kinds: MuJoCo, PyOpenGL, EGL, pygame
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(
            "cannot render without a screen; MuJoCo needs EGL (Debian: libegl1) or OSMesa (Debian: libosmesa6), "
            f"chosen by MUJOCO_GL={os.environ.get('MUJOCO_GL', '')} ({cause})"
        ) from None
    if np.ndim(image) != 3 or np.asarray(image).dtype != np.uint8:
        got = f"an array {np.shape(image)}" if isinstance(image, np.ndarray) else type(image).__name__
        raise UserError(
            f"cannot make a video of {config.env}: render() must return an image, (height, width, 3) of uint8, "
            f"got {got}"
        )
    return env


def choose_gl() -> None:
    """Make MuJoCo and pygame render without a screen, unless the user chose otherwise."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    if "MUJOCO_GL" not in os.environ and sys.platform == "linux":
        for backend, library in (("egl", "EGL"), ("osmesa", "OSMesa")):
            if find_library(library):
                os.environ["MUJOCO_GL"] = backend
                return


def _writer(path: Path, fps: int) -> Any:
    import imageio

    # imageio starts ffmpeg by fork and exec at once, which is safe beside JAX's threads.
    warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
    if path.suffix.lower() == ".gif":
        # The delays of a GIF are hundredths of a second, and viewers slow down anything under 20 ms.
        return imageio.get_writer(path, mode="I", duration=1000 / min(fps, 50), loop=0)
    # Sizes that are not multiples of 16 stay as they are; yuv420p plays everywhere but needs even sizes.
    return imageio.get_writer(path, fps=fps, macro_block_size=2, codec="libx264", pixelformat="yuv420p")
