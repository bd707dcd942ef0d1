"""Measure the cost of the reward rules: steps per second of each environment beside its base environment.

``gymnasium.make`` makes both with its default wrappers. Both get the same seed and the same random actions, so both
visit the same states. Blocks of steps alternate, and each is timed by the CPU time of the process, so that other load
affects both alike. The result is the median and the quartiles, over pairs of blocks, of wrapped time / base time.

    python benchmarks/envs.py [--names Pendulum MountainCar] [--seconds 6] [--observe-progress]
"""

import time
from typing import Any

import gymnasium as gym
import numpy as np
import tyro

import softdpg  # noqa: F401
from softdpg.envs import DISCRETE_ENVS


class Stepper:
    """An environment with random actions, stepped in blocks."""

    def __init__(self, env_id: str, **kwargs: Any):
        self.env = gym.make(env_id, **kwargs)
        self.env.action_space.seed(0)
        self.actions = [self.env.action_space.sample() for _ in range(1000)]
        self.env.reset(seed=0)
        self.ended = False

    def seconds(self, steps: int) -> float:
        """Return the CPU time of ``steps`` steps, resets not counted."""
        step, actions = self.env.step, self.actions
        spent = 0.0
        start = time.process_time()
        for t in range(steps):
            _, _, terminated, truncated, _ = step(actions[t % 1000])
            if terminated or truncated:
                spent += time.process_time() - start
                self.env.reset()
                start = time.process_time()
        return spent + time.process_time() - start


def measure(name: str, seconds: float, **kwargs: Any) -> tuple[float, float, np.ndarray]:
    """Return base and wrapped microseconds a step (medians) and the quartiles of the ratio wrapped / base."""
    base = Stepper(DISCRETE_ENVS[name][0])
    wrapped = Stepper(f"softdpg/{name}Discrete-v0", **kwargs)
    for stepper in (base, wrapped):
        stepper.seconds(300)
    steps = max(50, int(0.02 / (base.seconds(200) / 200)))
    times = []
    start = time.perf_counter()
    while time.perf_counter() - start < seconds or len(times) < 10:
        order = (base, wrapped) if len(times) % 2 else (wrapped, base)
        block = {stepper: stepper.seconds(steps) / steps for stepper in order}
        times.append((block[base], block[wrapped]))
    pairs = np.array(times)
    base_us, wrapped_us = 1e6 * np.median(pairs, axis=0)
    return base_us, wrapped_us, np.quantile(pairs[:, 1] / pairs[:, 0], [0.25, 0.5, 0.75])


def main(names: tuple[str, ...] = tuple(DISCRETE_ENVS), seconds: float = 6.0, observe_progress: bool = False) -> None:
    """Measure the cost of the reward rules.

    Args:
        names: short names of the environments, such as Pendulum.
        seconds: time spent on each.
        observe_progress: measure with the rule's memory appended to the observation.
    """
    print(
        f"{'environment':<24}{'base us':>9}{'softdpg us':>12}{'base steps/s':>14}{'softdpg steps/s':>17}   time ratio"
    )
    for name in names:
        base_us, wrapped_us, (low, middle, high) = measure(name, seconds, observe_progress=observe_progress)
        print(
            f"{name:<24}{base_us:>9.2f}{wrapped_us:>12.2f}{1e6 / base_us:>14,.0f}{1e6 / wrapped_us:>17,.0f}"
            f"   {middle:.3f} [{low:.3f}, {high:.3f}]"
        )


if __name__ == "__main__":
    tyro.cli(main)
