"""TD3, Soft TD3 and their parts: against SBX's update, against plain versions, and in numbers worked out by hand."""

import warnings
from dataclasses import dataclass

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
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

from examples import point_mass
from softdpg import DDPG, TD3, SoftDDPG, SoftTD3
from softdpg.algorithms import base, registry
from softdpg.algorithms.family import (
    FAMILY,
    ClippedNoise,
    CriticGradient,
    ExactTarget,
    Row,
    SmoothedGradient,
    SmoothedTarget,
)
from softdpg.algorithms.networks import LayerNorm
from softdpg.algorithms.policies import DDPGPolicy
from softdpg.algorithms.smoothing import gaussian_perturbations, log_sigma_gradient, perturbed
from softdpg.algorithms.update import SIGMA_BOUNDS, ascend_log_sigma, make_sigma_state
from softdpg.replay.memory import FlatReplayBuffer

SMALL = dict(learning_starts=20, batch_size=16, buffer_size=2_000, seed=0)
TINY = dict(**SMALL, policy_kwargs=dict(net_arch=[16, 16]))


def make_policy(**kwargs):
    box = spaces.Box(-1, 1, (D,), np.float32), spaces.Box(-1, 1, (M,), np.float32)
    policy = DDPGPolicy(*box, lambda _: 0.0, **{"net_arch": [32, 24], "n_critics": 2, **kwargs})
    policy.build(jax.random.PRNGKey(3))
    return policy


# SBX


def as_sbx(critics):
    """Our critics with the action at the input, as SBX lays them out: one kernel for state and action."""
    ours = critics["params"]
    first = {"kernel": jnp.concatenate((ours["hidden_0"]["kernel"], ours["action"]["kernel"]), axis=1)}
    layers = {"Dense_0": first | {"bias": ours["hidden_0"]["bias"]}, "Dense_1": ours["hidden_1"]}
    return {"params": {"VmapContinuousCritic_0": layers | {"Dense_2": ours["value"]}}}


@pytest.mark.parametrize("kind", ["TD3", pytest.param("DDPG", marks=pytest.mark.extended)])
def test_one_update_equals_sbx(kind, batch):
    sbx = pytest.importorskip("sbx")
    noise, clip, n_critics = (0.6, 0.5, 2) if kind == "TD3" else (0.0, 0.0, 1)
    policy = make_policy(action_layer="input", n_critics=n_critics)
    kwargs = {"policy_delay": 1, "target_policy_noise": noise, "target_noise_clip": clip} if kind == "TD3" else {}
    theirs = getattr(sbx, kind)(
        "MlpPolicy",
        None,
        learning_rate=LEARNING_RATE,
        qf_learning_rate=QF_LEARNING_RATE,
        policy_kwargs=dict(net_arch=[32, 24]),
        _init_setup_model=False,
        **kwargs,
    )
    theirs.observation_space, theirs.action_space = policy.observation_space, policy.action_space
    theirs.n_envs, theirs.buffer_size = 1, 10
    theirs._setup_model()
    theirs.policy.actor_state = theirs.policy.actor_state.replace(
        params=policy.actor_state.params, target_params=policy.actor_state.params
    )
    stacked = as_sbx(policy.qf_state.params)
    theirs.policy.qf_state = theirs.policy.qf_state.replace(params=stacked, target_params=stacked)

    key = jax.random.PRNGKey(11)
    noise_key = jax.random.split(key, 4)[1]  # of the noise in SBX's update_critic

    @dataclass(frozen=True)
    class SameNoise(ClippedNoise):
        def __call__(self, q, actions, key, sigma):
            return super().__call__(q, actions, noise_key, sigma)

    qf_state, actor_state, _, (actor_loss, critic_loss) = theirs._train(
        TAU, 1, batch, 1, 0, noise, clip, theirs.policy.qf_state, theirs.policy.actor_state, key
    )
    actor, critics, metrics = run(Row(SameNoise(noise, clip), CriticGradient(), "min"), policy, batch, steps=1)
    assert_trees_close(as_sbx(critics.params), qf_state.params, atol=1e-5)
    assert_trees_close(as_sbx(critics.target_params), qf_state.target_params, atol=1e-5)
    assert_trees_close(actor.params, actor_state.params, atol=1e-5)
    np.testing.assert_allclose(metrics["critic_loss"], critic_loss, rtol=1e-4)
    np.testing.assert_allclose(metrics["actor_loss"], actor_loss, rtol=1e-3)
    # SBX averages the actor's target before the actor's step, TD3's authors and SB3 after it, as we do.
    assert_trees_close(actor_state.target_params, policy.actor_state.params)
    mixed = jax.tree.map(lambda t, p: (1 - TAU) * t + TAU * p, policy.actor_state.params, actor.params)
    assert_trees_close(actor.target_params, mixed)


