"""The arguments of SB3's policies in ``policy_kwargs``: accepted where they have a meaning, refused elsewhere."""

import flax.linen as nn
import jax
import numpy as np
import optax
import pytest
import torch as th
from small import NET, ONE_BY_ONE
from stable_baselines3.common.torch_layers import CombinedExtractor, FlattenExtractor, NatureCNN

from softdpg import DDPG, TD3, SoftDDPG, SoftTD3
from softdpg.algorithms.networks import Critic

SMALL = dict(learning_starts=5, batch_size=16, buffer_size=100, seed=0, **ONE_BY_ONE)


def extended(*values):
    return pytest.param(*values, marks=pytest.mark.extended)


def make(algorithm, action_layer=None, **policy_kwargs):
    settings = dict(SMALL, n_samples=4) if algorithm in (SoftDDPG, SoftTD3) else SMALL
    if action_layer is not None:
        policy_kwargs["action_layer"] = action_layer
    return algorithm("MlpPolicy", "Pendulum-v1", policy_kwargs=policy_kwargs, **settings)


@pytest.mark.parametrize(
    ("net_arch", "pi", "qf", "entry"),
    [
        ([], (), (), "input"),
        ([8], (8,), (8,), "input"),
        ([8, 4], (8, 4), (8, 4), "second"),
        (dict(pi=[8, 4], qf=[8]), (8, 4), (8,), "input"),
        (dict(pi=[], qf=[8, 4]), (), (8, 4), "second"),
        (dict(pi=[8], qf=[]), (8,), (), "input"),
    ],
)
def test_net_arch_and_where_the_action_enters(net_arch, pi, qf, entry):
    for algorithm in (DDPG, SoftDDPG, TD3, SoftTD3):
        policy = make(algorithm, net_arch=net_arch).policy
        assert (policy.actor.net_arch, policy.qf.critic.net_arch) == (pi, qf)
        assert policy.qf.critic.action_layer == ("input" if algorithm is TD3 else entry)


FEW = [], dict(pi=[8, 4], qf=[8])


@pytest.mark.parametrize(
    ("algorithm", "net_arch"),
    [
        (SoftTD3, FEW[0]),
        extended(SoftTD3, FEW[1]),
        *(extended(algorithm, net_arch) for algorithm in (DDPG, SoftDDPG, TD3) for net_arch in FEW),
    ],
)
def test_learning_with_few_layers(algorithm, net_arch):
    model = make(algorithm, net_arch=net_arch)
    before = jax.device_get(model.policy.actor_state.params)
    model.learn(10)
    after = jax.device_get(model.policy.actor_state.params)
    assert not np.array_equal(*(tree["params"]["Dense_0"]["kernel"] for tree in (before, after)))


@pytest.mark.parametrize("algorithm", [extended(DDPG), extended(SoftDDPG), extended(TD3), SoftTD3])
def test_net_arch_none_is_the_default(algorithm):
    default = make(algorithm).policy
    assert make(algorithm, net_arch=None).policy.actor.net_arch == default.actor.net_arch
    assert default.actor.net_arch == ((128, 128) if algorithm is SoftTD3 else (400, 300))


def test_action_layer_when_given():
    assert make(DDPG, "input", net_arch=[8, 4]).policy.qf.critic.action_layer == "input"
    assert make(TD3, "second", net_arch=[8, 4]).policy.qf.critic.action_layer == "second"
    with pytest.raises(ValueError, match=r"no second hidden layer for the action: \[8\]"):
        make(DDPG, "second", net_arch=[8])


def test_critic_without_hidden_layers_is_linear():
    critic = Critic(observation_dim=3, action_dim=2, net_arch=(), action_layer="input")
    rng = np.random.default_rng(0)
    s, a = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    params = critic.init(jax.random.PRNGKey(0), s, a)
    leaves = params["params"]
    expected = s @ leaves["value"]["kernel"] + a @ leaves["action"]["kernel"] + leaves["value"]["bias"]
    np.testing.assert_allclose(critic.apply(params, s, a), expected[:, 0], rtol=1e-5)
    many = np.stack([a.T, 2 * a.T])
    values = critic.apply(params, s, many, method="at_actions")
    np.testing.assert_allclose(values, [critic.apply(params, s, a), critic.apply(params, s, 2 * a)], rtol=1e-5)


