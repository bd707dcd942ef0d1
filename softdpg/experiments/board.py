"""Progress of many jobs: an estimate before they start, then a live table in a terminal or plain lines in a log."""

import time
from collections.abc import Iterable, Sequence
from statistics import mean, median
from typing import NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from softdpg import paper
from softdpg.errors import UserError
from softdpg.experiments.jobs import Ended, Job
from softdpg.runs.display import Pace

LINE_EVERY = 60.0  # seconds between two lines if there is no terminal
PACE_OVER = 600.0  # seconds over which the speed is averaged; evaluations and compilation pause it for a minute
_BARS = "▁▂▃▄▅▆▇█"
_RANK = {"running": 3, "failed": 2, "interrupted": 1}


class Board:
    """A table with one row for each environment and algorithm, and in it one mark for each seed.

    The mark of a running job is a bar that grows. A finished job has a tick, or a circle if it did not reach its target
    score. A failed job has a cross.

    :param jobs: all jobs, also those that are finished already
    :param console: where to print
    """

    def __init__(self, jobs: Sequence[Job], console: Console) -> None:
        self.jobs, self.console = list(jobs), console
        self.steps = sum(job.config.steps for job in jobs)
        self.race = any(job.config.stop_at_score is not None for job in jobs)
        self.pace = Pace(PACE_OVER)
        self._status = {job: job.directory.read_status() for job in jobs}
        self._failed: dict[Job, str] = {}
        self._next_line = 0.0
        self._live = Live(console=console, auto_refresh=False, transient=False)

    def __enter__(self) -> "Board":
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self.update()
            self._live.stop()

    def ended(self, ended: Ended) -> None:
        """Record that a job ended, and print it if there is no terminal."""
        self._status[ended.job] = ended.job.directory.read_status()
        if ended.exit_code:
            self._failed[ended.job] = ended.message
        if not self.console.is_terminal:
            outcome = f"failed: {ended.message}" if ended.exit_code else "finished"
            evaluation = ended.job.directory.last_evaluation()
            self.console.print(f"{ended.job.name}: {outcome}  {evaluation}".rstrip(), soft_wrap=True, markup=False)

    def update(self) -> None:
        """Read the progress of all jobs and show it."""
        for job in self.jobs:
            if self._state(job) != "finished":
                self._status[job] = job.directory.read_status()
        done = sum(self._step(job) for job in self.jobs)
        # Not ``done``: a run that reaches its target score skips the rest of its budget, which must not look fast.
        self.pace.update(sum(int(status.get("step", 0)) for status in self._status.values()))
        if self.console.is_terminal:
            self._live.update(Group(self._table(), self._total(done)), refresh=True)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_EVERY
            self.console.print(self._summary(done), soft_wrap=True)

    def _state(self, job: Job) -> str:
        return "failed" if job in self._failed else str(self._status[job].get("state", "waiting"))

    def _step(self, job: Job) -> int:
        """Return the steps that are done; all of them for a finished job, even if it stopped at its target score."""
        return job.config.steps if self._state(job) == "finished" else int(self._status[job].get("step", 0))

    def _summary(self, done: int) -> str:
        states = [self._state(job) for job in self.jobs]
        counts = [f"{states.count(state)} {state}" for state in ("finished", "running", "failed") if state in states]
        rest = len(states) - sum(states.count(state) for state in ("finished", "running", "failed"))
        counts += [f"{rest} waiting"] if rest else []
        at_most = "at most " if self.race else ""
        pace = f"{self.pace.speed:,.0f} steps/s, {at_most}{self.pace.left(self.steps - done)} left"
        return f"{', '.join(counts)}; {done:,}/{self.steps:,} steps, {pace}"

    def _total(self, done: int) -> Table:
        line = Table.grid(padding=(0, 1), expand=True)
        line.add_column(ratio=1)
        line.add_column(no_wrap=True)
        line.add_row(ProgressBar(total=self.steps, completed=done), self._summary(done))
        return line

    def _table(self) -> Table:
        rows: dict[tuple[str, str], list[Job]] = {}
        for job in self.jobs:
            env, variant, _ = job.name.split("/")
            rows.setdefault((env, variant), []).append(job)
        room = max(self.console.height - 5, 3)
        # If not all rows fit, running jobs come first.
        busy_first = sorted(rows, key=lambda row: -max(_RANK.get(self._state(job), 0) for job in rows[row]))
        shown = set(busy_first[: room if len(rows) <= room else room - 1])
        table = Table(box=None, padding=(0, 1), header_style="bold")
        for header in ("environment", "algorithm", "seeds"):
            table.add_column(header, no_wrap=True)
        for header in ("steps", "steps/s", "last evaluation", *(("target", "CPU s") if self.race else ())):
            table.add_column(header, justify="right", no_wrap=True)
        for row, jobs in rows.items():
            if row in shown:
                table.add_row(*row, *self._cells(jobs), *(self._race_cells(jobs) if self.race else ()))
        if len(shown) < len(rows):
            table.add_row(f"and {len(rows) - len(shown)} more rows", style="dim")
        return table

    def _cells(self, jobs: list[Job]) -> tuple[Text, str, str, str]:
        marks = Text.assemble(*(self._mark(job) for job in jobs))
        running = [self._status[job] for job in jobs if self._state(job) == "running"]
        speeds = [status["step"] / status["seconds"] for status in running if status.get("seconds")]
        evaluations = [job.directory.last_evaluation().split(" ")[0] for job in jobs if self._step(job)]
        scores = [float(score) for score in evaluations if score]
        steps = sum(self._step(job) for job in jobs) / sum(job.config.steps for job in jobs)
        return marks, f"{steps:.0%}", f"{sum(speeds):,.0f}" if speeds else "", f"{mean(scores):,.1f}" if scores else ""

    def _race_cells(self, jobs: list[Job]) -> tuple[str, str]:
        """Return the target score and the mean over seeds of the CPU seconds of training until it, or so far."""
        score = jobs[0].config.stop_at_score
        if score is None:
            return "", ""
        seconds = [_training_seconds(job) for job in jobs if self._step(job)]
        return f"{score:,.1f}", f"{mean(seconds):,.0f}" if seconds else ""

    def _mark(self, job: Job) -> tuple[str, str]:
        state = self._state(job)
        if state == "finished":
            missed = job.config.stop_at_score is not None and _reached_at(job) is None
            return ("○", "yellow") if missed else ("✔", "green")
        if state == "failed":
            return "✘", "bold red"
        if not self._step(job):
            return "·", "dim"
        height = min(self._step(job) * len(_BARS) // job.config.steps, len(_BARS) - 1)
        return _BARS[height], "cyan" if state == "running" else "yellow"


def _reached_at(job: Job) -> int | None:
    """Return the step at which a run reached its target score, or None if it has not or its files are damaged."""
    try:
        return None if job.config.stop_at_score is None else job.directory.reached_at(job.config.stop_at_score)
    except (UserError, OSError):
        return None


def _training_seconds(job: Job) -> float:
    """Return the CPU seconds of training until the target score, or so far."""
    try:
        return job.directory.training_seconds(_reached_at(job))
    except (UserError, OSError):
        return 0.0


class Speeds(NamedTuple):
    """Steps per second of one run on one core, without evaluations.

    :param exact: of an algorithm without smoothing
    :param smoothed: with N = 50 samples
    """

    exact: float
    smoothed: float


# Measured with the paper's settings on a 2-core AMD EPYC virtual machine.
TYPICAL: dict[str, Speeds] = {
    "Ant": Speeds(69, 45),
    "HalfCheetah": Speeds(77, 51),
    "Hopper": Speeds(69, 60),
    "Walker2d": Speeds(74, 50),
    "Humanoid": Speeds(50, 30),
    "InvertedPendulum": Speeds(88, 66),
    "InvertedDoublePendulum": Speeds(79, 71),
    "BipedalWalker": Speeds(65, 44),
    "LunarLander": Speeds(74, 64),
    "Pendulum": Speeds(83, 64),
    "MountainCar": Speeds(82, 72),
}


def estimated_seconds(jobs: Sequence[Job], slots: int) -> float:
    """Return an estimate of the wall time that jobs will take.

    :param jobs: the jobs; speeds recorded in their directories count, typical speeds replace those that are missing
    :param slots: how many jobs run at a time
    """
    recorded = _recorded(jobs)
    seconds = []
    for job in jobs:
        left = job.config.steps - int(job.directory.read_status().get("step", 0))
        seconds.append(left / recorded.get(_kind(job), typical_speed(job)))
    return max(sum(seconds) / slots, max(seconds, default=0.0))


def typical_speed(job: Job) -> float:
    """Return the steps per second to expect of a new run; the time of an update grows linearly with N."""
    name = job.config.env.removeprefix("softdpg/").rsplit("-v")[0].removesuffix("Discrete").removesuffix("Continuous")
    middle = Speeds(*(median(speeds) for speeds in zip(*TYPICAL.values(), strict=True)))
    exact, smoothed = (1 / speed for speed in TYPICAL.get(name, middle))
    samples = job.config.n_samples or 0
    return 1 / (exact + (smoothed - exact) * samples / paper.N_SAMPLES)


def _recorded(jobs: Iterable[Job]) -> dict[tuple[object, ...], float]:
    """Return the median speed of the runs that have started, by kind."""
    speeds: dict[tuple[object, ...], list[float]] = {}
    for job in jobs:
        status = job.directory.read_status()
        if status.get("step", 0) >= 10_000 and status.get("seconds", 0) > 0:
            speeds.setdefault(_kind(job), []).append(status["step"] / status["seconds"])
    return {kind: median(values) for kind, values in speeds.items()}


def _kind(job: Job) -> tuple[object, ...]:
    return job.config.env, job.config.algorithm.name, job.config.n_samples
