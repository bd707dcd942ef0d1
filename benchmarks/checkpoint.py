"""What checkpoints cost: their share of the time of a run with one every 10,000 steps.

    python benchmarks/checkpoint.py [ROUNDS]

Each round trains for some steps, fills the buffer up to the 10,000 new transitions that a checkpoint finds, and writes
one, with every fsync. Steps and checkpoints alternate, so that a change of load hits both. The share is that of DDPG,
whose steps are the cheaper ones; evaluations, which take further time, are left out.
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
from softdpg.runs.threads import use_one_thread

EVERY = 10_000
STEPS = 300
ENVS = ("Pendulum-v1", "Ant-v5", "Humanoid-v5")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    use_one_thread()
    print(f"{'environment':16}{'ms/step':>10}{'ms/checkpoint':>16}{'MB since the last':>20}{'share':>10}")
    for env_id in ENVS:
        # On a disk, not in a tmpfs: beside this file.
        with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as out:
            step, checkpoint, megabytes = measure(env_id, Path(out) / "run", rounds)
        share = checkpoint / (EVERY * step + checkpoint)
        print(f"{env_id:16}{step * 1e3:10.2f}{checkpoint * 1e3:16.1f}{megabytes:20.1f}{share:10.2%}")


def measure(env_id: str, out: Path, rounds: int) -> tuple[float, float, float]:
    """Median seconds of a training step and of a checkpoint, and what the buffer has to write."""
    from softdpg.runs.directory import RunDirectory
    from softdpg.runs.display import RunDisplay
    from softdpg.runs.logs import make_logger
    from softdpg.runs.provenance import provenance
    from softdpg.runs.session import Session
    from softdpg.runs.signals import Signals
    from softdpg.runs.supervision import Supervisor

    config = RunConfig(env_id, "ddpg", learning_starts=100).resolved()
    directory = RunDirectory(out)
    env = SeededEpisodes(make_env(env_id), seed=0)
    with directory.claimed(config, provenance()):
        session = Session(config, directory, [env])
        model = session._make_model()
        state = session._resume(model)
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
