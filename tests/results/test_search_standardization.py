"""What the search states of standardised observations, from its stored runs."""

import csv
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "results"
PAGE = (FOLDER / "search.md").read_text()
SETTINGS = {
    "before": ("no", "0.0"),
    "biases": ("no", "1.0"),
    "once": ("once", "0.0"),
    "**running, the default now**": ("running", "0.0"),
}
COLUMNS = ("InvertedPendulumDiscrete", "MountainCarDiscrete", "HopperDiscrete", "AntDiscrete")
COLUMNS += ("HalfCheetah-v5", "Humanoid-v5")


def runs(**settings):
    with (FOLDER / "search_standardization.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 45
    return [row for row in rows if all(row[name] == value for name, value in settings.items())]


@pytest.mark.parametrize("label", SETTINGS)
def test_the_table_states_what_the_runs_have(label):
    kind, bias = SETTINGS[label]
    cells = []
    for column in COLUMNS:
        found = [
            row
            for row in runs(seed="630", action_layer="second", standardised=kind, input_bias=bias)
            if column in row["env"]
        ]
        if not found:
            cells.append("–")
            continue
        (row,) = found
        score = float(row["mean_of_last_quarter"])
        text = f"{score:.1f}" if score < 23 else f"{score:,.0f}"
        missed = f"not in 40,000 ({text})" if "Pendulum" in column else text
        cells.append(f"after {int(row['crossed_at']):,}" if row["crossed_at"] else missed)
    assert f"| {label} | {' | '.join(cells)} |" in PAGE


def test_the_text_states_what_the_runs_have():
    pendulum = [row for row in runs(standardised="running", input_bias="0.0") if "InvertedPendulum" in row["env"]]
    assert [(row["best"], round(float(row["cpu_seconds"]))) for row in pendulum] == [("10400.0", 8)]
    second, other = (runs(env="Walker2d-v5", seed="650", action_layer=layer)[0] for layer in ("second", "input"))
    assert (second["crossed_at"], other["crossed_at"], other["steps"]) == ("86000", "", "100000")
    (hopper,) = runs(env="softdpg/HopperDiscrete-v0", seed="631", standardised="running")
    assert (hopper["crossed_at"], round(float(hopper["mean_of_last_quarter"]))) == ("", 11)
    (car,) = runs(env="softdpg/MountainCarDiscrete-v0", action_layer="input")
    assert car["crossed_at"] == "14000"
    assert re.search(r"10,206 and 10,320 of 10,383", PAGE)
