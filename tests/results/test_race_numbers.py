"""Crossings, medians, profiles and ratios of the race by hand-made numbers, and its files read back."""

import math

import pytest
from race_runs import ANT, HOPPER, run, two_contenders

from softdpg.errors import UserError
from softdpg.report.race_tables import contender_table, entry_text, line_table, ratio_table
from softdpg.report.race_writing import write_race
from softdpg.results.race import COSTS, Column, Race, compared, cost_ratio, fallbacks, profile
from softdpg.results.race_reading import joined, read_earlier, read_race
from softdpg.runs.crossing import crossing


@pytest.mark.parametrize(
    ("means", "index"),
    [([], None), ([10], None), ([10, 10], 1), ([10, 9, 10, 11], 3), ([9, 12, 9, 12, 9], None), ([3, 10, 30, 1], 2)],
)
def test_two_evaluations_in_a_row_are_a_crossing(means, index):
    assert crossing(means, 10.0) == index


def test_time_to_the_line_is_that_of_the_second_evaluation():
    crossed, missed, failed = run([1, 10, 12, 3]), run([1, 10, 2, 3]), run([1], state="failed")
    assert (crossed.steps_to_line, crossed.seconds_to_line, crossed.seconds_or_budget) == (6_000, 6.0, 6.0)
    assert (missed.steps_to_line, missed.seconds_to_line, missed.seconds_or_budget) == (math.inf, math.inf, 8.0)
    assert failed.seconds_or_budget == 8.0  # 2 seconds for a quarter of the budget
    assert run([], state="failed").seconds_or_budget is None
    assert not run([1, 10], state="running").decided
    assert run([10, 10], state="running").decided


def test_medians_over_seeds():
    """2 and 4 stretches of 2 s, and one that never crosses: the median is 8 s and 8,000 steps."""
    race = Race([run([10, 10]), run([1, 1, 10, 10], seed=1), run([1, 1, 1, 4], seed=2)])
    entry = race.columns[HOPPER]["td3"]
    assert (entry.seconds, entry.steps, entry.crossed, entry.last_score) == (8.0, 8_000, 2, 4.0)
    race = Race(
        [run([10, 10]), run([1, 1, 1, 5], seed=1), run([1, 1, 1, 4], seed=2), run([1], seed=3, state="running")]
    )
    entry = race.columns[HOPPER]["td3"]
    assert (entry.seconds, entry.crossed, entry.last_score, entry.waiting) == (math.inf, 1, 4.5, 1)
    assert entry.seconds_or_budget == 8.0


def test_profile_and_ratio():
    race = two_contenders()
    assert list(race.columns) == [ANT, HOPPER]  # the order of the paper's tables
    names, columns = compared(race)
    assert (names, columns) == (["td3", "sbx-sac"], [ANT, HOPPER])
    seconds, steps = COSTS
    assert profile(race, "td3", columns, seconds) == ([4.0, 8.0], [0.5, 1.0], math.inf)
    assert profile(race, "sbx-sac", columns, seconds) == ([12.0], [0.5], 24.0)
    assert profile(race, "sbx-sac", columns, steps) == ([4_000.0], [0.5], 8_000.0)
    ratio = cost_ratio(race, "td3", "sbx-sac")
    assert ratio.seconds == pytest.approx(1 / 3)  # 4 / 12, and 8 / 24
    assert ratio[1:] == (1.0, 2, 0, 1, 0)  # 4,000 steps each, and 8,000 to a budget of 8,000
    assert cost_ratio(race, "sbx-sac", "td3").seconds == pytest.approx(3.0)
    assert cost_ratio(race, "td3", "ddpg") is None


def test_a_contender_without_any_cost_is_left_out_of_the_ratio():
    race = Race([*two_contenders().runs, run([], column=Column("Swimmer-v5", 1.0), state="failed")])
    race = Race([*race.runs, run([2, 2], column=Column("Swimmer-v5", 1.0), algo="sbx-sac")])
    assert cost_ratio(race, "td3", "sbx-sac")[2:] == (2, 0, 1, 1)


def test_the_ratio_of_steps_takes_medians_over_seeds():
    ours = [run([10, 10]), run([1, 10, 10], seed=1), run([1, 1, 1, 1], seed=2)]  # 4,000, 6,000 and a budget of 8,000
    race = Race([*ours, run([10, 10], algo="sbx-sac")])
    assert cost_ratio(race, "td3", "sbx-sac").steps == pytest.approx(6 / 4)


def test_a_contender_on_few_columns_does_not_shrink_the_profile():
    columns = [Column(f"{name}-v5", 10.0) for name in ("Ant", "HalfCheetah", "Hopper", "Walker2d")]
    runs = [run([10, 10], column=column, algo=algo) for column in columns for algo in ("td3", "sbx-td3")]
    assert compared(Race([*runs, run([10, 10], algo="sbx-sac")])) == (["td3", "sbx-td3"], columns)
    few = [run([10, 10], column=column, algo=algo) for column in columns[:2] for algo in ("ddpg", "sbx-sac", "sb3-sac")]
    assert compared(Race([*runs, *few])) == (["td3", "sbx-td3"], columns)  # 2 x 4 x 4 to 5 x 2 x 2


