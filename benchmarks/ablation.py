"""Soft TD3 with one ingredient of its recipe changed at a time: algorithms for ``softdpg race``.

This is a plugin of the registry. Run it from the root of the repository::

    PYTHONPATH=. SOFTDPG_PLUGINS=benchmarks.ablation softdpg race MountainCarDiscrete --algos soft-td3 without-mean

The recipe follows the derivative of the critics, so the smoothed policy gradient is added rather than removed. White
noise has no random episodes, so both go together.
"""

from collections.abc import Mapping
from typing import Any

from softdpg.algorithms.registry import Algorithm, register

# By name: the label, and the hyperparameters that replace those of the recipe.
ABLATIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "without-smoothed-target": ("target not smoothed", {"smooth_target": False}),
    "with-smoothed-gradient": ("smoothed gradient", {"actor_gradient": "smoothed"}),
    "without-mean": ("minimum over critics", {"critic_reduction": "min"}),
    "without-second-critic": ("one critic", {"n_critics": 1}),
    "without-layer-norm": ("no layer norm", {"layer_norm": False}),
    "without-standardization": ("observations not standardised", {"standardize": False}),
    "without-three-steps": ("one-step returns", {"n_steps": 1}),
    "without-low-b1": ("Adam's b1 0.9", {"adam_b1": 0.9}),
    "without-delay": ("no delay of the actor", {"policy_delay": 1}),
    "without-coloured-noise": ("white noise", {"noise_color": 0.0, "random_episodes": 0.0}),
    "without-random-episodes": ("no random episodes", {"random_episodes": 0.0}),
    "without-long-warm-up": ("warm-up of 1,000 steps", {"learning_starts": 1_000}),
    "without-penalty": ("no saturation penalty", {"saturation_penalty": 0.0}),
}

for _name, (_label, _preset) in ABLATIONS.items():
    register(
        Algorithm(
            _name,
            f"Soft TD3: {_label}",
            summary=f"Soft TD3 with one change: {_label}",
            variant_of="soft-td3",
            preset=_preset,
        )
    )
