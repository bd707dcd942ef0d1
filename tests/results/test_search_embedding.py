"""What the search states of embeddings and of what did not help, from its stored evaluations."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "results"
PAGE = (FOLDER / "search.md").read_text().partition("## What an action leads to")[2]
WORDS = " ".join(PAGE.split())
IDS = {"HalfCheetahDiscrete": "softdpg/HalfCheetahDiscrete-v0", "AntDiscrete": "softdpg/AntDiscrete-v0"}
IDS |= {"HumanoidDiscrete": "softdpg/HumanoidDiscrete-v0"}


def read():
    runs = {}
    with (FOLDER / "search_embedding.csv").open() as file:
        for row in csv.DictReader(file):
            key = (row["env"], row["setting"], int(row["seed"]), row["code"])
            runs.setdefault(key, []).append((int(row["step"]), float(row["cpu_seconds"]), float(row["score"])))
    return runs


RUNS = read()


def curve(env, setting, seed, code="script"):
    return np.array(RUNS[env, setting, seed, code])


def score(env, setting, seed, step, code="script"):
    """At the last evaluation up to ``step``."""
    return next(value for at, _, value in reversed(RUNS[env, setting, seed, code]) if at <= step)


def test_as_many_runs_as_stated():
    assert f"Of {len(RUNS)} more runs" in WORDS


def test_the_table_states_how_the_runs_ended():
    env, seen = "", 0
    for line in re.findall(r"^\| (.+) \|$", PAGE, re.MULTILINE)[2:]:
        label, seed, *numbers = line.split(" | ")
        if ":" in label:
            env, label = re.match(r"(\S+), line [\d,]+: (.*)", label).groups()
            env = IDS.get(env, env)
        code = "package" if label.startswith("the package") else "script"
        setting = {"before": "the default", "the package with it": "embedding"}.get(label, label)
        step, seconds, value = curve(env, setting, int(seed), code)[-1]
        assert numbers == [f"{step:,.0f}", f"{seconds:.0f}", f"{value:,.0f}"], (env, label)
        seen += 1
    assert seen == 16


@pytest.mark.parametrize(
    ("setting", "stated"),
    [
        ("the default", "1,327, 1,260, 2,476 and 2,421 before"),
        ("actor's rate 3e-4", "for the actor 1,292, 1,140, 1,927 and 1,460"),
        ("last layer of the actor near zero", "at the start 1,276, 1,504, 1,888 and 1,186"),
        ("noise 0.1", "noise of 0.1 2,379, 2,689, 1,463 and 2,516"),
        ("last layer near zero, noise 0.1", "small last layer 2,020, 3,383, 1,384 and 1,456"),
    ],
)
def test_cheetahs(setting, stated):
    numbers = [f"{score('HalfCheetah-v5', setting, seed, 18_000, 'package'):,.0f}" for seed in range(820, 824)]
    assert ", ".join(numbers[:-1]) + f" and {numbers[-1]}" in stated
    assert stated in WORDS


def test_landing():
    env = "LunarLanderContinuous-v3"
    pairs = [
        ("the default", "was -37 and -33"),
        ("prioritised replay", "had -99 and -54"),
        ("noise 0.1", "noise of 0.1 110 and -105"),
    ]
    for setting, stated in pairs:
        first, second = (f"{score(env, setting, seed, 36_000):.0f}" for seed in (852, 853))
        assert f"{first} and {second}" in stated
        assert stated in WORDS
    single = {"Adam's b1 0.9": "b1 of 0.9 had {}", "one-step returns": "one-step returns {}"}
    single |= {"least of the critics": "least of the critics {}", "observations as they are": "seed 852 had {}"}
    for setting, stated in single.items():
        assert stated.format(f"{score(env, setting, 852, 36_000):.0f}") in WORDS
    learned = score(env, "learned sigma, also as noise", 880, 50_000, "package")
    assert f"(seed 880, 50,000 steps) {learned:.0f}" in WORDS
    assert f"hovered at {score(env, 'observations as they are', 850, 60_000):.0f} after 60,000" in WORDS


@pytest.mark.parametrize(("env", "seed", "first", "last"), [("Walker2d-v5", 840, 20, 64), ("Hopper-v5", 860, 39, 54)])
def test_the_best_training_episode(env, seed, first, last):
    means = []
    for setting in ("the default, best of 1 episodes", "the default"):
        steps, _, scores = curve(env, setting, seed).T
        means.append(f"{scores[(steps >= 1_000 * first) & (steps <= 1_000 * last)].mean():.0f}")
    assert re.search(rf"from {first},000 to {last},000 steps {means[0]}\D.*?the last policy had {means[1]}\b", WORDS)


def test_the_double_pendulum():
    env = "InvertedDoublePendulum-v5"
    for setting, steps in (("the default", [22_000, 26_000]), ("one-step returns", [16_000, 16_000])):
        assert [curve(env, setting, seed, "package")[-1][0] for seed in (700, 701)] == steps
    assert "after 22,000 and 26,000 steps" in WORDS
    assert "one-step returns took 16,000 each" in WORDS


def test_the_embedding_in_the_race():
    ends = {
        env: curve(f"softdpg/{env}Discrete-v0", "embedding", 0, "package")
        for env in ("HalfCheetah", "InvertedPendulum")
    }
    assert [f"{run[-1][2]:,.0f}" for run in ends.values()] == ["997", "10,343"]
    assert [run[-1][0] for run in ends.values()] == [294_000, 300_000]
    assert "stayed at 997" in WORDS
    assert "had 10,343 of 10,383 after 300,000" in WORDS
    for env, line, stated in (("MountainCar", 100, "8,000 steps and 11"), ("Pendulum", 2182.19, "14,000 and 31")):
        run = curve(f"softdpg/{env}Discrete-v0", "embedding", 0, "package")
        above = run[:, 2] >= line
        step, seconds, _ = run[1:][above[1:] & above[:-1]][0]
        assert re.findall(r"[\d,]+", stated) == [f"{step:,.0f}", f"{seconds:.0f}"]
        assert stated in WORDS
