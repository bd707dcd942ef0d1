"""Soft DDPG in one file: Algorithm 1 of the paper, top to bottom, with nothing but JAX, optax and Gymnasium.

    python examples/soft_ddpg_plain.py

This learns to swing up and hold a Pendulum with discrete rewards (``softdpg/PendulumDiscrete-v0``). Read this file
first: it is Algorithm 1 to the letter (``estimator="paper"`` in the package). Every state goes through the critic once
per sample, and nothing is optimised for speed. The package computes the same numbers about ten times as fast;
``tests/algorithms/test_update.py`` compares its update with the one below.

Shapes: B transitions in a batch, N samples, d components of a state, m of an action.
"""

import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax

import softdpg  # noqa: F401 (registers the environments)

ENV = "softdpg/PendulumDiscrete-v0"
STEPS, WARM_UP, EVALUATE_EVERY = 20_000, 1_000, 1_000
HIDDEN = (128, 128)  # the paper: (400, 300)
N, SIGMA = 16, 0.2  # the paper: N = 50
BATCH, LEARNING_RATE, GAMMA, TAU = 128, 1e-3, 0.99, 0.005  # the paper: 256, 1e-4, 0.99, 0.005
EXPLORATION = 0.1  # standard deviation of the exploration noise

Network = Callable[..., jax.Array]


class Batch(NamedTuple):
    """Transitions from the replay buffer."""

    s: Any  # (B, d) states
    a: Any  # (B, m) actions, scaled to [-1, 1]
    r: Any  # (B,) rewards
    s_next: Any  # (B, d) next states
    discount: Any  # (B,) gamma, or 0 where the episode was terminated (a time limit does not terminate)


class State(NamedTuple):
    """A network in training: its parameters, those of its target network, and the state of Adam."""

    params: Any
    target: Any
    adam: Any


# Networks: lists of (kernel, bias)


def init_mlp(rng: np.random.Generator, sizes: tuple[int, ...]) -> list[tuple[jax.Array, jax.Array]]:
    """Sample kernels from N(0, 1 / inputs) and set biases to zero."""
    return [(jnp.array(rng.normal(0, n**-0.5, (n, k)), jnp.float32), jnp.zeros(k)) for n, k in pairwise(sizes)]


