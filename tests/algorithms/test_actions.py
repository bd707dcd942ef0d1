"""Decoding the actor's output: spaces, closed forms, one update against loops, training, saving."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from action_spaces import MIXED, SPACES, Acting
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer
from updates import LEARNING_RATE, QF_LEARNING_RATE, assert_trees_close, run

from softdpg import SoftDDPG, SoftTD3
from softdpg.algorithms.actions import flat_space, from_env, make_layout, to_env
from softdpg.algorithms.family import ActionValue, DecodedGradient, Row, SmoothedGradient, SmoothedTarget
from softdpg.algorithms.policies import DDPGPolicy
from softdpg.algorithms.smoothing import choice_gradient, gate_gradient, gaussian_perturbations
from softdpg.replay.batches import Batch

SMALL = dict(learning_starts=10, batch_size=16, buffer_size=200, seed=0, policy_kwargs=dict(net_arch=[16, 16]))

# Each kind of space compiles updates of its own, so `make test` takes two, and `make test-all` all of them.
FEW = [pytest.param(name, marks=() if name in ("discrete", "dict") else pytest.mark.extended) for name in SPACES]

leaf_spaces = st.one_of(
    st.integers(1, 4).map(spaces.Discrete),
    st.lists(st.integers(1, 4), min_size=1, max_size=3).map(spaces.MultiDiscrete),
    st.integers(1, 3).map(spaces.MultiBinary),
    st.integers(1, 3).map(lambda n: spaces.Box(-3, 5, (n,), np.float32)),
)
any_space = st.recursive(
    leaf_spaces,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(spaces.Dict),
    ),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None)
@given(any_space, st.integers(0, 2**31))
def test_encoding_inverts_decoding(space, seed):
    space.seed(seed)
    actions = [space.sample() for _ in range(3)]
    executed = from_env(space, actions)
    assert executed.shape == (3, *flat_space(space).shape) or isinstance(space, spaces.Box)
    restored = to_env(space, executed)
    for action, again in zip(actions, restored, strict=True):
        assert space.contains(again)
        np.testing.assert_allclose(spaces.flatten(space, again), spaces.flatten(space, action), atol=1e-5)
    layout = make_layout(space)
    if layout is not None:
        u = np.random.default_rng(seed).normal(size=(3, layout.size)).astype(np.float32)
        once = layout.execute(u)
        np.testing.assert_allclose(from_env(space, to_env(space, once)), once, atol=1e-6)
        np.testing.assert_array_equal(layout.execute(jnp.asarray(u.T), axis=0).T, once)


def test_decoding_by_hand():
    layout = make_layout(MIXED)
    u = np.array([[0.1, 0.3, -0.2, 0.01, -0.5, 1.5, 0.0]], np.float32)
    np.testing.assert_allclose(layout.execute(u), [[0, 1, 0, 1, -1, 1, 0]])
    (action,) = to_env(MIXED, layout.execute(u))
    assert action["go"] == 2
    assert action["on"].tolist() == [1, 0]
    np.testing.assert_allclose(action["power"], [1, 0.6])


def test_parameters_of_options_not_taken_do_not_reach_the_critic():
    number = spaces.Box(-1, 1, (1,), np.float32)
    platform = make_layout(spaces.Tuple([spaces.Discrete(3), spaces.Tuple([number] * 3)]))
    u = np.array([[0.1, 0.3, 0.2, 0.7, 0.8, 0.9]], np.float32)
    np.testing.assert_allclose(platform.decode(u), [[0, 1, 0, 0, 0.8, 0]])
    pairs = make_layout(MIXED, {"power": "on"})
    u = np.array([[0.1, 0.3, 0.2, 0.7, -0.8, 0.9, 0.4]], np.float32)
    np.testing.assert_allclose(pairs.decode(u), [[0, 1, 0, 1, -1, 0.9, 0]])
    by_option = make_layout(MIXED, {"power": ["go", 3]})
    np.testing.assert_allclose(by_option.decode(u), [[0, 1, 0, 1, -1, 0, 0]])
    with pytest.raises(ValueError, match="active_if must name parts of the action space"):
        make_layout(MIXED, {"force": "on"})


def test_gate_and_choice_gradients_by_hand():
    phi = np.exp(-0.5 * 0.6**2) / np.sqrt(2 * np.pi)
    gradient = gate_gradient(jnp.array([0.3]), jnp.array([[1.0], [3.0]]), 0.5)
    np.testing.assert_allclose(gradient, [phi / 0.5 * 2], rtol=1e-6)
    # Two options without noise on the rival: option 0 wins where 0.1 + w / 2 > 0.4.
    u, samples = jnp.array([[0.1], [0.4]]), jnp.array([[[0.1], [0.4]]])
    gradient = choice_gradient(u, samples, jnp.array([[[5.0]], [[2.0]]]), jnp.array([0.5, 0.5]))
    np.testing.assert_allclose(gradient, [[phi / 0.5 * 3], [-phi / 0.5 * 3]], rtol=1e-6)


class Quadratic:
    """In place of critics: ``Q(s, a) = -|a - c|^2 + a_0 a_last``."""

    def __init__(self, centre):
        self.centre = jnp.asarray(centre)[:, None]

    def at_actions(self, params, observations, actions):
        value = -((actions - self.centre) ** 2).sum(axis=-2) + actions[..., 0, :] * actions[..., -1, :]
        return value[None]


def exact_gradient(u, sigma, layout, centre, n=400_000):
    """``mean of Q(decode(u + sigma w)) w / sigma`` with very many samples, and its standard error."""
    w = np.random.default_rng(1).normal(size=(n, len(u))).astype(np.float32)
    a = layout.decode(u + sigma * w)
    values = -((a - centre) ** 2).sum(axis=1) + a[:, 0] * a[:, -1]
    terms = (values - values.mean())[:, None] * w / sigma
    return terms.mean(axis=0), terms.std(axis=0) / np.sqrt(n)


@pytest.mark.parametrize("rule", [DecodedGradient(20_000), SmoothedGradient(20_000)])
@pytest.mark.parametrize("name", ["multi_discrete", "dict", "multi_binary"])
def test_gradient_of_a_decoded_quadratic(rule, name):
    layout = make_layout(SPACES[name], {"power": "on"} if name == "dict" else None)
    u = np.random.default_rng(0).uniform(-0.8, 0.8, layout.size).astype(np.float32)
    centre = np.linspace(-0.5, 0.9, layout.size)
    sigma = np.full(layout.size, 0.5, np.float32)
    q = ActionValue(Quadratic(centre), "min", None, np.zeros((1, 3)), layout)
    gradient, _, _ = rule(q, jnp.asarray(u)[None], jax.random.key(0), sigma)
    expected, error = exact_gradient(u, sigma, layout, centre)
    tolerance = 5 * error.max() + (0.06 if isinstance(rule, DecodedGradient) else 0.3)
    np.testing.assert_allclose(gradient[0], expected, atol=tolerance)


def tiny_policy(space):
    """A policy of three numbers to observe, its layout and the scales of its outputs."""
    policy = DDPGPolicy(Acting.observation_space, space, lambda _: 0.0, net_arch=[8, 8], n_critics=2)
    policy.build(jax.random.PRNGKey(0))
    layout = make_layout(space)
    return policy, layout, np.where(layout.decoded, 0.5, 0.2).astype(np.float32)


def loops(policy, params, layout, s, u, w, sigma):
    """Value and gradient of one state at a time, one sample and one entry at a time."""

    @jax.jit
    def value_and_slope(state, a):
        return jax.value_and_grad(lambda a: policy.qf.apply(params, state[None], a[None]).mean())(a)

    def value(state, a):
        return float(value_and_slope(state, a)[0])

    def density(x, scale):
        return np.exp(-0.5 * (x / scale) ** 2) / (scale * np.sqrt(2 * np.pi))

    n, values, gradient = len(w), np.zeros(len(s)), np.zeros_like(u)
    for b in range(len(s)):
        for i in range(n):
            x = u[b] + sigma * w[i, :, b]
            a = layout.execute(x)
            values[b] += value(s[b], a) / n
            for kind, start, stop in layout.blocks:
                for j in range(start, stop):
                    if kind == "box":
                        gradient[b, j] += np.asarray(value_and_slope(s[b], a)[1])[j] * (abs(x[j]) < 1) / n
                    elif kind == "gate":
                        on, off = a.copy(), a.copy()
                        on[j], off[j] = 1, -1
                        gradient[b, j] += density(u[b, j], sigma[j]) * (value(s[b], on) - value(s[b], off)) / n
                    else:
                        best = max((k for k in range(start, stop) if k != j), key=lambda k: x[k])
                        mine, other = a.copy(), a.copy()
                        mine[start:stop] = np.arange(start, stop) == j
                        other[start:stop] = np.arange(start, stop) == best
                        gain = value(s[b], mine) - value(s[b], other)
                        gradient[b, j] += density(x[best] - u[b, j], sigma[j]) * gain / n
    return values, gradient


@pytest.mark.parametrize("name", FEW)
def test_update_rules_equal_plain_loops(name):
    n = 4
    policy, layout, sigma = tiny_policy(SPACES[name])
    rng = np.random.default_rng(0)
    s = rng.normal(size=(3, 3)).astype(np.float32)
    u = rng.uniform(-0.9, 0.9, (3, layout.size)).astype(np.float32)
    q = ActionValue(policy.qf, "mean", policy.qf_state.params, s, layout)
    key = jax.random.PRNGKey(5)
    w = np.asarray(gaussian_perturbations(key, n, (layout.size, 3), antithetic=True))
    values, gradient = loops(policy, policy.qf_state.params, layout, s, u, w, sigma)
    np.testing.assert_allclose(SmoothedTarget(n)(q, u, key, sigma), values, atol=1e-5)
    found = DecodedGradient(n)(q, jnp.asarray(u), key, sigma)
    np.testing.assert_allclose(found.gradient, gradient, atol=2e-5)
    np.testing.assert_allclose(found.values, values, atol=1e-5)


@pytest.mark.parametrize("name", FEW)
def test_one_update_equals_plain_loops(name):
    """Critics, actor and targets after one update: the rules above, the losses and Adam."""
    policy, layout, sigma = tiny_policy(SPACES[name])
    rng, size, n = np.random.default_rng(1), 3, 2
    observations, next_observations = rng.normal(size=(2, size, 3)).astype(np.float32)
    batch = Batch(
        observations,
        layout.sample(rng, size),
        next_observations,
        np.array([0, 1, 0], np.float32),
        rng.normal(size=size).astype(np.float32),
        np.full(size, 0.9, np.float32),
    )
    row = Row(SmoothedTarget(n), DecodedGradient(n), "mean", layout)
    got_actor, got_critics, _ = run(row, policy, batch, steps=1, sigma=sigma)

    _, target_key, actor_key = jax.random.split(jax.random.PRNGKey(7), 3)  # as ``update`` does
    w, actor_w = (
        np.asarray(gaussian_perturbations(key, n, (layout.size, size), antithetic=True))
        for key in (target_key, actor_key)
    )
    actor, critics = policy.actor_state, policy.qf_state
    next_u = np.asarray(actor.apply_fn(actor.params, next_observations))
    next_values, _ = loops(policy, critics.params, layout, next_observations, next_u, w, sigma)
    y = batch.rewards + (1 - batch.dones) * batch.discounts * next_values

    def critic_loss(params):
        return 0.5 * ((y - policy.qf.apply(params, observations, batch.actions)) ** 2).mean(axis=1).sum()

    adam = optax.adam(QF_LEARNING_RATE)
    step, _ = adam.update(jax.grad(critic_loss)(critics.params), adam.init(critics.params))
    params = optax.apply_updates(critics.params, step)
    assert_trees_close(got_critics.params, params, rtol=1e-3, atol=1e-5)

    u = np.asarray(actor.apply_fn(actor.params, observations))
    _, gradient = loops(policy, params, layout, observations, u, actor_w, sigma)

    def actor_loss(params):
        return -(actor.apply_fn(params, observations) * gradient).sum(axis=1).mean()

    adam = optax.adam(LEARNING_RATE)
    step, _ = adam.update(jax.grad(actor_loss)(actor.params), adam.init(actor.params))
    # Adam's first step is the sign of the gradient, so that of a gradient near 0 is open.
    assert_trees_close(got_actor.params, optax.apply_updates(actor.params, step), rtol=1e-2, atol=2e-5)


@pytest.mark.parametrize("name", FEW)
def test_learn_predict_save_load(name, tmp_path):
    space = SPACES[name]
    model = SoftTD3("MlpPolicy", Acting(space), **SMALL)
    model.learn(24)
    observations = np.random.default_rng(0).uniform(-1, 1, (5, 3)).astype(np.float32)
    batch, _ = model.predict(observations)
    assert len(batch) == 5
    for observation, action in zip(observations, batch, strict=True):
        alone, _ = model.predict(observation)
        assert space.contains(alone)
        np.testing.assert_allclose(spaces.flatten(space, alone), spaces.flatten(space, action), rtol=1e-5)
    model.save(tmp_path / "model")
    loaded = SoftTD3.load(tmp_path / "model", env=Acting(space))
    np.testing.assert_array_equal(loaded.policy.parameters_to_vector(), model.policy.parameters_to_vector())
    for action, again in zip(batch, loaded.predict(observations)[0], strict=True):
        np.testing.assert_array_equal(spaces.flatten(space, again), spaces.flatten(space, action))


@pytest.mark.parametrize("gradient", ["smoothed", "straight-through"])
def test_other_gradients_and_vectorised_normalised_environments(gradient):
    env = VecNormalize(DummyVecEnv([lambda: Acting(MIXED)] * 2))
    policy_kwargs = SMALL["policy_kwargs"] | {"active_if": {"power": "on"}}
    model = SoftTD3("MlpPolicy", env, actor_gradient=gradient, **SMALL | {"policy_kwargs": policy_kwargs})
    model.learn(40)
    assert model._n_updates > 0
    assert np.isfinite(evaluate_policy(model, env, n_eval_episodes=2)[0])
    # The powers of thrusters that are off were stored as 0.
    stored = model.replay_buffer.actions[: model.replay_buffer.pos]
    np.testing.assert_array_equal(stored[..., 5:7][stored[..., 3:5] < 0], 0)


def test_soft_ddpg_learns_discrete_actions():
    model = SoftDDPG("MlpPolicy", "CartPole-v1", n_samples=4, **SMALL)
    model.learn(20)
    assert set(np.unique(model.replay_buffer.actions[:20])) == {-1, 1}
    assert model.action_space.contains(model.predict(np.zeros(4, np.float32))[0])


def test_critics_have_batch_norm_unless_all_actions_are_a_box():
    policy_kwargs = SMALL["policy_kwargs"]
    for env, expected in (("Pendulum-v1", False), ("CartPole-v1", True)):
        for batch_norm, wanted in ((None, expected), (True, True), (False, False)):
            chosen = policy_kwargs | ({} if batch_norm is None else {"batch_norm": batch_norm})
            model = SoftTD3("MlpPolicy", env, **SMALL | {"policy_kwargs": chosen})
            assert model.policy.qf.critic.batch_norm is wanted


def test_scales_per_component():
    model = SoftTD3("MlpPolicy", Acting(MIXED), **SMALL)
    np.testing.assert_allclose(model.current_sigma(), [0.5] * 5 + [0.2] * 2)
    np.testing.assert_allclose(model.action_noise.scale, [0.5] * 5 + [0.2] * 2)
    scales = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    model = SoftTD3("MlpPolicy", Acting(MIXED), sigma=scales, action_noise=scales, **SMALL)
    model.learn(16)
    np.testing.assert_allclose(model.current_sigma(), scales)
    np.testing.assert_allclose(model.action_noise.scale, scales)
    with pytest.raises(ValueError, match=r"sigma must be a number or have the shape \(7,\), got the shape \(2,\)"):
        SoftTD3("MlpPolicy", Acting(MIXED), sigma=[0.1, 0.2], **SMALL)


def test_outputs_at_their_bounds_still_have_a_gradient():
    """With sigma = 0.5 an output at -1 gets a gradient of at least a tenth of the gain; with 0.2 it has frozen."""
    gain = jnp.ones((1, 1))
    assert gate_gradient(jnp.array([-1.0]), gain, 0.5)[0] > 0.1
    assert gate_gradient(jnp.array([-1.0]), gain, 0.2)[0] < 1e-4


class Reaching(gym.Env):
    """A point on a line that one of three moves shifts towards a goal."""

    action_space = spaces.Discrete(3, start=-1)
    observation_space = spaces.Dict(
        {name: spaces.Box(-9, 9, (1,), np.float32) for name in ("observation", "achieved_goal", "desired_goal")}
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.goal, self.left = np.zeros(1, np.float32), self.np_random.integers(-3, 4, 1), 6
        return self._look(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.place, self.left = self.place + np.float32(action), self.left - 1
        return self._look(), float(self.compute_reward(self.place, self.goal, {})), False, self.left == 0, {}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -(np.abs(achieved_goal - desired_goal) > 0.5).astype(np.float32).max(axis=-1)

    def _look(self):
        return {"observation": self.place, "achieved_goal": self.place, "desired_goal": np.float32(self.goal)}


def test_hindsight_replay_and_callbacks_with_discrete_actions():
    model = SoftTD3("MultiInputPolicy", Reaching(), replay_buffer_class=HerReplayBuffer, **SMALL)
    rewards = []
    model.learn(32, callback=lambda local, _: rewards.extend(local["rewards"]) or True)
    assert len(rewards) == 32
    assert model._n_updates > 0
    stored = model.replay_buffer.actions[:32, 0]
    np.testing.assert_array_equal(np.sort(stored, axis=1), [[0, 0, 1]] * 32)
    assert np.isfinite(model.policy.parameters_to_vector()).all()
