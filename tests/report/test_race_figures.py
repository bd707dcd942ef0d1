"""What the race's pictures say of themselves."""

import pytest
from race_runs import run, two_contenders

from softdpg.report.race_figures import profile_figure
from softdpg.results.race import Race


@pytest.mark.parametrize(
    ("race", "note"),
    [
        (two_contenders(), "2 columns that all of them raced on, median over seeds"),
        (Race([run([10, 10]), run([1, 1], algo="sbx-sac")]), "Hopper (continuous), median over seeds"),
    ],
)
def test_the_profile_says_what_it_counts(race, note):
    figure = profile_figure(race)
    assert [text.get_text() for text in figure.texts] == [note]
