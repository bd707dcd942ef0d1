"""Invalid arguments are refused by name; NaN and infinity stop training before they reach buffer or weights."""

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium import spaces

from softdpg import DDPG, TD3, SoftDDPG, SoftTD3

SMALL = dict(learning_starts=20, batch_size=16, buffer_size=500, seed=0, policy_kwargs=dict(net_arch=[16, 16]))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (dict(sigma=0.0), "sigma must be a positive number, got 0.0"),
        (dict(sigma=-1), "sigma must be a positive number, got -1"),
        (dict(sigma=float("nan")), "sigma must be a positive number, got nan"),
        (dict(n_samples=0), "n_samples must be at least 1, got 0"),
        (dict(n_samples=2.5), "n_samples must be an integer, got 2.5"),
        (dict(n_samples=5, estimator="centered"), "n_samples must be even for antithetic pairs .* got 5"),
        (dict(n_samples=3, antithetic=True), "n_samples must be even for antithetic pairs .* got 3"),
        (dict(n_samples=1, estimator="centered", antithetic=False), "n_samples must be at least 2"),
        (dict(estimator="biased"), "estimator must be paper or centered, got 'biased'"),
        (dict(policy_kwargs=dict(action_layer="third")), "action_layer must be input or second, got 'third'"),
        (dict(action_noise=-0.1), "action_noise must be a finite number of at least 0, got -0.1"),
        (
            dict(policy_kwargs=dict(net_arch=[16], action_layer="second")),
            "net_arch of the critic has no second hidden",
        ),
        (dict(antithetic="no"), "antithetic must be True or False, got 'no'"),
    ],
)
def test_argument_is_named(kwargs, message):
    with pytest.raises(ValueError, match=message):
        SoftDDPG("MlpPolicy", "Pendulum-v1", **{**SMALL, **kwargs})


class Spaces(gym.Env):
    """An environment of the given spaces."""

    def __init__(self, observation_space, action_space):
        self.observation_space, self.action_space = observation_space, action_space


BOX = spaces.Box(-1, 1, (2,), np.float32)


@pytest.mark.parametrize("algorithm", [DDPG, TD3])
@pytest.mark.parametrize("space", [spaces.Discrete(2), spaces.MultiDiscrete([2, 2]), spaces.Tuple([BOX])])
def test_algorithms_for_continuous_actions_name_soft_td3(algorithm, space):
    with pytest.raises(ValueError, match=r"env must have a Box action space .* SoftTD3 takes discrete and mixed"):
        algorithm("MlpPolicy", Spaces(BOX, space), **SMALL)


def test_exact_gradient_of_discrete_actions_names_soft_td3():
    with pytest.raises(ValueError, match=r'actor_gradient="exact" needs a Box action space.* Use SoftTD3'):
        SoftTD3("MlpPolicy", "CartPole-v1", actor_gradient="exact", **SMALL)


@pytest.mark.parametrize("algorithm", [DDPG, SoftDDPG])
@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Spaces(BOX, spaces.Text(3)), "env must have an action space of Box, Discrete"),
        (Spaces(BOX, spaces.Sequence(BOX)), "env must have an action space of Box, Discrete"),
        (Spaces(BOX, spaces.Graph(BOX, None)), "env must have an action space of Box, Discrete"),
        (Spaces(BOX, spaces.Box(-np.inf, np.inf, (2,), np.float32)), "env must have a bounded action space"),
        (Spaces(BOX, spaces.Box(-1, np.inf, (2,), np.float32)), "env must have a bounded action space"),
        (Spaces(spaces.Tuple([BOX, BOX]), BOX), "env must have a Box, Discrete, MultiBinary or MultiDiscrete obs"),
        (Spaces(spaces.Dict(a=spaces.Dict(b=BOX)), BOX), "or a Dict of them that is not nested"),
        (Spaces(spaces.MultiDiscrete([[2, 3], [4, 5]]), BOX), "MultiDiscrete observations of one dimension"),
    ],
)
def test_spaces_are_named(algorithm, env, message):
    for kind in (ValueError, AssertionError, NotImplementedError):  # whichever of them a caller of SB3 expects
        with pytest.raises(kind, match=message):
            algorithm("MlpPolicy", env, **SMALL)


