"""Get and set parameters, save and load models: SB3's methods on JAX arrays."""

import io
from importlib.util import find_spec

import gymnasium as gym
import jax
import numpy as np
import pytest
import small
import stable_baselines3
import torch as th
from small import NET, OBSERVATIONS
from stable_baselines3.common.noise import NormalActionNoise

from softdpg import DDPG, TD3, SoftDDPG, SoftTD3
from softdpg.algorithms.exploration import ColoredNoise
from softdpg.algorithms.parameters import ParameterArray
from softdpg.algorithms.policies import DDPGPolicy
from softdpg.algorithms.update import compiled_updates

SETTINGS = small.FAMILY | {SoftTD3: dict(small.FAMILY[SoftTD3], sigma="auto", actor_gradient="smoothed")}
# The four share the code; one of them in `make test`.
OTHERS = [pytest.param(algorithm, marks=pytest.mark.extended) for algorithm in (DDPG, SoftDDPG, TD3)]
FAMILY = pytest.mark.parametrize("algorithm", [SoftTD3, *OTHERS])
UNEQUAL = dict(policy_kwargs=dict(net_arch=[8, 4]))  # layers of two sizes, where shapes are compared


def make(algorithm, **kwargs):
    return algorithm("MlpPolicy", "Pendulum-v1", **SETTINGS[algorithm] | kwargs)


def assert_equal(got, want):
    jax.tree.map(np.testing.assert_array_equal, got, want)


def equal(got, want):
    return all(jax.tree.leaves(jax.tree.map(np.array_equal, got, want)))


@FAMILY
def test_parameters_carry_a_model_over_to_another(algorithm):
    model, other = make(algorithm).learn(25), make(algorithm, seed=1)
    params = model.get_parameters()
    assert all(isinstance(array, ParameterArray) for arrays in params.values() for array in arrays.values())
    assert not equal(other.get_parameters(), params)
    other.set_parameters(params)
    assert_equal(other.get_parameters(), params)
    np.testing.assert_array_equal(model.predict(OBSERVATIONS)[0], other.predict(OBSERVATIONS)[0])
    # The parameters include everything that an update changes: the next one is the same in both.
    other.replay_buffer, other.key, other._n_updates = model.replay_buffer, model.key, model._n_updates
    for one in (model, other):
        np.random.seed(0)  # noqa: NPY002
        one.train(gradient_steps=3, batch_size=16)
    assert_equal(other.get_parameters(), model.get_parameters())


def test_the_vector_of_a_trained_model_fits_a_new_one():
    model, new = make(DDPG).learn(25), make(DDPG, seed=1)
    assert list(new.policy.state_dict()) == list(model.policy.state_dict())
    new.policy.load_from_vector(model.policy.parameters_to_vector())
    assert_equal(new.policy.state_dict(), model.policy.state_dict())


def test_another_model_and_a_loaded_one_use_the_update_that_is_compiled_already(tmp_path):
    model = make(DDPG).learn(25)
    model.save(tmp_path / "model")
    compiled = compiled_updates()._cache_size()
    make(DDPG).learn(25)
    DDPG.load(tmp_path / "model", env="Pendulum-v1").learn(25)
    model.set_parameters(model.get_parameters())
    model.learn(25)
    assert compiled_updates()._cache_size() == compiled


def test_names_and_shapes():
    params = make(SoftTD3, **UNEQUAL).get_parameters()
    assert params.keys() == {"policy", "actor.optimizer", "critic.optimizer", "sigma.optimizer"}
    policy = params["policy"]
    assert policy["actor.Dense_0.kernel"].shape == policy["actor_target.Dense_0.kernel"].shape == (3, 8)
    assert policy["critic.hidden_1.kernel"].shape == policy["critic_target.hidden_1.kernel"].shape == (2, 8, 4)
    np.testing.assert_allclose(policy["log_sigma"], np.log([0.2]), rtol=1e-6)
    assert make(DDPG).get_parameters().keys() == {"policy", "actor.optimizer", "critic.optimizer"}


@FAMILY
def test_set_parameters_from_a_file(algorithm, tmp_path):
    model = make(algorithm).learn(25)
    model.save(tmp_path / "model")
    file = io.BytesIO()
    model.save(file)
    for source in (tmp_path / "model", str(tmp_path / "model.zip"), file):
        other = make(algorithm, seed=1)
        other.set_parameters(source)
        assert_equal(other.get_parameters(), model.get_parameters())
    another = make(algorithm, seed=1)
    another.load_parameters(tmp_path / "model")
    assert_equal(another.get_parameters(), model.get_parameters())


