"""The benchmark by hand-made numbers: costs, average runtimes, profiles, ratios, tables and files."""

import contextlib
import csv
import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from benchmark_runs import ANT, HOPPER, run, two_algorithms
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inline_runs import command

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS
from softdpg.errors import UserError
from softdpg.report.benchmark import SECONDS, STEPS, Benchmark, Task, compared, cost_ratio, fallbacks, profile
from softdpg.report.benchmark_tables import (
    ablated,
    algorithm_table,
    benchmark_sections,
    comparison_table,
    effect_table,
    entry_text,
    main_table,
    processors_note,
    ratio_table,
    target_table,
)
from softdpg.report.document import to_markdown
from softdpg.report.page import _json, write_benchmark_report
from softdpg.report.plots import benchmark_plots
from softdpg.report.reading import read_earlier, read_runs, write_benchmark, write_curves
from softdpg.report.runs import joined
from softdpg.runs.directory import first_reached

REACHED = {2: [10, 10], 3: [1, 10, 10], 4: [1, 1, 10, 10]}  # after so many times 2,000 steps
NEVER = [1, 1, 1, 9.5]


@pytest.mark.parametrize(
    ("means", "index"),
    [([], None), ([10], None), ([10, 10], 1), ([10, 9, 10, 11], 3), ([9, 12, 9, 12, 9], None), ([3, 10, 30, 1], 2)],
)
def test_two_evaluations_in_a_row_reach_the_target_score(means, index):
    assert first_reached(means, 10.0) == index


def test_time_to_the_line_is_that_of_the_second_evaluation():
    reached, missed, failed = run([1, 10, 12, 3]), run([1, 10, 2, 3]), run([1], state="failed")
    assert (reached.steps_to_target, reached.seconds_to_target, reached.seconds_or_budget) == (6_000, 6.0, 6.0)
    assert (missed.steps_to_target, missed.seconds_to_target, missed.seconds_or_budget) == (math.inf, math.inf, 8.0)
    assert failed.seconds_or_budget == 8.0  # 2 seconds for a quarter of the budget
    assert run([], state="failed").seconds_or_budget is None
    assert not run([1, 10], state="running").decided
    assert run([10, 10], state="running").decided


def test_average_runtime_with_a_miss():
    """4 s, 8 s, and a budget of 8 s that was missed: 20 s for two successes; 4,000 + 8,000 + 8,000 steps likewise."""
    benchmark = Benchmark([run([10, 10]), run([1, 1, 10, 10], seed=1), run([1, 1, 1, 4], seed=2)])
    entry = benchmark.tasks[HOPPER]["td3"]
    assert (entry.average(SECONDS), entry.average(STEPS)) == (10.0, 10_000)
    assert (entry.reached, entry.reached_in_median, entry.last_score) == (2, True, 4.0)
    assert entry_text(entry)[:2] == ("10 s, 10k steps", "2 of 3 seeds reached it")
    benchmark = Benchmark(
        [run([1, 1, 1, 5]), run([1, 1, 1, 4], seed=1), run([1], seed=2, state="running"), run([10, 10], seed=3)]
    )
    entry = benchmark.tasks[HOPPER]["td3"]
    assert (entry.average(SECONDS), entry.reached, entry.last_score, entry.waiting) == (20.0, 1, 4.5, 1)
    assert not entry.reached_in_median
    assert (
        not Benchmark([run([10, 10]), run([1] * 4, seed=1)]).tasks[HOPPER]["td3"].reached_in_median
    )  # not more than half


def test_without_a_success_there_is_no_average_runtime():
    """A run that failed before its first evaluation has no cost; one that failed later counts with its whole budget."""
    runs = [run([1, 1, 1, 5]), run([1], seed=1, state="failed"), run([], seed=2, state="failed")]
    entry = Benchmark(runs).tasks[HOPPER]["td3"]
    assert entry.average(SECONDS) == math.inf
    assert entry.spent(SECONDS).costs.tolist() == [8.0, 8.0]
    assert entry.spent(STEPS).costs.tolist() == [8_000, 8_000]


