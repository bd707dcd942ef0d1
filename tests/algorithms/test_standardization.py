"""Observations standardised inside the networks: statistics against plain averages, and wherever they have to go."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import softdpg
from softdpg import SoftTD3
from softdpg.algorithms.networks import STANDARDIZE_EPSILON, STANDARDIZE_LIMIT, Actor, Critic, Standardization
from softdpg.algorithms.update import STATISTICS_RATE, TargetedState, updated_statistics, with_statistics

D = 3
NETWORK = {"net_arch": [16, 16]}
TINY = {"learning_starts": 20, "batch_size": 16, "buffer_size": 500}


def states(step=0):
    """Actor and two critics that standardise, after ``step`` updates."""
    actor = Actor(2, (8, 8), standardize=True).init(jax.random.key(0), jnp.zeros((1, D)))
    critic = Critic(D, 2, (8, 8), standardize=True).init(jax.random.key(0), jnp.zeros((1, D)), jnp.zeros((1, 2)))
    critics = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), critic)
    return [TargetedState(step, None, params, None, None, target_params=params) for params in (actor, critics)]


def test_a_component_is_less_its_mean_and_over_its_deviation_and_clipped():
    module = Standardization(2)
    params = {"params": {"mean": jnp.array([1.0, 0.0]), "variance": jnp.array([4.0, 0.0])}}
    seen = module.apply(params, jnp.array([[3.0, 0.02], [-100.0, 1.0]]))
    expected = [
        [2 / np.sqrt(4 + STANDARDIZE_EPSILON), 0.02 / np.sqrt(STANDARDIZE_EPSILON)],
        [-STANDARDIZE_LIMIT, STANDARDIZE_LIMIT],
    ]
    np.testing.assert_allclose(seen, expected, rtol=1e-6)


def test_statistics_of_the_first_batches_are_those_of_all_their_observations():
    """Of equally large batches the k-th weighs 1 / k: mean and variance of the batches joined."""
    batches = np.random.default_rng(0).normal([0, 5, -1], [1, 0.1, 3], (6, 32, D)).astype(np.float32)
    actor, critics = states()
    for k, batch in enumerate(batches):
        actor, critics = (
            with_statistics(state.replace(step=k), updated_statistics(actor, critics.replace(step=k), batch))
            for state in (actor, critics)
        )
    found = actor.params["params"]["observations"]
    joined = batches.reshape(-1, D).astype(np.float64)
    np.testing.assert_allclose(found["mean"], joined.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(found["variance"], joined.var(axis=0), rtol=1e-4)
    for params in (actor.target_params, critics.params, critics.target_params):
        for name in ("mean", "variance"):
            np.testing.assert_array_equal(*np.broadcast_arrays(params["params"]["observations"][name], found[name]))


def test_later_batches_keep_a_weight():
    actor, critics = states(step=10**6)
    found = updated_statistics(actor, critics, np.full((4, D), 2.0, np.float32))
    np.testing.assert_allclose(found["mean"], 2 * STATISTICS_RATE, rtol=1e-5)
    np.testing.assert_allclose(found["variance"], (1 - STATISTICS_RATE) * (1 + STATISTICS_RATE * 4), rtol=1e-5)


def test_scale_and_offset_of_the_observations_do_not_matter():
    """Two models whose observations differ by a factor and an offset act alike once both have seen the same batches."""
    rng = np.random.default_rng(0)
    batch, points = rng.normal(size=(256, D)).astype(np.float32), rng.normal(size=(9, D)).astype(np.float32)
    actions = []
    for scale, offset in ((1.0, 0.0), (50.0, 7.0)):
        actor, critics = states()
        actor = with_statistics(actor, updated_statistics(actor, critics, scale * batch + offset))
        actions.append(Actor(2, (8, 8), standardize=True).apply(actor.params, scale * points + offset))
    np.testing.assert_allclose(*actions, atol=1e-3)


def test_a_model_that_has_learned_has_the_statistics_of_its_replay_buffer():
    model = SoftTD3("MlpPolicy", "Pendulum-v1", seed=0, policy_kwargs=NETWORK, **TINY).learn(400)
    replayed = model.replay_buffer.observations[:400, 0]
    for state in (model.policy.actor_state, model.policy.qf_state):
        for params in (state.params, state.target_params):
            found = params["params"]["observations"]
            mean = np.broadcast_to(replayed.mean(axis=0), found["mean"].shape)
            np.testing.assert_allclose(found["mean"], mean, atol=0.35 * replayed.std(axis=0).max())
    assert (np.asarray(found["variance"]) < 0.9 * np.array([1, 1, 100])).all()


def test_no_gradient_and_no_weight_decay_changes_them():
    import optax

    kwargs = NETWORK | {"optimizer_class": optax.adamw, "optimizer_kwargs": {"weight_decay": 0.5}}
    model = SoftTD3("MlpPolicy", "Pendulum-v1", seed=0, policy_kwargs=kwargs, **TINY).learn(200)
    actor, critic = (s.params["params"]["observations"] for s in (model.policy.actor_state, model.policy.qf_state))
    for name in ("mean", "variance"):
        np.testing.assert_array_equal(critic[name], np.broadcast_to(actor[name], critic[name].shape))
    for part in jax.tree.leaves(model.policy.actor_state.opt_state[0].mu["params"]["observations"]):
        assert not np.any(part)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("suffix", [".py", ".onnx"])
def test_exported_policies_standardise(tmp_path, suffix, normalize):
    """Alone, and behind a VecNormalize, whose statistics come first."""
    env = DummyVecEnv([lambda: gym.make("Pendulum-v1")])
    env = VecNormalize(env, norm_reward=False) if normalize else env
    model = SoftTD3("MlpPolicy", env, seed=0, policy_kwargs=NETWORK, **TINY).learn(200)
    path = model.export(tmp_path / f"policy{suffix}")
    observations = np.random.default_rng(0).normal(0, 3, (20, D)).astype(np.float32)
    seen = env.normalize_obs(observations) if normalize else observations
    expected, _ = model.predict(seen, deterministic=True)
    if suffix == ".py":
        namespace = {}
        exec(path.read_text(), namespace)
        actions = namespace["predict"](observations)
    else:
        onnxruntime = pytest.importorskip("onnxruntime")
        (actions,) = onnxruntime.InferenceSession(path).run(None, {"observation": observations})
    np.testing.assert_allclose(actions, expected, atol=1e-4)


def test_saved_and_loaded_with_the_model(tmp_path):
    model = SoftTD3("MlpPolicy", "Pendulum-v1", seed=0, policy_kwargs=NETWORK, **TINY).learn(200)
    model.save(tmp_path / "model")
    again = SoftTD3.load(tmp_path / "model")
    assert "actor.observations.mean" in again.get_parameters()["policy"]
    observation = np.array([0.3, 0.9, -4.0], np.float32)
    np.testing.assert_array_equal(again.predict(observation)[0], model.predict(observation)[0])
    model.policy.actor.save(tmp_path / "actor")
    actor = type(model.policy.actor).load(tmp_path / "actor")
    np.testing.assert_array_equal(actor.predict(observation)[0], model.predict(observation)[0])


def test_it_can_be_left_out():
    for cls in (softdpg.DDPG, softdpg.SoftDDPG, softdpg.TD3):
        assert "observations" not in cls("MlpPolicy", "Pendulum-v1").policy.actor_state.params["params"]
    kwargs = NETWORK | {"standardize": False}
    model = SoftTD3("MlpPolicy", "Pendulum-v1", policy_kwargs=kwargs, **TINY)
    assert "observations" not in model.policy.actor_state.params["params"]
    with pytest.raises(ValueError, match="standardize must be True or False"):
        SoftTD3("MlpPolicy", "Pendulum-v1", policy_kwargs={"standardize": 3})
