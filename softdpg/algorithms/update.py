"""The one update of the family: critics towards a target, actor along an action gradient, targets after both.

What tells DDPG, TD3 and the soft algorithms apart is the value of the next state and the gradient with respect to the
action: the two methods of :class:`DPG`, which each algorithm's file says anew where it differs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

from softdpg.algorithms.compilation import compiler_options
from softdpg.algorithms.networks import Critics
from softdpg.algorithms.sigma import ascend_log_sigma
from softdpg.algorithms.smoothing import Scale
from softdpg.algorithms.standardization import follow, with_statistics
from softdpg.algorithms.types import Array, Batch, TargetedState

SATURATED = 0.99  # an action beyond this share of its bound counts as saturated in the log
Metrics = dict[str, jax.Array]


class Ascent(NamedTuple):
    """Where to move the actions.

    :param gradient: of the value with respect to the action, ``(batch, m)``
    :param values: ``(batch,)``
    :param log_sigma_gradient: derivative of the mean value by ``log sigma``, ``(m,)``, where the draws give one
    """

    gradient: jax.Array
    values: jax.Array
    log_sigma_gradient: jax.Array | None = None


@dataclass(frozen=True)
class DPG:
    """What the update asks of the critics: the value of the next state, and where to move the action of a state.

    Of several critics the least counts. ``sigma`` is the scale of the noise on the action, ``()`` or ``(m,)``, in
    actions scaled to [-1, 1]; here there is none.
    """

    critics: Critics

    def combined(self, values: jax.Array) -> jax.Array:
        """The value that counts, from those of all critics: ``(n, ...)`` to ``(...)``."""
        return values.min(axis=0)

    def next_value(
        self, params: Any, observations: Array, actions: jax.Array, key: jax.Array, sigma: Scale
    ) -> jax.Array:
        """``min_j Q_j(s', pi(s'))``.

        :param params: parameters of the target critics
        :param observations: ``s'``, ``(batch, d)``
        :param actions: ``pi(s')`` of the target actor, ``(batch, m)``
        :return: ``(batch,)``
        """
        return self.combined(self.critics.apply(params, observations, actions))

    def action_gradient(
        self, params: Any, observations: Array, actions: jax.Array, key: jax.Array, sigma: Scale
    ) -> Ascent:
        """``grad_a min_j Q_j(s, a)`` at ``a = pi(s)``, and the value there.

        :param params: parameters of the critics
        :param observations: ``s``, ``(batch, d)``
        :param actions: ``pi(s)``, ``(batch, m)``
        """
        values, pullback = jax.vjp(lambda a: self.combined(self.critics.apply(params, observations, a)), actions)
        return Ascent(pullback(jnp.ones_like(values))[0], values)


class Learned(NamedTuple):
    """All that an update changes. ``sigma`` is the state of a learned smoothing scale, or None."""

    actor: TargetedState
    critics: TargetedState
    sigma: TrainState | None
    key: jax.Array
    metrics: Metrics


class Rates(NamedTuple):
    """Numbers that an update takes from outside: step sizes of actor, critics and targets, the noise's scale.

    :param saturation_penalty: lambda, weight of ``||u||^2`` with ``pi = tanh(u)`` in the actor's loss
    """

    learning_rate: float
    qf_learning_rate: float
    tau: float
    sigma: Scale  # of no effect where it is learned
    saturation_penalty: float = 0.0


def no_metrics() -> Metrics:
    """What is logged, before the first update."""
    names = ("critic_loss", "q_mean", "actor_loss", "actor_gradient_norm", "saturated_actions", "saturated_updates")
    return {name: jnp.zeros(()) for name in names}


def update(dpg: DPG, with_actor: bool | Array, learned: Learned, batch: Batch, rates: Rates) -> Learned:
    """Update critics and targets from one batch, and the actor if ``with_actor``."""
    actor, critics, sigma_state, key, metrics = learned
    key, target_key, actor_key = jax.random.split(key, 3)
    sigma = rates.sigma if sigma_state is None else jnp.exp(sigma_state.params)
    statistics = follow(actor, critics, batch.observations)
    actor, critics = (with_statistics(state, statistics) for state in (actor, critics))

    # Critics: y = r + discount * V(s'), minimise the sum over critics of mean (y - Q_j(s, a))^2 / 2
    next_actions = actor.apply_fn(actor.target_params, batch.next_observations)
    next_values = dpg.next_value(critics.target_params, batch.next_observations, next_actions, target_key, sigma)
    targets = batch.rewards + (1 - batch.dones) * batch.discounts * next_values

    successors = batch.next_observations if batch.successors is None else batch.successors

    # All of them see the embedding of the targets, if there is one, which its own loss teaches to look ahead.
    def seeing(params: Any) -> Any:
        return dpg.critics.with_embedding_of(params, critics.target_params)

    def critic_loss(params: Any) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        values = critics.apply_fn(seeing(params), batch.observations, batch.actions)
        loss = 0.5 * jnp.mean((targets - values) ** 2, axis=-1).sum()
        foresight = dpg.critics.prediction_loss(params, batch.observations, batch.actions, successors)
        return loss + foresight, (loss, values)

    (_, (loss, values)), gradient = jax.value_and_grad(critic_loss, has_aux=True)(critics.params)
    critics = _descend(critics, gradient, rates.qf_learning_rate)
    metrics = metrics | {"critic_loss": loss, "q_mean": values.mean()}

    # Actor: grad_theta J = mean over s of grad_theta pi(s) g(s), g the gradient with respect to the action.
    # With pi = tanh(u), the penalty lambda ||u||^2 frees actions that tanh holds at 1, where its derivative is 0.
    def with_better_actor(
        actor: TargetedState, sigma_state: TrainState | None, metrics: Metrics
    ) -> tuple[TargetedState, TrainState | None, Metrics]:
        unsquashed = partial(actor.apply_fn, method="unsquashed")
        u, pullback = jax.vjp(lambda params: unsquashed(params, batch.observations), actor.params)
        actions = jnp.tanh(u)
        ascent = dpg.action_gradient(seeing(critics.params), batch.observations, actions, actor_key, sigma)
        uphill = ascent.gradient * (1 - actions**2) - 2 * rates.saturation_penalty * u
        (gradient,) = pullback(-uphill / len(actions))
        if sigma_state is not None:
            sigma_state = ascend_log_sigma(sigma_state, ascent.log_sigma_gradient)
        saturated = jnp.mean(jnp.abs(actions) > SATURATED)
        metrics = metrics | {
            "actor_loss": -ascent.values.mean(),
            # As products: less work for XLA than the sum over all squares
            "actor_gradient_norm": jnp.sqrt(optax.tree.vdot(gradient, gradient)),
            "saturated_actions": saturated,
            "saturated_updates": jnp.where(saturated > SATURATED, metrics["saturated_updates"] + 1, 0.0),
        }
        return _descend(actor, gradient, rates.learning_rate), sigma_state, metrics

    if with_actor is True:
        actor, sigma_state, metrics = with_better_actor(actor, sigma_state, metrics)
    else:
        same = (actor, sigma_state, metrics)
        actor, sigma_state, metrics = jax.lax.cond(with_actor, with_better_actor, lambda *args: args, *same)

    # Targets: w' <- (1 - tau) w' + tau w
    critics, actor = (
        state.replace(target_params=optax.incremental_update(state.params, state.target_params, rates.tau))
        for state in (critics, actor)
    )
    # Once more, as an optimiser with weight decay has changed them.
    actor, critics = (with_statistics(state, statistics) for state in (actor, critics))
    return Learned(actor, critics, sigma_state, key, metrics)


def updates(dpg: DPG, with_actor: Array | None, learned: Learned, batches: Batch, rates: Rates) -> Learned:
    """One :func:`update` after another.

    :param with_actor: for each of them, whether the actor is updated, too, ``(n,)``; None if it always is. An
        array and not Python's booleans: so the compiled function has the update once and not once for each kind of it
    :param batches: arrays with one more axis in front, over the updates
    """

    def one(learned: Learned, given: tuple[Array | None, Batch]) -> tuple[Learned, None]:
        flag, batch = given
        return update(dpg, True if flag is None else flag, learned, batch, rates), None

    if len(batches.rewards) == 1:
        return one(learned, jax.tree.map(lambda array: array[0], (with_actor, batches)))[0]
    return jax.lax.scan(one, learned, (with_actor, batches))[0]


@cache
def compiled_updates() -> Callable[[DPG, Array | None, Learned, Batch, Rates], Learned]:
    """:func:`updates` as one compiled function.

    It does not reuse the memory of its arguments, which would save little: whenever it is interrupted, they are whole.
    """
    return jax.jit(updates, static_argnums=0, compiler_options=compiler_options())


def _descend(state: TargetedState, gradient: Any, learning_rate: float | jax.Array) -> TargetedState:
    """One step of the optimiser, which was made with step size 1, at the given learning rate."""
    steps, opt_state = state.tx.update(gradient, state.opt_state, state.params)
    params = jax.tree.map(lambda param, step: param + learning_rate * step, state.params, steps)
    return state.replace(step=state.step + 1, params=params, opt_state=opt_state)