def test_profile_and_ratio():
    benchmark = two_algorithms()
    assert list(benchmark.tasks) == [ANT, HOPPER]  # the order of the paper's tables
    names, tasks = compared(benchmark)
    assert (names, tasks) == (["td3", "sbx-sac"], [ANT, HOPPER])
    ratio = cost_ratio(benchmark, "td3", "sbx-sac")
    assert ratio.seconds.value == pytest.approx(1 / 3)  # 4 / 12, and 8 / 24
    assert ratio.steps == (1.0, None, None)  # 4,000 steps each, and 8,000 to a budget of 8,000; single seeds
    assert ratio[2:] == (2, 0, 1, 0)
    assert cost_ratio(benchmark, "sbx-sac", "td3").seconds.value == pytest.approx(3.0)
    assert cost_ratio(benchmark, "td3", "ddpg") is None


def test_four_targets_by_hand(monkeypatch):
    """From 2 of a random policy to 10: 4, 6, 8 and 10. A score below the random one, or without it, stands alone."""
    monkeypatch.setattr(paper, "RANDOM_SCORES", {"Hopper-v5": 2.0, "Ant-v5": 10.0})
    assert HOPPER.targets == (4.0, 6.0, 8.0, 10.0)
    assert ANT.targets == Task("Swimmer-v5", 10.0).targets == (10.0,)
    runs = [
        run([4, 6, 9, 10, 10], budget=10_000),  # 4 at 4,000, 6 at 6,000, 8 at 8,000 and 10 at 10,000 steps
        run([7, 3, 7, 7], seed=1),  # one evaluation is not enough: 4 and 6 at 8,000
    ]
    (task,) = (benchmark := Benchmark(runs)).tasks
    found = profile(benchmark, "td3", [task], STEPS)
    assert found.costs == [4_000, 6_000, 8_000, 8_000, 8_000, 10_000]
    assert found.fractions == [n / 8 for n in range(1, 7)]
    assert found.until == 8_000
    assert profile(benchmark, "td3", [task], SECONDS) == ([4, 6, 8, 8, 8, 10], found.fractions, 8.0)


def test_tasks_weigh_the_same_in_a_profile(monkeypatch):
    """One target and two seeds on Ant, four targets and one seed on Hopper: half of the profile each."""
    monkeypatch.setattr(paper, "RANDOM_SCORES", {"Hopper-v5": 2.0})
    runs = [run([10, 10], task=ANT), run([1] * 4, task=ANT, seed=1), run([9, 9, 9, 9])]
    benchmark = Benchmark(runs)
    # The target of Ant for one of two seeds is 1/4, three of the four targets of Hopper are 1/8 each.
    found = profile(benchmark, "td3", [ANT, HOPPER], STEPS)
    assert found == ([4_000.0] * 4, [1 / 8, 2 / 8, 3 / 8, 5 / 8], 8_000.0)


def test_the_paper_tasks_have_four_ascending_targets():
    for env, score in paper.TARGET_SCORES.items():
        targets = Task(env, score).targets
        assert len(targets) == 4, env
        assert targets[-1] == score
        assert list(np.diff(targets)) == pytest.approx([(score - paper.RANDOM_SCORES[env]) / 4] * 3)


def test_an_algorithm_without_any_cost_is_left_out_of_the_ratio():
    benchmark = Benchmark([*two_algorithms().runs, run([], task=Task("Swimmer-v5", 1.0), state="failed")])
    benchmark = Benchmark([*benchmark.runs, run([2, 2], task=Task("Swimmer-v5", 1.0), algo="sbx-sac")])
    assert cost_ratio(benchmark, "td3", "sbx-sac")[2:] == (2, 0, 1, 1)


def test_the_ratio_takes_average_runtimes():
    td3 = [run([10, 10]), run([1, 10, 10], seed=1), run([1, 1, 1, 1], seed=2)]  # 4,000, 6,000 and a budget of 8,000
    benchmark = Benchmark([*td3, run([10, 10], algo="sbx-sac")])
    assert cost_ratio(benchmark, "td3", "sbx-sac").steps.value == pytest.approx(9 / 4)


def test_an_algorithm_on_few_tasks_does_not_shrink_the_profile():
    tasks = [Task(f"{name}-v5", 10.0) for name in ("Ant", "HalfCheetah", "Hopper", "Walker2d")]
    runs = [run([10, 10], task=task, algo=algo) for task in tasks for algo in ("td3", "sbx-td3")]
    assert compared(Benchmark([*runs, run([10, 10], algo="sbx-sac")])) == (["td3", "sbx-td3"], tasks)
    few = [run([10, 10], task=task, algo=algo) for task in tasks[:2] for algo in ("ddpg", "sbx-sac", "sb3-sac")]
    assert compared(Benchmark([*runs, *few])) == (["td3", "sbx-td3"], tasks)  # 2 x 4 x 4 to 5 x 2 x 2


