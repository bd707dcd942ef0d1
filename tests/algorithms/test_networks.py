"""The critic at N actions of a state equals the plain evaluation, values and gradients, for both layouts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from softdpg.algorithms.networks import Actor, Critic

LAYOUTS = [("second", (16, 12)), ("input", (16, 12)), ("second", (16, 12, 8)), ("input", (16,))]
WIDTHS = [pytest.param(1, marks=pytest.mark.extended), 3, 17]  # few components of an action are summed, many multiplied


def make_critic(action_layer, net_arch, d=5, m=3):
    critic = Critic(d, m, net_arch, action_layer)
    return critic, critic.init(jax.random.key(0), jnp.zeros((1, d)), jnp.zeros((1, m)))


def plain(params, observations, actions, action_layer):
    """Q(s, a) written out with concatenated inputs, from the parameters alone."""
    layers = params["params"]
    entry = 0 if action_layer == "input" else 1
    x = observations
    for i in range(sum(name.startswith("hidden") for name in layers)):
        kernel = layers[f"hidden_{i}"]["kernel"]
        if i == entry:
            x = jnp.concatenate([x, actions], axis=-1)
            kernel = jnp.concatenate([kernel, layers["action"]["kernel"]])
        x = jnp.maximum(x @ kernel + layers[f"hidden_{i}"]["bias"], 0)
    return (x @ layers["value"]["kernel"] + layers["value"]["bias"])[..., 0]


@pytest.mark.parametrize("m", WIDTHS)
@pytest.mark.parametrize(("action_layer", "net_arch"), LAYOUTS)
def test_critic_equals_plain_evaluation(action_layer, net_arch, m):
    critic, params = make_critic(action_layer, net_arch, m=m)
    keys = jax.random.split(jax.random.key(1), 4)
    observations, actions = jax.random.normal(keys[0], (8, 5)), jax.random.normal(keys[1], (6, 8, m))
    weights = jax.random.normal(keys[2], (6, 8))

    def fast(params, observations, actions):
        return critic.apply(params, observations, actions.swapaxes(1, 2), method=Critic.at_actions)

    def slow(params, observations, actions):
        repeated = jnp.broadcast_to(observations, (6, *observations.shape))
        return plain(params, repeated, actions, action_layer)

    arguments = (params, observations, actions)
    expected = slow(*arguments)
    np.testing.assert_allclose(jax.jit(fast)(*arguments), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(critic.apply(params, observations, actions[0]), expected[0], rtol=1e-5, atol=1e-6)

    def gradients(f):
        return jax.jit(jax.grad(lambda *a: (weights * f(*a)).sum(), argnums=(0, 1, 2)))(*arguments)

    jax.tree.map(
        lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5),
        gradients(fast),
        gradients(slow),
    )


@pytest.mark.parametrize("m", WIDTHS)
@pytest.mark.parametrize(("action_layer", "net_arch"), LAYOUTS)
def test_all_samples_at_once_equal_one_by_one(action_layer, net_arch, m):
    """What other platforms than a CPU do gives the same, and can be compiled for them."""
    critic, params = make_critic(action_layer, net_arch, m=m)
    observations, actions = (
        jax.random.normal(jax.random.key(1), (8, 5)),
        jax.random.normal(jax.random.key(2), (6, m, 8)),
    )
    features = critic.apply(params, observations, method=Critic.features).T
    all_at_once, one_by_one = (
        critic.apply(params, features, actions, method=method) for method in (Critic._all_at_once, Critic._one_by_one)
    )
    np.testing.assert_allclose(all_at_once, one_by_one, rtol=1e-5, atol=1e-6)

    def at_actions(params, observations, actions):
        return critic.apply(params, observations, actions, method=Critic.at_actions)

    lowered = jax.jit(at_actions).trace(params, observations, actions).lower(lowering_platforms=("cuda",))
    assert "while" not in lowered.as_text()


@pytest.mark.parametrize(("action_layer", "entry_inputs"), [("second", 400), ("input", 105)])
def test_kernels_of_the_action_layer_are_drawn_as_one(action_layer, entry_inputs):
    _, params = make_critic(action_layer, (400, 300), d=105, m=8)
    layers = params["params"]
    state = layers["hidden_1" if action_layer == "second" else "hidden_0"]["kernel"]
    expected = 1 / np.sqrt(entry_inputs + 8)
    assert state.shape[0] == entry_inputs
    np.testing.assert_allclose(state.std(), expected, rtol=0.02)
    np.testing.assert_allclose(layers["action"]["kernel"].std(), expected, rtol=0.05)


def test_actor_is_two_relu_layers_and_tanh():
    actor = Actor(action_dim=2)
    observations = jax.random.normal(jax.random.key(0), (7, 4))
    params = actor.init(jax.random.key(1), observations)
    layers = params["params"]
    x = observations
    for name in ("Dense_0", "Dense_1"):
        x = jnp.maximum(x @ layers[name]["kernel"] + layers[name]["bias"], 0)
    expected = jnp.tanh(x @ layers["Dense_2"]["kernel"] + layers["Dense_2"]["bias"])
    assert [layers[name]["kernel"].shape for name in sorted(layers)] == [(4, 400), (400, 300), (300, 2)]
    np.testing.assert_allclose(actor.apply(params, observations), expected, rtol=1e-5, atol=1e-6)
