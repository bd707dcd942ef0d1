"""The race's table in a page of text, between two markers: ``python -m softdpg.report.race_readme RACE.csv PAGE``."""

import sys
from pathlib import Path

from softdpg import paper
from softdpg.report.document import table_lines
from softdpg.report.race_tables import line_table
from softdpg.results.race import Race
from softdpg.results.race_reading import read_race

BEGIN, END = "<!-- race: begin -->", "<!-- race: end -->"


def with_table(page: str, race: Race) -> str:
    """``page`` with the table of the race in the place of what is between the markers; ``ValueError`` without them.

    Of the race's contenders those are shown that ``softdpg race`` has by default: with all of them it is too wide.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"page must have the lines {BEGIN} and {END}")
    return before + "\n".join([BEGIN, *table_lines(line_table(race, paper.CONTENDERS)), END]) + after


if __name__ == "__main__":
    _, stored, target = sys.argv
    Path(target).write_text(with_table(Path(target).read_text(), Race(read_race(Path(stored))[0])))
