"""What docs/results/first and the README show is what ``softdpg report`` makes of the stored ``results.csv``."""

import re
import shutil
from pathlib import Path

import pytest

from softdpg.report.writing import write_report
from softdpg.results import reading as results

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "results" / "first"


def tables(text):
    """Markdown tables by the headings above them, ``"Table 2: .../Discrete rewards: ..."``, each with its lines."""
    found, headings = {}, {}
    for line in text.splitlines():
        if match := re.match(r"(#+) (.*)", line):
            level = len(match[1])
            headings = {k: v for k, v in headings.items() if k < level} | {level: match[2]}
        elif line.startswith("|"):
            found.setdefault("/".join(v for k, v in sorted(headings.items()) if k > 1), []).append(line)
    return found


@pytest.fixture(scope="module")
def again(tmp_path_factory):
    """The report of the stored results, in another directory."""
    out = tmp_path_factory.mktemp("again")
    shutil.copy(PUBLISHED / "results.csv", out)
    report = write_report(out / "results.csv")
    assert report.warnings == []
    return out


@pytest.mark.parametrize("name", ["tables.md", "results.csv"])
def test_the_stored_results_give_the_same_files_again(again, name):
    assert (again / name).read_bytes() == (PUBLISHED / name).read_bytes()


def test_every_figure_of_the_report_is_published(again):
    figures = {path.name for path in again.iterdir()} - {"report.html", "tables.md", "results.csv"}
    assert "overview.png" in figures
    assert {path.name for path in PUBLISHED.iterdir()} == figures | {"README.md", "tables.md", "results.csv"}


def test_the_readme_shows_a_table_of_the_results():
    shown = tables((ROOT / "README.md").read_text())["First results"]
    published = tables((PUBLISHED / "tables.md").read_text())
    assert shown == published["Table 2: Gym environments/Discrete rewards: mean ± std"]
    assert len(shown) > 2


@pytest.mark.parametrize("page", ["README.md", "docs/results/first/README.md"])
def test_pictures_and_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text())
    assert any(target.endswith("overview.png") for target in targets)
    for target in targets:
        assert ((ROOT / page).parent / target).exists(), target


def test_the_page_states_what_was_run():
    runs, _ = results.read(PUBLISHED / "results.csv")
    page = (PUBLISHED / "README.md").read_text()
    assert {run.commit[:7] for run in runs} == set(re.findall(r"commit `([0-9a-f]{7})`", page))
    finished = sum(run.state == "finished" for run in runs)
    assert f"{finished} of 54 runs finished" in page
