"""How figures show algorithms and environments: names, colours safe for colour-blind readers, distinct dashes."""

from typing import NamedTuple

from softdpg import paper


class Style(NamedTuple):
    """Colour (Okabe and Ito's palette; lighter on dark), the same dashes and marker for matplotlib and plotly."""

    color: str
    dark_color: str
    dash: tuple[float, ...]
    plotly_dash: str
    marker: str
    plotly_marker: str


STYLES = {
    "ddpg": Style("#0072B2", "#56B4E9", (4, 1.5), "7px,3px", "s", "square"),
    "soft-ddpg": Style("#D55E00", "#FF9447", (), "solid", "o", "circle"),
    "soft-ddpg-centered": Style("#009E73", "#3FD6A8", (1, 1.2), "2px,2px", "D", "diamond"),
}


def env_title(env: str) -> str:
    """The paper's name of an environment and its kind of reward; for others the id."""
    for environment in paper.ENVIRONMENTS.values():
        if env == environment.discrete:
            return f"{environment.label} (discrete)"
        if env == environment.continuous:
            return f"{environment.label} (continuous)"
    return env
