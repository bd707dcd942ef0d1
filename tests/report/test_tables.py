"""Tables: every number by hand, every shortfall marked, the order judged only as far as the seeds allow."""

import numpy as np
import pytest
from runs_on_disk import write_runs

from softdpg.report.document import Section, Table, Text, to_markdown
from softdpg.report.reading import read_runs
from softdpg.report.scores import arrange
from softdpg.report.tables import coverage, how_to_read, sections

FULL = 200  # evaluations in 1,000,000 steps


def tables(root, key):
    (section,) = [section for section in sections(arrange(read_runs(root)[0])) if section.key == key]
    return section, {table.title: table for table in section.tables}


def flat(values, evaluations=FULL):
    return [[value] * evaluations for value in values]


def test_a_full_row_of_table_1(tmp_path):
    # Scores 100, 110, ..., 140: mean 120, sum of squared deviations 1000, sample std sqrt(250) = 15.81; the
    # interquartile mean is that of 110, 120, 130. All of Soft DDPG is above: p = 2 / 252 = 0.008.
    write_runs(tmp_path, "softdpg/AntDiscrete-v0", "ddpg", flat([100.0, 110.0, 120.0, 130.0, 140.0]))
    write_runs(tmp_path, "softdpg/AntDiscrete-v0", "soft-ddpg-paper", flat([200.0, 210.0, 220.0, 230.0, 290.0]))
    section, found = tables(tmp_path, "table1")
    scores = found["Discrete rewards: mean ± std"]
    assert scores.header == [
        "Environment",
        "DDPG, reported",
        "DDPG, measured",
        "Soft DDPG (paper), reported",
        "Soft DDPG (paper), measured",
        "Order as in the paper",
    ]
    # Mean 230, squared deviations 900 + 400 + 100 + 0 + 3600 = 5000, over 4: 35.36.
    assert scores.rows == [
        [
            Text("Ant"),
            Text("190.56 ± 60.23"),
            Text("120.00 ± 15.81", "5 seeds, 1M steps"),
            Text("271.93 ± 5.54", bold=True),
            Text("230.00 ± 35.36", "5 seeds, 1M steps", bold=True),
            Text("yes", "p = 0.008"),
        ]
    ]
    robust = found["Discrete rewards: interquartile mean and comparison"]
    assert [cell.main for cell in robust.rows[0]] == ["Ant", "120.00", "220.00", "1.00 [1.00, 1.00]"]
    assert robust.rows[0][3].detail == "p = 0.008"
    low, high = robust.rows[0][1].detail.strip("[]").split(", ")
    assert 100 < float(low) < 115
    assert 125 < float(high) < 140
    assert section.notes[0].startswith("Not run with discrete rewards: HalfCheetah, Hopper,")
    assert section.envs == ["softdpg/AntDiscrete-v0"]


def test_coverage_counts_cells_of_the_paper(tmp_path):
    write_runs(tmp_path, "Ant-v5", "ddpg", flat([1.0] * 5))
    write_runs(tmp_path, "Pendulum-v1", "soft-ddpg-paper", flat([1.0] * 4))
    write_runs(tmp_path, "Pendulum-v1", "soft-ddpg", flat([1.0] * 5))
    write_runs(tmp_path, "Reacher-v5", "ddpg", flat([1.0] * 5))
    sentence = coverage(arrange(read_runs(tmp_path)[0]))
    assert sentence == (
        "Of the 44 cells of the paper's Tables 1 and 2, 1 have the paper's seeds, steps and settings, "
        "1 fall short of them (†) and 42 have no runs."
    )