# Parts of the update


def test_critics_of_an_ensemble_are_those_critics_one_by_one(batch):
    policy = make_policy(n_critics=3, layer_norm=True)
    values = policy.qf.apply(policy.qf_state.params, batch.observations, batch.actions)
    many = jax.random.uniform(jax.random.key(0), (5, M, BATCH), minval=-1)
    at_actions = policy.qf.at_actions(policy.qf_state.params, batch.observations, many)
    assert values.shape == (3, BATCH)
    assert at_actions.shape == (3, 5, BATCH)
    for j in range(3):
        one = jax.tree.map(lambda leaf: leaf[j], policy.qf_state.params)  # noqa: B023
        np.testing.assert_allclose(
            values[j], policy.qf.critic.apply(one, batch.observations, batch.actions), rtol=1e-5, atol=1e-6
        )
        for i in range(5):
            plain = policy.qf.critic.apply(one, batch.observations, many[i].T)
            np.testing.assert_allclose(at_actions[j, i], plain, rtol=1e-4, atol=1e-5)
    assert len({float(value) for value in values[:, 0]}) == 3  # drawn on their own


def test_layer_norm_is_flaxs_forwards_and_backwards():
    x = 3 * jax.random.normal(jax.random.key(0), (7, 33)) + 2
    weights = jax.random.normal(jax.random.key(1), (7, 33))
    scale, bias = jax.random.normal(jax.random.key(2), (2, 33))
    params = {"params": {"scale": scale, "bias": bias}}

    def ours(params, x):
        return jnp.sum(weights * LayerNorm(33).apply(params, x))

    def flaxs(params, x):
        return jnp.sum(weights * nn.LayerNorm().apply(params, x))

    np.testing.assert_allclose(LayerNorm(33).apply(params, x), nn.LayerNorm().apply(params, x), rtol=1e-4, atol=1e-5)
    for got, want in zip(jax.grad(ours, (0, 1))(params, x), jax.grad(flaxs, (0, 1))(params, x), strict=True):
        assert_trees_close(got, want, rtol=1e-3, atol=1e-4)
    columns = LayerNorm(33).apply(params, x.T, method=LayerNorm.columns)
    np.testing.assert_allclose(columns.T, nn.LayerNorm().apply(params, x), rtol=1e-4, atol=1e-5)


def test_updates_in_one_call_are_those_one_by_one(batch):
    policy = make_policy(layer_norm=True)
    row = Row(SmoothedTarget(4), SmoothedGradient(4), "min")
    one_by_one = run(row, policy, batch, steps=4, sigma=0.2)
    together = run(row, policy, batch, steps=4, sigma=0.2, together=4)
    for got, want in zip(together[:2], one_by_one[:2], strict=True):
        assert_trees_close(got.params, want.params, atol=1e-5)
        assert_trees_close(got.target_params, want.target_params, atol=1e-5)


def test_a_delayed_actor_waits_while_critics_and_targets_move(batch):
    policy = make_policy()
    row = FAMILY["DDPG"]
    start = policy.actor_state
    waiting, critics, _ = run(row, policy, batch, steps=1, with_actor=(False,))
    assert_trees_close(waiting.params, start.params, rtol=0, atol=0)
    assert int(waiting.step) == 0
    assert int(critics.step) == 1
    actor, critics, _ = run(row, policy, batch, steps=4, with_actor=(False, True) * 2, together=4)
    assert (int(actor.step), int(critics.step)) == (2, 4)


