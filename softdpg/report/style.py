"""How figures and tables draw and name what they show: algorithms, hyperparameters, environments."""

from typing import NamedTuple

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS


class Style(NamedTuple):
    """How figures draw an algorithm.

    :param color: colour on a light background
    :param dark_color: lighter colour for a dark background
    :param dash: lengths of dashes and gaps for matplotlib; empty for a solid line
    :param plotly_dash: the same dashes for plotly
    :param marker: marker for matplotlib
    :param plotly_marker: the same marker for plotly
    """

    color: str
    dark_color: str
    dash: tuple[float, ...]
    plotly_dash: str
    marker: str
    plotly_marker: str


# Okabe and Ito's palette first.
STYLES = {
    "ddpg": Style("#0072B2", "#56B4E9", (4, 1.5), "7px,3px", "s", "square"),
    "soft-ddpg-paper": Style("#D55E00", "#FF9447", (), "solid", "o", "circle"),
    "soft-ddpg": Style("#009E73", "#3FD6A8", (1, 1.2), "2px,2px", "D", "diamond"),
    "td3": Style("#332288", "#8F85DB", (2, 2), "3px,3px", "X", "x"),
    "td3-small": Style("#44AA99", "#7FD4C6", (4, 1, 1, 1, 1, 1), "7px,2px,2px,2px,2px,2px", "d", "diamond-tall"),
    "soft-td3": Style("#AA3377", "#E58BB8", (), "solid", "*", "star"),
    "ocpg": Style("#661100", "#C98A7A", (2, 1, 1, 1), "4px,2px,2px,2px", "h", "hexagon"),
    "sbx-sac": Style("#3B3B3B", "#D0D0D0", (5, 1, 1, 1), "8px,2px,2px,2px", "^", "triangle-up"),
    "sbx-sac-small": Style("#777777", "#9A9A9A", (3, 2), "5px,3px", "8", "octagon"),
    "sbx-td3": Style("#E69F00", "#F2C45A", (2, 1), "4px,2px", "v", "triangle-down"),
    "sbx-crossq": Style("#882255", "#D77FA8", (7, 2), "11px,4px", "p", "pentagon"),
    "sbx-crossq-small": Style("#CC6677", "#F0A3AE", (5, 1.5, 1, 1.5, 1, 1.5), "8px,2px,2px,2px,2px,2px", "P", "cross"),
    "sb3-sac": Style("#999933", "#CFCF6B", (1, 2), "2px,4px", "<", "triangle-left"),
    "sb3-td3": Style("#117733", "#63C084", (3, 1, 1, 1, 1, 1), "5px,2px,2px,2px,2px,2px", ">", "triangle-right"),
}

_SPARE_COLORS = (
    *(("#6A3D9A", "#B79BE0"), ("#B15928", "#E0A070"), ("#1B7FA6", "#62C0E4")),
    *(("#5C5C5C", "#ABABAB"), ("#C0399F", "#F08FD8"), ("#4D7C0F", "#A3D14F")),
    ("#8A6D00", "#DDBB3F"),
)
_SPARE_DASHES = (
    ((6, 1.5, 1, 1.5), "9px,3px,2px,3px", "P", "cross"),
    ((1, 1.5), "2px,3px", "H", "hexagon2"),
    ((3, 1), "5px,2px", ".", "circle-dot"),
)
_SPARE_STYLES = tuple(Style(*colors, *dashes) for colors in _SPARE_COLORS for dashes in _SPARE_DASHES)


def style(algorithm: str) -> Style:
    """Return the style of an algorithm.

    An algorithm without an entry in :data:`STYLES`, such as a plug-in's, gets one of the spare styles.

    :param algorithm: name in the registry
    """
    if algorithm in STYLES:
        return STYLES[algorithm]
    others = [name for name in ALGORITHMS if name not in STYLES]
    return _SPARE_STYLES[others.index(algorithm) % len(_SPARE_STYLES)]


def table_order() -> list[str]:
    """Return the names of all algorithms in the order of tables and figures: the paper's first."""
    return [*paper.PAPER_ALGORITHMS, *(name for name in ALGORITHMS if name not in paper.PAPER_ALGORITHMS)]


class Symbol(NamedTuple):
    """A hyperparameter in plain text, in the HTML page and in matplotlib's mathematics."""

    text: str
    page: str
    mathematics: str


_LONGEST = 120  # characters of a title; matplotlib takes minutes to measure a very long one
SYMBOLS = {"n_samples": Symbol("N", "N", "N"), "sigma": Symbol("sigma", "σ", "$\\sigma$")}


def env_title(env: str) -> str:
    """Return the paper's name of an environment and its kind of reward, or the id of any other one, shortened.

    :param env: Gymnasium id
    """
    for environment in paper.ENVIRONMENTS.values():
        if env == environment.discrete:
            return f"{environment.label} (discrete)"
        if env == environment.continuous:
            return f"{environment.label} (continuous)"
    return env if len(env) <= _LONGEST else f"{env[: _LONGEST - 1]}…"


def format_steps(steps: int) -> str:
    """Write a number of steps in short form: 500, 30k, 1M.

    :param steps: number of environment steps
    """
    if steps >= 1_000_000:
        return f"{steps / 1_000_000:g}M"
    return f"{steps / 1_000:g}k" if steps >= 1_000 else str(steps)
