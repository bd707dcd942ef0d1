"""A class of ``torch.optim`` as the optimiser makes PyTorch's steps, with its defaults and names."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch as th
from small import NET, SMALL

from softdpg import DDPG
from softdpg.algorithms.optimizers import find_optimizer
from softdpg.algorithms.update import TargetedState, _descend

CASES = [
    (th.optim.Adam, {}),
    (th.optim.Adam, dict(betas=(0.5, 0.9), eps=1e-3, weight_decay=0.1, amsgrad=False)),
    (th.optim.AdamW, {}),
    (th.optim.AdamW, dict(weight_decay=0.0)),
    (th.optim.AdamW, dict(betas=[0.8, 0.99], eps=1e-2, weight_decay=0.3, foreach=False)),
    (th.optim.SGD, {}),
    (th.optim.SGD, dict(momentum=0.9, weight_decay=0.1, dampening=0)),
    (th.optim.SGD, dict(momentum=0.9, nesterov=True)),
    (th.optim.RMSprop, {}),
    (th.optim.RMSprop, dict(alpha=0.9, eps=1e-2, momentum=0.5, weight_decay=0.1)),
    (th.optim.RMSprop, dict(centered=True)),
]


@pytest.mark.parametrize(("optimizer_class", "kwargs"), CASES)
def test_steps_of_torch(optimizer_class, kwargs):
    """Ten steps down ``sum(c x^4) / 4`` at a learning rate that changes."""
    start, curvature = np.array([1.0, -2.0, 0.5, 3.0], np.float32), np.array([1.0, 0.1, 3.0, 0.01], np.float32)
    x = th.tensor(start, requires_grad=True)
    of_torch = optimizer_class([x], lr=1.0, **kwargs)
    tx = find_optimizer(optimizer_class, kwargs)
    params = jnp.asarray(start)
    state = TargetedState(0, None, params, tx, tx.init(params), target_params=params)
    for learning_rate in np.linspace(0.05, 0.01, 10, dtype=np.float32):
        of_torch.param_groups[0]["lr"] = float(learning_rate)
        of_torch.zero_grad()
        (th.tensor(curvature) * x**4 / 4).sum().backward()
        of_torch.step()
        state = _descend(state, curvature * state.params**3, learning_rate)
    assert np.abs(x.detach().numpy() - start).max() > 1e-3
    np.testing.assert_allclose(state.params, x.detach().numpy(), rtol=2e-5, atol=1e-6)


def test_adam_of_torch_is_the_default():
    make = lambda **kwargs: DDPG(  # noqa: E731
        "MlpPolicy", "Pendulum-v1", **SMALL | dict(policy_kwargs=NET | kwargs)
    ).learn(20)
    plain, of_torch = make(), make(optimizer_class=th.optim.Adam)
    jax.tree.map(np.testing.assert_array_equal, plain.get_parameters(), of_torch.get_parameters())


def test_the_kwargs_stay_as_the_user_gave_them(tmp_path):
    kwargs = dict(betas=[0.5, 0.9], weight_decay=0.1)
    policy_kwargs = NET | dict(optimizer_class=th.optim.AdamW, optimizer_kwargs=kwargs)
    model = DDPG("MlpPolicy", "Pendulum-v1", **SMALL | dict(policy_kwargs=policy_kwargs)).learn(16)
    assert model.policy.optimizer_kwargs == dict(betas=[0.5, 0.9], weight_decay=0.1)
    assert model.policy.actor_state.tx is find_optimizer(th.optim.AdamW, kwargs)
    model.save(tmp_path / "model")
    loaded = DDPG.load(tmp_path / "model", env="Pendulum-v1", policy_kwargs=policy_kwargs).learn(16)
    assert loaded.policy.actor_state.tx is model.policy.actor_state.tx
    assert loaded.policy.optimizer_class is th.optim.AdamW


def test_one_of_optax_keeps_its_own_defaults():
    params = jnp.ones(2)
    tx = find_optimizer(optax.adamw, {})
    step, _ = tx.update(jnp.zeros(2), tx.init(params), params)
    np.testing.assert_allclose(step, -1e-4, rtol=1e-6)  # optax's weight decay, where PyTorch's is 1e-2
