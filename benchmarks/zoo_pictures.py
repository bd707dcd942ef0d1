"""Film the policies of the zoo for the README and the site. Each policy plays its own first episode.

    python benchmarks/zoo_pictures.py [--names Walker2dDiscrete ...]

Writes docs/assets/zoo/NAME.webp for each policy, and docs/assets/policies.webp: the grid of sparse tasks in the README.
"""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from PIL import Image, ImageDraw, ImageFont

from softdpg import zoo
from softdpg.paper import ENVIRONMENTS
from softdpg.runs.environments import REPLAY, episode_seed, make_env
from softdpg.runs.trained import choose_gl

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
FPS = 12.5
# The README shows the first six of these that the zoo has, or three while it has fewer.
SPARSE = (
    *("Walker2dDiscrete", "HopperDiscrete", "HalfCheetahDiscrete", "BipedalWalkerDiscrete", "LunarLanderDiscrete"),
    *("MountainCarDiscrete", "InvertedDoublePendulumDiscrete", "PendulumDiscrete", "InvertedPendulumDiscrete"),
    *("HumanoidDiscrete", "AntDiscrete"),
)
SIZE = (240, 180)  # of one panel
CAPTION = 22  # pixels


def frames(policy: zoo.ZooPolicy, seconds: float) -> list[Image.Image]:
    """Return the panels of the beginning of an episode, at ``FPS`` frames a second of the environment's time."""
    env: Any = make_env(policy.entry.env, {}, render_mode="rgb_array")
    every = max(1, round(env.metadata["render_fps"] / FPS))
    observation, _ = env.reset(seed=episode_seed(0, REPLAY, 0))
    panels, over, step = [], False, 0
    while len(panels) < seconds * FPS:
        if step % every == 0 or over:
            panels.append(panel(env.render()))
        if over:
            break
        observation, _, terminated, truncated, _ = env.step(policy.predict(observation)[0])
        over, step = terminated or truncated, step + 1
    env.close()
    return panels


def panel(image: np.ndarray) -> Image.Image:
    """Return a rendered image, cut to the shape of a panel and scaled."""
    picture = Image.fromarray(image)
    scale = max(SIZE[0] / picture.width, SIZE[1] / picture.height)
    picture = picture.resize((round(picture.width * scale), round(picture.height * scale)), Image.Resampling.LANCZOS)
    left, top = (picture.width - SIZE[0]) // 2, (picture.height - SIZE[1]) // 2
    return picture.crop((left, top, left + SIZE[0], top + SIZE[1]))


def grid(names: list[str], seconds: float, columns: int = 3) -> list[Image.Image]:
    """Return the frames of several policies side by side, each with its name and score below."""
    films = [frames(zoo.load(name), seconds) for name in names]
    rows = -(-len(names) // columns)
    sheets = []
    for i in range(max(map(len, films))):
        sheet = Image.new("RGB", (columns * SIZE[0], rows * (SIZE[1] + CAPTION)), "white")
        draw = ImageDraw.Draw(sheet)
        for k, (name, film) in enumerate(zip(names, films, strict=True)):
            x, y = k % columns * SIZE[0], k // columns * (SIZE[1] + CAPTION)
            sheet.paste(film[min(i, len(film) - 1)], (x, y))  # a film that has ended shows its last frame
            task = ENVIRONMENTS[name.removesuffix("Discrete")].label
            text = f"{task}: {zoo.load(name).entry.score:,.0f}"
            font = ImageFont.load_default(13)
            draw.text((x + SIZE[0] / 2, y + SIZE[1] + CAPTION / 2), text, "black", font, anchor="mm")
        sheets.append(sheet)
    return sheets


def write(pictures: list[Image.Image], path: Path) -> None:
    """Write an animated WebP that repeats, and holds its last frame for a second."""
    durations = [round(1000 / FPS)] * (len(pictures) - 1) + [1000]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=durations, loop=0, quality=55, method=4)
    print(f"wrote {path}: {len(pictures)} frames, {path.stat().st_size / 1000:.0f} kB")


def main(names: Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME ...]")] = (), seconds: float = 6.0) -> None:
    """Film the policies of the zoo.

    Args:
        names: Policies to film for the site. Default: all. The grid of the README is always made.
        seconds: Length of each film.
    """
    choose_gl()
    present = [entry.name for entry in zoo.entries()]
    (ASSETS / "zoo").mkdir(exist_ok=True)
    for name in names or present:
        write(frames(zoo.load(name), seconds), ASSETS / "zoo" / f"{name}.webp")
    shown = list(islice((name for name in SPARSE if name in present), 6))
    write(grid(shown if len(shown) == 6 else shown[:3], seconds), ASSETS / "policies.webp")


if __name__ == "__main__":
    tyro.cli(main)
