"""The notebook runs from top to bottom."""

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]


def outputs_of(cell):
    """Return what a cell showed, as one string."""
    parts = [output.get("text", "") + output.get("data", {}).get("text/markdown", "") for output in cell.outputs]
    return "".join(parts)


@pytest.mark.extended
def test_notebook_runs_and_shows_its_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(ROOT / "examples" / "quickstart.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    shortened = 0
    for cell in notebook.cells:
        cell.source, n = re.subn(r"TOTAL_TIMESTEPS = [\d_]+", "TOTAL_TIMESTEPS = 1_010", cell.source)
        shortened += n
    assert shortened == 1
    client = NotebookClient(notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": tmp_path}})
    client.execute()
    training = next(cell for cell in notebook.cells if "model.learn" in cell.source)
    assert "1,010 of 1,010 steps, last evaluation" in outputs_of(training)
    last = [cell for cell in notebook.cells if cell.cell_type == "code"][-1]
    assert float(re.search(r"predict: (\S+)", outputs_of(last))[1]) == pytest.approx(0, abs=1e-5)
    pictures = [o for cell in notebook.cells for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
    assert len(pictures) == 3