def test_a_profile_compares_where_it_can():
    """Alone on four columns, or beside another on one: the picture is of the one."""
    columns = [Column(f"{name}-v5", 10.0) for name in ("Ant", "HalfCheetah", "Hopper", "Walker2d")]
    runs = [run([10, 10], column=column) for column in columns]
    assert compared(Race(runs)) == (["td3"], columns)
    assert compared(Race([*runs, run([10, 10], column=columns[2], algo="sbx-sac")])) == (
        ["td3", "sbx-sac"],
        columns[2:3],
    )
    assert compared(Race([])) == ([], [])


def test_fallbacks():
    """The score 20,000 steps after the crossing, against 80 % of the line."""
    steady, falling = [10, 10] + [11] * 9 + [8.0], [10, 10] + [11] * 9 + [7.9]
    runs = [run(steady, budget=99_000, hold=20_000), run(falling, seed=1, budget=99_000, hold=20_000)]
    assert [r.fell_back for r in runs] == [False, True]
    assert run([10, 10]).fell_back is None
    assert fallbacks(Race([*runs, run([10, 10], seed=2)]), "td3") == (1, 2, 1)
    below = Column("Pendulum-v1", -100.0)
    late = [run([-90, -90] + [-90] * 9 + [last], column=below, budget=99_000) for last in (-120.0, -121.0)]
    assert [r.fell_back for r in late] == [False, True]


def test_each_is_shown_as_what_it_is():
    message = "error after step 2,000: the motor is on fire"
    race = Race(
        [
            *two_contenders().runs,
            run([1], column=ANT, algo="ddpg", state="failed", message=message),
            run([1], algo="ddpg", state="running"),
        ]
    )
    table = line_table(race)
    assert table.header == ["Column", "Line", "DDPG", "TD3", "SAC (SBX)"]
    ant, hopper = table.rows
    assert [cell.main for cell in ant] == [
        *("Ant (continuous)", "10.00", "failed", "4 s, 4k steps", "12 s, 4k steps"),
    ]
    assert [cell.main for cell in hopper[2:]] == ["under way", "8 s, 8k steps", "not crossed in 8k, 9.50"]
    assert ant[2].detail == f"0 of 1 seeds crossed, 1 failed: {message}"
    assert hopper[2].detail == "1 not at the end yet"
    assert [cell.bold for cell in ant[2:]] == [False, True, False]
    assert [row[1].main for row in contender_table(race).rows] == ["0 of 1", "2 of 2", "1 of 2"]
    td3 = ratio_table(race).rows[1]
    assert (td3[3].main, td3[3].detail) == ("0.33", "2 columns; missed 0, and 1")


def test_a_miss_is_shown_with_its_budget():
    """The least of them, where seeds had different ones; a seed that crossed does not count."""
    runs = [run([1] * 5, budget=10_000), run([1] * 3, seed=1, budget=6_000), run([10, 10], seed=2, budget=4_000)]
    (entry,) = Race(runs).columns[HOPPER].values()
    assert entry_text(entry).main == "not crossed in 6k, 1.00"
    assert entry_text(entry).detail == "1 of 3 seeds crossed"
    assert Race([run([10, 10], budget=4_000)]).columns[HOPPER]["td3"].missed_in == math.inf


def test_files_read_back_give_the_same_files(tmp_path):
    runs = [*two_contenders().runs, run([], seed=1, state="failed", message="=1+1, a formula")]
    first, second = tmp_path / "first", tmp_path / "second"
    written = write_race(runs, first)
    assert {file.name for file in written.files} == {path.name for path in first.iterdir()}
    again, warnings = read_race(first / "race.csv")
    assert warnings == []
    assert [r.settings for r in again] == [r.settings for r in runs]
    assert again[-1].message == "=1+1, a formula"
    write_race(again, second)
    for name in ("race.csv", "race_curves.csv", "race.md"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("race.csv", "Ant-v5,td3", "Ant-v5,td9", "no algorithm 'td9'; did you mean td3.*SOFTDPG_PLUGINS"),
        ("race.csv", "crossed_at", "somewhere", "no column crossed_at"),
        ("race_curves.csv", "4000,10.0", "2000,10.0", "not finite numbers at increasing steps"),
        ("race_curves.csv", "4000,10.0", "4000,ten", "could not convert"),
    ],
)
def test_damaged_files_are_named(tmp_path, name, old, new, message):
    write_race(two_contenders().runs, tmp_path)
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match=message):
        read_race(tmp_path / "race.csv")


def test_races_are_joined_by_column_contender_and_seed(tmp_path):
    """Of the same run the newer counts, unless only the earlier is decided; runs of one name keep their own curves."""
    newer = [run([1, 10, 10]), run([1], seed=1, state="interrupted"), run([10, 10], column=Column("Hopper-v5", 9.0))]
    earlier = [run([10, 10]), run([1, 1, 10, 10], seed=1), run([10, 10], algo="sbx-sac")]
    runs = joined(newer, earlier)
    assert [(r.contender, r.column.goal, r.settings.seed, r.steps_to_line) for r in runs] == [
        ("td3", 10.0, 0, 6_000),
        ("td3", 10.0, 1, 8_000),
        ("td3", 9.0, 0, 4_000),
        ("sbx-sac", 10.0, 0, 4_000),
    ]
    assert len({r.name for r in runs}) == 4
    write_race(runs, tmp_path)
    again = read_earlier([tmp_path / "race.csv", tmp_path / "race.csv"])
    assert [(r.name, r.means.tolist()) for r in again] == [(r.name, r.means.tolist()) for r in runs]
    with pytest.raises(UserError, match="not the race"):
        read_earlier([tmp_path / "race.md"])