def mlp(params: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
    """Apply dense layers with relu between them."""
    for kernel, bias in params[:-1]:
        x = jax.nn.relu(x @ kernel + bias)
    kernel, bias = params[-1]
    return x @ kernel + bias


def pi(theta: Any, s: jax.Array) -> jax.Array:
    """Apply the actor: states ``(..., d)`` to actions ``(..., m)`` in [-1, 1]."""
    return jnp.tanh(mlp(theta, s))


def q(w: Any, s: jax.Array, a: jax.Array) -> jax.Array:
    """Apply the critic: states ``(..., d)`` and actions ``(..., m)`` to values ``(...,)``."""
    return mlp(w, jnp.concatenate((s, a), axis=-1))[..., 0]


# Algorithm 1


def update(
    pi: Network,
    q: Network,
    actor: State,
    critic: State,
    batch: Batch,
    target_noise: jax.Array,
    actor_noise: jax.Array,
    sigma: float = SIGMA,
    learning_rate: float = LEARNING_RATE,
    qf_learning_rate: float = LEARNING_RATE,
    tau: float = TAU,
) -> tuple[State, State, jax.Array]:
    """Do one iteration of Algorithm 1, from the batch (line 3) to the targets (line 9).

    :param target_noise: ``w_i ~ N(0, I)`` of line 4, ``(N, B, m)``
    :param actor_noise: ``w_i ~ N(0, I)`` of line 7, ``(N, B, m)``
    :return: actor, critic and the critic's loss
    """
    n_samples = len(target_noise)
    s = jnp.tile(batch.s, (n_samples, 1, 1))  # (N, B, d): each state once per sample
    s_next = jnp.tile(batch.s_next, (n_samples, 1, 1))

    # Line 4: a'_i = clip(pi'(s') + sigma w_i)
    a_next = jnp.clip(pi(actor.target, batch.s_next) + sigma * target_noise, -1, 1)
    # Line 5: y_i = r + gamma Q'(s', a'_i)
    y = batch.r + batch.discount * q(critic.target, s_next, a_next)  # (N, B)

    # Line 6: descend the mean over i of (y_i - Q(s, a))^2 / 2
    def critic_loss(w: Any) -> jax.Array:
        return jnp.mean((y - q(w, batch.s, batch.a)) ** 2) / 2

    loss, gradient = jax.value_and_grad(critic_loss)(critic.params)
    critic = descend(critic, gradient, qf_learning_rate)

    # Line 7: a_i = clip(pi(s) + sigma w_i)
    a = jnp.clip(pi(actor.params, batch.s) + sigma * actor_noise, -1, 1)
    values = q(critic.params, s, a)  # (N, B)

    # Line 8: descend the mean over i of |a_i - pi(s)|^2 Q(s, a_i) / (2 sigma^2); a_i and Q(s, a_i) are constants in it,
    # so that its gradient is the smoothed policy gradient, from values of the critic alone
    def actor_loss(theta: Any) -> jax.Array:
        distances = jnp.sum((a - pi(theta, batch.s)) ** 2, axis=-1)
        return jnp.mean(distances * values) / (2 * sigma**2)

    actor = descend(actor, jax.grad(actor_loss)(actor.params), learning_rate)

    # Line 9: w' <- (1 - tau) w' + tau w, and theta' likewise
    critic = critic._replace(target=optax.incremental_update(critic.params, critic.target, tau))
    actor = actor._replace(target=optax.incremental_update(actor.params, actor.target, tau))
    return actor, critic, loss


def descend(state: State, gradient: Any, learning_rate: float) -> State:
    """Take one step of Adam."""
    steps, adam = optax.scale_by_adam().update(gradient, state.adam)
    params = jax.tree.map(lambda param, step: param - learning_rate * step, state.params, steps)
    return state._replace(params=params, adam=adam)


def initial(params: Any) -> State:
    """Return the state of a network before the first step."""
    return State(params, params, optax.scale_by_adam().init(params))


# Training


def episode_return(env: gym.Env, act: Callable[[np.ndarray], jax.Array], seed: int) -> float:
    """Play one episode without noise."""
    s, _ = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        s, r, terminated, truncated, _ = env.step(np.asarray(act(s)))
        total, over = total + float(r), terminated or truncated
    return total


def train(steps: int = STEPS, seed: int = 0) -> list[float]:
    """Train for ``steps`` steps; return the mean return of 5 episodes after each ``EVALUATE_EVERY`` steps."""
    env, evaluation_env = gym.make(ENV), gym.make(ENV)
    rng = np.random.default_rng(seed)
    assert env.observation_space.shape is not None
    assert isinstance(env.action_space, gym.spaces.Box)
    d, m, high = env.observation_space.shape[0], env.action_space.shape[0], env.action_space.high

    actor = initial(init_mlp(rng, (d, *HIDDEN, m)))
    critic = initial(init_mlp(rng, (d + m, *HIDDEN, 1)))
    buffer = Batch(*(np.zeros((steps, *shape), np.float32) for shape in ((d,), (m,), (), (d,), ())))
    step_all, policy = jax.jit(partial(update, pi, q)), jax.jit(pi)
    returns: list[float] = []

    s, _ = env.reset(seed=seed)
    for t in range(steps):
        # Line 2: play pi(s) with noise; uniform at first
        a = rng.uniform(-1, 1, m) if t < WARM_UP else np.asarray(policy(actor.params, s))
        a = np.clip(a + EXPLORATION * rng.standard_normal(m), -1, 1)
        s_next, r, terminated, truncated, _ = env.step(a * high)
        for array, value in zip(buffer, (s, a, r, s_next, GAMMA * (not terminated)), strict=True):
            array[t] = value
        s = env.reset()[0] if terminated or truncated else s_next
        if t >= WARM_UP:
            # Line 3: a batch from the buffer
            rows = rng.integers(t + 1, size=BATCH)
            noise = rng.standard_normal((2, N, BATCH, m), np.float32)
            actor, critic, _ = step_all(actor, critic, Batch(*(array[rows] for array in buffer)), *noise)
        if (t + 1) % EVALUATE_EVERY == 0:
            params = actor.params
            scores = [episode_return(evaluation_env, lambda s, p=params: policy(p, s) * high, i) for i in range(5)]
            returns.append(float(np.mean(scores)))
            print(f"step {t + 1:6,}  return {returns[-1]:8.1f}", flush=True)
    return returns


if __name__ == "__main__":
    train(*map(int, sys.argv[1:]))  # optional: steps, seed
