"""The table of the search for a warm-up, from its stored runs."""

import csv
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "results"
DEFAULT = dict(warm_up="5000", noise_spread="1", exploration="0.2", random_episodes="0.05", n_steps="3")


def runs(env, **settings):
    with (FOLDER / "search_warmup.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["env"].endswith(env)]
    return [row for row in rows if all(row[name] == value for name, value in settings.items())]


def test_halfcheetahs_table_states_what_the_runs_have():
    page = (FOLDER / "search.md").read_text()
    lines = re.findall(
        r"^\| \W*([\d,]+) steps, (pink|uniform).*\| ([\d.]+)(?:, spread (\d))? \| (.*); ([\d,]+) steps \|$", page, re.M
    )
    assert len(lines) == 6
    for warm_up, kind, scale, spread, cells, steps in lines:
        rows = runs(
            "HalfCheetah-v5",
            warm_up=warm_up.replace(",", ""),
            warm_up_noise=kind,
            exploration=scale,
            noise_spread=f"{spread}.0" if spread else "1",
            random_episodes="0.05",
            parameter_noise="0",
            noise_color="1.0",
            steps=steps.replace(",", ""),
        )
        found = sorted((int(row["seed"]), float(row["best"]), float(row["angle"])) for row in rows)
        assert cells == ", ".join(f"{seed}: {best:,.0f} ({angle:.2f})" for seed, best, angle in found)


def test_the_text_states_what_the_runs_have():
    page = (FOLDER / "search.md").read_text()
    with (FOLDER / "search_warmup.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 126
    best = sorted(float(row["best"]) for row in runs("HalfCheetahDiscrete-v0", **DEFAULT))
    assert f"default: {', '.join(f'{score:,.0f}' for score in best)};" in page
    crossed = sorted(int(row["crossed_at"]) for row in runs("MountainCarDiscrete-v0", **DEFAULT))
    assert crossed == [8_000, 8_000, 10_000, 12_000]
    seconds = [float(row["cpu_seconds"]) for row in runs("MountainCarDiscrete-v0", **DEFAULT)]
    assert (round(min(seconds)), round(max(seconds))) == (3, 7)
    long = runs("HalfCheetah-v5", seed="550", updates_a_step="1.0")
    assert [round(float(row["best"])) for row in sorted(long, key=lambda row: row["n_steps"])] == [2_875, 4_364]
