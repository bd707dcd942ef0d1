"""The registry: every entry is what its class is, one's own algorithm is one entry, and names stand nowhere else."""

import inspect
import re
from pathlib import Path

import pytest

from softdpg import paper
from softdpg.algorithms.hyperparameters import HYPERPARAMETERS, Hyperparameter, at_least
from softdpg.algorithms.registry import ALGORITHMS, Algorithm, find, having, identify, register, unregister
from softdpg.errors import UserError
from softdpg.runs.config import RunConfig

PACKAGE = Path(__file__).parents[2] / "softdpg"


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_the_class_takes_what_the_entry_has(name):
    parameters = inspect.signature(ALGORITHMS[name].load()).parameters
    for hyperparameter in ALGORITHMS[name].hyperparameters:
        assert HYPERPARAMETERS[hyperparameter].argument.split(".")[0] in parameters, hyperparameter


@pytest.mark.parametrize(
    "name", [name for name, entry in ALGORITHMS.items() if entry.origin != "peer" and not entry.variant_of]
)
def test_defaults_are_those_of_the_class(name):
    """Whoever trains by the command gets what the class gives, but for what makes the entry: the paper's estimator."""
    entry = ALGORITHMS[name]
    parameters = inspect.signature(entry.load()).parameters
    for key, value in entry.hyperparameters.items():
        argument = HYPERPARAMETERS[key].argument
        if argument in parameters and key not in ("estimator", "antithetic", "qf_learning_rate"):
            assert parameters[argument].default in (value, None), key  # None: decided by the class
    if "qf_learning_rate" in entry.hyperparameters:  # None in the class: that of the actor
        assert entry.hyperparameters["qf_learning_rate"] == entry.hyperparameters["learning_rate"]


def test_the_papers_algorithms_have_the_papers_settings():
    assert [name for name, entry in ALGORITHMS.items() if entry.origin == "paper"] == list(paper.PAPER_ALGORITHMS)
    for name in paper.PAPER_ALGORITHMS:
        assert paper.HYPERPARAMETERS.items() <= ALGORITHMS[name].hyperparameters.items()
    soft = ALGORITHMS[paper.METHOD].hyperparameters
    assert (soft["sigma"], soft["n_samples"], soft["estimator"]) == (paper.SIGMA, paper.N_SAMPLES, "paper")


def test_styles_and_labels_tell_algorithms_apart():
    entries = list(ALGORITHMS.values())
    for attribute in ("color", "dark_color", "marker", "plotly_marker"):
        assert len({getattr(entry.style, attribute) for entry in entries}) == len(entries), attribute
    assert len({entry.label for entry in entries}) == len(entries)


def test_a_variant_is_its_base_with_a_preset():
    assert identify("soft-ddpg", {"estimator": "centered"}).name == "soft-ddpg-centered"
    assert identify("soft-ddpg-centered", {}).name == "soft-ddpg-centered"
    assert identify("soft-ddpg", {"estimator": "paper"}).name == identify("soft-ddpg", {}).name == "soft-ddpg"
    by_name, by_flag = (
        RunConfig("Ant-v5", algo, estimator=estimator).resolved()
        for algo, estimator in (("soft-ddpg-centered", None), ("soft-ddpg", "centered"))
    )
    assert by_name == by_flag
    assert (by_name.algo, by_name.estimator, by_name.antithetic) == ("soft-ddpg", "centered", True)
    with pytest.raises(UserError, match="--algo soft-ddpg-centered has --estimator centered, not paper"):
        RunConfig("Ant-v5", "soft-ddpg-centered", estimator="paper").resolved()


@pytest.mark.parametrize("name", ["td3", "sbx-sac"])
def test_a_small_one_has_soft_td3s_sizes_and_all_else_of_its_own(name):
    base, small, soft = (find(entry).hyperparameters for entry in (name, f"{name}-small", "soft-td3"))
    changed = {key for key in base if small[key] != base[key]}
    assert changed == {"net_arch", "batch_size", "train_freq", "gradient_steps"}
    assert all(small[key] == soft[key] for key in changed)
    assert small.keys() == base.keys()