def test_exact_match():
    model = make(DDPG, **UNEQUAL)
    before = model.get_parameters()
    bias = {"actor.Dense_0.bias": np.full(8, 0.5)}
    with pytest.raises(ValueError, match=r"\['actor.optimizer', 'critic.optimizer'\] are missing"):
        model.set_parameters({"policy": before["policy"]})
    with pytest.raises(RuntimeError, match=r"missing \['actor.Dense_0.kernel', .*\], unexpected \[\]"):
        model.set_parameters(before | {"policy": bias})
    with pytest.raises(RuntimeError, match=r"unexpected \['nobody'\]"):
        model.set_parameters(before | {"policy": before["policy"] | {"nobody": 0}})
    for exact_match in (True, False):
        with pytest.raises(ValueError, match="'nobody' has no parameters"):
            model.set_parameters(before | {"nobody": {}}, exact_match=exact_match)
        with pytest.raises(RuntimeError, match=r"actor.Dense_0.bias has shape \(9,\), expected \(8,\)"):
            model.set_parameters(
                before | {"policy": before["policy"] | {"actor.Dense_0.bias": np.ones(9)}}, exact_match=exact_match
            )
    assert_equal(model.get_parameters(), before)  # an error changes nothing

    model.set_parameters({"policy": bias}, exact_match=False)
    after = model.get_parameters()
    np.testing.assert_array_equal(after["policy"].pop("actor.Dense_0.bias"), np.full(8, 0.5, np.float32))
    del before["policy"]["actor.Dense_0.bias"]
    assert_equal(after, before)


def test_arrays_of_numpy_and_tensors_of_torch_are_copied():
    model = make(DDPG, **UNEQUAL)
    for source in (np.ones(8, np.float32), th.ones(8)):
        model.set_parameters({"policy": {"actor.Dense_0.bias": source}}, exact_match=False)
        source[:] = 3
        np.testing.assert_array_equal(model.get_parameters()["policy"]["actor.Dense_0.bias"], np.ones(8))


@FAMILY
def test_policy_alone_on_disk(algorithm, tmp_path):
    model = make(algorithm).learn(25)
    model.policy.save(tmp_path / "policy.pkl")
    policy = DDPGPolicy.load(tmp_path / "policy.pkl")
    assert_equal(policy.state_dict(), model.policy.state_dict())
    np.testing.assert_array_equal(policy.predict(OBSERVATIONS)[0], model.predict(OBSERVATIONS)[0])
    assert policy.qf is model.policy.qf


def test_policy_as_a_vector():
    model = make(TD3, **UNEQUAL)
    vector = model.policy.parameters_to_vector()
    actor, critic = 3 * 8 + 8 + 8 * 4 + 4 + 4 + 1, (3 + 1) * 8 + 8 + 8 * 4 + 4 + 4 + 1
    assert vector.shape == (2 * actor + 2 * 2 * critic,)
    model.policy.load_from_vector(2 * vector)
    np.testing.assert_array_equal(model.policy.parameters_to_vector(), 2 * vector)
    with pytest.raises(ValueError, match="vector must have"):
        model.policy.load_from_vector(vector[1:])


@FAMILY
def test_load_restores_all_that_learning_needs(algorithm, tmp_path):
    model = make(algorithm).learn(25)
    model.save(tmp_path / "model")
    loaded = algorithm.load(tmp_path / "model", env="Pendulum-v1")
    assert_equal(loaded.get_parameters(), model.get_parameters())
    assert (loaded.row, loaded.num_timesteps, loaded._n_updates) == (model.row, 25, model._n_updates)
    loaded.learn(25, reset_num_timesteps=False)
    assert loaded._n_updates == 15 + 25  # of steps 11 to 25, and then of each


@FAMILY
def test_load_with_the_constructors_own_arguments(algorithm, tmp_path):
    settings = SETTINGS[algorithm] | dict(
        action_noise=0.3,
        train_freq=4,
        n_steps=3,
        stats_window_size=7,
        replay_buffer_class=None,
        replay_buffer_kwargs=None,
        **({} if algorithm is SoftTD3 else {"qf_learning_rate": 1e-2}),
    )
    make(algorithm, **settings).save(tmp_path / "model")
    model = algorithm.load(tmp_path / "model", env=gym.make("Pendulum-v1"), **settings)
    assert isinstance(model.action_noise, ColoredNoise if algorithm is SoftTD3 else NormalActionNoise)
    assert model.replay_buffer.n_steps == 3
    model.learn(30)
    assert model._n_updates == 6  # every fourth step from 12 to 32
    without = make(algorithm)
    without.save(tmp_path / "default")
    algorithm.load(tmp_path / "default", policy_kwargs=NET)