def test_a_profile_compares_where_it_can():
    """Alone on four tasks, or beside another on one: the picture is of the one."""
    tasks = [Task(f"{name}-v5", 10.0) for name in ("Ant", "HalfCheetah", "Hopper", "Walker2d")]
    runs = [run([10, 10], task=task) for task in tasks]
    assert compared(Benchmark(runs)) == (["td3"], tasks)
    assert compared(Benchmark([*runs, run([10, 10], task=tasks[2], algo="sbx-sac")])) == (
        ["td3", "sbx-sac"],
        tasks[2:3],
    )
    assert compared(Benchmark([])) == ([], [])


def test_fallbacks():
    """The score 20,000 steps after the target score was reached, against 80 % of it."""
    steady, falling = [10, 10] + [11] * 9 + [8.0], [10, 10] + [11] * 9 + [7.9]
    runs = [run(steady, budget=99_000, after=20_000), run(falling, seed=1, budget=99_000, after=20_000)]
    assert [r.fell_back for r in runs] == [False, True]
    assert run([10, 10]).fell_back is None
    assert fallbacks(Benchmark([*runs, run([10, 10], seed=2)]), "td3") == (1, 2, 1)
    below = Task("Pendulum-v1", -100.0)
    late = [run([-90, -90] + [-90] * 9 + [last], task=below, budget=99_000) for last in (-120.0, -121.0)]
    assert [r.fell_back for r in late] == [False, True]


def test_each_is_shown_as_what_it_is():
    message = "error after step 2,000: the motor is on fire"
    benchmark = Benchmark(
        [
            *two_algorithms().runs,
            run([1], task=ANT, algo="ddpg", state="failed", message=message),
            run([1], algo="ddpg", state="running"),
        ]
    )
    table = target_table(benchmark)
    assert table.header == ["Task", "Target score", "DDPG", "TD3", "SAC (SBX)"]
    ant, hopper = table.rows
    assert [cell.main for cell in ant] == [
        *("Ant (continuous)", "10.00", "failed", "4 s, 4k steps", "12 s, 4k steps"),
    ]
    assert [cell.main for cell in hopper[2:]] == ["running", "8 s, 8k steps", "not reached in 8k, 9.50"]
    assert ant[2].detail == f"0 of 1 seeds reached it, 1 failed: {message}"
    assert hopper[2].detail == "1 not finished"
    assert [cell.bold for cell in ant[2:]] == [False, True, False]
    assert [row[1].main for row in algorithm_table(benchmark).rows] == ["0 of 1", "2 of 2", "1 of 2"]
    td3 = ratio_table(benchmark).rows[1]
    assert (td3[3].main, td3[3].detail) == ("0.33", "steps 1.00; 2 shared tasks; not reached: 0, 1")


def test_a_miss_is_shown_with_its_budget():
    """The smallest one, where seeds had different ones."""
    runs = [run([1] * 5, budget=10_000), run([1] * 3, seed=1, budget=6_000)]
    (entry,) = Benchmark(runs).tasks[HOPPER].values()
    assert entry_text(entry).main == "not reached in 6k, 1.00"
    assert entry_text(entry).detail == "0 of 2 seeds reached it"
    assert Benchmark([run([10, 10], budget=4_000)]).tasks[HOPPER]["td3"].missed_in == math.inf


def store(runs, directory):
    """The files without the figures, which take long."""
    directory.mkdir(exist_ok=True)
    (directory / "race.csv").write_text(write_benchmark(runs))
    (directory / "race_curves.csv").write_text(write_curves(runs))
    (directory / "race.md").write_text(to_markdown("Benchmark: tables", [], benchmark_sections(Benchmark(runs))))


