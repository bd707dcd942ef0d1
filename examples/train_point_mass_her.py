"""Soft TD3 with hindsight replay on a point mass with goals, written as a user of Stable-Baselines3 writes it.

python examples/train_point_mass_her.py
"""

import sys

import gymnasium as gym
import point_mass  # noqa: F401 (registers PointMassGoal-v0)
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from softdpg import SoftTD3


def main(steps: int = 20_000, seed: int = 0) -> None:
    """Train, and play 100 episodes without exploration."""
    env = Monitor(gym.make("PointMassGoal-v0"), info_keywords=("is_success",))
    model = SoftTD3(
        "MultiInputPolicy",
        env,
        replay_buffer_class=HerReplayBuffer,
        # Of five transitions four get as their goal what the episode reached later on.
        replay_buffer_kwargs=dict(n_sampled_goal=4, goal_selection_strategy="future"),
        seed=seed,
        verbose=1,
    )
    model.learn(total_timesteps=steps, log_interval=50)
    returns, _ = evaluate_policy(model, env, n_eval_episodes=100, return_episode_rewards=True)
    successes = sum(total > -50 for total in returns)
    print(f"{successes} of 100 episodes reach the goal, with a mean return of {sum(returns) / 100:.1f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))  # optional: steps, seed
