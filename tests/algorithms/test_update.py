"""The compiled update against Algorithm 1 written plainly, and DDPG's against hand-made numbers."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from updates import (
    BATCH,
    LEARNING_RATE,
    QF_LEARNING_RATE,
    TAU,
    D,
    M,
    action_gradient,
    assert_trees_close,
    next_value,
    run,
)

from examples import soft_ddpg_plain as plain
from softdpg.algorithms.family import FAMILY, ActionValue, Row, SmoothedGradient, SmoothedTarget
from softdpg.algorithms.policies import DDPGPolicy
from softdpg.algorithms.smoothing import gaussian_perturbations


@pytest.fixture(params=["second", "input"])
def policy(request):
    box = spaces.Box(-1, 1, (D,), np.float32), spaces.Box(-1, 1, (M,), np.float32)
    policy = DDPGPolicy(*box, lambda _: 0.0, net_arch=[32, 24], action_layer=request.param)
    policy.build(jax.random.PRNGKey(3))
    return policy


def soft(n_samples, estimator, antithetic):
    return Row(SmoothedTarget(n_samples, antithetic), SmoothedGradient(n_samples, estimator, antithetic), "min")


def copies(*trees):
    return jax.tree.map(jnp.copy, trees)


def run_plain(sigma, n_samples, policy, batch, steps=5):
    """What :func:`run` does, by ``examples/soft_ddpg_plain.py`` with the same random numbers; (actor, critic, loss)."""

    def q(params, s, a):
        return policy.qf_state.apply_fn(params, s.reshape(-1, D), a.reshape(-1, M)).reshape(s.shape[:-1])

    update = jax.jit(partial(plain.update, policy.actor_state.apply_fn, q))
    actor, qf = plain.initial(policy.actor_state.params), plain.initial(policy.qf_state.params)
    discounts = batch.discounts * (1 - batch.dones)
    plain_batch = plain.Batch(batch.observations, batch.actions, batch.rewards, batch.next_observations, discounts)
    key = jax.random.PRNGKey(7)
    for _ in range(steps):
        key, *keys = jax.random.split(key, 3)
        noise = (gaussian_perturbations(key, n_samples, (M, BATCH)).swapaxes(1, 2) for key in keys)
        actor, qf, loss = update(actor, qf, plain_batch, *noise, sigma, LEARNING_RATE, QF_LEARNING_RATE, TAU)
    return actor, qf, loss


@pytest.mark.parametrize("n_samples", [1, 6])
def test_soft_update_equals_algorithm_1_written_plainly(policy, batch, n_samples):
    fast = run(soft(n_samples, "paper", antithetic=False), policy, batch, sigma=0.4)
    slow = run_plain(0.4, n_samples, policy, batch)
    for got, want in zip(fast[:2], slow[:2], strict=True):
        assert_trees_close(got.params, want.params)
        assert_trees_close(got.target_params, want.target)
    # The mean over N of (y_i - Q)^2 exceeds (mean y_i - Q)^2 by the variance of y: losses agree for N = 1 only.
    if n_samples == 1:
        np.testing.assert_allclose(fast[2]["critic_loss"], slow[2], rtol=1e-4)
    else:
        assert slow[2] > fast[2]["critic_loss"]


@pytest.mark.parametrize("antithetic", [False, True])
def test_centered_gradient_approaches_the_derivative_of_the_smoothed_critic(policy, batch, antithetic):
    """With many samples both estimators give grad_a E[Q(s, a + sigma w)], here far from the bounds."""
    actions = np.zeros((BATCH, M), np.float32)
    row = soft(5_000, "centered", antithetic)
    gradient, value, _ = action_gradient(row, policy, batch.observations, actions, jax.random.key(0), 0.1)
    w = jax.random.normal(jax.random.key(1), (5_000, M, 1))

    def smoothed(a):
        q = ActionValue(policy.qf, "min", policy.qf_state.params, batch.observations)
        return q.at_samples(a.T + 0.1 * w).mean(axis=0)

    expected_value, pullback = jax.vjp(smoothed, actions)
    np.testing.assert_allclose(value, expected_value, atol=5e-3)
    np.testing.assert_allclose(gradient, pullback(jnp.ones(BATCH))[0], atol=0.03)


def test_tiny_sigma_recovers_ddpg(policy, batch):
    """As sigma goes to 0 the smoothed target and gradient become those of DDPG."""
    arguments = (policy, batch.observations, batch.actions * 0.9, jax.random.key(0), 1e-3)
    smoothed, exact = soft(4_000, "centered", antithetic=True), FAMILY["DDPG"]
    np.testing.assert_allclose(next_value(smoothed, *arguments), next_value(exact, *arguments), atol=1e-4)
    np.testing.assert_allclose(
        action_gradient(smoothed, *arguments)[0], action_gradient(exact, *arguments)[0], atol=0.05
    )


def test_ddpg_update_by_hand(policy, batch):
    """Target, gradients of both losses and Polyak averaging of DDPG from first principles, for one step."""
    actor_state, qf_state = copies(policy.actor_state, policy.qf_state)
    q, pi = qf_state.apply_fn, actor_state.apply_fn
    next_values = q(
        qf_state.target_params, batch.next_observations, pi(actor_state.target_params, batch.next_observations)
    )
    y = batch.rewards + 0.9 * (1 - batch.dones) * next_values

    def critic_loss(params):
        return jnp.mean((y - q(params, batch.observations, batch.actions)) ** 2) / 2

    loss, critic_gradient = jax.value_and_grad(critic_loss)(qf_state.params)
    # Adam's first step is the sign of the gradient times the learning rate (epsilon aside).
    stepped = jax.tree.map(
        lambda p, g: p - QF_LEARNING_RATE * g / (jnp.abs(g) + 1e-8), qf_state.params, critic_gradient
    )

    def actor_loss(params):
        return -jnp.mean(q(stepped, batch.observations, pi(params, batch.observations)))

    actor_gradient = jax.grad(actor_loss)(actor_state.params)
    actor, qf, metrics = run(FAMILY["DDPG"], policy, batch, steps=1)

    assert_trees_close(qf.params, stepped, atol=1e-5)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(actor_gradient)))
    np.testing.assert_allclose(metrics["actor_gradient_norm"], norm, rtol=1e-3)
    np.testing.assert_allclose(metrics["critic_loss"], loss, rtol=1e-4)
    np.testing.assert_allclose(metrics["actor_loss"], actor_loss(actor_state.params), rtol=1e-3)
    np.testing.assert_allclose(
        metrics["q_mean"], q(qf_state.params, batch.observations, batch.actions).mean(), rtol=1e-4
    )
    for old, new in ((actor_state, actor), (qf_state, qf)):
        mixed = jax.tree.map(lambda t, p: (1 - TAU) * t + TAU * p, old.target_params, new.params)
        assert_trees_close(new.target_params, mixed)


def test_saturated_actions_are_counted(policy, batch):
    actor, _ = copies(policy.actor_state, policy.qf_state)
    # Bias of +-10 before tanh: the first action saturates everywhere, the second nowhere.
    last = actor.params["params"]["Dense_2"]
    last["kernel"] = jnp.zeros_like(last["kernel"])
    last["bias"] = jnp.array([10.0, 0.0])
    policy.actor_state = actor
    assert run(FAMILY["DDPG"], policy, batch, steps=1)[2]["saturated_actions"] == 0.5
