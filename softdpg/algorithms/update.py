"""The update that all algorithms of the family share: critics, actor, target networks.

:func:`update` reads from top to bottom. What differs between the algorithms, the value of the next state and the action
gradient, is a :class:`~softdpg.algorithms.family.Row` of the family's table.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

from softdpg.algorithms.family import ActionValue, Row
from softdpg.algorithms.networks import Array, Critics
from softdpg.algorithms.smoothing import Scale
from softdpg.replay.batches import Batch

SATURATED = 0.99  # an action beyond this fraction of its bound counts as saturated in the log
SIGMA_START = 0.2
SIGMA_BOUNDS = (0.05, 0.5)  # of a learned sigma
NORMALIZATION_RATE = 0.01  # smallest weight of a batch in the statistics of batch norm
STATISTICS_RATE = 1e-3  # smallest weight of a batch in the observation statistics
Metrics = dict[str, jax.Array]


class TargetedState(TrainState):
    """Parameters, their optimiser state, and the parameters of the target network."""

    target_params: Any


class Learned(NamedTuple):
    """Everything that an update changes. ``sigma`` is the state of a learned smoothing scale, or None."""

    actor: TargetedState
    critics: TargetedState
    sigma: TrainState | None
    key: jax.Array
    metrics: Metrics


class Rates(NamedTuple):
    """Numbers that may change from one update to the next.

    :param learning_rate: step size of the actor
    :param qf_learning_rate: step size of the critics
    :param tau: Polyak coefficient of the target networks
    :param sigma: scale of the smoothing noise; ignored if it is learned
    :param saturation_penalty: lambda, weight of ``||u||^2`` with ``pi = tanh(u)`` in the actor's loss
    """

    learning_rate: float
    qf_learning_rate: float
    tau: float
    sigma: Scale
    saturation_penalty: float = 0.0


def no_metrics() -> Metrics:
    """Return the logged values before the first update."""
    names = ("critic_loss", "q_mean", "actor_loss", "actor_gradient_norm", "saturated_actions", "saturated_updates")
    return {name: jnp.zeros(()) for name in names}


def update(qf: Critics, row: Row, with_actor: bool | Array, learned: Learned, batch: Batch, rates: Rates) -> Learned:
    """Update critics and target networks from one batch, and the actor if ``with_actor``.

    :param qf: architecture of the critics
    :param row: the algorithm, a row of the family's table
    :param with_actor: whether this update includes the actor (delayed policy updates)
    :param learned: state before the update
    :param batch: transitions
    :param rates: step sizes and the scale of the noise
    :return: state after the update
    """
    actor, critics, sigma_state, key, metrics = learned
    key, target_key, actor_key = jax.random.split(key, 3)
    sigma = rates.sigma if sigma_state is None else jnp.exp(sigma_state.params)
    statistics = updated_statistics(actor, critics, batch.observations)
    actor, critics = (with_statistics(state, statistics) for state in (actor, critics))

    # Critics: y = r + discount * V(s'), minimise the sum over critics of mean (y - Q_j(s, a))^2 / 2
    next_actions = actor.apply_fn(actor.target_params, batch.next_observations)

    def bellman_target(next_q: ActionValue) -> Array:
        value = row.next_value(next_q, next_actions, target_key, sigma)
        return batch.rewards + (1 - batch.dones) * batch.discounts * value

    joint = qf.critic.batch_norm  # then s' is evaluated with (s, a), in one pass of the same networks
    if not joint:
        targets = bellman_target(
            ActionValue(qf, row.critic_reduction, critics.target_params, batch.next_observations, row.layout)
        )

    def critic_loss(params: Any) -> tuple[jax.Array, tuple[jax.Array, Any]]:
        if joint:
            next_q = JointValue(qf, row.critic_reduction, params, batch.next_observations, row.layout, batch=batch)
            y = jax.lax.stop_gradient(bellman_target(next_q))
            values, statistics = next_q.current[-1]
        else:
            y, values, statistics = targets, qf.apply(params, batch.observations, batch.actions), None
        return 0.5 * jnp.mean((y - values) ** 2, axis=-1).sum(), (values, statistics)

    (loss, (values, normalization)), gradient = jax.value_and_grad(critic_loss, has_aux=True)(critics.params)
    critics = _descend(critics, gradient, rates.qf_learning_rate)
    if joint:
        critics = with_normalization(critics, normalization)
    metrics = metrics | {"critic_loss": loss, "q_mean": values.mean()}

    # Actor: grad_theta J = mean over s of grad_theta pi(s) g(s), where g is the action gradient.
    # With pi = tanh(u), the penalty lambda ||u||^2 frees actions that tanh holds at 1, where its derivative is 0.
    def update_actor(
        actor: TargetedState, sigma_state: TrainState | None, metrics: Metrics
    ) -> tuple[TargetedState, TrainState | None, Metrics]:
        unsquashed = partial(actor.apply_fn, method="unsquashed")
        u, pullback = jax.vjp(lambda params: unsquashed(params, batch.observations), actor.params)
        actions = jnp.tanh(u)
        q = ActionValue(qf, row.critic_reduction, critics.params, batch.observations, row.layout)
        ascent = row.action_gradient(q, actions, actor_key, sigma)
        uphill = ascent.gradient * (1 - actions**2) - 2 * rates.saturation_penalty * u
        (gradient,) = pullback(-uphill / len(actions))
        if sigma_state is not None:
            sigma_state = ascend_log_sigma(sigma_state, ascent.log_sigma_gradient)
        saturated = jnp.mean(jnp.abs(actions) > SATURATED)
        metrics = metrics | {
            "actor_loss": -ascent.values.mean(),
            # Products are less work for XLA than a sum of all squares.
            "actor_gradient_norm": jnp.sqrt(optax.tree.vdot(gradient, gradient)),
            "saturated_actions": saturated,
            "saturated_updates": jnp.where(saturated > SATURATED, metrics["saturated_updates"] + 1, 0.0),
        }
        return _descend(actor, gradient, rates.learning_rate), sigma_state, metrics

    if with_actor is True:
        actor, sigma_state, metrics = update_actor(actor, sigma_state, metrics)
    else:
        same = (actor, sigma_state, metrics)
        actor, sigma_state, metrics = jax.lax.cond(with_actor, update_actor, lambda *args: args, *same)

    # Target networks: w' <- (1 - tau) w' + tau w
    critics, actor = (
        state.replace(
            target_params=state.params
            if joint
            else optax.incremental_update(state.params, state.target_params, rates.tau)
        )
        for state in (critics, actor)
    )
    # Restore the statistics, which an optimiser with weight decay has changed.
    actor, critics = (with_statistics(state, statistics) for state in (actor, critics))
    return Learned(actor, critics, sigma_state, key, metrics)


def updates(qf: Critics, row: Row, with_actor: Array | None, learned: Learned, batches: Batch, rates: Rates) -> Learned:
    """Apply one :func:`update` after another.

    :param with_actor: for each update, whether it includes the actor, ``(n,)``; None if all do. An array, so that
        the compiled function contains the update once
    :param batches: arrays with a further leading axis over the updates
    """

    def one(learned: Learned, given: tuple[Array | None, Batch]) -> tuple[Learned, None]:
        flag, batch = given
        return update(qf, row, True if flag is None else flag, learned, batch, rates), None

    if len(batches.rewards) == 1:
        return one(learned, jax.tree.map(lambda array: array[0], (with_actor, batches)))[0]
    return jax.lax.scan(one, learned, (with_actor, batches))[0]


@cache
def compiled_updates() -> Callable[[Critics, Row, Array | None, Learned, Batch, Rates], Learned]:
    """Return :func:`updates` as one compiled function.

    It does not reuse the memory of its arguments: they stay valid if the call is interrupted.
    """
    return jax.jit(updates, static_argnums=(0, 1), compiler_options=compiler_options())


@cache
def compiler_options() -> dict[str, str] | None:
    """Return options for ``jax.jit``: on a CPU, Eigen's matrix products, which save 4 % of an update over YNNPACK's.

    Returns None if this version of JAX does not know the option. Asking starts JAX, so it is not done on import.
    """
    options = {"xla_cpu_experimental_ynn_fusion_type": ""}
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return None
    return options


def _descend(state: TargetedState, gradient: Any, learning_rate: float | jax.Array) -> TargetedState:
    """Take one step of the optimiser, which was made with step size 1, at the given learning rate."""
    steps, opt_state = state.tx.update(gradient, state.opt_state, state.params)
    params = jax.tree.map(lambda param, step: param + learning_rate * step, state.params, steps)
    return state.replace(step=state.step + 1, params=params, opt_state=opt_state)


# Statistics of the observations, for networks with ``standardize=True``


def updated_statistics(
    actor: TargetedState, critics: TargetedState, observations: Array
) -> dict[str, jax.Array] | None:
    """Return mean and variance after one more batch ``(batch, d)``; None if the networks do not standardise.

    The k-th batch has the weight 1 / k, and never less than :data:`STATISTICS_RATE`.
    """
    old = actor.params["params"].get("observations")
    if old is None:
        return None
    rate = jnp.maximum(1 / (critics.step + 1), STATISTICS_RATE)
    change = jnp.mean(observations, axis=0) - old["mean"]
    within, between = jnp.var(observations, axis=0), rate * change**2
    return {
        "mean": old["mean"] + rate * change,
        "variance": (1 - rate) * (old["variance"] + between) + rate * within,
    }


def with_statistics(state: TargetedState, statistics: dict[str, jax.Array] | None) -> TargetedState:
    """Return the state with these statistics in the networks and in their targets."""
    if statistics is None:
        return state

    def put(tree: Any) -> Any:
        old = tree["observations"]  # (d,), or (n, d) of n critics
        return tree | {"observations": {k: jnp.broadcast_to(statistics[k], array.shape) for k, array in old.items()}}

    params, target_params = ({"params": put(params["params"])} for params in (state.params, state.target_params))
    return state.replace(params=params, target_params=target_params)


# Batch-normalised critics


@dataclass(frozen=True)
class JointValue(ActionValue):
    """``Q(s', .)`` of critics that are normalised over (s, a) and (s', a') together, as in CrossQ.

    Evaluating the next actions also evaluates (s, a), because both need the statistics of the joint batch.

    :param batch: the transitions
    :param current: receives the values of (s, a), ``(n, batch)``, and the statistics of the joint batch
    """

    batch: Batch = field(kw_only=True)
    current: list[tuple[jax.Array, Any]] = field(default_factory=list, kw_only=True)

    def __call__(self, actions: Array) -> jax.Array:
        """``Q(s', a')`` for one action per state: ``(batch, m)`` to ``(batch,)``."""
        return self.at_samples(actions.T[None])[0]

    def at_executed(self, actions: Array) -> jax.Array:
        """``Q(s', a'_i)`` for N executed actions per state: ``(N, m, batch)`` to ``(N, batch)``."""
        if self.layout is not None:
            actions = self.layout.masked(actions, axis=-2)
        values, statistics = self.critics.joint(
            self.params, self.batch.observations, self.batch.actions, self.observations, actions
        )
        self.current.append((values[:, 0], statistics))
        return self._reduced(values[:, 1:])


def with_normalization(critics: TargetedState, statistics: Any) -> TargetedState:
    """Return the critics with running statistics after one more joint pass, whose ``statistics`` are given."""
    rate = jnp.maximum(1 / critics.step, NORMALIZATION_RATE)
    tree = critics.params["params"]
    new = {
        name: tree[name] | {key: (1 - rate) * tree[name][key] + rate * value for key, value in batch.items()}
        for name, batch in statistics.items()
    }
    return critics.replace(params={"params": tree | new})


# A learned scale of the smoothing noise, ``sigma="auto"``

_SIGMA_OPTIMIZER = optax.adam(3e-4)  # from one bound to the other in about 8,000 updates


def make_sigma_state(action_dim: int) -> TrainState:
    """Return ``log sigma`` of each of the m action components with its optimiser."""
    log_sigma = jnp.full(action_dim, np.log(SIGMA_START), jnp.float32)
    return TrainState.create(apply_fn=None, params=log_sigma, tx=_SIGMA_OPTIMIZER)


def ascend_log_sigma(state: TrainState, gradient: jax.Array | None) -> TrainState:
    """Move ``log sigma`` along the derivative of the smoothed value, ``(m,)``, within the bounds."""
    if gradient is None:
        raise ValueError('sigma="auto" needs the smoothed action gradient, because it learns from its samples')
    low, high = np.log(SIGMA_BOUNDS)
    step, opt_state = state.tx.update(-gradient, state.opt_state, state.params)
    return state.replace(step=state.step + 1, params=jnp.clip(state.params + step, low, high), opt_state=opt_state)
