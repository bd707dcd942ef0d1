"""Every table in docs/results is what ``softdpg report`` makes of the CSV file beside it."""

from pathlib import Path

import pytest

from softdpg.report.benchmark import Benchmark
from softdpg.report.benchmark_tables import benchmark_sections
from softdpg.report.document import to_markdown
from softdpg.report.reading import read_runs, write_benchmark, write_curves, write_results
from softdpg.report.scores import arrange
from softdpg.report.tables import coverage, how_to_read, sections

PUBLISHED = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize("folder", ["race", "ablation", "ablation/bodies"])
@pytest.mark.usefixtures("ablations")
def test_a_benchmark(folder):
    _, runs, warnings = read_runs(PUBLISHED / folder / "race.csv")
    assert warnings == []
    assert len(runs) > 20
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
