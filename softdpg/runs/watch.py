"""``softdpg watch``: a trained policy as a video."""

import os
import sys
import tempfile
import warnings
from collections.abc import Mapping
from ctypes.util import find_library
from pathlib import Path
from typing import Any

from softdpg.errors import UserError
from softdpg.runs.environments import REPLAY, episode_seed, make_env
from softdpg.runs.evaluate_run import open_run

FORMATS = (".mp4", ".gif")


def watch(
    path: Path,
    *,
    out: Path | None = None,
    episodes: int = 1,
    seed: int = 0,
    env_id: str | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> Path:
    """Render deterministic episodes of a run's policy to an MP4 or GIF file; returns its path.

    For ``env_id``, ``env_kwargs`` and ``trust`` see :func:`open_run`.
    """
    config, weights = open_run(path, env_id=env_id, env_kwargs=env_kwargs, trust=trust)
    out = out or path / "video.mp4"
    if out.suffix.lower() not in FORMATS:
        raise UserError(f"--out must end in {' or '.join(FORMATS)}, not {out.suffix or 'nothing'!r}")
    if episodes < 1:
        raise UserError(f"--episodes must be at least 1, not {episodes}")
    if not out.absolute().parent.is_dir():
        raise UserError(f"--out {out}: there is no directory {out.absolute().parent}")
    choose_gl()
    env = make_env(config.env, config.env_kwargs, render_mode="rgb_array")
    _check_rendering(env)
    from softdpg.runs.learner import load_learner
    from softdpg.runs.normalization import player

    policy = player(load_learner(config, env, weights))
    try:
        # In a directory of its own, whose name nobody knows: no link can wait in the place of the file.
        with tempfile.TemporaryDirectory(prefix=".video-", dir=out.absolute().parent) as aside:
            unfinished = Path(aside) / f"video{out.suffix}"
            with _writer(unfinished, int(env.metadata.get("render_fps", 30))) as video:
                for episode in range(episodes):
                    _play(env, policy, episode_seed(seed, REPLAY, episode), video)
            unfinished.replace(out)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}; --out names another place") from None
    finally:
        env.close()
    return out


def _play(env: Any, policy: Any, seed: int, video: Any) -> None:
    observation, _ = env.reset(seed=seed)
    terminated = truncated = False
    video.append_data(env.render())
    while not (terminated or truncated):
        action, _ = policy.predict(observation, deterministic=True)
        observation, _, terminated, truncated, _ = env.step(action)
        video.append_data(env.render())


def _check_rendering(env: Any) -> None:
    env.reset()
    try:
        env.render()
    except Exception as error:  # of many kinds: MuJoCo, PyOpenGL, EGL, pygame
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(
            "cannot draw without a screen; MuJoCo needs EGL (Debian: libegl1) or OSMesa (Debian: libosmesa6), "
            f"chosen by MUJOCO_GL={os.environ.get('MUJOCO_GL', '')} ({cause})"
        ) from None


def choose_gl() -> None:
    """Let MuJoCo and pygame draw without a screen, unless the user chose otherwise or has one."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    if "MUJOCO_GL" not in os.environ and sys.platform == "linux":
        for backend, library in (("egl", "EGL"), ("osmesa", "OSMesa")):
            if find_library(library):
                os.environ["MUJOCO_GL"] = backend
                return


def _writer(path: Path, fps: int) -> Any:
    import imageio

    # ffmpeg is started by fork and exec at once, which JAX's threads do not mind.
    warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
    if path.suffix.lower() == ".gif":
        # The delays of a GIF are hundredths of a second, and viewers slow down anything under 20 ms.
        return imageio.get_writer(path, mode="I", duration=1000 / min(fps, 50), loop=0)
    # Sizes that are not multiples of 16 stay as they are; yuv420p plays everywhere but needs even sizes.
    return imageio.get_writer(path, fps=fps, macro_block_size=2, codec="libx264", pixelformat="yuv420p")
