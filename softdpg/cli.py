"""The command ``softdpg``. Each function is a subcommand: signature and docstring are its help, the body is one call.

Implementations are imported inside the functions, so that ``softdpg --help`` imports neither JAX nor torch.
"""

import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import arg

from softdpg import paper
from softdpg.algorithms import registry
from softdpg.errors import UserError, near_matches, require_extra
from softdpg.experiments.toy import ToySettings
from softdpg.runs.config import ENV_KWARGS_METAVAR, parse_env_kwargs
from softdpg.runs.display import silence, speak_any_encoding
from softdpg.runs.files import is_full

opt = partial(arg, help_behavior_hint="")  # without "(default: None)" in the help
# Options that several commands have.
OptionalPath = Annotated[Path | None, opt(metavar="PATH")]
Earlier = Annotated[tuple[Path, ...], opt(metavar="PATH [PATH ...]")]
Algos = Annotated[tuple[str, ...], arg(metavar="ALGO [ALGO ...]")]
Run = tyro.conf.Positional[Annotated[Path, arg(metavar="RUN", help="Run directory; the run may be unfinished.")]]
RunOrNone = tyro.conf.Positional[
    Annotated[Path | None, opt(name="run", metavar="[RUN]", help="Run directory; the run may be unfinished.")]
]
Zoo = Annotated[str | None, opt(metavar="NAME", help="A trained policy in place of a run: softdpg zoo lists them.")]
Env = Annotated[str | None, opt(metavar="ID", help="Environment instead of the run's own. A module in it is imported.")]
EnvKwargs = Annotated[tuple[str, ...] | None, opt(metavar=ENV_KWARGS_METAVAR, help="Arguments of the environment.")]
Trust = Annotated[
    bool,
    arg(help="Trust this run: import its environment module. This executes its code. Your own runs do not need it."),
]
EngineName = Annotated[Literal["local", "ray"], arg(help="Execute the runs on this machine or on a Ray cluster.")]
Address = Annotated[str | None, opt(metavar="HOST:PORT", help="Ray cluster, or auto. Default: a new local cluster.")]
Workers = Annotated[int | None, opt(metavar="INT", help="Processes at a time on this machine. Default: all cores.")]


def train(
    settings: Annotated[Any, arg(name="")],
    out: OptionalPath = None,
    config: OptionalPath = None,
    write_config: OptionalPath = None,
    keep_buffer: bool = False,
    restart: bool = False,
    track: Annotated[Literal["wandb", "mlflow"] | None, opt(metavar="{wandb,mlflow}")] = None,
) -> None:
    """Train one agent. Run the same command again to resume an interrupted run.

    Args:
        out: Run directory: new, empty, or that of the same run. Default: runs/ENVIRONMENT/ALGORITHM/seed-N.
        config: YAML or TOML file with settings, named like the flags. Flags take precedence.
        write_config: Write the settings to this YAML or TOML file instead of training.
        keep_buffer: Keep the file of the replay buffer after the run is finished.
        restart: Start over. The existing files move to a subdirectory of the run directory.
        track: Also send the log and the evaluations to Weights & Biases or MLflow.
    """
    if write_config is not None:
        from softdpg.runs.flags import write_config_file

        write_config_file(settings.config(), write_config)
        print(f"wrote {write_config}")
        return
    from softdpg.runs.process import keep_compiled, use_one_thread

    use_one_thread()
    keep_compiled()
    from softdpg.runs.training import train

    run = settings.config()
    if out is None:
        out = run.default_out()
        print(f"run directory: {out}", flush=True)
    sys.exit(train(run, out, keep_buffer=keep_buffer, restart=restart, track=track))


