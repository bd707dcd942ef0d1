"""``softdpg tune``: a search over an algorithm's hyperparameters with Optuna. Each trial is a run of its own.

Trial 0 has the defaults. One process asks Optuna for values and reads the evaluations of the trials, which are
processes of their own. The state of the search is in ``study.db``. The same command therefore resumes an interrupted
search, and unfinished trials resume from their checkpoints.
"""

import json
import os
import subprocess
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from softdpg.algorithms import registry
from softdpg.algorithms.settings import HYPERPARAMETERS
from softdpg.errors import UserError
from softdpg.experiments.local import cores, failure_message, start_run
from softdpg.experiments.search_space import defaults, distribution, searched, suggest, value_of
from softdpg.runs.config import RunConfig, flag
from softdpg.runs.directory import Evaluations, RunDirectory
from softdpg.runs.display import say_error
from softdpg.runs.environments import check_goals, check_normalizable, make_run_env
from softdpg.runs.files import is_full, locked
from softdpg.runs.flags import write_config_file
from softdpg.runs.process import Signals

if TYPE_CHECKING:
    import optuna

EVALUATIONS = 20  # of a trial by default; the search may stop the trial after each
WARMUP = 5  # the search stops no trial in the first fifth of its steps
POLL_SECONDS = 0.5
LOCK_SECONDS = 5.0  # that another process may hold the database
DATABASE, BEST, IMPORTANCE = "study.db", "best.yaml", "importance.png"


