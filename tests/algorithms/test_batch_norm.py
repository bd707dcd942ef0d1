"""Batch-normalised critics: the joint pass and one update against plain versions, and the running statistics."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from gymnasium import spaces
from updates import BATCH, LEARNING_RATE, QF_LEARNING_RATE, D, M, assert_trees_close, random_batch, run

from softdpg import SoftTD3
from softdpg.algorithms.family import CriticGradient, ExactTarget, Row
from softdpg.algorithms.networks import BATCH_NORM_EPSILON
from softdpg.algorithms.policies import DDPGPolicy


@pytest.fixture(scope="module", params=["second", "input"])
def policy(request):
    box = spaces.Box(-1, 1, (D,), np.float32), spaces.Box(-1, 1, (M,), np.float32)
    policy = DDPGPolicy(*box, lambda _: 0.0, net_arch=[12, 8], action_layer=request.param, batch_norm=True, n_critics=2)
    policy.build(jax.random.PRNGKey(3))
    return policy


def one_critic(params, j):
    return jax.tree.map(lambda leaf: leaf[j], params["params"])


def plain_pass(p, entry, rows, statistics=None):
    """Values of rows [s, a], and the statistics of each norm: of the rows, or those given."""
    x, used = rows[:, :D], []
    for i in range(2):
        x = x @ p[f"hidden_{i}"]["kernel"] + p[f"hidden_{i}"]["bias"]
        if i == entry:
            x = x + rows[:, D:] @ p["action"]["kernel"]
        x = jnp.maximum(x, 0)
        mean, variance = (x.mean(0), x.var(0)) if statistics is None else statistics[i]
        used.append((mean, variance))
        norm = p[f"norm_{i}"]
        x = (x - mean) / jnp.sqrt(variance + BATCH_NORM_EPSILON) * norm["scale"] + norm["bias"]
    return (x @ p["value"]["kernel"] + p["value"]["bias"])[:, 0], used


def entry(policy):
    return 0 if policy.qf.critic.action_layer == "input" else 1


def test_a_joint_pass_normalises_current_and_next_together(policy):
    """One sample of the next action: both halves of the joint batch have the same statistics, as in CrossQ."""
    batch = random_batch()
    samples = np.random.default_rng(1).uniform(-1, 1, (1, M, BATCH)).astype(np.float32)
    got, statistics = policy.qf.joint(
        policy.qf_state.params, batch.observations, batch.actions, batch.next_observations, samples
    )
    now = np.concatenate([batch.observations, batch.actions], axis=1)
    following = np.concatenate([batch.next_observations, samples[0].T], axis=1)
    for j in range(2):
        want, used = plain_pass(one_critic(policy.qf_state.params, j), entry(policy), np.concatenate([now, following]))
        np.testing.assert_allclose(got[j].ravel(), want, rtol=1e-4, atol=1e-5)
        for i, (mean, variance) in enumerate(used):
            np.testing.assert_allclose(statistics[f"norm_{i}"]["mean"][j], mean, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(statistics[f"norm_{i}"]["variance"][j], variance, rtol=1e-3, atol=1e-6)


def test_samples_of_the_next_action_count_for_one_half_together(policy):
    """N equal samples give what one sample gives."""
    batch = random_batch()
    one = np.random.default_rng(1).uniform(-1, 1, (1, M, BATCH)).astype(np.float32)
    arguments = policy.qf_state.params, batch.observations, batch.actions, batch.next_observations
    want, _ = policy.qf.joint(*arguments, one)
    got, _ = policy.qf.joint(*arguments, np.repeat(one, 3, axis=0))
    np.testing.assert_allclose(got[:, :2], want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[:, 3], want[:, 1], rtol=1e-4, atol=1e-5)


def test_one_update_equals_a_plain_version(policy):
    """The critics' loss, Adam, the running statistics, and the actor through these statistics."""
    batch = random_batch()
    actor, critics, metrics = run(Row(ExactTarget(), CriticGradient(), "min"), policy, batch, steps=1)
    where, before = entry(policy), policy.qf_state.params
    next_actions = policy.actor_state.apply_fn(policy.actor_state.params, batch.next_observations)
    rows = np.concatenate(
        [
            np.concatenate([batch.observations, batch.actions], axis=1),
            np.concatenate([batch.next_observations, next_actions], axis=1),
        ]
    )

    def loss(params):
        values = jnp.stack([plain_pass(one_critic(params, j), where, rows)[0] for j in range(2)])
        target = batch.rewards + (1 - batch.dones) * batch.discounts * values[:, BATCH:].min(axis=0)
        return 0.5 * jnp.mean((jax.lax.stop_gradient(target) - values[:, :BATCH]) ** 2, axis=1).sum()

    want_loss, gradient = jax.value_and_grad(loss)(before)
    adam = optax.adam(QF_LEARNING_RATE)
    want = optax.apply_updates(before, adam.update(gradient, adam.init(before))[0])
    for i in range(2):  # the first batch has the weight 1
        used = [plain_pass(one_critic(before, j), where, rows)[1][i] for j in range(2)]
        want["params"][f"norm_{i}"]["mean"] = jnp.stack([mean for mean, _ in used])
        want["params"][f"norm_{i}"]["variance"] = jnp.stack([variance for _, variance in used])
    np.testing.assert_allclose(metrics["critic_loss"], want_loss, rtol=1e-4)
    assert_trees_close(critics.params, want, rtol=1e-3, atol=1e-5)
    assert_trees_close(critics.target_params, critics.params, rtol=0, atol=0)  # there is no target network

    def value(params):
        actions = policy.actor_state.apply_fn(params, batch.observations)
        rows = jnp.concatenate([jnp.asarray(batch.observations), actions], axis=1)
        statistics = [
            [(want["params"][f"norm_{i}"]["mean"][j], want["params"][f"norm_{i}"]["variance"][j]) for i in range(2)]
            for j in range(2)
        ]
        values = [plain_pass(one_critic(want, j), where, rows, statistics[j])[0] for j in range(2)]
        return -jnp.stack(values).min(axis=0).mean()

    actor_adam = optax.adam(LEARNING_RATE)
    start = policy.actor_state.params
    step, _ = actor_adam.update(jax.grad(value)(start), actor_adam.init(start))
    assert_trees_close(actor.params, optax.apply_updates(start, step), rtol=1e-3, atol=2e-5)


