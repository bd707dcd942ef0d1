"""The registry: every entry is what its class is, one's own algorithm is one entry, and names stand nowhere else."""

import inspect
import re
from pathlib import Path

import gymnasium as gym
import pytest

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS, Algorithm, find, having, identify, register, unregister
from softdpg.algorithms.settings import HYPERPARAMETERS, Hyperparameter, at_least, read_signature
from softdpg.errors import UserError
from softdpg.runs.config import RunConfig

PACKAGE = Path(__file__).parents[2] / "softdpg"


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_the_class_takes_what_the_entry_has(name):
    parameters = inspect.signature(ALGORITHMS[name].load()).parameters
    for hyperparameter in ALGORITHMS[name].hyperparameters:
        assert HYPERPARAMETERS[hyperparameter].argument.split(".")[0] in parameters, hyperparameter


@pytest.mark.parametrize("name", ["ddpg", "soft-ddpg", "td3", "soft-td3"])
def test_what_is_read_from_the_source_is_what_the_class_has(name):
    found, algorithm = read_signature(ALGORITHMS[name].target), ALGORITHMS[name].load()
    parameters = inspect.signature(algorithm).parameters
    defaults = {key: p.default for key, p in parameters.items() if p.default is not inspect.Parameter.empty}
    assert found.defaults == defaults
    assert found.policy_defaults == algorithm.policy_defaults
    assert found.help.keys() == parameters.keys()  # every argument is described, and nothing else


@pytest.mark.parametrize("name", list(HYPERPARAMETERS))
def test_every_hyperparameter_has_a_help_text(name):
    assert re.fullmatch(r"[A-Z0-9\"].*\.", HYPERPARAMETERS[name].help)


def test_the_papers_algorithms_have_the_papers_settings():
    assert [name for name, entry in ALGORITHMS.items() if entry.origin == "paper"] == list(paper.PAPER_ALGORITHMS)
    for name in paper.PAPER_ALGORITHMS:
        assert paper.HYPERPARAMETERS.items() <= dict(RunConfig("Ant-v5", name).resolved().hyperparameters).items()
    soft = ALGORITHMS[paper.METHOD].hyperparameters
    assert (soft["sigma"], soft["n_samples"], soft["estimator"]) == (paper.SIGMA, paper.N_SAMPLES, "paper")


def test_labels_tell_algorithms_apart():
    entries = list(ALGORITHMS.values())
    assert len({entry.label for entry in entries}) == len(entries)


def test_a_variant_is_its_base_with_a_preset():
    assert identify("soft-ddpg", {"estimator": "paper"}).name == "soft-ddpg-paper"
    assert identify("soft-ddpg-paper", {}).name == "soft-ddpg-paper"
    assert identify("soft-ddpg", {"estimator": "centered"}).name == identify("soft-ddpg", {}).name == "soft-ddpg"
    by_name, by_flag = (
        RunConfig("Ant-v5", algo, estimator=estimator).resolved()
        for algo, estimator in (("soft-ddpg-paper", None), ("soft-ddpg", "paper"))
    )
    assert by_name == by_flag
    assert (by_name.algo, by_name.estimator, by_name.antithetic) == ("soft-ddpg", "paper", False)
    with pytest.raises(UserError, match="--algo soft-ddpg-paper has --estimator paper, not centered"):
        RunConfig("Ant-v5", "soft-ddpg-paper", estimator="centered").resolved()


@pytest.mark.parametrize("name", ["td3", "sbx-sac"])
def test_a_small_one_has_soft_td3s_sizes_and_all_else_of_its_own(name):
    base, small, soft = (find(entry).hyperparameters for entry in (name, f"{name}-small", "soft-td3"))
    changed = {key for key in base if small[key] != base[key]}
    assert changed == {"net_arch", "batch_size", "train_freq", "gradient_steps"}
    assert all(small[key] == soft[key] for key in changed)
    assert small.keys() == base.keys()


@pytest.mark.extended
def test_small_crossq_builds_and_makes_an_update():
    pytest.importorskip("sbx")
    import jax
    import numpy as np

    from softdpg.runs.learner import make_learner

    config = RunConfig("Pendulum-v1", "sbx-crossq-small").resolved()
    assert (config.algo, config.algorithm.name) == ("sbx-crossq", "sbx-crossq-small")
    model = make_learner(config, gym.make("Pendulum-v1"), buffer_size=200)
    assert (model.batch_size, model.train_freq.frequency, model.gradient_steps) == (128, 8, 8)
    assert (model.learning_starts, model.policy.renorm_warmup_steps) == (5_000, 20_000)
    actor = model.policy.actor_state.params
    critics = model.policy.qf_state.params["VmapCritic_0"]
    assert [actor[f"Dense_{i}"]["kernel"].shape[-1] for i in (0, 1)] == [128, 128]
    assert [critics[f"Dense_{i}"]["kernel"].shape[-1] for i in (0, 1)] == [256, 256]
    before = jax.tree.map(np.array, critics)
    model.learning_starts = 8
    model.learn(16)
    after = model.policy.qf_state.params["VmapCritic_0"]
    changed = jax.tree.map(lambda a, b: bool((np.asarray(a) != np.asarray(b)).any()), before, after)
    assert all(changed[f"Dense_{i}"]["kernel"] for i in (0, 1, 2))
    assert model._n_updates == 8