def reproduce(
    target: tyro.conf.Positional[Annotated[str, arg(metavar="TARGET")]],
    out: Path = Path("runs/reproduce"),
    steps: Annotated[int | None, opt(metavar="INT")] = None,
    seeds: int = paper.SEEDS,
    envs: Annotated[tuple[str, ...] | None, opt(metavar="ENV [ENV ...]")] = None,
    evaluate_every: int = paper.EVALUATION_EVERY,
    algos: Annotated[tuple[str, ...] | None, opt(metavar="ALGO [ALGO ...]")] = None,
    engine: EngineName = "local",
    address: Address = None,
    workers: Workers = None,
) -> None:
    """Execute the runs behind a table or figure of the paper. Run the same command again to resume.

    Args:
        target: table1, table2, sensitivity-samples, sensitivity-sigma, toy or all.
        out: Directory of the run directories.
        steps: Environment steps of a run. Default: 1,000,000 as in the paper, and 5,000 for the toy.
        seeds: Runs of each algorithm on each environment.
        envs: Environments instead of the target's own: Ant for both rewards, AntDiscrete for one, or a Gymnasium id.
        evaluate_every: Steps between two evaluations. The last step is also evaluated.
        algos: Names of algorithms. Default: the two that the paper compares.
    """
    from softdpg.experiments.reproduce import reproduce

    sys.exit(
        reproduce(
            target,
            out,
            steps=steps,
            seeds=seeds,
            envs=envs,
            evaluate_every=evaluate_every,
            algos=algos,
            engine=engine,
            address=address,
            workers=workers,
        )
    )


def tune(
    env: Annotated[str | None, opt(metavar="ID")] = None,
    trials: int = 50,
    budget: int = 20_000,
    algo: Annotated[str | None, opt(metavar="ALGO", help=f"Algorithm. Default: {registry.DEFAULT}.")] = None,
    params: Annotated[tuple[str, ...] | None, opt(metavar="NAME [NAME ...]")] = None,
    config: OptionalPath = None,
    seed: int = 0,
    evaluate_every: Annotated[int | None, opt(metavar="INT")] = None,
    workers: Workers = None,
    env_kwargs: EnvKwargs = None,
    normalize: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    her: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    out: Path = Path("runs/tune"),
) -> None:
    """Search for good hyperparameters. Run the same command again to resume an interrupted search.

    Args:
        env: Gymnasium id of the environment.
        trials: Number of trials.
        budget: Environment steps of a trial.
        params: Hyperparameters to search, named like the flags of softdpg train. Default: all that have a range.
        config: YAML or TOML file with settings of every trial. The flags and the searched values take precedence.
        seed: Seed of the search and of its runs.
        evaluate_every: Steps between two evaluations. After each one the search may stop the trial.
        normalize: Normalize observations by their running mean and variance.
        her: Use hindsight experience replay. The environment must have goals.
        out: Directory of the search. It holds the database, the trials, best.yaml and importance.png.
    """
    require_extra("tune", "softdpg tune")
    require_extra("report", "softdpg tune")
    from softdpg.experiments.tune import run
    from softdpg.runs.flags import read_config_file

    settings = read_config_file(config) if config else {}
    given: dict[str, Any] = {"env": env, "algo": algo, "evaluate_every": evaluate_every}
    given |= {"normalize": normalize or None, "her": her or None}
    given |= {"env_kwargs": None if env_kwargs is None else parse_env_kwargs(env_kwargs)}
    settings |= {name: value for name, value in given.items() if value is not None}
    sys.exit(run(settings | {"steps": budget, "seed": seed}, out, trials=trials, params=params, workers=workers))


def race(
    tasks: tyro.conf.Positional[Annotated[tuple[str, ...], opt(name="task", metavar="[TASK ...]")]] = (),
    algos: Algos = paper.RACE_ALGORITHMS,
    seeds: int = paper.RACE_SEEDS,
    first_seed: int = 0,
    budget: int = paper.RACE_BUDGET,
    stop_at_score: Annotated[float | None, opt(metavar="SCORE")] = None,
    steps_after_score: int = 0,
    out: Path = Path("runs/race"),
    engine: EngineName = "local",
    address: Address = None,
    workers: Workers = None,
    earlier: Earlier = (),
) -> None:
    """Measure how much training each algorithm needs to reach the paper's best score. Run it again to resume.

    Args:
        tasks: Tasks of the paper: Ant for both rewards, AntDiscrete or Ant-v5 for one. Default: all 22. For the tasks
            with discrete, on/off and mixed actions: actions.
        algos: Names of algorithms.
        seeds: Runs of each algorithm on each task.
        first_seed: The first seed.
        budget: Environment steps after which a run ends without having reached the target score.
        stop_at_score: Target score instead of the paper's. With it a task can be any Gymnasium id.
        steps_after_score: Steps that a run continues after it has reached the target score.
        out: Directory of the run directories, tables and figures.
        earlier: race.csv files of the same benchmark. Their runs are shown too, and those that ended with the same
            settings are not repeated.
    """
    require_extra("report", "softdpg race")
    from softdpg.experiments.race import race

    sys.exit(
        race(
            tasks,
            out,
            algos=algos,
            seeds=seeds,
            first_seed=first_seed,
            budget=budget,
            stop_at_score=stop_at_score,
            steps_after_score=steps_after_score,
            engine=engine,
            address=address,
            workers=workers,
            earlier=earlier,
        )
    )


