"""Every snippet of the tutorials runs, in order, with few steps."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def script(page: str) -> str:
    """A page as one Python program: titled blocks become files, bash blocks become commands."""
    parts = ["import pathlib, subprocess, sys", "sys.path.insert(0, '.')"]
    for language, rest, code in BLOCK.findall(page):
        title = re.search(r'title="([^"]+)"', rest)
        for pattern, few in FEWER:
            code = re.sub(pattern, few, code)
        if "no-test" in rest:
            continue
        if title:
            parts.append(f"pathlib.Path({title[1]!r}).write_text({code!r})")
        elif language == "bash":
            parts.append(f"subprocess.run(['bash', '-euc', {code!r}], check=True)")
        else:
            parts.append(code)
    return "\n".join(parts)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda path: path.stem)
def test_snippets_of_a_tutorial_run(page, tmp_path):
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONPATH"] = os.pathsep.join([str(page.parents[2]), environment.get("PYTHONPATH", "")])
    text = script(page.read_text())
    assert "subprocess.run(" in text or "import" in text
    command = [sys.executable, "-W", "ignore", "-c", text]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]


def test_blocks_that_are_not_run_are_few():
    """Only what needs a cluster is left out."""
    untested = [page.stem for page in TUTORIALS for _, rest, _ in BLOCK.findall(page.read_text()) if "no-test" in rest]
    assert set(untested) <= {"cluster"}
