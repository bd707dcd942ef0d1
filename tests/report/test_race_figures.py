"""What the race's pictures say of themselves."""

import matplotlib
import pytest
from race_runs import ANT, run, two_contenders

from softdpg.algorithms.registry import ALGORITHMS
from softdpg.report.figures import STYLE
from softdpg.report.race_figures import curves_figure, profile_figure
from softdpg.results.race import Race


@pytest.mark.parametrize(
    ("race", "note"),
    [
        (two_contenders(), "2 columns that all of them raced on, median over seeds; a line ends with its budget"),
        (
            Race([run([10, 10]), run([1, 1], algo="sbx-sac")]),
            "Hopper (continuous), median over seeds; a line ends with its budget",
        ),
    ],
)
def test_the_profile_says_what_it_counts(race, note):
    figure = profile_figure(race)
    assert [text.get_text() for text in figure.texts] == [note]


def test_a_line_of_the_profile_ends_with_the_budget():
    race = Race([*two_contenders().runs, run([1, 1, 1], column=ANT, algo="ddpg", budget=6_000)])
    race = Race([*race.runs, run([10, 10], algo="ddpg", budget=6_000)])
    seconds, steps = profile_figure(race).axes
    assert lines(steps) == {
        "DDPG": ([2_800, 4_000, 6_000], [0, 0.5, 0.5]),  # 0.7 of the least to 1.4 of the most
        "TD3": ([2_800, 4_000, 8_000, 11_200], [0, 0.5, 1, 1]),
        "SAC (SBX)": ([2_800, 4_000, 8_000], [0, 0.5, 0.5]),
    }
    assert lines(seconds)["SAC (SBX)"] == ([2.8, 12, 16.8], [0, 0.5, 0.5])  # its budget cost 24 seconds


def lines(axes):
    drawn = {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}
    return {
        name: (pytest.approx(list(line.get_xdata())), pytest.approx(list(line.get_ydata())))
        for name, line in drawn.items()
    }


def test_many_names_are_in_rows_that_fit():
    names = [name for name in ALGORITHMS if name != "ocpg"]
    with matplotlib.rc_context(STYLE):
        figure = profile_figure(Race([run([10, 10], algo=name) for name in names]))
        figure.draw_without_rendering()
    legend = figure.legends[0]
    assert len(legend.get_texts()) == len(names)
    box = legend.get_window_extent().transformed(figure.transFigure.inverted())
    assert box.x0 >= 0
    assert box.x1 <= 1
    lowest = min(axes.get_tightbbox().transformed(figure.transFigure.inverted()).y0 for axes in figure.axes)
    assert box.y1 <= lowest


def test_curves_stand_on_an_axis_of_factors():
    """Three times the cost is the same way on the paper for 1 and 3 seconds as for 100 and 300."""
    axes = curves_figure(two_contenders()).axes[0]
    places = axes.transData.transform([(seconds, 0) for seconds in (1, 3, 100, 300)])[:, 0]
    assert places[1] - places[0] == pytest.approx(places[3] - places[2])
    assert sorted({line.get_label() for line in axes.lines if not line.get_label().startswith("_")}) == [
        "SAC (SBX)",
        "TD3",
    ]
