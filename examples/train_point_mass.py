"""Train Soft TD3 on a sparse point mass, as a user of Stable-Baselines3 writes it.

python examples/train_point_mass.py          one goal that never moves
python examples/train_point_mass.py --her    a new goal in each episode, with hindsight replay
"""

import gymnasium as gym
import point_mass  # noqa: F401 (registers PointMass-v0 and PointMassGoal-v0)
import tyro
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from softdpg import SoftTD3


def fixed_goal(steps: int, seed: int) -> SoftTD3:
    """Learn to reach one goal; the reward is 1 at the goal and 0 elsewhere."""
    env = Monitor(gym.make("PointMass-v0"))
    model = SoftTD3("MlpPolicy", env, seed=seed, verbose=1)
    return model.learn(total_timesteps=steps, log_interval=50)


def many_goals(steps: int, seed: int) -> SoftTD3:
    """Learn to reach any goal; the reward is 0 at the goal and -1 elsewhere."""
    env = Monitor(gym.make("PointMassGoal-v0"))
    model = SoftTD3(
        "MultiInputPolicy",
        env,
        replay_buffer_class=HerReplayBuffer,
        # Four of five sampled transitions get a goal that their episode reached later.
        replay_buffer_kwargs=dict(n_sampled_goal=4, goal_selection_strategy="future"),
        seed=seed,
        verbose=1,
    )
    return model.learn(total_timesteps=steps, log_interval=50)


def main(her: bool = False, steps: int = 20_000, seed: int = 0) -> None:
    """Train Soft TD3 on a point mass, then evaluate it on 100 episodes without exploration.

    :param her: change the goal in each episode and train with hindsight replay
    :param steps: length of the training
    :param seed: seed of the training
    """
    model = many_goals(steps, seed) if her else fixed_goal(steps, seed)
    returns, _ = evaluate_policy(model, model.get_env(), n_eval_episodes=100, return_episode_rewards=True)
    successes = sum(total > (-50 if her else 0) for total in returns)
    print(f"{successes} of 100 episodes reach the goal, with a mean return of {sum(returns) / 100:.1f}")


if __name__ == "__main__":
    tyro.cli(main)