def run(settings: dict[str, Any], out: Path, *, trials: int, params: Sequence[str] | None, workers: int | None) -> int:
    """Fill in the defaults of ``softdpg tune`` and call :func:`tune`.

    :param settings: settings of every trial by name, with ``steps`` as the budget of a trial
    :param out: directory of the search
    :param trials: number of trials
    :param params: names of the hyperparameters to search; all that have a range by default
    :param workers: trials at a time; as many as there are cores by default
    """
    if "env" not in settings:
        raise UserError("softdpg tune needs --env ID, or a --config that has one")
    usual = {"algo": registry.DEFAULT, "evaluate_every": max(1, settings["steps"] // EVALUATIONS)}
    base = RunConfig(**(usual | settings))
    random_steps = base.resolved().learning_starts or 0  # a peer has its own
    if base.steps <= random_steps:
        raise UserError(
            f"--budget must be more than {random_steps:,}, got {base.steps:,}: the first {random_steps:,} steps of a "
            "trial are random (learning-starts in a --config file)"
        )
    return tune(base, out, trials=trials, params=params, workers=workers or cores())


def tune(base: RunConfig, out: Path, *, trials: int, params: Sequence[str] | None, workers: int) -> int:
    """Search until ``trials`` trials have ended. Return the exit code of the command.

    :param base: settings of every trial, except the hyperparameters that are searched
    :param out: directory of the search
    :param trials: number of trials, including those of an interrupted search
    :param params: names of the hyperparameters to search; all that have a range by default
    :param workers: trials at a time
    """
    for name, value in (("--trials", trials), ("--workers", workers)):
        if value < 1:
            raise UserError(f"{name} must be at least 1, got {value}")
    env = make_run_env(base)
    if base.normalize:
        check_normalizable(env, base.env)
    if base.her:
        check_goals(env, base.env)
    names = searched(base, params, env.action_space)
    env.close()
    out = out.expanduser().absolute()
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is not a directory")
    if out.is_dir() and not os.path.lexists(out / DATABASE) and any(out.iterdir()):
        raise UserError(f"--out {out} is not empty and not a directory of softdpg tune")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if is_full(error):
            raise
        raise UserError(f"cannot write to --out {out}: {error.strerror}") from None
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    with locked(out):
        study = _study(base, names, out)
        try:
            search = Search(study, base, names, out, trials)
            return search.run(workers) or search.write_results()
        except (StorageInternalError, SQLAlchemyError) as error:  # for instance because the disk is full
            say_error(f"softdpg: {out / DATABASE} cannot be written: {_reason(error)}; run the command again to resume")
            return 1


def _study(base: RunConfig, names: list[str], out: Path) -> "optuna.Study":
    """Open the database of a search, or create it; raise ``UserError`` if it is damaged or belongs to another one."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    path = out / DATABASE
    if os.path.lexists(path) and (path.is_symlink() or not path.is_file() or not path.stat().st_size):
        raise UserError(f"{path} is damaged: it is empty, a link or not a file; choose another --out")
    try:
        timeout = {"connect_args": {"timeout": LOCK_SECONDS}}
        study = optuna.create_study(
            storage=optuna.storages.RDBStorage(f"sqlite:///{path}", engine_kwargs=timeout),
            study_name="softdpg",
            direction="maximize",
            pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=base.steps // WARMUP),
            load_if_exists=True,
        )
        if [direction.name for direction in study.directions] != ["MAXIMIZE"]:
            raise ValueError("it does not maximise one score")
        trials = study.get_trials(deepcopy=False)
        stored = study.user_attrs.get("softdpg")
        _check_trials(base, trials)
    except Exception as error:  # whatever Optuna, SQLAlchemy and SQLite raise for a damaged file
        raise UserError(f"{path} cannot be read: {_reason(error)}; choose another --out") from None
    # After a resume the sampler must not repeat its samples, so its seed depends on the number of trials.
    study.sampler = optuna.samplers.TPESampler(seed=base.seed + len(trials), constant_liar=True)
    settings = {"settings": base.to_json(), "params": names}
    if stored is None:
        study.set_user_attr("softdpg", settings)
        study.enqueue_trial(defaults(base, names))
    elif stored != json.loads(json.dumps(settings)):
        raise UserError(f"{out} holds a search with other settings; choose another --out")
    return study


def _check_trials(base: RunConfig, trials: Sequence[Any]) -> None:
    """Raise ``ValueError`` for the first trial that a search cannot have written."""
    if [trial.number for trial in trials] != list(range(len(trials))):
        raise ValueError("a trial is missing")
    for trial in trials:
        for name, value in trial.params.items():
            known = name in HYPERPARAMETERS and trial.distributions[name] == distribution(base, name)
            if not known or HYPERPARAMETERS[name].wrong(value_of(value)):
                raise ValueError(f"trial {trial.number} has an invalid value of {name[:50]}")
        scores = [trial.value or 0.0, *trial.intermediate_values.values()]
        if not all(map(isfinite, scores)) or (trial.value is None and trial.state.name == "COMPLETE"):
            raise ValueError(f"trial {trial.number} has an invalid score")


def _reason(error: BaseException) -> str:
    """Return the innermost cause of an error, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(getattr(error, "orig", None) or error).split())[:200] or type(error).__name__


class TuneDisplay:
    """Progress of a search: a live table with one row per running trial, or one line per trial if there is no terminal.

    :param search: the search to show
    :param console: where to print
    """

    def __init__(self, search: "Search", console: Console) -> None:
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
        """Print the outcome of a trial."""
        outcome = {"COMPLETE": f"{trial.value or 0:.2f}", "PRUNED": "stopped early", "FAIL": "failed"}[trial.state.name]
        self.say(f"trial {trial.number}: {outcome}  ({self._all()})")

    def update(self) -> None:
        """Show the progress of the running trials."""
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


class Search:
    """A running search.

    :param study: the Optuna study
    :param base: settings of every trial
    :param names: the hyperparameters to search
    :param out: directory of the search
    :param trials: number of trials
    """

    def __init__(self, study: "optuna.Study", base: RunConfig, names: list[str], out: Path, trials: int) -> None:
        self.study, self.base, self.names, self.out, self.trials = study, base, names, out, trials
        self.running: dict[optuna.Trial, subprocess.Popen[bytes]] = {}
        self.reported: dict[int, int] = {}  # by trial: number of evaluations that Optuna knows
        self.console = Console(highlight=False)

    @property
    def ended(self) -> int:
        """Number of trials that have finished, were stopped early or failed."""
        return sum(trial.state.is_finished() for trial in self.study.get_trials(deepcopy=False))

    def run(self, workers: int) -> int:
        """Execute trials until there are enough, and return the exit code.

        :param workers: trials at a time
        """
        with Signals() as signals, TuneDisplay(self, self.console) as display:
            try:
                waiting = self._unfinished()
                while signals.received is None:
                    while len(self.running) < workers and (waiting or self.ended + len(self.running) < self.trials):
                        self._start(waiting.pop(0) if waiting else self.study.ask())
                    if not self.running:
                        break
                    time.sleep(POLL_SECONDS)
                    for trial in list(self.running):
                        self._judge(trial, display)
                    display.update()
            finally:
                for child in self.running.values():
                    child.terminate()
                for child in self.running.values():
                    child.wait()
        if signals.received is not None:
            self.console.print("interrupted; run the same command again to resume")
            return 128 + signals.received
        return 0

    def _unfinished(self) -> list["optuna.Trial"]:
        """Return the trials that an earlier command left unfinished."""
        import optuna

        running = self.study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,))
        return [optuna.Trial(self.study, trial._trial_id) for trial in running]

    def directory(self, number: int) -> RunDirectory:
        """Return the run directory of a trial."""
        return RunDirectory(self.out / "trials" / f"{number:04d}")

    def config_of(self, params: dict[str, Any]) -> RunConfig:
        """Return the settings of a trial.

        :param params: its hyperparameters as Optuna stores them
        """
        values = {name: value_of(value) for name, value in params.items()}
        if values.get("noise_color") == 0:
            values["random_episodes"] = 0.0  # they need coloured noise
        return self.base.with_hyperparameters(values).resolved()

    def _start(self, trial: "optuna.Trial") -> None:
        suggest(trial, self.base, self.names)
        path = self.directory(trial.number).path
        self.running[trial] = start_run(self.config_of(trial.params), path)
        self.reported[trial.number] = 0

    def _judge(self, trial: "optuna.Trial", display: TuneDisplay) -> None:
        """Report new evaluations to Optuna. Stop the trial if it is worse than most trials were at that step."""
        import optuna

        child, directory = self.running[trial], self.directory(trial.number)
        code = child.poll()
        evaluations = directory.read_evaluations()
        new = slice(self.reported[trial.number], None)
        for step, mean in zip(evaluations.steps[new], evaluations.means[new], strict=True):
            trial.report(float(mean), int(step))
        self.reported[trial.number] = len(evaluations.steps)
        if code == 0 and directory.read_status().get("state") == "finished":
            self.study.tell(trial, final_score(evaluations, self.base.steps))
        elif code is not None:
            message = failure_message(directory.path, code)
            display.say(f"trial {trial.number} failed: {message}")
            trial.set_user_attr("failure", message)
            self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
        elif len(evaluations.steps) and trial.should_prune():
            child.terminate()
            child.wait()
            self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            return
        del self.running[trial]
        display.ended(self.study.get_trials(deepcopy=False)[trial.number])

    def write_results(self) -> int:
        """Write the best settings for ``softdpg train --config``, and a figure of the hyperparameters' importance.

        Return the exit code of the command: 1 if no trial is complete.
        """
        trials = self.study.get_trials(deepcopy=False)
        complete = [t for t in trials if t.state.name == "COMPLETE"]
        if not complete:
            failed = [t for t in trials if t.state.name == "FAIL"]
            first = f"; trial {failed[0].number} failed: {failed[0].user_attrs.get('failure')}" if failed else ""
            say_error(f"softdpg: no trial of {len(trials)} is complete{first}")
            return 1
        if len(complete) > 1 and len({trial.value for trial in complete}) == 1:
            self.console.print(
                f"Nothing was learned: all {len(complete)} trials score {complete[0].value:.2f}, so no value is better "
                "than another. Give a larger --budget. If the reward is sparse, random actions may never meet it: "
                "raise learning-starts and random-episodes in a --config file, or reward partial progress.",
                soft_wrap=True,
            )
        best = self.study.best_trial
        write_config_file(replace(self.config_of(best.params), seed=self.base.seed), self.out / BEST)
        self.console.print(f"best: trial {best.number} with {best.value:.2f}")
        for name, value in best.params.items():
            self.console.print(f"  {flag(name)} {_string(value)}", markup=False)
        self.console.print(f"wrote {self.out / BEST}", soft_wrap=True)
        if len(complete) > 1:
            drawn = draw_importance(self.study, self.out / IMPORTANCE)
            self.console.print(f"wrote {drawn}" if drawn else "too few trials for importance.png", soft_wrap=True)
        return 0


def _string(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value).strip("[]").replace(",", "")


def final_score(evaluations: Evaluations, steps: int) -> float:
    """Return the mean over the evaluations in the last tenth of the steps, like the report.

    :param evaluations: all evaluations of a run
    :param steps: environment steps of the run
    """
    return float(evaluations.means[evaluations.steps > 0.9 * steps].mean())


def draw_importance(study: Any, path: Path) -> Path | None:
    """Draw the importance of each hyperparameter (PED-ANOVA). Return None if there are too few trials to tell.

    :param study: the Optuna study
    :param path: the figure
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import optuna

    warnings.filterwarnings("ignore", category=UserWarning, module="optuna")  # about few trials; the caller says so
    try:
        shares = optuna.importance.get_param_importances(
            study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
        )
    except (ValueError, RuntimeError):
        return None
    if len(set(shares.values())) == 1 and len(shares) > 1:  # PED-ANOVA cannot distinguish the trials
        return None
    names = sorted(shares, key=shares.__getitem__)
    figure, axes = plt.subplots(figsize=(6, 0.6 + 0.32 * len(names)))
    axes.barh([name.replace("_", " ") for name in names], [shares[name] for name in names], color="#0072B2")
    axes.set_xlabel("importance (PED-ANOVA)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path
