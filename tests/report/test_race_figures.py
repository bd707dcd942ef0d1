"""What the race's pictures say of themselves."""

import pytest
from race_runs import run, two_contenders

from softdpg.report.race_figures import curves_figure, profile_figure
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


def test_curves_stand_on_an_axis_of_factors():
    """Three times the cost is the same way on the paper for 1 and 3 seconds as for 100 and 300."""
    axes = curves_figure(two_contenders()).axes[0]
    places = axes.transData.transform([(seconds, 0) for seconds in (1, 3, 100, 300)])[:, 0]
    assert places[1] - places[0] == pytest.approx(places[3] - places[2])
    assert sorted({line.get_label() for line in axes.lines if not line.get_label().startswith("_")}) == [
        "SAC (SBX)",
        "TD3",
    ]
