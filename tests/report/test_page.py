"""`softdpg report` end to end: files, the round trip over results.csv, bad input, and the page in a real browser."""

import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import plotly.graph_objects as go
import pytest
from runs_on_disk import write_run, write_runs

from softdpg.cli import main
from softdpg.report.page import write_report
from softdpg.report.plots import curve_plot, sweep_plots
from softdpg.report.reading import read_runs
from softdpg.report.scores import arrange

HOSTILE = "</script><script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """Three environments, three algorithms, a sweep, an unfinished run, a damaged one and one with hostile strings."""
    root = tmp_path_factory.mktemp("runs")
    for env in ("softdpg/PendulumDiscrete-v0", "Reacher-v5"):
        write_runs(root, env, "ddpg", [[1.0, 2.1], [1.0, 3.3], [0.1, 0.2]])
        write_runs(root, env, "soft-ddpg-paper", [[1.0, 4.1], [1.0, 5.3], [0.1, 1 / 3]])
        write_runs(root, env, "soft-ddpg", [[1.0, 7.1], [1.0, 8.3]])
    for n in (10, 20):
        write_runs(root, "Ant-v5", "soft-ddpg-paper", [[float(n), n + 0.5], [float(n), n + 1.5]], n_samples=n)
    write_run(root / "under-way", "Ant-v5", "ddpg", 0, [1.0], steps=10_000, state="running")
    config = write_run(root / "hostile", HOSTILE, "ddpg", 0, [1.0, 2.0], action_layer="input") / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"commit": HOSTILE, "versions": {"jax": HOSTILE}}))
    (write_run(root / "damaged", "Ant-v5", "ddpg", 1, [1.0]) / "config.json").write_text("{")
    return root


@pytest.fixture(scope="module")
def report(runs, tmp_path_factory):
    return write_report(runs, tmp_path_factory.mktemp("report"))


def test_one_run_cannot_spoil_the_report_of_the_others(tmp_path):
    """A benchmark on an environment whose name is not mathematics, in a directory whose name is not UTF-8."""
    write_run(tmp_path / "good", "Ant-v5", "ddpg", 0, [1.0, 2.0])
    for seed, name in enumerate(("formula", os.fsdecode(b"\xff\xfe"))):
        run = write_run(tmp_path / name, "$\\frac{$", "td3", seed, [5.0, 5.0], stop_at_score=1.0)
        (run / "timings.csv").write_text("step,train,evaluate,compile\n5000,1,0,0\n10000,2,0,0\n")
    damaged = write_run(tmp_path / os.fsdecode(b"damaged-\xff"), "Ant-v5", "ddpg", 1, [1.0])
    (damaged / "config.json").write_text("{")
    written = write_report(tmp_path, tmp_path / "report")
    assert len(written.warnings) == 1
    assert "damaged-\\udcff: skipped: config.json is not valid JSON" in written.warnings[0]
    assert "race_profile.png" in [file.name for file in written.files]
    assert "\\udcff\\udcfe,$\\frac{$," in (tmp_path / "report" / "race.csv").read_text()
    assert {run.name for run in read_runs(tmp_path / "report" / "race.csv").benchmark} == {"formula", "\\udcff\\udcfe"}


@pytest.fixture
def softdpg(monkeypatch, capsys):
    """The command in this process: exit code, standard output, standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["softdpg", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return call


def test_files_and_warnings(report, runs):
    names = {file.name for file in report.files}
    figures = {
        f"{name}.{suffix}"
        for name in ("mujoco", "gym", "other", "overview", "sensitivity")
        for suffix in ("png", "pdf")
    }
    assert names == {"report.html", "tables.md", "results.csv"} | figures
    assert {file.name for file in report.files[0].parent.iterdir()} == names
    assert report.warnings == [f"{runs / 'damaged'}: skipped: config.json is not valid JSON"]


def test_results_csv_gives_the_same_tables_byte_for_byte(report, softdpg, tmp_path):
    stored = tmp_path / "results.csv"
    shutil.copy(report.files[2], stored)
    code, out, err = softdpg("report", stored)
    assert (code, err) == (0, "")
    assert out.splitlines()[:2] == [report.summary, f"wrote {tmp_path / 'report.html'}"]
    for name in ("tables.md", "results.csv", "overview.png", "sensitivity.pdf"):
        assert (tmp_path / name).read_bytes() == (report.files[0].parent / name).read_bytes(), name


def test_the_default_place_is_beside_the_runs_and_a_second_report_ignores_it(tmp_path):
    write_runs(tmp_path, "Pendulum-v1", "ddpg", [[1.0]])
    first, second = write_report(tmp_path), write_report(tmp_path)
    assert first == second
    assert first.files[0] == tmp_path / "report" / "report.html"


def test_plots_are_valid_plotly(runs):
    arranged = arrange(read_runs(runs)[0])
    plots = [curve_plot(row) for row in arranged.rows.values()] + sweep_plots(arranged)
    assert len(plots) == 4 + 1
    for plot in plots:
        go.Figure(plot)  # raises on any unknown property or value
    pendulum = curve_plot(arranged.rows["softdpg/PendulumDiscrete-v0"])
    ddpg = next(trace for trace in pendulum["data"] if trace["meta"]["part"] == "mean")
    assert ddpg["name"] == "DDPG"
    assert ddpg["y"] == [0.7, 1.8667]
    assert ddpg["text"] == ["0.7 ± 0.5", "1.9 ± 1.6"]
    assert ddpg["hovertemplate"] == "%{text} (3 seeds)"


@pytest.mark.parametrize("case", ["absent", "empty", "no csv", "out is a file", "out cannot be written"])
def test_bad_input_is_one_line_and_exit_code_2(softdpg, tmp_path, case):
    good = tmp_path / "runs"
    write_runs(good, "Pendulum-v1", "ddpg", [[1.0]])
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("a,b\n")
    # /proc refuses new directories even to root, for whom permissions do not count.
    arguments, message = {
        "absent": ([tmp_path / "absent"], "no such file or directory"),
        "empty": ([tmp_path / "empty"], "no runs with evaluations found"),
        "no csv": ([tmp_path / "file"], "not a results.csv of softdpg"),
        "out is a file": ([good, "--out", tmp_path / "file"], "cannot write to"),
        "out cannot be written": ([good, "--out", "/proc/softdpg"], "cannot write to /proc/softdpg"),
    }[case]
    code, out, err = softdpg("report", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("softdpg: error: ")
    assert err.count("\n") == 1
    assert message in err
    assert (tmp_path / "file").read_text() == "a,b\n"


def test_the_page_is_one_file_without_references(report):
    text = report.files[0].read_text()
    own = re.sub(r"<script>\s*/\*\*.*?</script>", "", text, count=1, flags=re.S)  # all but plotly.js
    assert len(own) < 300_000 < 3_000_000 < len(text) < 6_000_000
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", own)
    assert "default-src 'none'" in own
    assert HOSTILE not in own


@pytest.fixture(scope="module")
def browser():
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium on this machine: the page was not opened in a browser")
    return found


@pytest.mark.extended
@pytest.mark.parametrize("width", [1400, 500])
def test_the_page_in_chromium(report, browser, tmp_path, width):
    """The page's policy forbids every request, and Chromium logs a violation as a console error like any other."""
    command = [
        browser,
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
        *("--disable-background-networking", "--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}"),
        *("--enable-logging=stderr", f"--window-size={width},900", "--virtual-time-budget=20000", "--dump-dom"),
        report.files[0].as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "LANG": "C.UTF-8"})
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    dom = done.stdout
    assert "<title>softdpg: Results on " in dom
    # Four environments with curves and one sweep; every plot is drawn.
    assert 'data-plots="5"' in dom
    drawn = dom[: dom.index("<script>")]
    specs = re.findall(r'<script type="application/json">(.*?)</script>', report.files[0].read_text(), flags=re.S)
    plots = [json.loads(spec) for spec in specs]
    # Means: three algorithms in two environments and DDPG alone in two; a band for each of the first six; a sweep
    # has its seeds and its means.
    assert sum(len(plot["data"]) for plot in plots) == (3 + 3 + 1 + 1) + 6 + 2
    assert len(re.findall(r'class="trace scatter', drawn)) == 16
    titles = [unescape(title) for title in re.findall(r'class="gtitle"[^>]*>([^<]*)<', drawn)]
    assert titles == [plot["layout"]["title"]["text"] for plot in plots]
    assert "Pendulum (discrete)" in titles
