"""The trained policies of the package: complete, small, and as good as they claim."""

import re

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.evaluation import evaluate_policy

from softdpg import paper, zoo
from softdpg.cli import main
from softdpg.errors import UserError
from softdpg.runs.trained import evaluate_run

ENTRIES = {entry.name: entry for entry in zoo.entries()}
QUICK = "MountainCarDiscrete"


def check_score(name: str, episodes: int) -> None:
    """Play new episodes; the published score lies in their interval, of four standard errors.

    Trajectories differ between processors, because sums of floats do. So returns are not compared one by one.
    """
    policy = zoo.load(name)
    returns = evaluate_run(policy, episodes=episodes, seed=2)
    error = policy.entry.std * np.sqrt(1 / episodes + 1 / policy.entry.episodes)
    assert abs(returns.mean() - policy.entry.score) <= 4 * error + 1e-6 * abs(policy.entry.score)


def test_a_policy_has_its_published_score() -> None:
    check_score(QUICK, 10)


@pytest.mark.extended
@pytest.mark.parametrize("name", ENTRIES)
def test_every_policy_has_its_published_score(name: str) -> None:
    check_score(name, 30)


def test_entries_are_complete() -> None:
    for name, entry in ENTRIES.items():
        assert entry.target_score == paper.TARGET_SCORES[entry.env]
        assert entry.name == name == zoo.task_name(entry.env)
        low, high = entry.interval
        assert entry.target_score <= entry.score
        assert low <= entry.score <= high
        assert high - entry.score == pytest.approx(1.984 * entry.std / 10, abs=0.01 + 1e-3 * entry.std)
        assert entry.episodes == 100
        assert entry.steps > 0
        assert entry.cpu_seconds > 0
        assert re.fullmatch("[0-9a-f]{40}", entry.commit)
        assert entry.settings["hyperparameters"]["n_samples"] == 4


def test_files_are_numbers_and_json_of_at_most_5_megabytes() -> None:
    files = sorted(zoo.POLICIES.iterdir())
    assert {file.suffix for file in files} == {".json", ".safetensors"}
    assert {file.stem for file in files} == set(ENTRIES)
    assert len(files) == 2 * len(ENTRIES)
    assert sum(file.stat().st_size for file in files) <= 5_000_000


def test_names_of_a_task() -> None:
    assert zoo.load("softdpg/MountainCarDiscrete-v0").entry.name == QUICK
    assert zoo.load("mountaincardiscrete").entry.name == QUICK
    assert zoo.task_name("Ant-v5") == "Ant-v5"
    with pytest.raises(UserError, match=r"no policy for 'MountainCarDiscret'; did you mean MountainCarDiscrete"):
        zoo.load("MountainCarDiscret")


def test_a_policy_works_like_a_model_of_sb3() -> None:
    policy = zoo.load(QUICK)
    env = gym.make(policy.entry.env)
    observation, _ = env.reset(seed=0)
    action, state = policy.predict(observation, deterministic=True)
    assert env.action_space.contains(action.astype(np.float32))
    assert state is None
    batch, _ = policy.predict(np.stack([observation] * 3))
    np.testing.assert_allclose(batch, np.stack([action] * 3), rtol=1e-6)
    mean, _ = evaluate_policy(policy, env, n_eval_episodes=2, warn=False)  # type: ignore[arg-type]
    assert mean >= policy.entry.target_score
    with pytest.raises(ValueError, match="deterministic=True"):
        policy.predict(observation, deterministic=False)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["softdpg", *arguments])
    main()


def test_the_command_lists_and_evaluates(monkeypatch, capsys) -> None:
    run(monkeypatch, "zoo")
    listed = capsys.readouterr().out
    for entry in ENTRIES.values():
        assert f"{entry.score:,.1f}" in listed
    run(monkeypatch, "eval", "--zoo", QUICK, "--episodes", "2")
    assert float(capsys.readouterr().out.split()[0]) >= 100


@pytest.mark.parametrize("arguments", [["eval"], ["eval", "runs", "--zoo", QUICK], ["watch"]])
def test_a_run_or_a_policy_of_the_zoo(arguments: list[str], monkeypatch, capsys) -> None:
    with pytest.raises(SystemExit) as end:
        run(monkeypatch, *arguments)
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        f"softdpg: error: softdpg {arguments[0]} needs a run directory, or --zoo NAME, and not both\n"
    )


@pytest.mark.extended
def test_watch_writes_a_video(tmp_path, monkeypatch, capsys) -> None:
    run(monkeypatch, "watch", "--zoo", QUICK, "--out", str(tmp_path / "car.gif"))
    assert (tmp_path / "car.gif").read_bytes().startswith(b"GIF8")
