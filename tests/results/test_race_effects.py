"""What a variant costs in units of its base: by hand-made runs, and the tables of a race that is an ablation."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from race_runs import ANT, HOPPER, run, two_contenders

from softdpg.report.race_tables import ablated, effect_table, main_table, processors_note, race_sections
from softdpg.report.race_writing import write_race
from softdpg.results.race import Race, effect
from softdpg.results.race_reading import read_race
from softdpg.results.statistics import cost_ratio

LINE = {2: [10, 10], 3: [1, 10, 10], 4: [1, 1, 10, 10]}  # crossed after so many stretches of 2,000 steps
NEVER = [1, 1, 1, 9.5]


def ablation():
    """The variant takes twice the steps on Ant, at half the CPU seconds a step; on Hopper one of two seeds misses."""
    return Race(
        [
            run(LINE[2], column=ANT, algo="soft-td3"),
            run(LINE[4], column=ANT, algo="ocpg", pace=1.0),
            *(run(LINE[n], algo="soft-td3", seed=seed) for seed, n in enumerate((2, 4))),
            *(run(means, algo="ocpg", seed=seed) for seed, means in enumerate((LINE[2], NEVER))),
        ]
    )


def test_effect_by_hand():
    """Steps: 8 / 4 on Ant; on Hopper sqrt(4 * 8) of both. CPU seconds: 4 / 4 on Ant, and the same on Hopper."""
    found = effect(ablation(), "ocpg", "soft-td3")
    assert found.steps.value == pytest.approx(np.sqrt(2))
    assert found.seconds.value == pytest.approx(1.0)
    assert found.steps.low is None  # a single seed on Ant
    assert effect(ablation(), "ocpg", "td3") is None
    backwards = effect(ablation(), "soft-td3", "ocpg")
    assert backwards.steps.value == pytest.approx(1 / np.sqrt(2))


def test_interval_is_that_of_all_resamples():
    """Two seeds each: nine ratios with known weights; the interval's ends are among them, and around the value."""
    x, y = np.array([2.0, 8.0]), np.array([1.0, 4.0])
    found = cost_ratio([(x, y)])
    assert found.value == pytest.approx(2.0)
    gm = [np.sqrt(a * b) for a, b in product(x, x)]
    ratios = sorted(g / np.sqrt(a * b) for g in gm for a, b in product(y, y))
    assert found.low == pytest.approx(ratios[0])  # 1 of 16 resamples, more than 2.5 %
    assert found.high == pytest.approx(ratios[-1])


def test_a_run_without_any_cost_is_left_out():
    race = Race(
        [
            *(run(LINE[2], algo="soft-td3", column=column) for column in (ANT, HOPPER)),
            run([], algo="ocpg", state="failed"),
            run(LINE[4], algo="ocpg", column=ANT),
        ]
    )
    assert effect(race, "ocpg", "soft-td3").steps.value == pytest.approx(2.0)


def test_an_ablation_has_a_row_for_each_variant():
    race = ablation()
    assert (ablated(race), ablated(two_contenders())) == ("soft-td3", "")
    assert ablated(Race([run(LINE[2], algo="ocpg")])) == ""
    table = main_table(race)
    assert table == effect_table(race, "soft-td3")
    assert table.header == [
        "Contender",
        "CPU seconds in units of Soft TD3 (ours)",
        "Steps in units of Soft TD3 (ours)",
        "Ant (continuous), 10.00",
        "Hopper (continuous), 10.00",
    ]
    recipe, variant = [[cell.main for cell in row] for row in table.rows]
    assert recipe == ["Soft TD3 (ours)", "–", "–", "4 s, 4k steps", "6 s, 6k steps"]
    assert variant == ["oCPG", "1.00", "1.41", "4 s, 8k steps", "not crossed in 8k, 9.50"]
    (section,) = race_sections(race)
    assert section.tables[0].title == "To the line with one ingredient changed"
    assert len(section.tables) == 2  # every contender against every other would be as wide as it is long


def test_processors_are_named_if_they_differ():
    """CPU seconds of two processors do not stand side by side without a word; an unknown machine counts nowhere."""
    old, new = ({"processor": name, "cores": 2} for name in ("Old", "New"))
    runs = ablation().runs
    assert processors_note(Race(runs)) == []
    assert processors_note(Race([replace(run, machine=tuple(old.items())) for run in runs])) == []
    machines = [old, old, {}, new, new, new]
    mixed = Race([replace(run, machine=tuple(m.items())) for run, m in zip(runs, machines, strict=True)])
    (note,) = processors_note(mixed)
    assert note.endswith("Runs on New: Soft TD3 (ours) 1, oCPG 2; Old: Soft TD3 (ours) 1, oCPG 1.")
    assert note in race_sections(mixed)[0].notes


def test_its_files_read_back_are_the_same(tmp_path):
    write_race(ablation().runs, tmp_path / "a")
    runs, warnings = read_race(tmp_path / "a" / "race.csv")
    assert warnings == []
    written = write_race(runs, tmp_path / "b")
    assert "oCPG" in written.summary
    for name in ("race.csv", "race_curves.csv", "race.md"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