def test_files_read_back_give_the_same_files(tmp_path):
    runs = [*two_algorithms().runs, run([], seed=1, state="failed", message="=1+1, a formula")]
    first, second = tmp_path / "first", tmp_path / "second"
    written = write_benchmark_report(runs, first)
    assert {file.name for file in written.files} == {path.name for path in first.iterdir()}
    _, again, warnings = read_runs(first / "race.csv")
    assert warnings == []
    assert [r.settings for r in again] == [r.settings for r in runs]
    assert again[-1].message == "=1+1, a formula"
    store(again, second)
    for name in ("race.csv", "race_curves.csv", "race.md"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("race.csv", "Ant-v5,td3", "Ant-v5,td9", "no algorithm 'td9'; did you mean td3.*SOFTDPG_PLUGINS"),
        ("race.csv", "reached_at", "somewhere", "no column reached_at"),
        ("race_curves.csv", "4000,10.0", "2000,10.0", "steps of the evaluations do not increase"),
        ("race_curves.csv", "4000,10.0", "4000,ten", "could not convert"),
    ],
)
def test_damaged_files_are_named(tmp_path, name, old, new, message):
    store(two_algorithms().runs, tmp_path)
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match=message):
        read_runs(tmp_path / "race.csv")


def change(directory, name, column, cell, row=0):
    """Change one cell of a CSV file."""
    with (directory / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[row][column] = cell
    with (directory / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("seed", "[1]", r"seed must be an integer, got \[1\]"),
        ("seed", "x", "seed must be an integer, got 'x'"),
        ("seed", "9" * 5000, "seed must be an integer, got '9999"),
        ("seed", "", "seed must be an integer, got ''"),
        ("steps", "{}", "steps must be an integer, got {}"),
        ("steps", "1e3", "steps must be an integer, got 1000.0"),
        ("n_envs", "x", "n_envs must be an integer, got 'x'"),
        ("stop_at_score", "", "a run has no stop_at_score"),
        ("stop_at_score", "nan", "stop_at_score must be a number, got 'nan'"),
        ("stop_at_score", "NaN", "stop_at_score must be a number, got 'NaN'"),
        ("stop_at_score", "1e999", "stop_at_score must be a number, got '1e999'"),
        ("stop_at_score", "high", "stop_at_score must be a number, got 'high'"),
        ("hyperparameters.net_arch", "[" * 900 + "]" * 900, "net_arch must be a list of numbers"),
        ("hyperparameters.net_arch", "[" * 100_000, "net_arch must be a list of numbers"),
        ("hyperparameters.unknown", '{"a": 1}', "hyperparameters must be numbers, strings or lists of these"),
        ("wall_seconds", "nan", "wall_seconds must be a finite number of at least 0, got nan"),
        ("wall_seconds", "-1", "wall_seconds must be a finite number of at least 0, got -1"),
        ("env", "a" * 100_000, "env must be the id of an environment, got 'aaaa"),
        ("state", "done", "unknown state 'done'"),
    ],
)
def test_a_wrong_cell_is_named(tmp_path, column, cell, message):
    store(two_algorithms().runs, tmp_path)
    text = (tmp_path / "race.csv").read_text()
    if column not in text:
        lines = text.splitlines()
        (tmp_path / "race.csv").write_text("".join(f"{line},{'' if i else column}\n" for i, line in enumerate(lines)))
    change(tmp_path, "race.csv", column, cell)
    with pytest.raises(UserError, match=f"race.csv: unreadable row: {message}") as error:
        read_runs(tmp_path / "race.csv")
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("mean", "1e308", "an evaluation is beyond 1e\\+100"),
        ("step", "nan", "the step of an evaluation is not a number of steps"),
        ("step", "1e300", "the step of an evaluation is not a number of steps"),
        ("step", "0", "the steps of the evaluations do not increase from 1"),
        ("train", "-1", "a CPU time is negative"),
    ],
)
def test_a_wrong_evaluation_is_named(tmp_path, column, cell, message):
    store(two_algorithms().runs, tmp_path)
    change(tmp_path, "race_curves.csv", column, cell)
    with pytest.raises(UserError, match=message):
        read_runs(tmp_path / "race.csv")


@pytest.mark.parametrize("name", ["race.csv", "race_curves.csv"])
def test_a_link_is_not_followed(tmp_path, name):
    """A link to /dev/zero would be read until memory ends."""
    store(two_algorithms().runs, tmp_path)
    for target in ("/dev/zero", tmp_path / "race.md"):
        (tmp_path / name).unlink()
        (tmp_path / name).symlink_to(target)
        with pytest.raises(UserError, match=f"{name}: no such file|{name} is a link, which is not followed"):
            read_runs(tmp_path / "race.csv")


