"""The table of small contenders that docs/results/race/README.md has by hand, against its stored CSV."""

from pathlib import Path

import pytest
from race_runs import steps_by_seed

from softdpg.report.style import env_title
from softdpg.results.race import Race
from softdpg.results.race_reading import read_race

FOLDER = Path(__file__).parents[2] / "docs/results/race"
CONTENDERS = ("soft-td3", "td3-small", "sbx-sac-small", "sbx-sac")


@pytest.fixture(scope="module")
def race():
    return Race(read_race(FOLDER / "race.csv")[0])


def test_steps_of_the_small_ones(race):
    lines = [line for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("| ")]
    shown = {line.split(" | ")[0].removeprefix("| "): line for line in lines}
    raced = race.raced("soft-td3", "td3-small")
    assert len(raced) == 10
    for column in raced:
        title = env_title(column.env)
        cells = [steps_by_seed(race.columns[column].get(name)) for name in CONTENDERS]
        assert shown[title] == f"| {' | '.join([title, *cells])} |"
