"""The embedding of state and action: against plain NumPy, apart from the critics' loss, from one-step data."""

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from updates import LEARNING_RATE, QF_LEARNING_RATE, TAU, D, M, assert_trees_close, run

from softdpg import SoftTD3
from softdpg.algorithms.buffers import RecordReplayBuffer
from softdpg.algorithms.policies import DDPGPolicy
from softdpg.algorithms.update import DPG, Learned, Rates, no_metrics, update

TINY = {
    "learning_starts": 20,
    "batch_size": 16,
    "buffer_size": 500,
    "policy_kwargs": {"net_arch": [16, 16], "embedding": True},
}


def make_policy(**kwargs):
    box = spaces.Box(-1, 1, (D,), np.float32), spaces.Box(-1, 1, (M,), np.float32)
    settings = {"net_arch": [32, 24], "n_critics": 2, "layer_norm": True, "embedding": True} | kwargs
    policy = DDPGPolicy(*box, lambda _: 0.0, **settings)
    policy.build(jax.random.PRNGKey(3))
    return policy


def dense(layer, x):
    return x @ np.asarray(layer["kernel"], np.float64) + np.asarray(layer.get("bias", 0.0), np.float64)


def norm(layer, x):
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6) * layer["scale"] + layer["bias"]


def plain_states(tree, s):
    z = dense(tree["state_1"], np.maximum(norm(tree["norm_0"], dense(tree["state_0"], s)), 0))
    return z / np.abs(z).mean(axis=-1, keepdims=True)


def plain_embedding(tree, s, a):
    hidden = norm(tree["norm_1"], dense(tree["joint"], plain_states(tree, s)) + dense(tree["action"], a))
    return dense(tree["embedded"], np.maximum(hidden, 0))


def test_embedding_and_its_loss_are_those_of_a_plain_version(batch):
    policy = make_policy()
    tree, s, a = policy.qf_state.params["params"]["embedding"], batch.observations, batch.actions
    found = policy.qf.embedding.apply({"params": tree}, s, a)
    np.testing.assert_allclose(found, plain_embedding(tree, s, a), rtol=1e-4, atol=1e-5)
    expected = np.mean((plain_embedding(tree, s, a) - plain_states(tree, batch.next_observations)) ** 2)
    loss = policy.qf.prediction_loss(policy.qf_state.params, s, a, batch.next_observations)
    np.testing.assert_allclose(loss, expected, rtol=1e-4)


