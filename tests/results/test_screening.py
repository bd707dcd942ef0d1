"""The published effects of the screening, from its stored runs."""

import csv
import re
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parents[2] / "docs/results"
FIRST, LAST = "normalised_observations", "adam_b1_0.5"


def effects():
    """Least squares of the progress on the columns' means and the factors at -1/2 and 1/2: effect and error."""
    with (RESULTS / "screening.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = list(rows[0])
    factors = names[names.index(FIRST) : names.index(LAST) + 1]
    columns = sorted({row["env"] for row in rows})
    design = np.array(
        [[float(row["env"] == env) for env in columns] + [int(row[factor]) - 0.5 for factor in factors] for row in rows]
    )
    progress = np.array([float(row["progress"]) for row in rows])
    solution = np.linalg.lstsq(design, progress, rcond=None)[0]
    residuals = progress - design @ solution
    variance = residuals @ residuals / (len(rows) - design.shape[1])
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * variance)
    return {factor: (solution[i], errors[i]) for i, factor in enumerate(factors, start=len(columns))}, len(rows)


def test_published_effects_follow_from_the_stored_runs():
    page = (RESULTS / "search.md").read_text()
    found, n_runs = effects()
    assert f"{n_runs} runs" in page
    published = {
        name: (float(effect), float(error))
        for name, effect, error in re.findall(r"^\| .* \| `(\S+)` \| ([+-]\d\.\d\d) ± (\d\.\d\d) \|$", page, re.M)
    }
    assert published.keys() == found.keys()
    for name, pair in published.items():
        np.testing.assert_allclose(pair, found[name], atol=0.0051, err_msg=name)
