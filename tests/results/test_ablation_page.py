"""The tables that docs/results/ablation/README.md has by hand, against its stored CSV."""

from pathlib import Path

import pytest
from race_runs import steps_by_seed

from softdpg.algorithms.registry import ALGORITHMS
from softdpg.results.race import Race, effect
from softdpg.results.race_reading import read_race

FOLDER = Path(__file__).parents[2] / "docs/results/ablation"


@pytest.fixture(scope="module")
def race(ablations):
    return Race(read_race(FOLDER / "race.csv")[0])


@pytest.fixture(scope="module")
def bodies(ablations):
    """The second part of the ablation, on a cheetah, a hopper and a lander."""
    return Race(read_race(FOLDER / "bodies/race.csv")[0])


@pytest.fixture(scope="module")
def rows():
    """Cells of the page's table rows by the first one and how many follow, which tells the tables apart."""
    lines = [line for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {(first, len(rest)): rest for first, *rest in cells}


def label(name):
    return ALGORITHMS[name].label.removeprefix("Soft TD3: ")


def test_every_variant_has_its_ratios_and_misses(race, rows, ablations):
    variants = [name for name in race.contenders if name != "soft-td3"]
    assert set(variants) == set(ablations)
    machine = {run.machine for run in race.runs if run.contender == "soft-td3"}
    for name in variants:
        ratios = [f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]" for e in effect(race, name, "soft-td3")]
        runs = [run for run in race.runs if run.contender == name]
        assert len(runs) == 12
        if {run.machine for run in runs} != machine:  # CPU seconds of one processor in units of another's
            ratios[0] += " †"
        missed = str(sum(run.crossing is None for run in runs))
        assert rows[label(name), 3] == [*ratios, missed]


@pytest.mark.parametrize("column", ["InvertedDoublePendulum", "Pendulum", "MountainCar", "InvertedPendulum"])
def test_steps_with_and_without_smoothing(race, rows, column):
    def steps(contender):
        runs = [run for run in race.runs if run.contender == contender and f"/{column}Discrete-" in run.settings.env]
        return [run.steps_to_line for run in sorted(runs, key=lambda run: run.settings.seed)]

    with_smoothing, without = rows[f"{column}Discrete", 2]
    assert with_smoothing == ", ".join(f"{int(n):,}" for n in steps("soft-td3"))
    if column == "InvertedPendulum":
        assert steps("without-smoothed-target") == [float("inf")] * 3
        assert without.startswith("none in 60,000")
    else:
        assert without == ", ".join(f"{int(n):,}" for n in steps("without-smoothed-target"))


def test_steps_and_ratios_on_harder_columns(bodies, rows):
    for name in bodies.contenders:
        columns = [steps_by_seed(bodies.columns[column].get(name)) for column in bodies.columns]
        found = effect(bodies, name, "soft-td3")
        ratio = f"{found.steps.value:.2f} [{found.steps.low:.2f}, {found.steps.high:.2f}]" if name != "soft-td3" else ""
        seconds = f"{found.seconds.value:.2f}" if name != "soft-td3" else ""
        assert rows[label(name), 5] == [*columns, ratio, seconds]
    assert {run.settings.steps for run in bodies.runs} == {120_000}
    assert len({run.machine for run in bodies.runs}) == 1