@pytest.mark.parametrize("reduction", ["min", "mean"])
def test_critics_are_combined_sample_by_sample(batch, reduction):
    policy = make_policy()
    actions, key = batch.actions * 0.9, jax.random.key(1)
    row = Row(SmoothedTarget(6), CriticGradient(), reduction)
    value = next_value(row, policy, batch.observations, actions, key, 0.3)
    points = perturbed(actions.T, gaussian_perturbations(key, 6, (M, BATCH), True), 0.3, -1, 1)
    values = np.asarray(policy.qf.at_actions(policy.qf_state.params, batch.observations, points))  # (critic, N, batch)
    plain = {"min": values.min(axis=0).mean(axis=0), "mean": values.mean(axis=(0, 1))}
    np.testing.assert_allclose(value, plain[reduction], rtol=1e-5, atol=1e-6)


def test_with_the_mean_the_actor_follows_the_mean_of_the_critics(batch):
    policy = make_policy()
    params, actions = policy.qf_state.params, batch.actions * 0.9
    row = Row(ExactTarget(), CriticGradient(), "mean")
    found = action_gradient(row, policy, batch.observations, actions, jax.random.key(1), 0.3)
    one = [
        jax.grad(lambda a, j=j: policy.qf.apply(params, batch.observations, a)[j].sum())(jnp.asarray(actions))
        for j in range(2)
    ]
    np.testing.assert_allclose(found.gradient, (one[0] + one[1]) / 2, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        found.values, policy.qf.apply(params, batch.observations, actions).mean(axis=0), rtol=1e-5
    )


def test_saturation_penalty_is_the_weighted_square_before_tanh(batch):
    """One step of the actor is Adam's along the derivative of the loss written out."""
    policy = make_policy()
    row, weight = FAMILY["DDPG"], 0.3
    actor, critics, _ = run(row, policy, batch, steps=1, saturation_penalty=weight)

    def loss(params):
        u = policy.actor.apply(params, batch.observations, method="unsquashed")
        values = policy.qf.apply(critics.params, batch.observations, jnp.tanh(u)).min(axis=0)
        return -values.mean() + weight * (u**2).sum(axis=-1).mean()

    state = policy.actor_state
    steps, _ = state.tx.update(jax.grad(loss)(state.params), state.opt_state, state.params)
    expected = jax.tree.map(lambda param, step: param + LEARNING_RATE * step, state.params, steps)
    assert_trees_close(actor.params, expected, atol=1e-5)


@pytest.mark.parametrize(("penalty", "free"), [(0.0, False), (1e-3, True)])
def test_saturation_penalty_frees_an_actor_that_is_stuck(batch, penalty, free):
    """tanh(40) is 1 in single precision and its derivative 0: without the penalty no update moves the actor."""
    policy = make_policy()
    params = jax.tree.map(lambda x: x, policy.actor_state.params)
    params["params"]["Dense_2"]["bias"] = jnp.full(M, 40.0)
    policy.actor_state = policy.actor_state.replace(params=params, target_params=params)
    actor, _, _ = run(FAMILY["DDPG"], policy, batch, steps=50, saturation_penalty=penalty)
    moved = float(jnp.max(actor.params["params"]["Dense_2"]["bias"])) < 40
    assert moved == free


def test_the_table_states_the_defaults_of_the_classes():
    for algorithm in (DDPG, TD3, SoftDDPG, SoftTD3):
        assert algorithm("MlpPolicy", "Pendulum-v1", buffer_size=10).row == FAMILY[algorithm.__name__]
    entry = registry.find("ocpg").hyperparameters
    names = ("smooth_target", "actor_gradient", "n_samples", "critic_reduction")
    ocpg = SoftTD3("MlpPolicy", "Pendulum-v1", buffer_size=10, **{name: entry[name] for name in names})
    assert ocpg.row == FAMILY["oCPG"]


def test_td3s_noise_is_clipped(batch):
    """With a huge scale every component is at the clip: the value is the mean over those corners' values, no other."""
    policy = make_policy(n_critics=1)
    actions = np.zeros((BATCH, M), np.float32)
    row = Row(ClippedNoise(1e6, 0.5), CriticGradient(), "min")
    value = next_value(row, policy, batch.observations, actions, jax.random.key(4), 0.0)
    corners = [np.broadcast_to(np.float32(c), (BATCH, M)) for c in [(a, b) for a in (-0.5, 0.5) for b in (-0.5, 0.5)]]
    possible = np.stack([policy.qf.apply(policy.qf_state.params, batch.observations, c)[0] for c in corners])
    assert (np.abs(possible - value).min(axis=0) < 1e-5).all()


# Sigma