def test_a_peer_gets_what_was_given_and_nothing_else():
    config = RunConfig("Pendulum-v1", "sbx-sac", gamma=0.9).resolved()
    assert config.hyperparameters == (("gamma", 0.9),)
    assert config.arguments() == ["--env", "Pendulum-v1", "--algo", "sbx-sac", "--gamma", "0.9"]


def test_what_an_algorithm_does_not_have_names_those_that_do():
    with pytest.raises(UserError) as error:
        RunConfig("Ant-v5", "ddpg", policy_delay=2).resolved()
    assert str(error.value) == f"--policy-delay applies to --algo {', '.join(having('policy_delay'))} only"
    with pytest.raises(UserError, match="no hyperparameter 'gama'; did you mean gamma"):
        RunConfig("Ant-v5", "ddpg", gama=0.9).resolved()
    with pytest.raises(UserError, match="no algorithm 'soft-dpg'; did you mean soft-ddpg"):
        find("soft-dpg")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sigma": "wide"}, "--sigma must be a positive number, auto or linear:START:END, not wide"),
        ({"sigma": "linear:0.5:0"}, "--sigma must be a positive number, not 0.0"),
        ({"sigma": -1.0}, "--sigma must be a positive number, not -1.0"),
        ({"n_samples": 2.5}, "--samples must be an integer, not 2.5"),
        ({"antithetic": 1}, "--antithetic must be True or False, not 1"),
        ({"net_arch": (8, 0)}, r"--net-arch takes positive numbers of units, not \(8, 0\)"),
        ({"estimator": "papier"}, "--estimator must be paper or centered, not 'papier'"),
        ({"exploration_noise": "wild"}, "--exploration-noise must be a number or sigma, not 'wild'"),
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
    momentum = Hyperparameter("momentum", int, "Of the dummy.", at_least(3))
    entry = registered(Algorithm("dummy", "Dummy", "softdpg:DDPG", hyperparameters={"momentum": 5}), momentum)
    assert entry.style is not None
    config = RunConfig("Ant-v5", "dummy").resolved()
    assert config.momentum == 5
    assert RunConfig.from_json(config.to_json()) == config
    assert RunConfig("Ant-v5", "dummy", momentum=7).arguments()[-2:] == ["--momentum", "7"]
    with pytest.raises(UserError, match="--momentum must be at least 3, not 2"):
        RunConfig("Ant-v5", "dummy", momentum=2).resolved()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Algorithm("Dummy", "Dummy"), "name must be lower case letters, digits and hyphens, got 'Dummy'"),
        (Algorithm("ddpg", "Dummy"), "name 'ddpg' is taken"),
        (Algorithm("dummy", "Dummy", hyperparameters={"x": 1}), "'x' is not in the table"),
        (Algorithm("dummy", "Dummy", hyperparameters={"tau": 2.0}), "tau must be between 0 and 1, not 2.0"),
    ],
)
def test_entries_that_cannot_be(registered, entry, message):
    with pytest.raises(ValueError, match=message):
        registered(entry)


def test_names_of_algorithms_stand_in_the_registry_alone():
    """But for their own modules, what the paper ran, and the names that the package exports."""
    names = sorted(ALGORITHMS, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w-])({'|'.join(names)})(?![\w-])")
    found = {
        str(path.relative_to(PACKAGE)): pattern.findall(path.read_text())
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in ("algorithms", "paper", "__init__.py")
    }
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "name", [name for name, entry in ALGORITHMS.items() if entry.origin != "peer" and not entry.variant_of]
)
def test_networks_are_those_of_the_class(name):
    import gymnasium as gym
    import jax

    from softdpg.runs.learner import make_learner

    env = gym.make("Pendulum-v1")
    ours = make_learner(RunConfig("Pendulum-v1", name).resolved(), env, buffer_size=1)
    plain = ALGORITHMS[name].load()("MlpPolicy", env, buffer_size=1)
    for one, other in (
        (ours.policy.actor_state, plain.policy.actor_state),
        (ours.policy.qf_state, plain.policy.qf_state),
    ):
        assert jax.tree.map(lambda leaf: leaf.shape, one.params) == jax.tree.map(lambda leaf: leaf.shape, other.params)