@pytest.mark.extended
def test_n_critics():
    model = make(DDPG, **NET, n_critics=3).learn(10)
    assert model.policy.qf_state.params["params"]["value"]["kernel"].shape == (3, 16, 1)


def test_functions_of_flax_and_optimisers_of_optax():
    model = make(DDPG, **NET, activation_fn=nn.leaky_relu, optimizer_class=optax.sgd).learn(10)
    assert model.policy.actor.activation_fn is nn.leaky_relu
    assert not jax.tree.leaves(model.policy.actor_state.opt_state)  # plain gradient descent has no state


@pytest.mark.parametrize(
    "policy_kwargs",
    [
        dict(share_features_extractor=True),
        dict(features_extractor_class=FlattenExtractor, features_extractor_kwargs={}),
        dict(features_extractor_class=CombinedExtractor, features_extractor_kwargs=None),
        dict(normalize_images=False),
    ],
)
def test_what_is_harmless_is_accepted_and_changes_nothing(policy_kwargs):
    observations = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    plain, with_them = (make(DDPG, **NET, **extra).learn(10) for extra in ({}, policy_kwargs))
    np.testing.assert_array_equal(plain.predict(observations)[0], with_them.predict(observations)[0])


def test_size_of_an_absent_cnn_warns():
    with pytest.warns(UserWarning, match="cnn_output_dim in features_extractor_kwargs has no effect"):
        make(DDPG, **NET, features_extractor_kwargs=dict(cnn_output_dim=16))


@pytest.mark.parametrize(
    ("policy_kwargs", "message"),
    [
        (dict(net_arch=[0]), "each layer of net_arch must be an integer of at least 1, got 0"),
        (dict(net_arch=["8"]), "each layer of net_arch must be an integer"),
        (dict(net_arch=64), "net_arch must be a list"),
        (dict(net_arch=dict(pi=[8])), "net_arch must be a list, or a dict with lists for pi and qf"),
        (dict(net_arch=dict(pi=[8], vf=[8])), "net_arch must be a list, or a dict with lists for pi and qf"),
        (dict(n_critics=0), "n_critics must be at least 1, got 0"),
        (dict(layer_norm="yes"), "layer_norm must be True or False"),
        (dict(normalize_images="yes"), "normalize_images must be True or False"),
        (dict(activation_fn=th.nn.ReLU), "activation_fn must be a function of a JAX array"),
        (dict(optimizer_class=th.optim.LBFGS), "optimizer_class must be an optimiser of optax.*LBFGS"),
        (dict(optimizer_class=th.optim.Adam, optimizer_kwargs=dict(amsgrad=True)), "optimizer_kwargs has 'amsgrad'"),
        (dict(optimizer_class=th.optim.SGD, optimizer_kwargs=dict(lr=0.1)), "optimizer_kwargs has 'lr'.*learning_rate"),
        (dict(features_extractor_class=NatureCNN), "CnnPolicy needs images, a Box of uint8"),
        (dict(features_extractor_class=th.nn.Flatten), "features_extractor_class=.*Flatten.* is not supported"),
        (dict(features_extractor_kwargs=dict(features_dim=8)), "features_extractor_kwargs has 'features_dim'"),
    ],
)
def test_other_arguments_are_refused_by_name(policy_kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(SoftDDPG, **policy_kwargs)


def test_device_without_a_gpu_warns_and_goes_on_with_the_cpu():
    if any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("there is a GPU")
    for name in ("cuda", "gpu", "cuda:1"):
        with pytest.warns(UserWarning, match=f"device='{name}': JAX has no such GPU, using the CPU"):
            model = DDPG("MlpPolicy", "Pendulum-v1", device=name, policy_kwargs=NET, **SMALL)
        assert jax.tree.leaves(model.policy.actor_state.params)[0].devices() == {jax.devices("cpu")[0]}
