"""What the search states of the walkers, from its stored runs."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "results"
PAGE = (FOLDER / "search.md").read_text()
SETTINGS = {
    "**the default**": ("second", "False", "0.2"),
    "action at the critic's input": ("input", "False", "0.2"),
    "action at both layers of the critic": ("both", "False", "0.2"),
    "normalised observations": ("second", "True", "0.2"),
    "both, action at the input": ("input", "True", "0.2"),
    "both, action at both layers": ("both", "True", "0.2"),
    "noise 0.1": ("second", "False", "0.1"),
    "noise 0.1, action at the input": ("input", "False", "0.1"),
}


def read(name):
    with (FOLDER / name).open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("label", SETTINGS)
def test_the_table_states_what_the_runs_have(label):
    cells = {}
    for row in read("search_late.csv"):
        if (row["action_layer"], row["normalised_observations"], row["exploration"]) == SETTINGS[label]:
            cells[row["env"]] = f"{float(row['mean_of_last_quarter']):,.0f}"
    expected = [cells.get(env, "–") for env in ("softdpg/AntDiscrete-v0", "Walker2d-v5")]
    assert f"| {label} | {' | '.join(expected)} |" in PAGE


def test_averaged_actors_are_as_stated():
    rows = read("search_average.csv")
    names = [name for name in rows[0] if name.startswith("average")]
    assert len(names) == 4
    for env, digits in (("Walker2d-v5", 0), ("AntDiscrete", 0), ("HalfCheetah-v5", 0), ("HopperDiscrete", 1)):
        runs = [row for row in rows if env in row["env"]]
        actor, *averages = (np.mean([float(row[name]) for row in runs]) for name in ("actor", *names))
        numbers = [f"{value:,.{digits}f}" for value in (actor, min(averages), max(averages))]
        assert re.search(rf"{env} {numbers[0]} \((averages )?{numbers[1]} to\s+{numbers[2]}\)", PAGE)


def test_less_noise_with_time_is_as_stated():
    runs = [row for row in read("search_late.csv") if "InvertedPendulum" in row["env"]]
    assert {row["crossed_at"] for row in runs} == {""}
    found = {(row["exploration_end"], row["sigma_end"]): float(row["mean_of_last_quarter"]) for row in runs}
    order = [found[ends] for ends in (("0.02", "0.2"), ("0.2", "0.02"), ("0.02", "0.02"), ("0.2", "0.2"))]
    assert [f"{score:,.0f}" for score in order] == ["9,622", "8,682", "9,530", "9,139"]
    assert all(f"{score:,.0f}" in PAGE for score in order)
