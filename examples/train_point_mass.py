"""Soft TD3 on a sparse point mass, written as a user of Stable-Baselines3 writes it.

python examples/train_point_mass.py
"""

import sys

import gymnasium as gym
import point_mass  # noqa: F401 (registers PointMass-v0)
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from softdpg import SoftTD3


def main(steps: int = 20_000, seed: int = 0) -> None:
    """Train, and play 100 episodes without exploration."""
    env = Monitor(gym.make("PointMass-v0"))
    model = SoftTD3("MlpPolicy", env, seed=seed, verbose=1)
    model.learn(total_timesteps=steps, log_interval=50)
    mean, _ = evaluate_policy(model, env, n_eval_episodes=100)
    print(f"{mean:.1f} of 50 steps at the goal in the mean of 100 episodes")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))  # optional: steps, seed
