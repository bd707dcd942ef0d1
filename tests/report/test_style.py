"""Styles: every algorithm looks different, also one that the package does not know."""

import pytest

from softdpg.algorithms.registry import ALGORITHMS, Algorithm, register, unregister
from softdpg.report.style import STYLES, env_title, format_steps, style


def test_styles_tell_algorithms_apart():
    for attribute in ("color", "dark_color", "marker", "plotly_marker"):
        assert len({getattr(look, attribute) for look in STYLES.values()}) == len(STYLES), attribute
    assert len({style(name) for name in ALGORITHMS}) == len(ALGORITHMS)


@pytest.fixture
def plugins():
    names = [f"mine-{i}" for i in range(10)]
    for name in names:
        register(Algorithm(name, name, "softdpg:DDPG"))
    yield names
    for name in names:
        unregister(name)


def test_algorithms_of_plugins_look_different_as_well(plugins):
    assert len({style(name) for name in ALGORITHMS}) == len(ALGORITHMS)
    assert not {style(name) for name in plugins} & set(STYLES.values())


def test_environments_have_the_names_of_the_paper():
    assert env_title("softdpg/AntDiscrete-v0") == "Ant (discrete)"
    assert env_title("Ant-v5") == "Ant (continuous)"
    assert env_title("Swimmer-v5") == "Swimmer-v5"


def test_steps_are_written_short():
    numbers = {500: "500", 1_000: "1k", 12_500: "12.5k", 30_000: "30k", 1_000_000: "1M", 2_500_000: "2.5M"}
    assert {number: format_steps(number) for number in numbers} == numbers
