"""Trained policies that come with the package, to watch, evaluate and use without training.

Each policy is two files in ``policies``: NAME.safetensors has the actor, and NAME.json says what it scores and how it
was trained. Neither can execute code. ``benchmarks/make_zoo.py`` makes them from finished runs.
"""

import json
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softdpg import paper
from softdpg.errors import UserError, near_matches

POLICIES = Path(__file__).parent / "policies"


class ZooEntry(NamedTuple):
    """What is known about a policy.

    :param name: name of its task, such as ``Walker2dDiscrete`` or ``Walker2d-v5``
    :param env: Gymnasium id of the environment
    :param algo: name of the algorithm in the registry
    :param target_score: target score of the task in the benchmark
    :param score: mean return over ``episodes`` episodes without exploration noise
    :param std: standard deviation of the returns
    :param interval: 95 % confidence interval of the score
    :param episodes: number of episodes
    :param steps: environment steps of its training
    :param cpu_seconds: CPU seconds of its training, without evaluations
    :param seed: seed of its training
    :param commit: git commit of the code
    :param versions: versions of the packages
    :param settings: hyperparameters
    """

    name: str
    env: str
    algo: str
    target_score: float
    score: float
    std: float
    interval: tuple[float, float]
    episodes: int
    steps: int
    cpu_seconds: float
    seed: int
    commit: str
    versions: dict[str, str]
    settings: dict[str, Any]


class ZooPolicy:
    """A trained policy. It has ``predict`` like a model of Stable-Baselines3, and works in its ``evaluate_policy``.

    :param entry: what is known about the policy
    :param path: safetensors file with the actor
    """

    def __init__(self, entry: ZooEntry, path: Path) -> None:
        self.entry = entry
        self._path = path

    def __repr__(self) -> str:
        return f"ZooPolicy({self.entry.name}, score {self.entry.score:,.2f})"

    @cached_property
    def description(self) -> Any:
        """The network: a function of NumPy arrays, see :class:`softdpg.export.Description`."""
        from softdpg.export import read_safetensors

        return read_safetensors(self._path)

    def predict(
        self,
        observation: np.ndarray | dict[str, np.ndarray],
        state: Any = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, Any]:
        """Return the action for one observation, or the actions for a batch, and ``state``.

        :param observation: one observation of the environment, or a batch
        :param state: returned as it is, because the network is not recurrent
        :param episode_start: ignored
        :param deterministic: must be True, because there is no exploration noise
        """
        if not deterministic:
            raise ValueError("a policy of the zoo is deterministic: use deterministic=True")
        return self.description(observation), state


def task_name(env_id: str) -> str:
    """Return the name of a task: ``AntDiscrete`` for ``softdpg/AntDiscrete-v0``, and ``Ant-v5`` as it is.

    :param env_id: Gymnasium id
    """
    return env_id.removeprefix("softdpg/").removesuffix("-v0") if env_id.startswith("softdpg/") else env_id


def entries() -> list[ZooEntry]:
    """Return what is known about each policy, in the order of the benchmark's tasks."""
    read = {path.stem: _read(path) for path in POLICIES.glob("*.json")}
    order = [task_name(env_id) for env_id in paper.TARGET_SCORES]
    return [read[name] for name in sorted(read, key=lambda name: (order.index(name) if name in order else 99, name))]


def load(name: str) -> ZooPolicy:
    """Return the policy for a task; raise ``UserError`` if there is none.

    :param name: name of the task (``Walker2dDiscrete``, ``Walker2d-v5``) or its Gymnasium id
    """
    known = {path.stem: path for path in sorted(POLICIES.glob("*.json"))}
    found = {stem.lower(): stem for stem in known}.get(task_name(name).lower())
    if found is None:
        raise UserError(
            f"the zoo has no policy for {name!r}{near_matches(name, list(known))} (softdpg zoo lists all policies)"
        )
    return ZooPolicy(_read(known[found]), known[found].with_suffix(".safetensors"))


def _read(path: Path) -> ZooEntry:
    values = json.loads(path.read_text(encoding="utf-8"))
    return ZooEntry(**values | {"name": path.stem, "interval": tuple(values["interval"])})


def print_listing() -> None:
    """Print the table of policies, and how to use one."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table("Task", "Score", "± (95 %)", "Target", "Steps", "CPU s", box=None, pad_edge=False)
    for column in table.columns:
        column.no_wrap = True  # 80 characters are enough
        column.justify = "left" if column.header == "Task" else "right"
    listed = entries()
    for entry in listed:
        low, high = entry.interval
        table.add_row(
            *(entry.name, f"{entry.score:,.1f}", f"{(high - low) / 2:,.1f}", f"{entry.target_score:,.1f}"),
            *(f"{entry.steps:,}", f"{entry.cpu_seconds:,.0f}"),
        )
    console.print(table, soft_wrap=True)
    if listed:
        name = listed[0].name
        console.print(f"softdpg watch --zoo {name}    softdpg eval --zoo {name}", soft_wrap=True)
