"""Which runs are averaged, which are compared, and the final score, on runs with known numbers."""

import pytest
from runs_on_disk import write_run, write_runs

from softdpg.report.reading import read_runs
from softdpg.report.scores import arrange, deviations, differences
from softdpg.report.tables import hyperparameter_notes


def arranged(root):
    return arrange(read_runs(root)[0])


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ([0.0] * 180 + list(range(20)), 9.5),  # the last 20 of 200
        ([float(i) for i in range(20)], 18.5),  # 2 of 20
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 6.0),  # a tenth of 6 is less than one: the last
        ([7.0], 7.0),
    ],
)
def test_final_score_is_the_mean_of_the_last_tenth(tmp_path, means, expected):
    write_run(tmp_path / "run", "Ant-v5", "ddpg", 0, means)
    assert arranged(tmp_path).rows["Ant-v5"].cells["ddpg"].scores.tolist() == [expected]


def test_finished_runs_count_and_others_wait(tmp_path):
    write_run(tmp_path / "0", "Ant-v5", "ddpg", 0, [1.0, 2.0, 3.0, 4.0])
    write_run(tmp_path / "1", "Ant-v5", "ddpg", 1, [100.0], steps=20_000, state="running")
    cell = arranged(tmp_path).rows["Ant-v5"].cells["ddpg"]
    assert (cell.scores.tolist(), cell.step, cell.waiting) == ([4.0], 20_000, 1)


def test_while_none_is_finished_all_count_up_to_the_step_that_all_reached(tmp_path):
    write_run(tmp_path / "0", "Ant-v5", "ddpg", 0, [1.0, 2.0, 3.0], steps=20_000, state="interrupted")
    write_run(tmp_path / "1", "Ant-v5", "ddpg", 1, [5.0, 6.0], steps=20_000, state="running")
    cell = arranged(tmp_path).rows["Ant-v5"].cells["ddpg"]
    assert (cell.scores.tolist(), cell.step, cell.waiting) == ([2.0, 6.0], 10_000, 0)
    assert cell.curves.tolist() == [[1.0, 2.0], [5.0, 6.0]]


def test_algorithms_are_compared_at_equal_steps_only(tmp_path):
    write_runs(tmp_path, "Ant-v5", "ddpg", [[1.0, 2.0], [1.0, 3.0]])
    write_runs(tmp_path, "Ant-v5", "soft-ddpg-paper", [[1.0], [2.0]], steps=10_000, state="running")
    row = arranged(tmp_path).rows["Ant-v5"]
    assert list(row.cells) == ["ddpg", "soft-ddpg-paper"]
    assert row.comparisons == {}


def test_runs_with_another_hyperparameter_stay_apart(tmp_path):
    write_runs(tmp_path, "Ant-v5", "ddpg", [[1.0], [2.0]])
    write_runs(tmp_path, "Ant-v5", "ddpg", [[50.0], [60.0], [70.0]], learning_rate=0.001)
    found = arranged(tmp_path)
    main = found.rows["Ant-v5"].cells["ddpg"]
    assert main.scores.tolist() == [1.0, 2.0]
    (other,) = found.other_settings
    assert other.scores.tolist() == [50.0, 60.0, 70.0]
    assert differences(other.settings, main.settings) == ["learning_rate 0.001"]
    assert deviations(other) == ["learning_rate 0.001 instead of 0.0001"]
    assert deviations(main) == []


def test_a_row_has_one_number_of_steps(tmp_path):
    # DDPG alone went further; the row is where both algorithms are, and the rest is kept apart.
    write_runs(tmp_path, "Ant-v5", "ddpg", [[1.0, 2.0]])
    write_runs(tmp_path, "Ant-v5", "soft-ddpg-paper", [[3.0, 4.0]])
    write_runs(tmp_path, "Ant-v5", "ddpg", [[9.0] * 4], steps=20_000)
    found = arranged(tmp_path)
    assert {name: cell.step for name, cell in found.rows["Ant-v5"].cells.items()} == {
        "ddpg": 10_000,
        "soft-ddpg-paper": 10_000,
    }
    assert [(cell.algorithm, cell.step) for cell in found.other_settings] == [("ddpg", 20_000)]


