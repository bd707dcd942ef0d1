"""Every table in docs/results is what ``softdpg report`` makes of the CSV file beside it."""

from itertools import groupby
from pathlib import Path

import pytest

from softdpg.report.benchmark import Benchmark
from softdpg.report.benchmark_tables import benchmark_sections
from softdpg.report.document import to_markdown
from softdpg.report.reading import read_runs, write_benchmark, write_curves, write_results
from softdpg.report.scores import arrange
from softdpg.report.tables import coverage, how_to_read, sections

PUBLISHED = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize("folder", ["race", "ablation", "ablation/bodies", "actions"])
@pytest.mark.usefixtures("ablations")
def test_a_benchmark(folder):
    _, runs, warnings = read_runs(PUBLISHED / folder / "race.csv")
    assert warnings == []
    assert len(runs) >= 4
    contents = {
        "race.csv": write_benchmark(runs),
        "race_curves.csv": write_curves(runs),
        "race.md": to_markdown("Benchmark: tables", [], benchmark_sections(Benchmark(runs))),
    }
    for name, text in contents.items():
        assert text == (PUBLISHED / folder / name).read_text(encoding="utf-8"), name


def test_scores():
    runs, _, warnings = read_runs(PUBLISHED / "first" / "results.csv")
    assert warnings == []
    assert len(runs) > 20
    results = arrange(runs)
    introduction = [coverage(results), *how_to_read(results)]
    contents = {
        "results.csv": write_results(runs),
        "tables.md": to_markdown("Results", introduction, sections(results)),
    }
    for name, text in contents.items():
        assert text == (PUBLISHED / "first" / name).read_text(encoding="utf-8"), name


def test_steps_by_seed_of_the_action_spaces():
    """The rows of the table in README.md: steps to the target score in thousands, by seed, and the CPU seconds."""
    _, runs, _ = read_runs(PUBLISHED / "actions" / "race.csv")
    page = (PUBLISHED / "actions" / "README.md").read_text(encoding="utf-8")
    for (env, budget), group in groupby(
        sorted((run for run in runs if run.algorithm == "soft-td3"), key=lambda run: (run.env, run.seed)),
        key=lambda run: (run.env, run.settings.steps),
    ):
        found = list(group)
        name = env.rpartition("/")[2].rpartition(":")[2]
        steps = ", ".join("–" if run.reached is None else f"{run.steps_to_target / 1_000:g}" for run in found)
        seeds = ", ".join(str(run.seed) for run in found)
        reached = sum(run.reached is not None for run in found)
        row = f"| {name} | {found[0].target_score:g} | {budget:,} | {seeds} | {steps} | {reached} of {len(found)} |"
        assert row in page, row
