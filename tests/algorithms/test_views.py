"""NumPy, JAX and PyTorch functions of parameters, and the networks of a model as SB3 shows them."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch as th
from small import OBSERVATIONS, SMALL

from softdpg import DDPG, TD3
from softdpg.algorithms.parameters import ParameterArray, to_flat
from softdpg.algorithms.policies import ActorView

NAMES = ("actor", "actor_target", "critic", "critic_target")


@pytest.fixture(scope="module")
def model():
    return TD3("MlpPolicy", "Pendulum-v1", **SMALL).learn(15)


def parameter(values):
    return to_flat({"x": jnp.asarray(values, jnp.float32)})["x"]


def test_functions_of_pytorch_take_parameters():
    a, b = parameter([1.0, 2.0]), parameter([3.0, 5.0])
    assert th.allclose(a, a)
    assert not th.allclose(a, b)
    assert th.allclose(a, th.tensor([1.0, 2.0]))
    assert th.add(a, b, alpha=2).tolist() == [7, 12]
    assert th.stack([a, b]).tolist() == [[1, 2], [3, 5]]
    assert th.dot(input=a, tensor=b).item() == 13
    random = th.rand_like(a)
    assert isinstance(random, th.Tensor)
    assert (random.shape, random.dtype) == ((2,), th.float32)
    assert (a.detach().cpu().clone() + 1).tolist() == [2, 3]
    assert a.to(th.float64).dtype == th.float64
    assert a.device == th.device("cpu")
    with pytest.raises(AttributeError, match="'ParameterArray' object has no attribute 'backward'"):
        a.backward()


def test_functions_of_numpy_and_jax_take_parameters():
    a, b = parameter([1.0, 2.0]), parameter([3.0, 5.0])
    assert np.dot(a, b) == jnp.dot(a, b) == jax.jit(jnp.dot)(a, b) == 13
    np.testing.assert_array_equal(jax.grad(lambda x: (x**2).sum())(a), [2, 4])
    mean = jax.tree.map(lambda x, y: (x + y) / 2, {"x": a}, {"x": b})["x"]
    np.testing.assert_array_equal(mean, [2, 3.5])


def test_parameters_are_copied_whole_and_never_written_through():
    a = parameter([1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 3
    for other in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert isinstance(other, ParameterArray)
        np.testing.assert_array_equal(other, a)
    tensor = a.clone()
    tensor[0] = 3
    np.testing.assert_array_equal(a, [1, 2])


def test_random_parameters_of_pytorch_are_taken_over():
    model = DDPG("MlpPolicy", "Pendulum-v1", **SMALL)
    random = {name: th.rand_like(weight) for name, weight in model.policy.state_dict().items()}
    model.policy.load_state_dict(random)
    for name, weight in model.policy.state_dict().items():
        assert th.allclose(weight, random[name], rtol=0, atol=0)


def test_networks_are_the_parts_of_the_policy(model):
    weights = model.policy.state_dict()
    for name in NAMES:
        view = getattr(model, name)
        for key, weight in view.named_parameters():
            np.testing.assert_array_equal(weight, weights.pop(f"{name}.{key}"))
        assert sum(weight.size for weight in view.parameters()) == sum(w.size for w in view.state_dict().values())
    assert not weights
    assert not th.allclose(next(model.critic.parameters()), next(model.critic_target.parameters()))
    assert model.critic.action_layer == "input"  # of the flax module
    assert model.actor.net_arch == model.policy.actor.module.net_arch == (16, 16)
    with pytest.raises(AttributeError, match="nobody"):
        _ = model.actor.nobody


def test_networks_show_the_weights_of_now():
    model = TD3("MlpPolicy", "Pendulum-v1", **SMALL)
    actor = model.actor
    before = actor.state_dict()
    model.learn(15)
    assert all(np.abs(after - before[name]).max() > 0 for name, after in actor.named_parameters())
    assert copy.deepcopy(actor).net_arch == (16, 16)


def test_the_actor_alone_acts_and_is_saved(model, tmp_path):
    expected, _ = model.predict(OBSERVATIONS, deterministic=True)
    np.testing.assert_array_equal(model.actor.predict(OBSERVATIONS, deterministic=True)[0], expected)
    model.actor.save(tmp_path / "actor.pkl")
    actor = ActorView.load(tmp_path / "actor.pkl")
    np.testing.assert_array_equal(actor.predict(OBSERVATIONS, deterministic=True)[0], expected)
    assert not th.allclose(next(actor.policy.critic.parameters()), next(model.critic.parameters()))


@pytest.mark.extended  # torch.compile imports much
def test_a_compiled_policy_is_saved(tmp_path):
    model = DDPG("MlpPolicy", "Pendulum-v1", **SMALL)
    expected = model.get_parameters()
    model.policy = th.compile(model.policy)
    model.save(tmp_path / "model")
    jax.tree.map(np.testing.assert_array_equal, DDPG.load(tmp_path / "model").get_parameters(), expected)


def test_delayed_actor():
    model = DDPG("MlpPolicy", "Pendulum-v1", policy_delay=3, **SMALL).learn(10)
    for number in range(1, 7):
        before = model.actor.state_dict()
        model.train(gradient_steps=1)
        changed = not th.allclose(before["Dense_0.kernel"], model.actor.state_dict()["Dense_0.kernel"], rtol=0, atol=0)
        assert changed == (number % 3 == 0)


def test_the_networks_can_be_called_as_in_sb3(model):
    seen = model.policy.obs_to_tensor(OBSERVATIONS)[0]
    scaled = model.actor(seen)
    np.testing.assert_allclose(2 * np.asarray(scaled), model.predict(OBSERVATIONS, deterministic=True)[0], rtol=1e-5)
    values = model.critic(seen, scaled)
    assert [value.shape for value in values] == [(6, 1)] * 2
    assert values[0][0].item() != values[1][0].item()
    expected = model.policy.qf.apply(model.policy.qf_state.params, OBSERVATIONS, scaled)
    np.testing.assert_array_equal(np.stack(values)[..., 0], expected)
    assert not np.array_equal(model.actor_target(seen), scaled)
    assert not np.array_equal(model.critic_target(seen, scaled)[0], values[0])
    assert model.policy.net_arch == [16, 16]


def test_the_policy_prints_its_networks(model):
    lines = str(model.policy).splitlines()
    assert lines[:4] == [
        "DDPGPolicy(",
        "  (actor): 353 parameters",
        "    Dense_0.bias: (16,)",
        "    Dense_0.kernel: (3, 16)",
    ]
    assert "  (critic): 2 networks of 369 parameters" in lines
    assert lines[-2].startswith("  optimizer: adam(")
