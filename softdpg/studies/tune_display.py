"""How a search is shown while it runs: a live table in a terminal, a line a trial anywhere else."""

from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from softdpg.runs.directory import RunDirectory


class _Search(Protocol):
    study: Any
    trials: int
    running: dict[Any, Any]

    @property
    def ended(self) -> int: ...

    def directory(self, number: int) -> RunDirectory: ...


class TuneDisplay:
    """One row for each trial under way, and a last line for all."""

    def __init__(self, search: _Search, console: Console) -> None:
        self.search, self.console = search, console
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> "TuneDisplay":
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self._live.stop()

    def say(self, message: str) -> None:
        """Print a line."""
        self.console.print(message, soft_wrap=True, markup=False)

    def ended(self, trial: Any) -> None:
        """Note that a trial ended."""
        outcome = {"COMPLETE": f"{trial.value or 0:.2f}", "PRUNED": "stopped early", "FAIL": "failed"}[trial.state.name]
        self.say(f"trial {trial.number}: {outcome}  ({self._all()})")

    def update(self) -> None:
        """Show how far the trials are."""
        if not self.console.is_terminal:
            return
        table = Table.grid(padding=(0, 2))
        for trial in self.search.running:
            directory = self.search.directory(trial.number)
            status = directory.read_status()
            bar = ProgressBar(total=status.get("steps", 1), completed=status.get("step", 0), width=30)
            table.add_row(f"trial {trial.number}", bar, directory.last_evaluation())
        self._live.update(Group(table, Text(self._all())), refresh=True)

    def _all(self) -> str:
        values = [trial.value for trial in self.search.study.get_trials(deepcopy=False) if trial.value is not None]
        best = f", best {max(values):.2f}" if values else ""
        return f"{self.search.ended} of {self.search.trials} trials{best}"