@pytest.mark.parametrize(
    ("seeds", "evaluations", "settings", "main", "detail"),
    [
        (5, 200, {}, "5.00 ± 0.00", "5 seeds, 1M steps"),
        (7, 200, {}, "5.00 ± 0.00", "7 seeds, 1M steps"),
        (3, 200, {}, "5.00 ± 0.00 †", "3 of 5 seeds, 1M steps"),
        (5, 6, {}, "5.00 ± 0.00 †", "5 seeds, 30k of 1M steps"),
        (1, 6, {}, "5.00 †", "1 of 5 seeds, 30k of 1M steps"),
        (5, 6, {"steps": 50_000, "state": "running"}, "5.00 ± 0.00 †", "5 seeds, 30k of 1M steps, not finished"),
        (5, 200, {"tau": 0.01}, "5.00 ± 0.00 †", "5 seeds, 1M steps, tau 0.01 instead of 0.005"),
        (5, 1000, {"every": 1000}, "5.00 ± 0.00 †", "5 seeds, 1M steps, evaluated every 1000 steps instead of 5000"),
    ],
)
def test_cells_that_fall_short_are_marked(tmp_path, seeds, evaluations, settings, main, detail):
    write_runs(tmp_path, "Pendulum-v1", "ddpg", flat([5.0] * seeds, evaluations), **settings)
    _, found = tables(tmp_path, "table2")
    assert found["Continuous rewards: mean ± std"].rows[0][2] == Text(main, detail)


@pytest.mark.parametrize(
    ("env", "ddpg", "soft", "expected"),
    [
        # Reported for discrete Pendulum: Soft DDPG above DDPG; for discrete LunarLander: below.
        ("softdpg/PendulumDiscrete-v0", [1.0, 2.0, 3.0], [4.0, 5.0, 6.0], Text("yes, undecided", "p = 0.100")),
        ("softdpg/PendulumDiscrete-v0", [4.0, 5.0, 6.0], [1.0, 2.0, 3.0], Text("no, undecided", "p = 0.100")),
        ("softdpg/PendulumDiscrete-v0", [6.0, 7.0, 8.0, 9.0], [1.0, 2.0, 3.0, 4.0], Text("no", "p = 0.029")),
        ("softdpg/LunarLanderDiscrete-v0", [6.0, 7.0, 8.0, 9.0], [1.0, 2.0, 3.0, 4.0], Text("yes", "p = 0.029")),
        ("softdpg/PendulumDiscrete-v0", [1.0], [2.0], Text("yes, undecided", "one seed: no test")),
        ("softdpg/PendulumDiscrete-v0", [1.0, 2.0], [1.0, 2.0], Text("tie, undecided", "p = 1.000")),
        ("MountainCarContinuous-v0", [1.0, 2.0], [3.0, 4.0], Text("a tie in the paper", "p = 0.333")),
        ("softdpg/PendulumDiscrete-v0", [1.0], [], Text("–")),
    ],
)
def test_order_against_the_paper(tmp_path, env, ddpg, soft, expected):
    write_runs(tmp_path, env, "ddpg", flat(ddpg, 6))
    write_runs(tmp_path, env, "soft-ddpg-paper", flat(soft, 6))
    section, _ = tables(tmp_path, "table2")
    assert section.tables[0].rows[0][-1] == expected


def test_the_centered_estimator_is_never_the_papers_soft_ddpg(tmp_path):
    write_runs(tmp_path, "Pendulum-v1", "ddpg", flat([1.0, 2.0], 6))
    write_runs(tmp_path, "Pendulum-v1", "soft-ddpg", flat([3.0, 4.0], 6))
    _, found = tables(tmp_path, "table2")
    scores = found["Continuous rewards: mean ± std"]
    row = dict(zip(scores.header, scores.rows[0], strict=True))
    assert row["Soft DDPG (paper), measured"] == Text("–")
    assert row["Soft DDPG (centered), measured"].main == "3.50 ± 0.71 †"
    assert row["Order as in the paper"] == Text("–")
    assert "Soft DDPG (centered), reported" not in scores.header
    robust = found["Continuous rewards: interquartile mean and comparison"]
    assert robust.header[-1] == "P(Soft DDPG (centered) > DDPG)"
    assert robust.rows[0][-1] == Text("1.00 [1.00, 1.00]", "p = 0.333")