def test_a_hyperparameter_of_the_smoothing_does_not_part_the_algorithms(tmp_path):
    write_runs(tmp_path, "Ant-v5", "soft-ddpg-paper", [[2.0]], antithetic=False)
    write_runs(tmp_path, "Ant-v5", "soft-ddpg", [[3.0]], antithetic=True)
    assert list(arranged(tmp_path).rows["Ant-v5"].cells) == ["soft-ddpg-paper", "soft-ddpg"]
    write_runs(tmp_path, "Ant-v5", "ddpg", [[1.0]])
    assert list(arranged(tmp_path).rows["Ant-v5"].cells) == ["ddpg", "soft-ddpg-paper", "soft-ddpg"]
    # With two values of it, the cells of one algorithm are not mixed, and the paper's is the one in the row.
    write_runs(tmp_path, "Ant-v5", "soft-ddpg-paper", [[5.0], [5.0]], antithetic=True)
    found = arranged(tmp_path)
    assert found.rows["Ant-v5"].cells["soft-ddpg-paper"].scores.tolist() == [2.0]
    assert [cell.scores.tolist() for cell in found.other_settings] == [[5.0, 5.0]]
    assert deviations(found.other_settings[0]) == ["antithetic instead of independent noise"]
    assert deviations(found.rows["Ant-v5"].cells["soft-ddpg"]) == []


def test_sweeps_share_the_run_that_is_in_both(tmp_path):
    for n in (10, 20, 50):
        write_runs(tmp_path, "Ant-v5", "soft-ddpg-paper", [[float(n)]], n_samples=n)
    for sigma in (0.01, 0.5):
        write_runs(tmp_path, "Ant-v5", "soft-ddpg-paper", [[sigma]], sigma=sigma, n_samples=10)
    found = arranged(tmp_path)
    by_parameter = {sweep.parameter: sweep.cells for sweep in found.sweeps}
    assert {n: cell.scores.tolist() for n, cell in by_parameter["n_samples"].items()} == {10: [10], 20: [20], 50: [50]}
    assert {s: cell.scores.tolist() for s, cell in by_parameter["sigma"].items()} == {
        0.01: [0.01],
        0.2: [10],
        0.5: [0.5],
    }
    assert found.rows["Ant-v5"].cells["soft-ddpg-paper"].settings.n_samples == 50
    assert found.other_settings == []


def test_a_row_is_one_protocol_whatever_the_hyperparameters(tmp_path):
    write_runs(tmp_path, "Ant-v5", "ddpg", [[1.0], [2.0]])
    write_runs(tmp_path, "Ant-v5", "soft-td3", [[3.0], [4.0]], learning_rate=0.001, n_samples=4, net_arch=[256, 256])
    write_runs(tmp_path, "Ant-v5", "sbx-sac", [[5.0], [6.0]], every=2_500, steps=5_000)  # another protocol
    found = arranged(tmp_path)
    row = found.rows["Ant-v5"]
    assert list(row.cells) == ["ddpg", "soft-td3"]
    assert row.comparisons["soft-td3"].probability.value == 1.0
    assert [cell.algorithm for cell in found.other_settings] == ["sbx-sac"]
    notes = hyperparameter_notes([row])
    assert len(notes) == 1
    assert notes[0].startswith("Soft TD3 differs from DDPG in ")
    assert "learning_rate 0.001, " in notes[0]
    assert "net_arch [128, 128]" in notes[0]  # those of the entry; a cell with others says so itself


def test_a_row_takes_what_there_is_where_nothing_is_at_the_default(tmp_path):
    write_run(tmp_path / "0", "Reacher-v5", "soft-ddpg-paper", 0, [1.0], sigma=0.3)
    assert arranged(tmp_path).rows["Reacher-v5"].cells["soft-ddpg-paper"].settings.sigma == 0.3
    write_run(tmp_path / "1", "Reacher-v5", "soft-ddpg-paper", 0, [2.0])
    assert arranged(tmp_path).rows["Reacher-v5"].cells["soft-ddpg-paper"].settings.sigma == 0.2
