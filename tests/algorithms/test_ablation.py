"""The algorithms of the ablation: each is Soft TD3's recipe with the change that its name states."""

import gymnasium as gym
import pytest

from softdpg.runs.config import RunConfig
from softdpg.runs.learner import make_learner

# What the model itself has in place of the recipe's.
CHANGED = {
    "without-smoothed-target": {"smooth_target": False},
    "with-smoothed-gradient": {"actor_gradient": "smoothed"},
    "without-mean": {"critic_reduction": "min"},
    "without-second-critic": {"n_critics": 1},
    "without-layer-norm": {"layer_norm": False},
    "without-standardization": {"standardize": False},
    "without-three-steps": {"n_steps": 1},
    "without-low-b1": {"b1": 0.9},
    "without-delay": {"policy_delay": 1},
    "without-coloured-noise": {"noise_color": 0.0, "random_episodes": 0.0},
    "without-random-episodes": {"random_episodes": 0.0},
    "without-long-warm-up": {"learning_starts": 1_000},
    "without-penalty": {"saturation_penalty": 0.0},
}


def settings(algo):
    """All that a model of Pendulum was made with, but for objects of its own."""
    env = gym.make("Pendulum-v1")
    model = make_learner(RunConfig("Pendulum-v1", algo, 1_000, 0, buffer_size=10).resolved(), env)
    plain = {key: value for key, value in vars(model).items() if isinstance(value, int | float | str)}
    plain |= {key: value for key, value in model.policy._arguments.items() if key != "optimizer_kwargs"}
    plain |= dict(model.policy.optimizer_kwargs) | {"n_steps": model.replay_buffer.n_steps}
    return plain


@pytest.mark.extended
def test_every_ingredient_is_changed_alone(ablations):
    recipe = settings("soft-td3")
    assert list(CHANGED) == ablations
    for name, changed in CHANGED.items():
        found = settings(name)
        different = {key: found[key] for key in found if found[key] != recipe.get(key)}
        assert different == changed, name