def test_average_over_environments(tmp_path):
    for env, soft in (("Pendulum-v1", [3.0, 4.0]), ("MountainCarContinuous-v0", [-3.0, -4.0])):
        write_runs(tmp_path, env, "ddpg", flat([1.0, 2.0], 6))
        write_runs(tmp_path, env, "soft-ddpg-paper", flat(soft, 6))
    _, found = tables(tmp_path, "table2")
    rows = found["Continuous rewards: interquartile mean and comparison"].rows
    assert rows[-1][0] == Text("Average")
    assert rows[-1][-1] == Text("0.50 [0.50, 0.50]", "2 environments")


def test_sensitivity_names_its_own_values_only(tmp_path):
    for n in (10, 50):
        write_runs(tmp_path, "Ant-v5", "soft-ddpg-paper", flat([float(n)] * 5), n_samples=n)
    _, found = tables(tmp_path, "sensitivity")
    rows = found["Ant-v5, Soft DDPG (paper): N at sigma = 0.2"].rows
    assert [row[:2] for row in rows] == [
        [Text("10"), Text("10.00 ± 0.00", "5 seeds, 1M steps")],
        [Text("50"), Text("50.00 ± 0.00", "5 seeds, 1M steps")],
    ]


def test_other_environments_and_settings_have_their_place(tmp_path):
    write_runs(tmp_path, "Reacher-v5", "ddpg", flat([1.0, 3.0], 6))
    write_runs(tmp_path, "Reacher-v5", "ddpg", flat([9.0], 6), gamma=0.9)
    _, found = tables(tmp_path, "other-environments")
    rows = found["Runs by environment, algorithm and settings"].rows
    assert [[cell.main for cell in row][1:] for row in rows] == [
        ["DDPG", "defaults", "2", "30k", "2.00 ± 1.41"],
        ["DDPG", "gamma 0.9", "1", "30k", "9.00"],
    ]
    _, found = tables(tmp_path, "settings")
    assert [Text("gamma"), Text("0.9 (1 run), 0.99 (2 runs)")] in found["Hyperparameters"].rows
    assert [Text("commit"), Text("0123abc")] in found["Software and machines"].rows
    assert [Text("Wall time, all runs together"), Text("0.03 hours")] in found["Runs"].rows


def test_markdown():
    section = Section("key", "Title", ["A note."], [Table("T", ["a", "b"], [[Text("x|y"), Text("<1>", "two", True)]])])
    assert to_markdown("Results", ["first"], [section]) == (
        "# Results\n\n- first\n\n## Title\n\nA note.\n\n### T\n\n"
        "| a | b |\n| --- | --- |\n| x\\|y | **&lt;1>**<br>two |\n"
    )


def test_nothing_of_the_paper_where_it_has_no_part(tmp_path):
    write_runs(tmp_path, "Reacher-v5", "ddpg", flat([1.0, 3.0], 6))
    arranged = arrange(read_runs(tmp_path)[0])
    assert coverage(arranged) == "2 runs on 1 environment."
    text = to_markdown("Results", [coverage(arranged), *how_to_read(arranged)], sections(arranged))
    assert "†" not in text
    assert "no runs" not in text
    assert "reported" not in text.lower()


def test_band_of_two_seeds_is_the_two_and_of_three_a_standard_deviation(tmp_path):
    def band(*scores):
        path = tmp_path / str(len(scores))
        write_runs(path, "Reacher-v5", "ddpg", flat(scores, 6))
        low, high = arrange(read_runs(path)[0]).rows["Reacher-v5"].cells["ddpg"].band
        return low[0], high[0]

    assert band(1.0, 3.0) == (1.0, 3.0)
    assert band(1.0, 2.0, 6.0) == pytest.approx((3 - np.sqrt(7), 3 + np.sqrt(7)))