@pytest.mark.parametrize("curvature", [-1.0, 1.0])
def test_learned_sigma_shrinks_on_a_hill_and_grows_in_a_valley(curvature):
    """E[c |x + sigma w|^2 / 2] has the derivative c sigma_j^2 by log sigma_j."""
    x = jnp.zeros((M, 4_000))
    state = make_sigma_state(M)
    sigma = jnp.exp(state.params)
    w = gaussian_perturbations(jax.random.key(0), 8, x.shape, antithetic=True)
    values = curvature * (perturbed(x, w, sigma) ** 2).sum(axis=1) / 2
    gradient = log_sigma_gradient(w, values)
    np.testing.assert_allclose(gradient, curvature * sigma**2, rtol=0.1)
    ascend = jax.jit(lambda state: jax.lax.fori_loop(0, 5_000, lambda _, s: ascend_log_sigma(s, gradient), state))
    state = ascend(state)
    np.testing.assert_allclose(jnp.exp(state.params), SIGMA_BOUNDS[int(curvature > 0)], rtol=1e-5)


def test_learned_sigma_changes_in_training_and_is_saved(tmp_path):
    model = SoftTD3("MlpPolicy", "Pendulum-v1", **TINY, sigma="auto", n_samples=4, actor_gradient="smoothed").learn(60)
    sigma = model.current_sigma()
    assert sigma.shape == (1,)
    assert sigma != pytest.approx(0.2, abs=1e-6)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(SoftTD3.load(tmp_path / "model").current_sigma(), sigma)


@pytest.mark.parametrize("settings", [dict(n_samples=2, actor_gradient="smoothed"), dict(actor_gradient="exact")])
def test_learned_sigma_says_what_it_needs(settings):
    with pytest.raises(ValueError, match='sigma="auto" needs'):
        SoftTD3("MlpPolicy", "Pendulum-v1", **TINY, sigma="auto", **settings)


def test_sigma_set_later_takes_effect():
    def weights(change):
        model = SoftDDPG("MlpPolicy", "Pendulum-v1", **TINY, n_samples=4, sigma=0.2).learn(40)
        if change:
            model.sigma = 0.4
        return model.learn(20, reset_num_timesteps=False).policy.actor_state.params

    changed, same = weights(True), weights(False)
    assert not all(jax.tree.leaves(jax.tree.map(np.array_equal, changed, same)))


@pytest.mark.extended
def test_a_learned_sigma_can_be_set_and_learned_again():
    model = SoftTD3("MlpPolicy", "Pendulum-v1", **TINY, sigma="auto", actor_gradient="smoothed").learn(40)
    model.sigma = 0.3
    assert model.learn(8, reset_num_timesteps=False).current_sigma() == 0.3
    model.sigma = "auto"
    np.testing.assert_allclose(model.current_sigma(), [0.2])
    assert model.learn(40, reset_num_timesteps=False).current_sigma() != pytest.approx(0.2, abs=1e-6)


def test_soft_td3_takes_several_steps_where_it_can():
    from stable_baselines3.common.buffers import ReplayBuffer

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SoftTD3("MlpPolicy", "Pendulum-v1", **TINY).n_steps == 3
        assert SoftTD3("MlpPolicy", "Pendulum-v1", **TINY, replay_buffer_class=ReplayBuffer).n_steps == 1
    assert SoftTD3("MlpPolicy", "Pendulum-v1", **TINY, n_steps=2).replay_buffer.n_steps == 2


def test_sigma_follows_its_schedule():
    model = SoftTD3("MlpPolicy", "Pendulum-v1", **TINY, n_samples=2, sigma=lambda left: 0.1 + 0.4 * left)
    seen = []
    model.learn(104, callback=lambda local, _: seen.append(model.current_sigma()) or True)
    assert seen[0] == pytest.approx(0.5, abs=0.01)
    assert model.current_sigma() == pytest.approx(0.1, abs=1e-6)
    assert (np.diff(seen) <= 0).all()


# The classes


@pytest.mark.extended
def test_td3s_defaults_are_sb3s_but_for_exploration_and_warm_up():
    import stable_baselines3

    ours, theirs = TD3("MlpPolicy", "Pendulum-v1"), stable_baselines3.TD3("MlpPolicy", "Pendulum-v1")
    names = ["learning_rate", "buffer_size", "batch_size", "tau", "gamma", "gradient_steps", "n_steps", "train_freq"]
    for name in [*names, "policy_delay", "target_policy_noise", "target_noise_clip"]:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert (ours.policy.qf.n_critics, ours.policy.qf.critic.net_arch) == (2, (400, 300))
    assert ours.learning_starts == 1_000


