"""The files around the code: each is valid and says what the project does."""

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def load(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_citation_has_paper_and_software() -> None:
    citation = load("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert (citation["title"], citation["license"]) == (PROJECT["name"], PROJECT["license"])
    assert citation["repository-code"] == PROJECT["urls"]["Homepage"]
    assert "version" not in citation  # it would be a second place for it
    paper = citation["preferred-citation"]
    assert [author["family-names"] for author in paper["authors"]] == ["Na", "Lee"]
    assert paper["url"] == PROJECT["urls"]["Paper"] == "https://arxiv.org/abs/2605.06228"


def test_workflow_runs_ci_on_the_declared_versions_of_python() -> None:
    job = load(".github/workflows/ci.yml")["jobs"]["ci"]
    declared = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", c) for c in PROJECT["classifiers"]]
    assert job["strategy"]["matrix"]["python"] == [match[1] for match in declared if match] == ["3.11", "3.12", "3.13"]
    assert job["steps"][-1] == {"run": ".ci/run"}
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_commit_hooks_are_those_of_the_makefile() -> None:
    (repo,) = load(".pre-commit-config.yaml")["repos"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for hook in repo["hooks"]:
        command = hook["entry"].removeprefix(".venv/bin/").removesuffix(" --force-exclude")
        assert f"$(BIN)/{command}" in makefile
