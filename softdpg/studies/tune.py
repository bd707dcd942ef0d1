"""``softdpg tune``: Optuna's search over an algorithm's hyperparameters. Each trial is a run of its own.

One process asks and judges; each trial is a process of ``softdpg train`` in ``trials/``, whose evaluations it reads as
they come. All that the search knows is in ``study.db``, so the same command goes on after a stop of any kind, and
trials that were under way go on from their checkpoints.
"""

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from softdpg.algorithms import registry
from softdpg.algorithms.hyperparameters import HYPERPARAMETERS, Range
from softdpg.engines import process
from softdpg.engines.local import cores
from softdpg.errors import UserError, near_matches
from softdpg.runs.config import RunConfig, flag
from softdpg.runs.config_file import write_config_file
from softdpg.runs.directory import RunDirectory
from softdpg.runs.environments import check_goals, check_normalizable, make_env
from softdpg.runs.evaluations import Evaluations
from softdpg.runs.lock import InUseError, locked
from softdpg.runs.signals import Signals
from softdpg.studies.tune_display import TuneDisplay

if TYPE_CHECKING:
    import optuna

EVALUATIONS = 20  # of a trial, unless told otherwise: so many chances to stop it early
WARMUP = 5  # no trial is stopped in the first fifth of its steps
POLL_SECONDS = 0.5
DATABASE, BEST, IMPORTANCE = "study.db", "best.yaml", "importance.png"