@pytest.mark.parametrize("line", ["", "x,y", "," * 300])
def test_a_row_of_another_length_is_refused(tmp_path, line):
    store(two_algorithms().runs, tmp_path)
    with (tmp_path / "race.csv").open("a") as file:
        file.write(f"{line}\n")
    if line:
        with pytest.raises(UserError, match="a row does not have as many cells as the header"):
            read_runs(tmp_path / "race.csv")
    else:
        assert len(read_runs(tmp_path / "race.csv").benchmark) == 4


ODD = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from(
        ["", "x", " =1+1", '"', "1e308", "1e999", "9" * 5000, "a" * 100_000, "nan", "[]", "{}", "\x00", "0"]
    ),
    st.sampled_from(
        ["[" * 5000, "[[1]]", '"\\ud800"', "true", "null", "$\\frac{$", "evil_module:Id-v0", "auto", "1_0"]
    ),
)


def any_race(data, directory):
    """Write the files of a benchmark with some cells changed."""
    runs = [replace(r, settings=replace(r.settings, n_envs=2)) for r in two_algorithms().runs]
    store(runs, directory)
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(["race.csv", "race_curves.csv"]))
        columns = (directory / name).read_text().partition("\n")[0].split(",")
        with contextlib.suppress(csv.Error):  # an earlier cell was too long for the reader
            change(directory, name, data.draw(st.sampled_from(columns)), data.draw(ODD), data.draw(st.integers(0, 3)))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_race_csv_is_read_or_refused_in_one_line(tmp_path, data):
    """What is read can be shown and written again."""
    any_race(data, tmp_path)
    try:
        runs = read_runs(tmp_path / "race.csv").benchmark
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017 (it need not be raised)
    else:
        store(runs, tmp_path)
        _json(benchmark_plots(Benchmark(runs)))
        assert write_benchmark(read_runs(tmp_path / "race.csv").benchmark) == write_benchmark(runs)
    assert "evil_module" not in sys.modules


@pytest.mark.extended
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_report_of_any_race_csv(tmp_path, data):
    any_race(data, tmp_path)
    assert command("report", tmp_path / "race.csv", "--out", tmp_path / "report")[0] in (0, 2)
    assert "evil_module" not in sys.modules


def test_benchmarks_are_joined_by_task_algorithm_and_seed(tmp_path):
    """Of the same run the newer counts, unless only the earlier is decided; runs of one name keep their own curves."""
    newer = [run([1, 10, 10]), run([1], seed=1, state="interrupted"), run([10, 10], task=Task("Hopper-v5", 9.0))]
    earlier = [run([10, 10]), run([1, 1, 10, 10], seed=1), run([10, 10], algo="sbx-sac")]
    runs = joined(newer, earlier)
    assert [(r.algorithm, r.target_score, r.settings.seed, r.steps_to_target) for r in runs] == [
        ("td3", 10.0, 0, 6_000),
        ("td3", 10.0, 1, 8_000),
        ("td3", 9.0, 0, 4_000),
        ("sbx-sac", 10.0, 0, 4_000),
    ]
    assert len({r.name for r in runs}) == 4
    store(runs, tmp_path)
    again = read_earlier([tmp_path / "race.csv", tmp_path / "race.csv"])
    assert [(r.name, r.means.tolist()) for r in again] == [(r.name, r.means.tolist()) for r in runs]
    with pytest.raises(UserError, match=r"not the race\.csv of a benchmark"):
        read_earlier([tmp_path / "race.md"])


def ablation():
    """The variant takes twice the steps on Ant, at half the CPU seconds a step; on Hopper one of two seeds misses."""
    return Benchmark(
        [
            run(REACHED[2], task=ANT, algo="soft-td3"),
            run(REACHED[4], task=ANT, algo="ocpg", pace=1.0),
            *(run(REACHED[n], algo="soft-td3", seed=seed) for seed, n in enumerate((2, 4))),
            *(run(means, algo="ocpg", seed=seed) for seed, means in enumerate((REACHED[2], NEVER))),
        ]
    )


