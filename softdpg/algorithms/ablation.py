"""Soft TD3 with one ingredient of its recipe taken out at a time, as contenders of the race.

A plugin of the registry::

    SOFTDPG_PLUGINS=softdpg.algorithms.ablation softdpg race MountainCarDiscrete --algos soft-td3 without-mean ...

The recipe follows the critic's own derivative, so that the smoothed policy gradient is put in rather than taken out:
``with-smoothed-gradient``. So is the embedding, as the search has it: ``with-embedding``. What coloured noise does
besides (random episodes) goes with ``without-coloured-noise``, since white noise does none of it.
"""

from collections.abc import Mapping
from typing import Any

from softdpg.algorithms.registry import Algorithm, Style, register

# By name: the label, and the settings that replace those of the recipe.
ABLATIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "without-smoothed-target": ("target not smoothed", {"smooth_target": False, "target_policy_noise": 0.0}),
    "with-smoothed-gradient": ("smoothed gradient", {"actor_gradient": "smoothed"}),
    "without-mean": ("least of the critics", {"minimum": "samples"}),
    "without-second-critic": ("one critic", {"n_critics": 1}),
    "without-layer-norm": ("no layer norm", {"layer_norm": False, "actor_layer_norm": False}),
    "without-standardization": ("observations as they are", {"standardize": False}),
    "with-embedding": ("embedding", {"embedding": True, "action_layer": "input", "n_samples": 2}),
    "without-three-steps": ("one-step returns", {"n_steps": 1}),
    "without-low-b1": ("Adam's b1 0.9", {"adam_b1": 0.9}),
    "without-delay": ("no delay of the actor", {"policy_delay": 1}),
    "without-coloured-noise": ("white noise", {"noise_color": 0.0}),
    "without-random-episodes": ("no random episodes", {"random_episodes": 0.0}),
    "without-long-warm-up": ("warm-up of 1,000 steps", {"learning_starts": 1_000}),
    "without-penalty": ("no saturation penalty", {"saturation_penalty": 0.0}),
}

# Lines that can be told apart: seven colours, each with two kinds of dashes.
_COLORS = (
    *(("#0072B2", "#56B4E9"), ("#D55E00", "#FF9447"), ("#009E73", "#3FD6A8")),
    *(("#332288", "#8F85DB"), ("#E69F00", "#F2C45A"), ("#661100", "#C98A7A")),
    ("#3B3B3B", "#D0D0D0"),
)
_DASHES = (((4, 1.5), "7px,3px"), ((1, 1.2), "2px,2px"))
_MARKERS = (("s", "square"), ("o", "circle"))

for _i, (_name, (_label, _preset)) in enumerate(ABLATIONS.items()):
    (_dash, _plotly_dash), (_marker, _plotly_marker) = _DASHES[_i % 2], _MARKERS[_i % 2]
    register(
        Algorithm(
            _name,
            f"Soft TD3: {_label}",
            summary=f"Soft TD3's recipe with one change: {_label}",
            variant_of="soft-td3",
            preset=_preset,
            style=Style(*_COLORS[_i // 2], _dash, _plotly_dash, _marker, _plotly_marker),
        )
    )