def evaluate(
    run: RunOrNone = None,
    zoo: Zoo = None,
    episodes: int = 100,
    seed: int = 0,
    env: Env = None,
    env_kwargs: EnvKwargs = None,
    trust: Trust = False,
) -> None:
    """Evaluate the policy of a run, or one of the zoo, with deterministic episodes.

    Args:
        episodes: Number of episodes.
        seed: Seed of the episodes.
    """
    from softdpg.runs.process import use_one_thread

    use_one_thread()
    from softdpg.runs.trained import evaluate_run

    source = _source(run, zoo, "eval")
    returns = evaluate_run(source, episodes=episodes, seed=seed, **_chosen(env, env_kwargs, trust))
    print(f"{returns.mean():.2f} ± {returns.std():.2f} over {episodes} episodes", end="")
    print(f" (from {returns.min():.2f} to {returns.max():.2f})")


def watch(
    run: RunOrNone = None,
    zoo: Zoo = None,
    out: OptionalPath = None,
    episodes: int = 1,
    seed: int = 0,
    env: Env = None,
    env_kwargs: EnvKwargs = None,
    trust: Trust = False,
) -> None:
    """Render the policy of a run, or one of the zoo, to a video. This needs no screen.

    Args:
        out: The video, ending in .mp4 or .gif. Default: RUN/video.mp4, or NAME.mp4 with --zoo.
        episodes: Number of episodes.
        seed: Seed of the episodes.
    """
    require_extra("video", "softdpg watch")
    from softdpg.runs.trained import watch

    source = _source(run, zoo, "watch")
    print(f"wrote {watch(source, out=out, episodes=episodes, seed=seed, **_chosen(env, env_kwargs, trust))}")


def zoo() -> None:
    """List the trained policies that come with the package, with their scores."""
    from softdpg.zoo import print_listing

    print_listing()


def export(
    run: Run,
    to: Literal["onnx", "numpy", "safetensors"] = "onnx",
    out: OptionalPath = None,
    env: Env = None,
    env_kwargs: EnvKwargs = None,
    trust: Trust = False,
) -> None:
    """Write the policy of a run for use without softdpg.

    Args:
        to: onnx, numpy (one Python file that needs only NumPy) or safetensors.
        out: The file. Default: RUN/policy.onnx, policy.py or policy.safetensors.
    """
    from softdpg.runs.trained import export_run

    print(f"wrote {export_run(run, to=to, out=out, **_chosen(env, env_kwargs, trust))}")


def theory(
    all_cases: Annotated[bool, arg(name="all")] = False,
    json: bool = False,
    out: Path = Path("runs/theory"),
) -> None:
    """Check the paper's statements numerically on problems that are solved exactly. This takes seconds.

    Args:
        all_cases: Print one row for each case instead of the worst case of each statement and family of problems.
        json: Print only a JSON list of objects to standard output.
        out: Directory of the figure.
    """
    require_extra("report", "softdpg theory")
    from softdpg.theory.report import run

    run(all_cases, json, out)


def toy(settings: Annotated[ToySettings, arg(name="")], out: Path = Path("runs/toy")) -> None:
    """Train on the paper's toy and draw its Figure 1: learned critics and the exact ones. This takes under 3 minutes.

    Args:
        out: Directory of the figure.
    """
    require_extra("report", "softdpg toy")
    from softdpg.experiments.toy import run

    run(settings, out)


def envs(markdown: bool = False) -> None:
    """List the environments with sizes, reward rules, highest possible returns and the paper's scores.

    Args:
        markdown: Print the tables in Markdown.
    """
    from softdpg.envs import listing

    if markdown:
        print(listing.markdown(paper.PAPER_SCORES), end="")
    else:
        listing.print_listing(paper.PAPER_SCORES)


def demo(out: Path = Path("demo"), budget: int = 16_000, seed: int = 0) -> None:
    """Compare Soft TD3 with SBX's SAC on MountainCar with discrete rewards. This takes minutes.

    Args:
        out: Directory of the runs, the table and the figures.
        budget: Environment steps after which a run ends without having reached the target score.
        seed: Seed of the runs.
    """
    require_extra("report", "softdpg demo")
    require_extra("peers", "softdpg demo")
    from softdpg.experiments.race import demo

    sys.exit(demo(out, budget, seed))


