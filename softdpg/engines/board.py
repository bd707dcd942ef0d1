"""All runs of a reproduction at once: a live table in a terminal, plain lines anywhere else."""

import time
from collections.abc import Sequence
from statistics import mean

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from softdpg.engines import Ended, Job
from softdpg.errors import UserError
from softdpg.runs.display import Pace

LINE_EVERY = 60.0  # seconds between two lines where there is no terminal
PACE_OVER = 600.0  # seconds that the pace is taken over: evaluations and compilation stand still for a minute
_BARS = "▁▂▃▄▅▆▇█"


class Board:
    """One row for an environment and an algorithm, one mark for each of its seeds.

    A mark is a bar that grows with the run, a tick when it is finished, a circle when it is and did not reach its goal,
    a cross when it has failed.
    """

    def __init__(self, jobs: Sequence[Job], console: Console) -> None:
        self.jobs, self.console = list(jobs), console
        self.steps = sum(job.config.steps for job in jobs)
        self.race = any(job.config.goal is not None for job in jobs)
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
        """Note that a run ended."""
        self._status[ended.job] = ended.job.directory.read_status()
        if ended.exit_code:
            self._failed[ended.job] = ended.message
        if not self.console.is_terminal:
            outcome = f"failed: {ended.message}" if ended.exit_code else "finished"
            evaluation = ended.job.directory.last_evaluation()
            self.console.print(f"{ended.job.name}: {outcome}  {evaluation}".rstrip(), soft_wrap=True, markup=False)

    def update(self) -> None:
        """Read how far the runs are, and show it."""
        for job in self.jobs:
            if self._state(job) != "finished":
                self._status[job] = job.directory.read_status()
        done = sum(self._step(job) for job in self.jobs)
        # Not what is done: a run that crosses its line is done with its whole budget at once, which nobody computed.
        self.pace.update(sum(int(status.get("step", 0)) for status in self._status.values()))
        if self.console.is_terminal:
            self._live.update(Group(self._table(), self._total(done)), refresh=True)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_EVERY
            self.console.print(self._summary(done), soft_wrap=True)

    def _state(self, job: Job) -> str:
        return "failed" if job in self._failed else str(self._status[job].get("state", "waiting"))

    def _step(self, job: Job) -> int:
        """Steps done of those that the job may take; a run that reached its goal has none left."""
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
        # What is at work comes first where not all rows fit.
        busy_first = sorted(rows, key=lambda row: -max(_RANK.get(self._state(job), 0) for job in rows[row]))
        shown = set(busy_first[: room if len(rows) <= room else room - 1])
        table = Table(box=None, padding=(0, 1), header_style="bold")
        for header in ("environment", "algorithm", "seeds"):
            table.add_column(header, no_wrap=True)
        for header in ("steps", "steps/s", "last evaluation", *(("line", "CPU s") if self.race else ())):
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
        """The line, and the mean over seeds of the CPU seconds of training until it, or so far."""
        goal = jobs[0].config.goal
        if goal is None:
            return "", ""
        seconds = [_training_seconds(job) for job in jobs if self._step(job)]
        return f"{goal:,.1f}", f"{mean(seconds):,.0f}" if seconds else ""

    def _mark(self, job: Job) -> tuple[str, str]:
        state = self._state(job)
        if state == "finished":
            missed = job.config.goal is not None and _crossing(job) is None
            return ("○", "yellow") if missed else ("✔", "green")
        if state == "failed":
            return "✘", "bold red"
        if not self._step(job):
            return "·", "dim"
        height = min(self._step(job) * len(_BARS) // job.config.steps, len(_BARS) - 1)
        return _BARS[height], "cyan" if state == "running" else "yellow"


def _crossing(job: Job) -> int | None:
    """The step at which a run crossed its goal, as far as its files tell."""
    try:
        return None if job.config.goal is None else job.directory.crossing(job.config.goal)
    except (UserError, OSError):
        return None


def _training_seconds(job: Job) -> float:
    """CPU seconds of training until the goal, or so far."""
    try:
        return job.directory.training_seconds(_crossing(job))
    except (UserError, OSError):
        return 0.0


_RANK = {"running": 3, "failed": 2, "interrupted": 1}
