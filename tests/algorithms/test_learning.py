"""Long tests: the algorithms learn. ``docs/results`` has more seeds; these guard one."""

import gymnasium as gym
import pytest
from stable_baselines3.common.callbacks import EvalCallback, StopTrainingOnRewardThreshold
from stable_baselines3.common.monitor import Monitor

from softdpg import SoftDDPG


@pytest.mark.extended
@pytest.mark.parametrize(
    ("env", "steps", "score"), [("softdpg/PendulumDiscrete-v0", 30_000, 1_500), ("Pendulum-v1", 30_000, -400)]
)
def test_centered_soft_ddpg_solves_pendulum(env, steps, score):
    """The mean of 10 deterministic episodes reaches the score within the steps.

    Processors round differently, and after some thousand updates that acts like another seed. So score and steps leave
    room: seeds 0 to 3 reach it within 8,000 steps, and untrained policies score below 150 and -1,300.
    """
    evaluation = EvalCallback(
        Monitor(gym.make(env)),
        eval_freq=1_000,
        n_eval_episodes=10,
        callback_on_new_best=StopTrainingOnRewardThreshold(reward_threshold=score, verbose=0),
        verbose=0,
    )
    SoftDDPG("MlpPolicy", env, estimator="centered", seed=0).learn(steps, callback=evaluation)
    assert evaluation.best_mean_reward >= score
