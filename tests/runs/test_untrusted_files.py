"""Whatever the files of a run hold: exit code 0 or 2, one line, no traceback, no import, no file outside."""

import copy
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import tiny_config
from runs_on_disk import write_run

from softdpg import cli
from softdpg.runs.config import RunConfig
from softdpg.runs.training import train

CONFIG = tiny_config("softdpg/InvertedPendulumDiscrete-v0", "soft-ddpg", steps=60, evaluate_every=20)
EVIL = "evil_module"

odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 10**9, 10**30, 10**400, 1.5, 1e308, 5e-324, float("nan"), float("inf"), -0.0]),
    st.sampled_from(
        ["600", "", "x", "td3", "ddpg", "sb3-sac", f"{EVIL}:Id-v0", "\ud800", "$\\frac{$", "=1+1", "a" * 5000]
    ),
    st.sampled_from(
        ["../../x", "Pendulum-v1", "CartPole-v1", "softdpg/Nope-v0", "linear:0:1", "auto", "\x1b[31m", "a\nb"]
    ),
    st.lists(st.integers(-2, 3), max_size=3),
    st.sampled_from([[10**6, 10**6], ["1"], {"a": 1}, {}, [[1]]]),
)


def paths(value, prefix=()):
    """Every place in a JSON value."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield (*prefix, key)
            yield from paths(part, (*prefix, key))


@st.composite
def json_files(draw, valid):
    """The bytes of a file that should hold ``valid``: with values changed or gone, or something else altogether."""
    kind = draw(st.sampled_from(["changed"] * 8 + ["value", "bytes", "deep"]))
    if kind == "bytes":
        return draw(st.binary(max_size=50))
    if kind == "deep":
        return b'{"algo":' + b"[" * 50_000
    if kind == "value":
        return json.dumps(draw(odd)).encode()
    changed = copy.deepcopy(valid)
    for _ in range(draw(st.integers(1, 3))):
        *parents, last = draw(st.sampled_from(list(paths(changed))))
        place = changed
        for key in parents:
            place = place[key]
        if draw(st.integers(0, 4)):
            place[last] = copy.deepcopy(draw(odd))  # a copy: changed later, it must not be put into itself
        else:
            del place[last]
        if not changed:
            break
    return json.dumps(changed).encode()


cells = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from(
        ["", "x", "=1+1", '"', "1e308", "-1.7e308", "9" * 5000, "a" * 140_000, "nan", "\x00", "\ud7ff", "1_0"]
    ),
)


@st.composite
def csv_files(draw, valid: bytes):
    """The bytes of a CSV file: with cells changed, rows out of order, or something else altogether."""
    if draw(st.integers(0, 6)) == 0:
        return draw(st.binary(max_size=50))
    rows = [line.split(",") for line in valid.decode().splitlines()]
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.integers(0, len(rows) - 1))
        rows[row][draw(st.integers(0, len(rows[row]) - 1))] = draw(cells)
    order = draw(st.sampled_from([rows, rows[::-1], rows[:1], rows + rows[-1:], [row[:-1] for row in rows]]))
    return "\n".join(",".join(row) for row in order).encode() + draw(st.sampled_from([b"\n", b""]))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run"
    assert train(CONFIG, path) == 0
    return path


@pytest.fixture(scope="module")
def files(run):
    return {name: (run / name).read_bytes() for name in ("config.json", "status.json", "evaluations.csv")}


@pytest.fixture
def place(tmp_path, run, monkeypatch):
    """A copy of the run in a directory with a module that must not be imported, which is the current one."""
    (tmp_path / f"{EVIL}.py").write_text("raise SystemExit('imported')")
    shutil.copytree(run, tmp_path / "runs" / "run")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def outside(place: Path) -> dict[str, object]:
    return {entry.name: entry.stat().st_mtime_ns for entry in place.iterdir() if entry.name != "runs"}


def command(capsys, place, *arguments):
    """Run ``softdpg`` in this process; check what must hold and return exit code and standard error."""
    before = outside(place)
    argv, sys.argv = sys.argv, ["softdpg", *map(str, arguments)]
    try:
        cli.main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = argv
    printed = capsys.readouterr().err
    assert code in (0, 2), (code, printed)
    if code == 2:
        lines = [line for line in printed.splitlines() if not line.startswith("softdpg: warning: ")]
        assert len(lines) == 1, printed
        assert lines[0].startswith("softdpg: error: ")
    assert EVIL not in sys.modules
    assert outside(place) == before
    return code, printed


ANY = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ANY
@given(st.data())
def test_eval(capsys, place, files, data):
    (place / "runs/run/config.json").write_bytes(data.draw(json_files(json.loads(files["config.json"]))))
    command(capsys, place, "eval", place / "runs/run", "--episodes", 1)


@pytest.mark.extended
@settings(ANY, max_examples=15)
@given(st.data())
def test_watch(capsys, place, files, data):
    (place / "runs/run/config.json").write_bytes(data.draw(json_files(json.loads(files["config.json"]))))
    command(capsys, place, "watch", place / "runs/run", "--out", place / "runs" / "video.gif")


@settings(ANY, max_examples=15)
@given(st.data())
def test_resume(capsys, place, files, data):
    """A damaged status alone is refused as well: the run is finished, so it cannot be resumed."""
    target = place / "runs/run"
    name = data.draw(st.sampled_from(["config.json", "status.json"]))
    for other in ("config.json", "status.json"):
        (target / other).write_bytes(files[other])
    (target / name).write_bytes(data.draw(json_files(json.loads(files[name]))))
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    arguments = RunConfig.from_json(json.loads(files["config.json"])).arguments()
    command(capsys, place, "train", *arguments, "--out", target)
    after = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    config = target / "config.json"
    if after[config] != before[config]:  # fewer steps than the command asks for: that run is extended
        steps = json.loads(files["config.json"])["steps"]
        assert json.loads(after[config]) == json.loads(before[config]) | {"steps": steps}
        after[config] = before[config]
    assert after == before


def test_a_status_that_counts_fewer_steps_than_were_done_extends_nothing(capsys, place, files):
    target = place / "runs/run"
    status = json.loads(files["status.json"]) | {"steps": 1}
    (target / "status.json").write_text(json.dumps(status))
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    command(capsys, place, "train", *CONFIG.resolved().arguments(), "--out", target)
    assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == before


@settings(ANY, max_examples=50)
@given(st.data())
def test_reading_for_a_report(place, files, data):
    """A run that cannot be read is left out, and the other one is read as usual."""
    from softdpg.report.reading import read_runs, write_results

    bad = place / "runs/run"
    good = place / "runs/good"
    good.mkdir(exist_ok=True)
    for name, contents in files.items():
        (good / name).write_bytes(contents)
        (bad / name).write_bytes(contents)
    config = json.loads(files["config.json"])
    (good / "config.json").write_text(json.dumps(config | {"seed": 1}))
    name = data.draw(st.sampled_from(sorted(files)))
    strategy = csv_files(files[name]) if name.endswith("csv") else json_files(json.loads(files[name]))
    (bad / name).write_bytes(data.draw(strategy))
    runs, timed, warnings = read_runs(place / "runs")
    assert "good" in [run.name for run in runs]
    assert len(runs) + len(timed) == 2 or any("skipped" in warning for warning in warnings)
    write_results(runs).encode()


@pytest.mark.extended
@settings(ANY, max_examples=6)
@given(st.data())
def test_report(capsys, place, files, data):
    for name, contents in files.items():
        (place / "runs/run" / name).write_bytes(contents)
    name = data.draw(st.sampled_from(["config.json", "evaluations.csv"]))
    strategy = csv_files(files[name]) if name.endswith("csv") else json_files(json.loads(files[name]))
    (place / "runs/run" / name).write_bytes(data.draw(strategy))
    command(capsys, place, "report", place / "runs", "--out", place / "runs/report")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("steps", "600", "config.json: steps must be"),
        ("steps", float("inf"), "Infinity is not a finite number"),
        ("seed", "x", "config.json: seed must be"),
        ("env", 5, "config.json: env must be"),
        ("env", "\ud800", "text that is not Unicode"),
        ("algo", "td4", "td4"),
        ("env", f"{EVIL}:Id-v0", "imported only with --trust"),
    ],
)
def test_the_values_that_were_found(capsys, place, files, key, value, message):
    config = json.loads(files["config.json"]) | {key: value}
    (place / "runs/run/config.json").write_text(json.dumps(config))
    for arguments in (["eval", place / "runs/run"], ["watch", place / "runs/run"]):
        code, printed = command(capsys, place, *arguments)
        assert code == 2
        assert message in printed


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_pipe_in_the_place_of_a_file(capsys, place, name):
    (place / "runs/run" / name).unlink()
    os.mkfifo(place / "runs/run" / name)
    code, printed = command(capsys, place, "eval", place / "runs/run")
    assert code == 2
    assert f"{name} is not a regular file" in printed


@pytest.mark.extended
def test_a_report_is_not_written_through_links(capsys, place):
    precious = place / "precious"
    precious.write_text("mine")
    shutil.rmtree(place / "runs")
    write_run(place / "runs/ant", "softdpg/AntDiscrete-v0", "ddpg", 0, [1.0, 2.0])
    report = place / "runs/report"
    report.mkdir()
    names = ["report.html", "tables.md", "results.csv", "mujoco.png", "mujoco.pdf"]
    for name in names:
        (report / name).symlink_to(precious)
    assert command(capsys, place, "report", place / "runs")[0] == 0
    assert precious.read_text() == "mine"
    assert sorted(path.name for path in report.iterdir()) == sorted(names)
    assert not any(path.is_symlink() for path in report.iterdir())
    shutil.rmtree(report)
    (place / "elsewhere").mkdir()
    report.symlink_to(place / "elsewhere")
    code, printed = command(capsys, place, "report", place / "runs")
    assert code == 2
    assert "must not be a symbolic link" in printed
    assert not list((place / "elsewhere").iterdir())


@pytest.mark.extended
@pytest.mark.parametrize("what", ["infinite steps", "huge returns", "not math", "huge field", "deep status"])
def test_one_bad_run_does_not_spoil_the_report(tmp_path, capsys, what):
    for seed in range(3):
        for algorithm in ("ddpg", "soft-ddpg"):
            write_run(tmp_path / "runs" / f"{algorithm}-{seed}", "softdpg/AntDiscrete-v0", algorithm, seed, [1.0, 2.0])
    bad = tmp_path / "runs/ddpg-2"
    if what == "infinite steps":
        (bad / "config.json").write_text(
            (bad / "config.json").read_text().replace('"steps": 10000', '"steps": Infinity')
        )
    elif what == "huge returns":
        (bad / "evaluations.csv").write_text("step,mean,std\n5000,1.7e308,0.0\n10000,1.7e308,0.0\n")
    elif what == "huge field":
        (bad / "evaluations.csv").write_text(f"step,mean,std\n5000,1.0,{'1' * 200_000}\n")
    elif what == "deep status":
        (bad / "status.json").write_text("[" * 1000 + "]" * 1000)
    else:
        config = json.loads((bad / "config.json").read_text())
        (bad / "config.json").write_text(json.dumps(config | {"env": "$\\frac{$"}))
    code, printed = command(capsys, tmp_path, "report", tmp_path / "runs")
    assert code == 0
    skipped = "ddpg-2: skipped" in printed
    assert skipped == (what in ("infinite steps", "huge returns", "huge field"))
    if skipped:
        others = shutil.ignore_patterns("report", "ddpg-2")
        shutil.copytree(tmp_path / "runs", tmp_path / "without", ignore=others)
        assert command(capsys, tmp_path, "report", tmp_path / "without", "--out", tmp_path / "runs/out")[0] == 0
        tables = (tmp_path / "runs/report/tables.md").read_text()
        assert tables == (tmp_path / "runs/out/tables.md").read_text()
