import json
import subprocess
import sys
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from softdpg.theory.report import print_tables, summarise
from softdpg.theory.sweep import run_counterexamples, run_statements


@pytest.fixture(scope="module")
def checks():
    return list(run_statements())


def test_every_case_of_the_sweep_holds(checks):
    assert [check for check in checks if not check.holds] == []


def test_tolerances_are_small_beside_the_numbers(checks):
    """A tolerance that grew to the size of the numbers would let every statement hold."""
    compared = [check for check in checks if check.kind != "distinct"]
    sizes = [max(abs(check.claimed), abs(check.measured)) for check in compared]
    assert [c for c, size in zip(compared, sizes, strict=True) if c.tolerance > 1e-4 * size] == []
    relative = [check.tolerance / size for check, size in zip(compared, sizes, strict=True)]
    assert np.median(relative) < 1e-9


def test_summary_keeps_the_worst_case(checks):
    rows = summarise(checks)
    assert sum(cases for _, cases, _ in rows) == len(checks)
    (bound,) = [check for check, _, _ in rows if check.statement == "bound on |V - V_sigma|"]
    assert bound.ratio == max(c.ratio for c in checks if c.statement == bound.statement)


@pytest.mark.parametrize("all_cases", [False, True])
def test_tables_fit_eighty_columns(checks, all_cases):
    pairs, text = list(run_counterexamples()), StringIO()
    print_tables(Console(file=text, width=80), checks, pairs, all_cases)
    lines = text.getvalue().splitlines()
    rows = [line for line in lines if line.startswith(" Thm 5.7")]
    assert len(rows) == (3 if not all_cases else sum(c.reference == "Theorem 5.7" for c in checks)) + 2
    assert sum(row.rstrip().endswith("yes") for row in rows) == len(rows) - 1
    assert sum(row.rstrip().endswith("NO") for row in rows) == 1
    assert f"{len(pairs)} of {len(pairs)} corrected forms hold" in " ".join(text.getvalue().split())


@pytest.mark.extended
def test_command_prints_json_alone_and_stays_light(tmp_path):
    """Exit code 0 although statements fail as written; neither JAX nor torch is loaded."""
    code = (
        "import sys; from softdpg.cli import main\n"
        f"sys.argv = ['softdpg', 'theory', '--json', '--out', {str(tmp_path)!r}]\n"
        "main(); assert not {'jax', 'torch'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    records = json.loads(done.stdout)
    assert len(records) > 500
    for record in records:
        assert {"statement", "claimed", "measured", "ratio", "holds"} <= record.keys()
        assert isinstance(record["holds"], bool)
    failing = {r["statement"] for r in records if not r["holds"]}
    assert failing >= {"simulation lemma", "E||w|| = sqrt(m)", "Soft-DPG theorem, rho a distribution"}
    assert (tmp_path / "error_vs_sigma.png").stat().st_size > 20_000
    assert "error_vs_sigma.png" in done.stderr
