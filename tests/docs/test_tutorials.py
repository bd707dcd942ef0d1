"""Every snippet of tutorials, README and home page runs, in order, with few steps; every command is valid."""

import functools
import re
import shlex
import sys
import warnings
from pathlib import Path

import pytest
from commands import in_a_process, softdpg

from softdpg import cli

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md", *TUTORIALS]
NOT_RUN = ("pip", "make")  # they change the installation, or train for minutes
BLOCK = re.compile(r"^```(python|bash)([^\n]*)\n(.*?)^```", re.M | re.S)
# One update's worth of steps; the point is that the snippet fits the library, not that it learns.
FEWER = [
    (r"total_timesteps=[\d_]+", "total_timesteps=210"),
    (r"learning_starts=[\d_]+", "learning_starts=200"),
    (r"(eval_freq=|CheckpointCallback\()[\d_]+", r"\g<1>200"),
    (r"--steps \d+", "--steps 210"),
    (r"--budget \d+", "--budget 5010"),
    (r"(softdpg train .*)", r"\1 --evaluation-episodes 1"),
    (r"(softdpg train (?:(?!--steps).)*$)", r"\1 --steps 210"),
    (r"softdpg eval ((?:(?!--episodes).)*$)", r"softdpg eval \1 --episodes 1"),
]


def run_page(text: str) -> None:
    """A page in the current directory: titled blocks become files, others run in the order of the page."""
    warnings.simplefilter("ignore")
    sys.path.insert(0, ".")
    namespace = {"__name__": "__main__"}
    for language, rest, code in BLOCK.findall(text):
        title = re.search(r'title="([^"]+)"', rest)
        for pattern, few in FEWER:
            code = re.sub(pattern, few, code)
        if "no-test" in rest:
            continue
        if title:
            Path(title[1]).write_text(code)
        elif language == "python":
            exec(compile(code, "<snippet>", "exec"), namespace)
        else:
            for line in code.replace("\\\n", " ").splitlines():
                command, *arguments = shlex.split(line, comments=True) or ["make"]
                if command in NOT_RUN:
                    continue
                assert command == "softdpg"
                done = softdpg(*arguments)
                assert done.returncode == 0, f"{line}\n{done.stderr}"


@pytest.mark.extended
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_snippets_of_a_page_run(page, tmp_path):
    text = page.read_text()
    assert BLOCK.search(text)
    done = in_a_process(run_page, text, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


def test_blocks_that_are_not_run_are_few():
    """Only what needs a cluster is left out."""
    untested = [page.stem for page in TUTORIALS for _, rest, _ in BLOCK.findall(page.read_text()) if "no-test" in rest]
    assert set(untested) <= {"cluster"}


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda path: path.stem
)
def test_every_command_in_the_docs_is_valid(page, monkeypatch):
    """The parser accepts each command as printed, whatever it takes to run it."""

    def silent(function):
        return functools.wraps(function)(lambda *_, **__: None)

    monkeypatch.setattr(cli, "COMMANDS", {name: silent(function) for name, function in cli.COMMANDS.items()})
    monkeypatch.setattr(cli, "_config_file", lambda _: {"env": "Pendulum-v1"})  # the file is made by another snippet
    for language, _, code in BLOCK.findall(page.read_text()):
        for line in code.replace("\\\n", " ").splitlines() if language == "bash" else []:
            words = re.match(r"(?:\w+=\S+ )*softdpg (.*)", line)
            if words:
                monkeypatch.setattr(sys, "argv", ["softdpg", *shlex.split(words[1], comments=True)])
                cli.main()
