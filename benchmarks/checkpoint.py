"""Measure the cost of checkpoints: their fraction of the time of a run with one every 10,000 steps.

    python benchmarks/checkpoint.py [ROUNDS]

Each round trains for some steps, fills the buffer with 10,000 new transitions, and writes a checkpoint with every
fsync. Steps and checkpoints alternate, so that a change of load affects both. The run trains DDPG, whose steps are the
cheapest, without evaluations.
"""

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console

from softdpg.runs.config import RunConfig
from softdpg.runs.environments import SeededEpisodes, make_env
from softdpg.runs.process import use_one_thread

EVERY = 10_000
STEPS = 300
ENVS = ("Pendulum-v1", "Ant-v5", "Humanoid-v5")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    use_one_thread()
    print(f"{'environment':16}{'ms/step':>10}{'ms/checkpoint':>16}{'MB since the last':>20}{'fraction':>10}")
    for env_id in ENVS:
        # Beside this file: on a disk, not in a tmpfs.
        with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as out:
            step, checkpoint, megabytes = measure(env_id, Path(out) / "run", rounds)
        fraction = checkpoint / (EVERY * step + checkpoint)
        print(f"{env_id:16}{step * 1e3:10.2f}{checkpoint * 1e3:16.1f}{megabytes:20.1f}{fraction:10.2%}")


def measure(env_id: str, out: Path, rounds: int) -> tuple[float, float, float]:
    """Return the median seconds of a training step and of a checkpoint, and the megabytes that the buffer writes."""
    from softdpg.runs.directory import RunDirectory
    from softdpg.runs.display import RunDisplay
    from softdpg.runs.learner import make_logger, make_training_learner
    from softdpg.runs.process import Signals, provenance
    from softdpg.runs.session import Session, Supervisor

    config = RunConfig(env_id, "ddpg", learning_starts=100).resolved()
    directory = RunDirectory(out)
    env = SeededEpisodes(make_env(env_id), seed=0)
    with directory.claimed(config, provenance()):
        session = Session(config, directory, [env])
        model = make_training_learner(config, directory, [env])
        state = session.resume(model)
        model.set_logger(make_logger(directory.path, 0))
    display = RunDisplay("", config.steps, Console(quiet=True))
    supervisor = Supervisor(config, directory, [env], display, Signals(), state)
    supervisor.init_callback(model)
    model.learn(200, log_interval=None)
    buffer = model.replay_buffer
    steps, checkpoints = [], []
    for number in range(rounds):
        began = time.perf_counter()
        model.learn(STEPS, log_interval=None, reset_num_timesteps=False)
        model.key.block_until_ready()
        steps.append((time.perf_counter() - began) / STEPS)
        transition = (
            buffer.observations[0],
            buffer.next_observations[0],
            buffer.actions[0],
            np.ones(1),
            np.zeros(1),
            [{}],
        )
        for _ in range(EVERY - STEPS):
            buffer.add(*transition)
        began = time.perf_counter()
        supervisor._checkpoint((number + 1) * EVERY)
        checkpoints.append(time.perf_counter() - began)
    return median(steps), median(checkpoints), EVERY * buffer._record_bytes / 1e6


if __name__ == "__main__":
    main()
