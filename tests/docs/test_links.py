"""Links, files, commands, flags and modules that README and documentation name exist."""

import inspect
import re
import sys
from pathlib import Path

import pytest

import softdpg
from softdpg import cli
from softdpg.algorithms.registry import ALGORITHMS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The changelog and the results name commands and modules of earlier versions.
CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md" and "results" not in page.parts]
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
COMMAND = re.compile(r"\bsoftdpg ([a-z]+)((?:[^\n`|#\\]|\\\n)*)")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub and the site make them."""
    lines = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.M)
    kept = [re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line)) for line in lines]
    return {line.strip().lower().replace(" ", "-") for line in kept}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in headings(target)):
            dead.append(link)
    assert dead == []


@pytest.mark.parametrize("page", CURRENT, ids=name)
def test_files_that_are_named_exist(page: Path) -> None:
    paths = re.findall(r"`((?:softdpg|tests|examples|benchmarks|docs)/[\w./-]*)`", page.read_text(encoding="utf-8"))
    assert [path for path in paths if not (ROOT / path).exists() and not re.match(r"softdpg/\w+-v\d", path)] == []


@pytest.mark.parametrize("page", CURRENT, ids=name)
def test_modules_that_are_named_exist(page: Path) -> None:
    dotted = re.findall(
        r"(?:`|from |import |^::: )((?:softdpg|benchmarks)(?:\.\w+)+)", page.read_text(encoding="utf-8"), re.M
    )
    assert [path for path in sorted(set(dotted)) if not exists(path)] == []


def exists(dotted: str) -> bool:
    """Whether a dotted path leads to a module, or to a name that its source has."""
    path, parts = ROOT, dotted.split(".")
    while parts and (path / parts[0]).is_dir():
        path /= parts.pop(0)
    path = path / f"{parts.pop(0)}.py" if parts and (path / f"{parts[0]}.py").exists() else path / "__init__.py"
    return path.exists() and (not parts or bool(re.search(rf"\b{parts[0]}\b", path.read_text(encoding="utf-8"))))


def test_make_targets_that_are_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in CURRENT:
        text = page.read_text(encoding="utf-8")
        for targets in re.findall(r"(?:^|`)make ([a-z -]+?)(?:`| +#|$)", text, re.M):
            for target in targets.split():
                assert re.search(rf"^{target}:", makefile, re.M), f"{name(page)}: make {target}"


def test_commands_and_flags_that_are_named_exist(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    used: dict[str, dict[str, str]] = {}
    for page in CURRENT:
        for command, rest in COMMAND.findall(page.read_text(encoding="utf-8")):
            flags = re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)
            if flags or command in cli.COMMANDS:
                used.setdefault(command, {}).update(dict.fromkeys(flags, name(page)))
    assert len(used) >= 10
    missing = []
    for command, flags in used.items():
        monkeypatch.setattr(sys, "argv", ["softdpg", command, "--help"])
        with pytest.raises(SystemExit):
            cli.main()
        text = capsys.readouterr().out
        missing += [f"{page}: softdpg {command} {flag}" for flag, page in flags.items() if flag not in text]
    assert missing == []


def test_algorithms_that_are_named_exist() -> None:
    unknown = []
    for page in CURRENT:
        for names in re.findall(r"--algos? ((?:[a-z0-9-]+ )*[a-z0-9-]+)", page.read_text(encoding="utf-8")):
            words = names.split(" --")[0].split()
            unknown += [f"{name(page)}: {word}" for word in words if word not in ALGORITHMS and "without" not in word]
    assert unknown == []


def test_the_layout_lists_every_folder() -> None:
    text = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", text.split("\n## ")[0], re.M)
    folders = {path.parent.name for path in (ROOT / "softdpg").glob("*/__init__.py")}
    assert set(listed) == folders | {"cli", "paper", "wrappers"}


@pytest.mark.parametrize("name", [name for name in softdpg.__all__ if not name.startswith("_")])
def test_an_argument_without_a_default_value_says_what_none_stands_for(name: str) -> None:
    algorithm = getattr(softdpg, name)
    described = dict(re.findall(r":param (\w+):(.*?)(?=\n\s*:param|\Z)", algorithm.__doc__, re.S))
    defaults = {key: p.default for key, p in inspect.signature(algorithm).parameters.items()}
    assert [key for key, value in defaults.items() if value is None and "None for" not in described[key]] == []


def test_the_reference_has_the_effective_defaults_of_policy_kwargs() -> None:
    page = (ROOT / "docs" / "api" / "algorithms.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.+?)` \|", page, re.M))
    shown = {key: rows[key].replace('"', "'") for key in softdpg.SoftTD3.policy_defaults}
    assert shown == {key: repr(value) for key, value in softdpg.SoftTD3.policy_defaults.items()}