def test_arguments_given_to_load_replace_the_saved_ones(tmp_path):
    make(SoftDDPG).save(tmp_path / "model")
    model = SoftDDPG.load(
        tmp_path / "model",
        env="Pendulum-v1",
        sigma=0.4,
        learning_rate=0.25,
        qf_learning_rate=0.5,
        gamma=0.5,
        n_steps=2,
        action_noise="sigma",
        stats_window_size=3,
    )
    assert (model.sigma, model.lr_schedule(1), model.qf_schedule(1)) == (0.4, 0.25, 0.5)
    assert (model.replay_buffer.n_steps, model.replay_buffer.gamma) == (2, 0.5)
    model.learn(15)
    np.testing.assert_array_equal(model.action_noise.sigma, [0.4])
    assert model.ep_info_buffer.maxlen == 3
    assert SoftDDPG.load(tmp_path / "model", custom_objects=dict(gamma=0.7)).gamma == 0.7
    follows = SoftDDPG.load(tmp_path / "model", learning_rate=0.25)  # none was given for the critic
    assert (follows.qf_learning_rate, follows.qf_schedule) == (0.25, None)


def test_load_refuses_invalid_arguments(tmp_path):
    make(SoftDDPG).save(tmp_path / "model")
    with pytest.raises(ValueError, match="sigma must be a positive number, got -1"):
        SoftDDPG.load(tmp_path / "model", sigma=-1)
    with pytest.raises(TypeError, match=r"SoftDDPG.load\(\) got an unexpected argument 'gama'"):
        SoftDDPG.load(tmp_path / "model", gama=0.9)
    with pytest.raises(ValueError, match="policy kwargs do not equal the stored policy kwargs"):
        SoftDDPG.load(tmp_path / "model", policy_kwargs=dict(net_arch=[8]))
    with pytest.raises(ValueError, match="Observation spaces do not match"):
        SoftDDPG.load(tmp_path / "model", env="MountainCarContinuous-v0")
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(ValueError, match=r"text.zip is not a saved model: it wasn't a zip-file"):
        SoftDDPG.load(tmp_path / "text.zip")


@pytest.mark.parametrize(("saver", "loader"), [(DDPG, SoftDDPG), (SoftDDPG, DDPG), (TD3, DDPG), (SoftTD3, TD3)])
def test_load_names_both_classes_of_the_family(saver, loader, tmp_path):
    make(saver).save(tmp_path / "model")
    message = rf"model was saved by softdpg.{saver.__name__} and cannot be loaded as softdpg.{loader.__name__}"
    with pytest.raises(ValueError, match=message):
        loader.load(tmp_path / "model")
    with pytest.raises(ValueError, match=message):
        make(loader).set_parameters(tmp_path / "model")


class Renamed(DDPG):
    """A user's subclass that changes nothing."""


def test_a_users_subclass_and_its_base_load_each_others_models(tmp_path):
    make(DDPG).save(tmp_path / "base")
    assert type(Renamed.load(tmp_path / "base")) is Renamed
    Renamed.load(tmp_path / "base").save(tmp_path / "renamed")
    assert type(DDPG.load(tmp_path / "renamed")) is DDPG
    with pytest.raises(ValueError, match=r"was saved by softdpg.DDPG"):
        SoftDDPG.load(tmp_path / "renamed")


@pytest.mark.parametrize("name", ["DDPG", "TD3", "SAC", "PPO", "A2C"])
def test_load_names_the_class_of_sb3(name, tmp_path):
    getattr(stable_baselines3, name)("MlpPolicy", "Pendulum-v1", device="cpu", policy_kwargs=dict(NET)).save(
        tmp_path / "model"
    )
    with pytest.raises(ValueError, match=rf"saved by stable_baselines3.{name} and cannot be loaded as softdpg.DDPG"):
        DDPG.load(tmp_path / "model")


@pytest.mark.extended
@pytest.mark.skipif(find_spec("sbx") is None, reason="SBX is not installed")
def test_load_names_the_class_of_sbx(tmp_path):
    import sbx

    for name in ("DDPG", "TD3"):
        getattr(sbx, name)("MlpPolicy", "Pendulum-v1", learning_starts=5).save(tmp_path / "model")
        with pytest.raises(ValueError, match=rf"saved by sbx.{name} and cannot be loaded as softdpg.SoftTD3"):
            SoftTD3.load(tmp_path / "model")
