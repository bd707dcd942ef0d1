"""The files of a race: ``race.csv`` and ``race_curves.csv``, ``race.md``, and the pictures."""

from pathlib import Path
from typing import NamedTuple

from softdpg.report.document import to_markdown, to_text
from softdpg.report.race_figures import write_race_figures
from softdpg.report.race_tables import main_table, race_sections
from softdpg.report.replacing import write_texts, written_aside
from softdpg.results.race import Race, RaceRun
from softdpg.results.race_reading import CURVES, RUNS, write_curves, write_runs


class WrittenRace(NamedTuple):
    """The files, and the table of who was how soon at the line in plain text."""

    files: list[Path]
    summary: str


def write_race(runs: list[RaceRun], out: Path) -> WrittenRace:
    """Write everything that there is to say about these runs to the directory ``out``."""
    race = Race(runs)
    with written_aside(out) as aside:
        written = write_race_files(race, aside)
    return WrittenRace([out / file.name for file in written], to_text(main_table(race)))


def write_race_files(race: Race, directory: Path) -> list[Path]:
    """The files of a race; the same runs give the same ones, read from their directories or from ``race.csv``."""
    texts = {
        RUNS: write_runs(race.runs),
        CURVES: write_curves(race.runs),
        "race.md": to_markdown("The race", [], race_sections(race)),
    }
    return write_texts(texts, directory) + write_race_figures(race, directory)