def test_the_ratio_of_a_variant_by_hand():
    """Steps: 8 / 4 on Ant; on Hopper 4 + 8 for one success to 4 + 8 for two. CPU seconds: 4 / 4, and the same."""
    found = cost_ratio(ablation(), "ocpg", "soft-td3")
    assert found.steps.value == pytest.approx(2.0)
    assert found.seconds.value == pytest.approx(np.sqrt(2))
    assert found.steps.low is None  # a single seed on Ant
    assert cost_ratio(ablation(), "ocpg", "td3") is None
    backwards = cost_ratio(ablation(), "soft-td3", "ocpg")
    assert backwards.steps.value == pytest.approx(1 / 2)


def test_an_ablation_has_a_row_for_each_variant():
    benchmark = ablation()
    assert (ablated(benchmark), ablated(two_algorithms())) == ("soft-td3", "")
    assert ablated(Benchmark([run(REACHED[2], algo="ocpg")])) == ""
    table = main_table(benchmark)
    assert table == effect_table(benchmark, "soft-td3")
    assert table.header == [
        "Algorithm",
        "CPU time (÷ Soft TD3)",
        "Steps (÷ Soft TD3)",
        "Shared tasks",
        "Not reached (variant, Soft TD3)",
        "Ant (continuous), 10.00",
        "Hopper (continuous), 10.00",
    ]
    recipe, variant = [[cell.main for cell in row] for row in table.rows]
    assert recipe == ["Soft TD3", *"––––", "4 s, 4k steps", "6 s, 6k steps"]
    assert variant == ["oCPG", "1.41", "2.00", "2", "0, 0", "4 s, 8k steps", "12 s, 12k steps"]
    (section,) = benchmark_sections(benchmark)
    assert section.tables[0].title == "Cost to the target score with one setting changed"
    assert len(section.tables) == 2  # every algorithm against every other would be as wide as it is long


def test_processors_are_named_if_they_differ():
    """CPU seconds of two processors do not stand side by side without a word; an unknown machine counts nowhere."""
    old, new = ({"processor": name, "cores": 2} for name in ("Old", "New"))
    runs = ablation().runs
    assert processors_note(Benchmark(runs)) == []
    assert processors_note(Benchmark([replace(run, machine=tuple(old.items())) for run in runs])) == []
    machines = [old, old, {}, new, new, new]
    mixed = Benchmark([replace(run, machine=tuple(m.items())) for run, m in zip(runs, machines, strict=True)])
    (note,) = processors_note(mixed)
    assert note.endswith("Runs on New: Soft TD3 1, oCPG 2; Old: Soft TD3 1, oCPG 1.")
    assert note in benchmark_sections(mixed)[0].notes


def test_the_files_of_an_ablation_read_back_are_the_same(tmp_path):
    store(ablation().runs, tmp_path / "a")
    _, runs, warnings = read_runs(tmp_path / "a" / "race.csv")
    assert warnings == []
    store(runs, tmp_path / "b")
    assert "oCPG" in (tmp_path / "a" / "race.md").read_text()
    for name in ("race.csv", "race_curves.csv", "race.md"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_ratio_is_shown_with_its_interval():
    """Two seeds that are alike: every resample gives the same ratio."""
    runs = [run([10, 10], algo=algo, pace=pace, seed=s) for algo, pace in (("soft-td3", 1), ("td3", 4)) for s in (0, 1)]
    (row,) = comparison_table(Benchmark(runs), "soft-td3").rows
    cells = [cell.main for cell in row]
    assert cells == ["TD3", "0.25 [0.25, 0.25]", "1.00 [1.00, 1.00]", "1", "0, 0"]
    td3 = ratio_table(Benchmark(runs)).rows[0]
    assert td3[2].main == "4.00 [4.00, 4.00]"
    assert td3[2].detail == "steps 1.00 [1.00, 1.00]; 1 shared task; not reached: 0, 0"


def test_the_comparison_divides_by_each_peer():
    table = comparison_table(two_algorithms("soft-td3"), "soft-td3")
    label = ALGORITHMS["soft-td3"].label
    assert table.header == [
        "Peer",
        f"CPU time ({label} ÷ peer)",
        f"Steps ({label} ÷ peer)",
        "Shared tasks",
        f"Not reached ({label}, peer)",
    ]
    assert [[cell.main for cell in row] for row in table.rows] == [["SAC (SBX)", "0.33", "1.00", "2", "0, 1"]]
    assert table in benchmark_sections(two_algorithms("soft-td3"))[0].tables
