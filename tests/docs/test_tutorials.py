"""Every snippet of the tutorials runs, in order, with few steps."""

import re
import shlex
import sys
import warnings
from pathlib import Path

import pytest
from commands import in_a_process, softdpg

pytestmark = pytest.mark.extended
TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(python|bash)([^\n]*)\n(.*?)^```", re.M | re.S)
# One update's worth of steps; the point is that the snippet fits the library, not that it learns.
FEWER = [
    (r"total_timesteps=[\d_]+", "total_timesteps=210"),
    (r"learning_starts=[\d_]+", "learning_starts=200"),
    (r"(eval_freq=|CheckpointCallback\()[\d_]+", r"\g<1>200"),
    (r"--steps \d+", "--steps 210"),
    (r"--budget \d+", "--budget 210"),
    (r"(softdpg train .*)", r"\1 --evaluation-episodes 1"),
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
            for line in code.splitlines():
                command, *arguments = shlex.split(line, comments=True)
                assert command == "softdpg"
                done = softdpg(*arguments)
                assert done.returncode == 0, f"{line}\n{done.stderr}"


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda path: path.stem)
def test_snippets_of_a_tutorial_run(page, tmp_path):
    text = page.read_text()
    assert BLOCK.search(text)
    done = in_a_process(run_page, text, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


def test_blocks_that_are_not_run_are_few():
    """Only what needs a cluster is left out."""
    untested = [page.stem for page in TUTORIALS for _, rest, _ in BLOCK.findall(page.read_text()) if "no-test" in rest]
    assert set(untested) <= {"cluster"}