def run(settings: dict[str, Any], out: Path, *, trials: int, params: Sequence[str] | None, workers: int | None) -> int:
    """:func:`tune` with settings by name, and defaults for those that are not given."""
    if "env" not in settings:
        raise UserError("softdpg tune needs --env ID, or a --config that has one")
    usual = {"algo": registry.RECOMMENDED, "evaluate_every": max(1, settings["steps"] // EVALUATIONS)}
    base = RunConfig(**(usual | settings))
    base.resolved()
    return tune(base, out, trials=trials, params=params, workers=workers or cores())


def tune(base: RunConfig, out: Path, *, trials: int, params: Sequence[str] | None, workers: int) -> int:
    """Search until ``trials`` trials have ended. Returns the exit code of the command.

    :param base: settings of every trial, with the budget as its steps; those that are searched are replaced
    :param params: names of the hyperparameters to search; all of the algorithm that have a range unless given
    :param workers: trials side by side
    """
    names = searched(base, params)
    for name, value in (("--trials", trials), ("--workers", workers)):
        if value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")
    env = make_env(base.env, base.env_kwargs)
    if base.normalize:
        check_normalizable(env, base.env)
    if base.her:
        check_goals(env, base.env)
    env.close()
    out = out.expanduser().absolute()
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is not a directory")
    if out.is_dir() and not (out / DATABASE).exists() and any(out.iterdir()):
        raise UserError(f"--out {out} is not empty and not a directory of softdpg tune")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write to --out {out}: {error.strerror}") from None
    try:
        with locked(out):
            study = _study(base, names, out)
            search = Search(study, base, names, out, trials)
            code = search.run(workers)
    except InUseError:
        raise UserError(f"another process is working on {out}") from None
    search.write_results()
    return code


def searched(base: RunConfig, params: Sequence[str] | None) -> list[str]:
    """The hyperparameters to search, by name; ``UserError`` for one that the algorithm or the table does not have."""
    own = [name for name in base.algorithm.hyperparameters if HYPERPARAMETERS[name].search is not None]
    if params is None:
        return own
    by_flag = {flag(name).removeprefix("--"): name for name in own}
    names = []
    for given in params:
        name = by_flag.get(given.removeprefix("--").replace("_", "-"), given)
        if name not in own:
            known = ", ".join(by_flag)
            raise UserError(
                f"--params: {base.algo} has no {given!r} with a range{near_matches(given, list(by_flag))} ({known})"
            )
        names.append(name)
    return list(dict.fromkeys(names))


def _study(base: RunConfig, names: list[str], out: Path) -> "optuna.Study":
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        storage=f"sqlite:///{out / DATABASE}",
        study_name="softdpg",
        direction="maximize",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=base.steps // WARMUP),
        load_if_exists=True,
    )
    # A sampler that begins anew must not repeat what it drew before: its seed goes on with the number of trials.
    begun = len(study.get_trials(deepcopy=False))
    study.sampler = optuna.samplers.TPESampler(seed=base.seed + begun, constant_liar=True)
    settings = {"settings": base.to_json(), "params": names}
    stored = study.user_attrs.get("softdpg")
    if stored is None:
        study.set_user_attr("softdpg", settings)
    elif stored != json.loads(json.dumps(settings)):
        raise UserError(f"{out} holds a search with other settings; give it another --out")
    return study


class Search:
    """The trials of a study: those that ended, those that run, and what comes out of them."""

    def __init__(self, study: "optuna.Study", base: RunConfig, names: list[str], out: Path, trials: int) -> None:
        self.study, self.base, self.names, self.out, self.trials = study, base, names, out, trials
        self.running: dict[optuna.Trial, subprocess.Popen[bytes]] = {}
        self.reported: dict[int, int] = {}  # by trial: evaluations that the study has been told of
        self.console = Console(highlight=False)

    @property
    def ended(self) -> int:
        """How many trials have ended, well, early or not."""
        return sum(trial.state.is_finished() for trial in self.study.get_trials(deepcopy=False))

    def run(self, workers: int) -> int:
        """Start trials and judge them until there are enough; returns the exit code."""
        with Signals() as signals, TuneDisplay(self, self.console) as display:
            try:
                waiting = self._under_way()
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
            self.console.print("interrupted; the same command goes on where the trials were")
            return 128 + signals.received
        return 0

    def _under_way(self) -> list["optuna.Trial"]:
        """Trials that an earlier command left unfinished."""
        import optuna

        running = self.study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,))
        return [optuna.Trial(self.study, trial._trial_id) for trial in running]

    def directory(self, number: int) -> RunDirectory:
        """The run directory of a trial."""
        return RunDirectory(self.out / "trials" / f"{number:04d}")

    def config_of(self, params: dict[str, Any]) -> RunConfig:
        """The settings of a trial with these values, as Optuna keeps them."""
        return self.base.with_hyperparameters({name: _value(name, value) for name, value in params.items()}).resolved()

    def _start(self, trial: "optuna.Trial") -> None:
        for name in self.names:
            _suggest(trial, name)
        path = self.directory(trial.number).path
        self.running[trial] = process.start(self.config_of(trial.params), path)
        self.reported[trial.number] = 0

    def _judge(self, trial: "optuna.Trial", display: TuneDisplay) -> None:
        """Tell the study of new evaluations; end the trial if it is worse than most were at that step."""
        import optuna

        child, directory = self.running[trial], self.directory(trial.number)
        code = child.poll()
        evaluations = directory.read_evaluations()
        new = slice(self.reported[trial.number], None)
        for step, mean in zip(evaluations.steps[new], evaluations.means[new], strict=True):
            trial.report(float(mean), int(step))
        self.reported[trial.number] = len(evaluations.steps)
        if code == 0:
            self.study.tell(trial, final_score(evaluations, self.base.steps))
        elif code is not None:
            display.say(f"trial {trial.number} failed: {process.reason(directory.path, code)}")
            self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
        elif len(evaluations.steps) and trial.should_prune():
            child.terminate()
            child.wait()
            self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            return
        del self.running[trial]
        display.ended(self.study.get_trials(deepcopy=False)[trial.number])

    def write_results(self) -> None:
        """Write the best settings as a file for ``softdpg train --config``, and what mattered as a picture."""
        complete = [t for t in self.study.get_trials(deepcopy=False) if t.state.name == "COMPLETE"]
        if not complete:
            self.console.print("no trial has been finished yet")
            return
        best = self.study.best_trial
        write_config_file(replace(self.config_of(best.params), seed=self.base.seed), self.out / BEST)
        self.console.print(f"best: trial {best.number} with {best.value:.2f}")
        for name, value in best.params.items():
            self.console.print(f"  {flag(name)} {_text(value)}", markup=False)
        self.console.print(f"wrote {self.out / BEST}", soft_wrap=True)
        if len(complete) > 1:
            from softdpg.studies.tune_figure import draw_importance

            drawn = draw_importance(self.study, self.out / IMPORTANCE)
            self.console.print(f"wrote {drawn}" if drawn else "too few trials to tell what mattered", soft_wrap=True)


def _suggest(trial: "optuna.Trial", name: str) -> None:
    space = HYPERPARAMETERS[name].search
    if isinstance(space, Range):
        trial.suggest_float(name, space.low, space.high, log=space.log)
    else:
        assert space is not None
        # Optuna keeps numbers, text and Booleans.
        trial.suggest_categorical(name, [json.dumps(value) if isinstance(value, tuple) else value for value in space])


def _value(name: str, stored: Any) -> Any:
    """A value as the settings have it, from what Optuna keeps."""
    is_text_of_tuple = isinstance(stored, str) and stored.startswith("[")
    return tuple(json.loads(stored)) if is_text_of_tuple else stored


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value).strip("[]").replace(",", "")


def final_score(evaluations: Evaluations, steps: int) -> float:
    """Mean return over the evaluations in the last tenth of the steps, as the report has it."""
    return float(evaluations.means[evaluations.steps > 0.9 * steps].mean())
