"""The tables of a race in a page, and what docs/results/race shows against its stored CSV."""

from pathlib import Path

import pytest
from race_runs import ANT, run, two_contenders

from softdpg.report.race_readme import with_tables
from softdpg.report.race_writing import write_race
from softdpg.results.race import Race
from softdpg.results.race_reading import read_race

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"

RATIOS = "<!-- ratios: begin -->\n", "<!-- ratios: end -->"
COLUMNS = "<!-- race: begin -->\n", "<!-- race: end -->"


def test_the_tables_take_the_places_between_their_markers():
    race = Race([*two_contenders(ours="soft-td3").runs, run([10, 10], column=ANT, algo="ddpg", pace=1.0)])
    page = with_tables("old\n".join(RATIOS) + "\n\n# Title\n\n" + "old\n".join(COLUMNS) + "\n\nafter\n", race)
    ratios = (
        "| Soft TD3 (ours) beside | CPU seconds, of theirs | Steps, of theirs | Columns of both | Lines missed |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| DDPG | 2.00 | 1.00 | 1 | 0, they 0 |\n"
        "| SAC (SBX) | 0.33 | 1.00 | 2 | 0, they 1 |\n"
    )
    columns = (
        "| Column | Line | Soft TD3 (ours) | SAC (SBX) |\n"
        "| --- | --- | --- | --- |\n"
        "| Ant (continuous) | 10.00 | **4 s, 4k steps**<br>1 of 1 seeds crossed "
        "| 12 s, 4k steps<br>1 of 1 seeds crossed |\n"
        "| Hopper (continuous) | 10.00 | **8 s, 8k steps**<br>1 of 1 seeds crossed "
        "| not crossed in 8k, 9.50<br>0 of 1 seeds crossed |\n"
    )
    assert page == ratios.join(RATIOS) + "\n\n# Title\n\n" + columns.join(COLUMNS) + "\n\nafter\n"
    assert with_tables(page, race) == page
    with pytest.raises(ValueError, match="page must have the lines <!-- ratios: begin -->"):
        with_tables("# Title\n", race)


@pytest.mark.parametrize("folder", ["race", "before", "ablation", "ablation/bodies"])
@pytest.mark.usefixtures("ablations")
def test_a_published_race_is_what_its_csv_says(tmp_path, folder):
    published = RESULTS / folder
    runs, warnings = read_race(published / "race.csv")
    assert warnings == []
    write_race(runs, tmp_path)
    for name in ("race.csv", "race_curves.csv", "race.md"):
        assert (tmp_path / name).read_bytes() == (published / name).read_bytes()


def test_the_readme_shows_the_published_race():
    runs, _ = read_race(RESULTS / "race" / "race.csv")
    readme = (ROOT / "README.md").read_text()
    assert with_tables(readme, Race(runs)) == readme
