"""A few updates from the same start, on one batch."""

import jax
import numpy as np

from softdpg.algorithms.family import ActionValue
from softdpg.algorithms.update import Learned, Rates, compiled_updates, no_metrics
from softdpg.replay.batches import Batch

BATCH, D, M = 16, 3, 2
LEARNING_RATE, QF_LEARNING_RATE, TAU = 1e-3, 2e-3, 0.05


def random_batch():
    rng = np.random.default_rng(0)
    return Batch(
        rng.normal(size=(BATCH, D)).astype(np.float32),
        rng.uniform(-1, 1, size=(BATCH, M)).astype(np.float32),
        rng.normal(size=(BATCH, D)).astype(np.float32),
        (rng.random(BATCH) < 0.3).astype(np.float32),
        rng.normal(size=BATCH).astype(np.float32),
        np.full(BATCH, 0.9, np.float32),
    )


def assert_trees_close(got, want, rtol=2e-4, atol=2e-6):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=atol), got, want)


def run(row, policy, batch, steps=5, sigma=0.0, with_actor=None, together=1, saturation_penalty=0.0):
    """``steps`` updates from the same start, ``together`` in a call; (actor, critic, metrics).

    :param with_actor: for each update of a call, whether the actor is updated; None if it always is
    """
    learned = Learned(policy.actor_state, policy.qf_state, policy.sigma_state, jax.random.PRNGKey(7), no_metrics())
    batches = jax.tree.map(lambda array: np.stack([array] * together), batch)
    rates = Rates(LEARNING_RATE, QF_LEARNING_RATE, TAU, sigma, saturation_penalty)
    with_actor = None if with_actor is None else np.array(with_actor)
    for _ in range(steps // together):
        learned = compiled_updates()(policy.qf, row, with_actor, learned, batches, rates)
    return learned.actor, learned.critics, learned.metrics


def next_value(row, policy, observations, actions, key, sigma):
    """``V(s')`` of a row of the family's table, from the critics of a policy."""
    q = ActionValue(policy.qf, row.critic_reduction, policy.qf_state.params, observations)
    return row.next_value(q, actions, key, sigma)


def action_gradient(row, policy, observations, actions, key, sigma):
    """Action gradient and values of a row of the family's table, from the critics of a policy."""
    q = ActionValue(policy.qf, row.critic_reduction, policy.qf_state.params, observations)
    return row.action_gradient(q, actions, key, sigma)