def test_running_statistics_are_an_average_over_updates(policy):
    """The second batch has the weight 1/2: the running statistics are the mean of both batches' own."""
    batch = random_batch()
    row = Row(ExactTarget(), CriticGradient(), "min")
    actor, first, _ = run(row, policy, batch, steps=1)
    _, second, _ = run(row, policy, batch, steps=2)
    next_actions = actor.apply_fn(actor.params, batch.next_observations)
    _, own = policy.qf.joint(
        first.params, batch.observations, batch.actions, batch.next_observations, next_actions.T[None]
    )
    for norm, statistics in own.items():
        for name, value in statistics.items():
            want = (first.params["params"][norm][name] + value) / 2
            np.testing.assert_allclose(second.params["params"][norm][name], want, rtol=1e-4, atol=1e-6)


def test_many_actions_are_evaluated_with_the_running_statistics(policy):
    """``at_actions`` equals one action after the other."""
    batch = random_batch()
    _, critics, _ = run(Row(ExactTarget(), CriticGradient(), "min"), policy, batch, steps=2)
    many = np.random.default_rng(2).uniform(-1, 1, (4, M, BATCH)).astype(np.float32)
    got = policy.qf.at_actions(critics.params, batch.observations, many)
    for i in range(4):
        want = policy.qf.apply(critics.params, batch.observations, many[i].T)
        np.testing.assert_allclose(got[:, i], want, rtol=1e-4, atol=1e-5)


def test_a_saved_model_keeps_its_statistics(tmp_path):
    arguments = dict(learning_starts=16, batch_size=8, buffer_size=200, seed=0)
    model = SoftTD3("MlpPolicy", "Pendulum-v1", policy_kwargs=dict(batch_norm=True, net_arch=[8, 8]), **arguments)
    model.learn(48).save(tmp_path / "model")
    loaded = SoftTD3.load(tmp_path / "model")
    weights = model.policy.state_dict()
    assert {name for name in weights if "norm_0.mean" in name} == {"critic.norm_0.mean", "critic_target.norm_0.mean"}
    for name, value in loaded.policy.state_dict().items():
        np.testing.assert_array_equal(value, weights[name])
