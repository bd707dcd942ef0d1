"""How figures and tables name and draw what they show."""

from typing import NamedTuple

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS, Style


def style(algorithm: str) -> Style:
    """Colour, dashes and marker of an algorithm."""
    found = ALGORITHMS[algorithm].style
    assert found is not None  # the registry gives one to every entry
    return found


class Symbol(NamedTuple):
    """A hyperparameter in plain text, in the page and in matplotlib's mathematics."""

    text: str
    page: str
    mathematics: str


SYMBOLS = {"n_samples": Symbol("N", "N", "N"), "sigma": Symbol("sigma", "σ", "$\\sigma$")}


def env_title(env: str) -> str:
    """The paper's name of an environment and its kind of reward; for others the id."""
    for environment in paper.ENVIRONMENTS.values():
        if env == environment.discrete:
            return f"{environment.label} (discrete)"
        if env == environment.continuous:
            return f"{environment.label} (continuous)"
    return env