@pytest.mark.parametrize("action_layer", ["input", "second"])
def test_a_critic_adds_the_embedding_where_the_action_enters(batch, action_layer):
    policy = make_policy(action_layer=action_layer)
    params, s, a = policy.qf_state.params["params"], batch.observations, batch.actions
    z = plain_embedding(params["embedding"], s, a)
    values = []
    for j in range(2):
        one = {name: jax.tree.map(lambda leaf: leaf[j], tree) for name, tree in params.items() if name != "embedding"}  # noqa: B023
        more = [dense(one["action"], a) + dense(one["joint"], z), 0.0]
        first, second = more if action_layer == "input" else reversed(more)
        x = np.maximum(norm(one["norm_0"], dense(one["hidden_0"], s) + first), 0)
        x = np.maximum(norm(one["norm_1"], dense(one["hidden_1"], x) + second), 0)
        values.append(dense(one["value"], x)[:, 0])
    np.testing.assert_allclose(policy.qf.apply(policy.qf_state.params, s, a), values, rtol=1e-4, atol=1e-5)
    at_actions = policy.qf.at_actions(policy.qf_state.params, s, np.stack([a.T, -a.T]))
    np.testing.assert_allclose(at_actions[:, 0], values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(at_actions[:, 1], policy.qf.apply(policy.qf_state.params, s, -a), rtol=1e-4, atol=1e-5)


def split(params):
    critics = {name: tree for name, tree in params["params"].items() if name != "embedding"}
    return critics, params["params"]["embedding"]


def test_rewards_do_not_change_the_embedding_and_its_loss_alone_does(batch):
    """One step of Adam from its start is the sign of the gradient times the rate."""
    policy = make_policy()
    dpg = DPG(policy.qf)
    (critics, embedding), (others, same) = (
        split(run(dpg, policy, batch._replace(rewards=rewards), steps=1)[1].params)
        for rewards in (batch.rewards, 100 + 0 * batch.rewards)
    )
    assert_trees_close(embedding, same, rtol=0, atol=0)
    assert max(jax.tree.leaves(jax.tree.map(lambda x, y: abs(x - y).max(), critics, others))) > 1e-4
    start = policy.qf_state.params

    def loss(params):
        return policy.qf.prediction_loss(params, batch.observations, batch.actions, batch.next_observations)

    gradient = split(jax.grad(loss)(start))[1]["joint"]["kernel"]
    moved = embedding["joint"]["kernel"] - split(start)[1]["joint"]["kernel"]
    clear = np.abs(gradient) > 1e-5
    assert clear.mean() > 0.5
    np.testing.assert_allclose(moved[clear], -QF_LEARNING_RATE * np.sign(gradient[clear]), rtol=1e-2)


def test_critics_and_actor_see_the_embedding_of_the_target(batch):
    """Another embedding that only the online parameters have changes nothing in what critics and actor learn."""
    policy = make_policy()
    before = policy.qf_state
    results = []
    for factor in (1.0, 3.0):
        critics, embedding = split(before.params)
        changed = {"params": critics | {"embedding": jax.tree.map(lambda x: factor * x, embedding)}}  # noqa: B023
        policy.qf_state = before.replace(params=changed)
        actor, state, _ = run(DPG(policy.qf), policy, batch, steps=1)
        results.append((actor.params, split(state.params)[0]))
        target = split(state.target_params)[1]["joint"]["kernel"]
        expected = (1 - TAU) * split(before.target_params)[1]["joint"]["kernel"]
        expected += TAU * split(state.params)[1]["joint"]["kernel"]
        np.testing.assert_allclose(target, expected, rtol=1e-4, atol=1e-6)
    assert_trees_close(*results, rtol=0, atol=1e-7)


def test_it_foretells_the_observation_after_one_step_even_with_returns_of_several(batch):
    """Successors, where a batch has them, and not the observations after n steps, are what is foretold."""
    policy = make_policy()
    learned = Learned(policy.actor_state, policy.qf_state, None, jax.random.PRNGKey(7), no_metrics())
    rates = Rates(LEARNING_RATE, QF_LEARNING_RATE, TAU, 0.0)
    results = [
        update(DPG(policy.qf), False, learned, one, rates).critics.params["params"]["embedding"]
        for one in (
            batch,
            batch._replace(successors=batch.next_observations, next_observations=batch.observations),
            batch._replace(successors=batch.observations),
        )
    ]
    assert_trees_close(results[0], results[1], rtol=0, atol=1e-7)
    assert np.abs(results[0]["joint"]["kernel"] - results[2]["joint"]["kernel"]).max() > 1e-4


def test_the_buffer_gives_the_observation_after_one_step():
    box = spaces.Box(-1, 1, (1,), np.float32)
    buffer = RecordReplayBuffer(50, box, box, n_steps=3, gamma=0.9)
    for t in range(20):
        array = np.full((1, 1), float(t), np.float32)
        buffer.add(array, array + 1, 0 * array, np.ones(1), np.array([t % 7 == 6]), [{}])
    obs, _, next_obs, *_, successors = buffer.sample_arrays(200)
    np.testing.assert_array_equal(successors, obs + 1)
    assert set(np.unique(next_obs - obs)) == {1, 2, 3}
    env = VecNormalize(DummyVecEnv([lambda: gym.make("Pendulum-v1")]), clip_obs=100.0)
    env.obs_rms.mean, env.obs_rms.var = np.array([5.0]), np.array([4.0])
    obs, *_, successors = buffer.sample_arrays(50, env)
    np.testing.assert_allclose(successors, obs + 0.5, rtol=1e-5)


def test_the_loss_falls_where_the_next_state_can_be_foretold(batch):
    """s' = s + a (first components): after 300 updates the loss is a tenth of that at the start."""
    policy = make_policy()
    moved = batch.observations.copy()
    moved[:, :M] += batch.actions
    batch = batch._replace(next_observations=moved)
    arguments = (batch.observations, batch.actions, moved)
    before = policy.qf.prediction_loss(policy.qf_state.params, *arguments)
    _, critics, _ = run(DPG(policy.qf), policy, batch, steps=300)
    assert policy.qf.prediction_loss(critics.params, *arguments) < 0.1 * before


def test_a_model_has_it_saves_it_and_does_without_it(tmp_path):
    model = SoftTD3("MlpPolicy", "Pendulum-v1", seed=0, **TINY).learn(60)
    assert model.policy.qf.critic.action_layer == "input"
    statistics = model.policy.qf_state.params["params"]["embedding"]["observations"]
    own = model.policy.actor_state.params["params"]["observations"]
    np.testing.assert_array_equal(statistics["mean"], own["mean"])
    model.save(tmp_path / "model")
    again = SoftTD3.load(tmp_path / "model")
    names = [name for name in model.policy.state_dict() if "embedding" in name]
    assert any(name.startswith("critic_target.embedding.") for name in names)
    for name in names:
        np.testing.assert_array_equal(again.policy.state_dict()[name], model.policy.state_dict()[name])
    kwargs = {"net_arch": [16, 16]}
    without = SoftTD3("MlpPolicy", "Pendulum-v1", seed=0, **TINY | {"policy_kwargs": kwargs}).learn(60)
    assert without.policy.qf.critic.action_layer == "second"
    assert not [name for name in without.policy.state_dict() if "embedding" in name]


def test_without_hidden_layers_there_is_no_embedding():
    assert make_policy(net_arch=[]).qf.embedding is None
    with pytest.raises(ValueError, match="embedding must be True or False"):
        make_policy(embedding="yes")
