"""Tables of the race in a page of text, between markers: ``python -m softdpg.report.race_readme RACE.csv PAGE``."""

import sys
from pathlib import Path

from softdpg import paper
from softdpg.report.document import Table, table_lines
from softdpg.report.race_tables import beside_table, line_table
from softdpg.results.race import Race
from softdpg.results.race_reading import read_race


def with_tables(page: str, race: Race) -> str:
    """``page`` with the race's tables in the place of what is between their markers; ``ValueError`` without them.

    By column those contenders are shown that ``softdpg race`` has by default: with all of them it is too wide.
    """
    page = _with_table(page, "ratios", beside_table(race, paper.CONTENDERS[0]))
    return _with_table(page, "race", line_table(race, paper.CONTENDERS))


def _with_table(page: str, name: str, table: Table) -> str:
    opening, closing = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, begin, rest = page.partition(opening)
    _, end, after = rest.partition(closing)
    if not (begin and end):
        raise ValueError(f"page must have the lines {opening} and {closing}")
    return before + "\n".join([opening, *table_lines(table), closing]) + after


if __name__ == "__main__":
    _, stored, target = sys.argv
    Path(target).write_text(with_tables(Path(target).read_text(), Race(read_race(Path(stored))[0])))