def test_layers_of_the_critics_need_those_of_the_actor():
    from softdpg.runs.learner import make_learner

    config = RunConfig("Pendulum-v1", "sbx-crossq", qf_net_arch=(8, 8)).resolved()
    with pytest.raises(UserError, match="--qf-net-arch needs --net-arch, the layers of the actor"):
        make_learner(config, gym.make("Pendulum-v1"))


def test_a_peer_gets_what_was_given_and_nothing_else():
    config = RunConfig("Pendulum-v1", "sbx-sac", gamma=0.9).resolved()
    assert config.hyperparameters == (("gamma", 0.9),)
    assert config.arguments() == ["--env", "Pendulum-v1", "--algo", "sbx-sac", "--gamma", "0.9"]


def test_what_an_algorithm_does_not_have_names_those_that_do():
    with pytest.raises(UserError) as error:
        RunConfig("Ant-v5", "ddpg", target_noise_clip=0.2).resolved()
    assert str(error.value) == f"--target-noise-clip applies to --algo {', '.join(having('target_noise_clip'))} only"
    with pytest.raises(UserError, match="no hyperparameter 'gama'; did you mean gamma"):
        RunConfig("Ant-v5", "ddpg", gama=0.9).resolved()
    with pytest.raises(UserError, match="no algorithm 'soft-dpg'; did you mean soft-ddpg"):
        find("soft-dpg")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sigma": "wide"}, "--sigma must be a positive number, auto or linear:START:END, got wide"),
        ({"sigma": "linear:0.5:0"}, "--sigma must be a positive number, got 0.0"),
        ({"sigma": -1.0}, "--sigma must be a positive number, got -1.0"),
        ({"n_samples": 2.5}, "--samples must be an integer, got 2.5"),
        ({"antithetic": 1}, "--antithetic must be True or False, got 1"),
        ({"net_arch": (8, 0)}, r"--net-arch must list positive numbers of units, got \(8, 0\)"),
        ({"estimator": "papier"}, "--estimator must be paper or centered, got 'papier'"),
        ({"exploration_noise": "wild"}, "--exploration-noise must be a number or sigma, got 'wild'"),
    ],
)
def test_values_that_cannot_be(given, message):
    with pytest.raises(UserError, match=message):
        RunConfig("Ant-v5", "soft-ddpg", **given).resolved()


@pytest.fixture
def registered():
    """Register entries for one test."""
    names, table = set(ALGORITHMS), dict(HYPERPARAMETERS)
    yield register
    for name in set(ALGORITHMS) - names:
        unregister(name)
    for name in set(HYPERPARAMETERS) - set(table):
        del HYPERPARAMETERS[name]


def test_an_entry_may_bring_a_hyperparameter_of_its_own(registered):
    momentum = Hyperparameter("momentum", int, at_least(3), description="Of the dummy.")
    registered(Algorithm("dummy", "Dummy", "softdpg:DDPG", hyperparameters={"momentum": 5}), momentum)
    config = RunConfig("Ant-v5", "dummy").resolved()
    assert config.momentum == 5
    assert RunConfig.from_json(config.to_json()) == config
    assert RunConfig("Ant-v5", "dummy", momentum=7).arguments()[-2:] == ["--momentum", "7"]
    with pytest.raises(UserError, match="--momentum must be at least 3, got 2"):
        RunConfig("Ant-v5", "dummy", momentum=2).resolved()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Algorithm("Dummy", "Dummy"), "name must be lower case letters, digits and hyphens, got 'Dummy'"),
        (Algorithm("ddpg", "Dummy"), "name 'ddpg' is taken"),
        (Algorithm("dummy", "Dummy", hyperparameters={"x": 1}), "'x' is not in the table"),
        (Algorithm("dummy", "Dummy", hyperparameters={"tau": 2.0}), "tau must be between 0 and 1, got 2.0"),
    ],
)
def test_entries_that_cannot_be(registered, entry, message):
    with pytest.raises(ValueError, match=message):
        registered(entry)


@pytest.mark.parametrize(
    "name", [name for name, entry in ALGORITHMS.items() if entry.origin != "peer" and not entry.variant_of]
)
def test_networks_are_those_of_the_class(name):
    import jax

    from softdpg.runs.learner import make_learner

    env = gym.make("Pendulum-v1")
    by_config = make_learner(RunConfig("Pendulum-v1", name).resolved(), env, buffer_size=1)
    plain = ALGORITHMS[name].load()("MlpPolicy", env, buffer_size=1)
    for one, other in (
        (by_config.policy.actor_state, plain.policy.actor_state),
        (by_config.policy.qf_state, plain.policy.qf_state),
    ):
        assert jax.tree.map(lambda leaf: leaf.shape, one.params) == jax.tree.map(lambda leaf: leaf.shape, other.params)
