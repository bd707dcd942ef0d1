"""An environment that waits for a file, so that a run stands still for as long as a test wants.

The file is named in the environment variable ``GATE``. A process that waits leaves a file ``<gate>.<process id>``.
"""

import os
import time
from pathlib import Path

import gymnasium as gym
from strange_envs import Strange

VARIABLE = "SOFTDPG_TEST_GATE"


class Gated(Strange):
    """Waits at one step of its life until the file is there.

    :param at: the step
    """

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def step(self, action):
        if self.steps == self.at:
            gate = Path(os.environ[VARIABLE])
            gate.with_name(f"{gate.name}.{os.getpid()}").touch()
            while not gate.exists():
                time.sleep(0.02)
        return super().step(action)


def waiting(gate: Path) -> list[Path]:
    """Return a file for each process that has come to the gate."""
    return sorted(gate.parent.glob(f"{gate.name}.*"))


gym.register("Gated-v0", Gated, max_episode_steps=70, kwargs={"at": 200})
gym.register("GatedEarly-v0", Gated, max_episode_steps=70, kwargs={"at": 20})
