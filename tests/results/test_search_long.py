"""The tables of the longer search, from its stored runs."""

import csv
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "results"


def runs(env, **settings):
    with (FOLDER / "search_long.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["env"].endswith(env)]
    return [row for row in rows if all(row[name] == value for name, value in settings.items())]


def test_the_page_states_what_the_runs_have():
    page = (FOLDER / "search.md").read_text()
    walkers = {row["seed"]: row for row in runs("Walker2d-v5")}
    for seed in ("320", "420", "402", "401", "442", "470"):
        row = walkers[seed]
        (line,) = [line for line in page.splitlines() if f"seed {seed}" in line and line.startswith("|")]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[1] == {"min": "least", "mean": "mean"}[row["critics"]]
        assert cells[2] == {"second": "second layer", "input": "input"}[row["action_layer"]]
        assert cells[3] == row["exploration"] + (", spread 4" if float(row["noise_spread"]) == 4 else "")
        expected = f"{int(row['crossed_at']):,}" if row["crossed_at"] else f"not in {int(row['steps']):,}"
        assert cells[4:] == [expected, f"{float(row['best']):,.0f}"]


def test_halfcheetahs_best_scores():
    page = (FOLDER / "search.md").read_text()
    for spread, afterwards in (("1", False), ("4.0", False), ("4.0", True)):
        rows = runs("HalfCheetahDiscrete-v0", action_layer="second", noise_spread=spread)
        best = sorted(float(row["best"]) for row in rows if (row["steps"] == "50000") == afterwards)
        assert f"| {', '.join(f'{score:,.0f}' for score in best)} |" in page


def test_mountain_car_with_the_action_at_the_input():
    crossed = [bool(row["crossed_at"]) for row in runs("MountainCarDiscrete-v0", action_layer="input")]
    assert (crossed.count(False), len(crossed)) == (4, 6)
    assert [row["crossed_at"] for row in runs("MountainCarDiscrete-v0", action_layer="second")] == ["6000", "6000"]
