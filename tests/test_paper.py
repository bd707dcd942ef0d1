"""The paper's experiments as data: the numbers of the tables, and what follows from them."""

import gymnasium as gym
import pytest

from softdpg import paper


def test_scores_cover_the_tables_and_agree_with_the_papers_bold_face():
    assert list(paper.PAPER_SCORES) == list(paper.ENVIRONMENTS)
    better = {
        rewards: {
            name: scores.score(rewards, paper.METHOD).mean - scores.score(rewards, paper.BASELINE).mean
            for name, scores in paper.PAPER_SCORES.items()
        }
        for rewards in ("discrete", "continuous")
    }
    # Bold in the paper: Soft DDPG in nine of eleven discrete rows, in two continuous rows, one tie.
    assert {name for name, gain in better["discrete"].items() if gain < 0} == {"Humanoid", "LunarLander"}
    assert {name for name, gain in better["continuous"].items() if gain > 0} == {"Ant", "InvertedDoublePendulum"}
    assert [name for name, gain in better["continuous"].items() if gain == 0] == ["MountainCar"]
    assert paper.PAPER_SCORES["Ant"].score("discrete", paper.STUDY_ALGORITHMS[2]) is None
    # A checksum over the 88 printed numbers, added up from the tables.
    assert sum(value for row in paper.PAPER_SCORES.values() for cell in row for value in cell) == pytest.approx(
        106_740.68
    )


def test_figures_show_every_environment_of_their_table_once():
    for table, rows in paper.FIGURE_ROWS.items():
        names = [name for row in rows for name in row]
        assert sorted(names) == sorted(e.name for e in paper.ENVIRONMENTS.values() if e.table == table)


def test_the_target_score_is_the_better_of_the_two_means():
    scores = paper.TARGET_SCORES
    assert len(scores) == 22
    discrete, continuous = list(scores)[:11], list(scores)[11:]
    assert [scores[env] for env in discrete] == [
        *(271.93, 1698.09, 22.29, 79.53, 580.11, 10383.10, 19284.25),
        *(25.42, 99.03, 2182.19, 100.0),
    ]
    assert [scores[env] for env in continuous] == [
        *(3742.10, 4275.58, 1243.69, 2218.03, 2496.36, 892.73, 9343.24),
        *(76.95, 273.11, -149.60, 90.0),
    ]
    assert discrete == [environment.discrete for environment in paper.ENVIRONMENTS.values()]
    assert scores["MountainCarContinuous-v0"] == gym.spec("MountainCarContinuous-v0").reward_threshold


@pytest.mark.parametrize("env_id", ["InvertedPendulum-v5", pytest.param("Pendulum-v1", marks=pytest.mark.extended)])
def test_the_score_of_a_random_policy_is_that_of_100_episodes(env_id):
    env, returns = gym.make(env_id), []
    env.action_space.seed(0)
    for seed in range(100):
        env.reset(seed=seed)
        rewards, over = [], False
        while not over:
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            rewards.append(reward)
            over = terminated or truncated
        returns.append(sum(rewards))
    assert paper.RANDOM_SCORES[env_id] == round(sum(map(float, returns)) / 100, 2)


def test_every_task_has_a_random_score_below_its_target_score():
    assert paper.RANDOM_SCORES.keys() == paper.TARGET_SCORES.keys()
    assert all(paper.RANDOM_SCORES[env] < score for env, score in paper.TARGET_SCORES.items())