def test_qf_learning_rate_reports_what_was_given():
    assert DDPG("MlpPolicy", "Pendulum-v1", **TINY, qf_learning_rate=3e-3).qf_learning_rate == 3e-3
    assert DDPG("MlpPolicy", "Pendulum-v1", **TINY, learning_rate=2e-3).qf_learning_rate == 2e-3


def test_saturation_gives_one_warning(monkeypatch):
    monkeypatch.setattr(base, "_SATURATION_PATIENCE", 5)
    monkeypatch.setattr(base, "_SATURATION_CHECK", 10)
    model = DDPG("MlpPolicy", "Pendulum-v1", **TINY)
    params = model.policy.actor_state.params
    params["params"]["Dense_2"]["bias"] = jnp.full(1, 10.0)
    model.policy.actor_state = model.policy.actor_state.replace(params=params)
    with pytest.warns(UserWarning, match="99 % of the actions have been at a bound") as caught:
        model.learn(80)
    assert len([w for w in caught if "at a bound" in str(w.message)]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DDPG("MlpPolicy", "Pendulum-v1", **TINY).learn(80)


def test_n_steps_with_another_buffer_warns():
    from stable_baselines3.common.buffers import ReplayBuffer

    with pytest.warns(UserWarning, match="n_steps=3 has no effect with replay_buffer_class=ReplayBuffer"):
        DDPG("MlpPolicy", "Pendulum-v1", **TINY, n_steps=3, replay_buffer_class=ReplayBuffer)


@pytest.mark.parametrize("algorithm", [DDPG, SoftTD3])
def test_sb3s_n_step_buffer_has_its_own_steps(algorithm):
    from stable_baselines3.common.buffers import NStepReplayBuffer

    own = dict(replay_buffer_class=NStepReplayBuffer, replay_buffer_kwargs={"n_steps": 4, "gamma": 0.9})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = algorithm("MlpPolicy", "Pendulum-v1", **TINY, **own)
        chosen = algorithm("MlpPolicy", "Pendulum-v1", **TINY, n_steps=2)
    with pytest.warns(UserWarning, match="n_steps=2 has no effect"):
        both = algorithm("MlpPolicy", "Pendulum-v1", **TINY, n_steps=2, **own)
    with pytest.warns(UserWarning, match="n_steps=2 has no effect"):
        default = algorithm("MlpPolicy", "Pendulum-v1", **TINY, n_steps=2, replay_buffer_class=NStepReplayBuffer)
    buffers = [model.replay_buffer for model in (given, both, default, chosen)]
    assert [(buffer.n_steps, buffer.gamma) for buffer in buffers] == [(4, 0.9), (4, 0.9), (3, 0.99), (2, chosen.gamma)]
    assert [type(buffer) for buffer in buffers[:3]] == [NStepReplayBuffer] * 3
    assert isinstance(buffers[3], NStepReplayBuffer)


@pytest.mark.parametrize("make", [pytest.param(TD3, marks=pytest.mark.extended), SoftTD3])
def test_several_environments_and_updates_in_a_call(make):
    model = make("MlpPolicy", make_vec_env("Pendulum-v1", n_envs=2), **TINY, train_freq=2, gradient_steps=4)
    model.learn(60)
    assert model._n_updates > 0
    assert model._n_updates % 4 == 0


def test_soft_td3_sums_one_reward_where_the_buffer_cannot_sum_more():
    saving = dict(replay_buffer_kwargs={"optimize_memory_usage": True, "handle_timeout_termination": False})
    assert SoftTD3("MlpPolicy", "Pendulum-v1", buffer_size=100, **saving).n_steps == 1
    assert SoftTD3("MlpPolicy", "Pendulum-v1", buffer_size=100).n_steps == 3
    goals = point_mass.PointMassGoal()  # Dict observations
    assert SoftTD3("MultiInputPolicy", goals, buffer_size=100).n_steps == 1
    assert SoftTD3("MultiInputPolicy", goals, buffer_size=100, replay_buffer_class=FlatReplayBuffer).n_steps == 3