def version() -> None:
    """Print the version."""
    from softdpg import __version__

    print(__version__)


def report(path: tyro.conf.Positional[Path], out: OptionalPath = None, earlier: Earlier = ()) -> None:
    """Write tables, figures and one HTML page about finished or unfinished runs.

    Args:
        path: Directory with run directories anywhere below it, or a results.csv that an earlier report wrote.
        out: Directory of the report. Default: PATH/report, or the directory of results.csv.
        earlier: race.csv files of the same benchmark, whose runs are shown too. If two runs have the same task,
            algorithm and seed, that of PATH counts, unless only the other one has ended.
    """
    require_extra("report", "softdpg report")
    from softdpg.report.page import write_report

    written = write_report(path, out, earlier)
    for warning in written.warnings:
        print(f"softdpg: warning: {warning}", file=sys.stderr)
    print(written.summary)
    print("\n".join(f"wrote {file}" for file in written.files))


def plot(
    paths: tyro.conf.Positional[Annotated[tuple[Path, ...], opt(name="DIR", metavar="DIR [DIR ...]")]],
    out: Path = Path("learning_curves.png"),
) -> None:
    """Draw the learning curves of runs in one figure: the mean over seeds and its 95 % bootstrap interval.

    Args:
        paths: Directories with run directories anywhere below them.
        out: The figure, ending in .png, .pdf or .svg.
    """
    require_extra("report", "softdpg plot")
    from softdpg.report.curves import plot

    if not paths:
        raise UserError("softdpg plot needs a directory with runs, for instance: softdpg plot runs")
    written, warnings = plot(paths, out)
    for warning in warnings:
        print(f"softdpg: warning: {warning}", file=sys.stderr)
    print(f"wrote {written}")


_FUNCTIONS = (
    *(demo, envs, train, reproduce, race, tune, evaluate),
    *(watch, zoo, export, theory, toy, report, plot, version),
)
COMMANDS: dict[str, Callable[..., Any]] = {
    "eval" if function is evaluate else function.__name__: function for function in _FUNCTIONS
}


def _source(run: Path | None, zoo: str | None, command: str) -> Any:
    """Return the run directory or the policy of the zoo; raise ``UserError`` unless exactly one is given."""
    if (run is None) == (zoo is None):
        raise UserError(f"softdpg {command} needs a run directory, or --zoo NAME, and not both")
    if zoo is None:
        return run
    from softdpg.zoo import load

    return load(zoo)


def _chosen(env: str | None, env_kwargs: tuple[str, ...] | None, trust: bool) -> dict[str, Any]:
    """Return the arguments that choose the environment of a policy; None stands for the run's own."""
    return {"env_id": env, "env_kwargs": None if env_kwargs is None else parse_env_kwargs(env_kwargs), "trust": trust}


def _config_file(arguments: list[str]) -> dict[str, Any]:
    """Return the settings in the file of ``--config``. They become the defaults of the flags."""
    given = [later for flag, later in pairwise([*arguments, ""]) if flag == "--config"]
    given += [argument.partition("=")[2] for argument in arguments if argument.startswith("--config=")]
    if not given:
        return {}
    from softdpg.runs.flags import read_config_file

    return read_config_file(Path(given[-1]))


def main() -> None:
    """Run the command; the entry point of the console script."""
    speak_any_encoding()
    try:
        from softdpg.runs.flags import settings_class

        command, *arguments = sys.argv[1:] or ["--help"]
        if command == "--version":
            return version()
        if not command.startswith("-") and command not in COMMANDS:
            known = ", ".join(COMMANDS)
            raise UserError(f"no command {command!r}{near_matches(command, list(COMMANDS))} (commands: {known})")
        # The flags are made here and not above because plugins may have added algorithms.
        defaults = _config_file(arguments) if command == "train" else {}
        train.__annotations__["settings"] = Annotated[settings_class(defaults), arg(name="")]
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS, prog="softdpg", description="Soft Deterministic Policy Gradient: train, compare and reproduce."
        )
    except UserError as error:
        print(f"softdpg: error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # for instance with | head
        silence(sys.stdout)
        sys.exit(1)
    except OSError as error:
        if not is_full(error):
            raise
        print(f"softdpg: the disk is full{f' ({error.filename})' if error.filename else ''}", file=sys.stderr)
        sys.exit(1)