NAN = float("nan")
BAD = {
    "learning_rate": [-1, NAN, float("inf"), "10", None, lambda remaining: NAN],
    "qf_learning_rate": [-1, NAN, "10"],
    "buffer_size": [0, -1, 1.5, "10", None, True],
    "batch_size": [0, -1, 1.5, "10", None],
    "learning_starts": [-1, 1.5, NAN, "10", None],
    "tau": [-1, 2, NAN, "10", None],
    "gamma": [-1, 2, NAN, "10", None],
    "n_steps": [0, -1, 1.5, "10"],
    "train_freq": [0, -1, 1.5, NAN, "10", None, (1, "year"), (1.5, "step")],
    "gradient_steps": [-2, 1.5, "10", None],
    "action_noise": [-1, NAN, "10", [-0.1], [0.1, 0.1], True],
    "optimize_memory_usage": ["no", 1, None],
    "seed": [-1, 1.5, "10"],
    "sigma": [0, -1, NAN, "10", None, True],
    "n_samples": [0, 1.5, "10", None],
    "antithetic": ["no", 1],
    "estimator": ["biased", None, 1],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_every_argument_is_checked_by_the_constructor_and_by_load(name, value, saved_soft_ddpg):
    with pytest.raises(ValueError, match=name):
        SoftDDPG("MlpPolicy", "Pendulum-v1", **{**SMALL, name: value})
    with pytest.raises(ValueError, match=name):
        SoftDDPG.load(saved_soft_ddpg, **{name: value})


@pytest.mark.parametrize(
    ("algorithm", "name", "value"),
    [
        (TD3, "policy_delay", 0),
        (TD3, "target_policy_noise", -1),
        (TD3, "target_noise_clip", NAN),
        (SoftTD3, "critic_reduction", "means"),
        (SoftTD3, "actor_gradient", "best"),
        (SoftTD3, "smooth_target", 1),
        (SoftTD3, "n_samples", 3),
        (SoftTD3, "noise_color", 0.0),  # with random episodes, which would have no effect
        (SoftTD3, "sigma", "linear:0.5:0.1"),  # a string of the command line; Python takes a function
    ],
)
def test_arguments_of_td3_and_soft_td3_are_checked(algorithm, name, value):
    with pytest.raises(ValueError, match=name):
        algorithm("MlpPolicy", "Pendulum-v1", **{**SMALL, name: value})


@pytest.fixture(scope="module")
def saved_soft_ddpg(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.zip"
    SoftDDPG("MlpPolicy", "Pendulum-v1", n_samples=4, **SMALL).save(path)
    return path


class Broken(gym.Wrapper):
    """Pendulum whose reward or observation is not finite at one step."""

    def __init__(self, what, value, at):
        super().__init__(gym.make("Pendulum-v1"))
        self.what, self.value, self.at, self.steps = what, value, at, 0

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.steps += 1
        if self.steps == self.at:
            if self.what == "reward":
                reward = self.value
            else:
                observation = np.full_like(observation, self.value)
        return observation, reward, terminated, truncated, info


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("what", ["reward", "observation"])
@pytest.mark.parametrize("at", [33, 200])  # within an episode, and at its end, where SB3 resets before it returns
def test_not_finite_stops_training_and_leaves_buffer_and_weights_clean(what, value, at):
    model = SoftDDPG("MlpPolicy", Broken(what, value, at), n_samples=4, **{**SMALL, "learning_starts": at - 10})
    with pytest.raises(ValueError, match=f"the {what} of step {at} is NaN or infinite"):
        model.learn(300)
    assert model.replay_buffer.size() == at - 1
    buffer = model.replay_buffer
    for array in (buffer.observations, buffer.next_observations, buffer.rewards, buffer.actions):
        assert np.isfinite(array).all()
    for leaf in jax.tree.leaves((model.policy.actor_state.params, model.policy.qf_state.params)):
        assert np.isfinite(leaf).all()


def test_first_observation_is_checked():
    class BadReset(gym.Wrapper):
        def reset(self, **kwargs):
            observation, info = self.env.reset(**kwargs)
            return observation * np.nan, info

    with pytest.raises(ValueError, match="the observation after reset, at step 0, is NaN or infinite"):
        DDPG("MlpPolicy", BadReset(gym.make("Pendulum-v1")), **SMALL).learn(30)
