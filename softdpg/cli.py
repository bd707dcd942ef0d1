"""The command ``softdpg``. Each function is a subcommand: its signature is the help, its body one call.

Implementations are imported inside the functions, so that ``softdpg --help`` loads neither JAX nor torch.
"""

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from softdpg import paper
from softdpg.errors import UserError, near_matches, require_extra
from softdpg.runs.env_kwargs import ENV_KWARGS_METAVAR, parse
from softdpg.runs.terminal import silence, speak_any_encoding

EnvKwargsFlag = Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar=ENV_KWARGS_METAVAR)]


def train(
    settings: Annotated[Any, tyro.conf.arg(name="")],
    out: Path | None = None,
    config: Path | None = None,
    write_config: Path | None = None,
    keep_buffer: bool = False,
    restart: bool = False,
) -> None:
    """Train one agent in a run directory. The same command goes on with a run that was stopped or killed.

    Args:
        settings: Settings of the run.
        out: The run directory; new, empty, or that of the same run.
        config: Settings in a YAML or TOML file, named as the flags are; flags go above it.
        write_config: Write the settings to a YAML or TOML file, and do not train.
        keep_buffer: Keep the replay buffer's file after the run is finished.
        restart: Start over; the files of the run so far are set aside in its directory.
    """
    if write_config is not None:
        from softdpg.runs.config_file import write_config_file

        write_config_file(settings.config(), write_config)
        print(f"wrote {write_config}")
        return
    if out is None:
        raise UserError("softdpg train needs --out DIRECTORY")
    from softdpg.runs.compiled import keep_compiled
    from softdpg.runs.threads import use_one_thread

    use_one_thread()
    keep_compiled()
    from softdpg.runs.training import train

    sys.exit(train(settings.config(), out, keep_buffer=keep_buffer, restart=restart))


def reproduce(
    target: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="TARGET")]],
    out: Path = Path("runs/reproduce"),
    steps: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    seeds: int = paper.SEEDS,
    envs: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="ENV [ENV ...]")] = None,
    evaluate_every: int = paper.EVALUATION_EVERY,
    algos: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="ALGO [ALGO ...]")] = None,
    engine: Literal["local", "ray"] = "local",
    address: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT")] = None,
    workers: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
) -> None:
    """Do the runs behind a table or figure of the paper, in parallel. The same command again goes on with what is left.

    Args:
        target: table1, table2, sensitivity-samples, sensitivity-sigma, toy or all.
        out: Directory of the run directories.
        steps: Environment steps of a run. The paper's 1,000,000 unless given, and 5,000 for the toy.
        seeds: Runs of each environment and algorithm.
        envs: Environments instead of the target's own: Ant for both rewards, AntDiscrete for one, or a Gymnasium id.
        evaluate_every: Steps between two evaluations; the last step is evaluated as well.
        algos: Algorithms, by the names of softdpg train. The paper's two unless given.
        engine: Processes on this machine, or tasks on a Ray cluster.
        address: Head of a Ray cluster, host:port or auto. Without it a local one is started.
        workers: Processes at a time on this machine. All cores unless given.
    """
    from softdpg.studies.reproduce import reproduce

    code = reproduce(
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
    sys.exit(code)


def tune(
    env: Annotated[str | None, tyro.conf.arg(metavar="ID")] = None,
    trials: int = 50,
    budget: int = 20_000,
    algo: Annotated[str | None, tyro.conf.arg(metavar="ALGO")] = None,
    params: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME [NAME ...]")] = None,
    config: Path | None = None,
    seed: int = 0,
    evaluate_every: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    workers: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    env_kwargs: EnvKwargsFlag = None,
    normalize: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    her: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    out: Path = Path("runs/tune"),
) -> None:
    """Search for good hyperparameters. The same command again goes on with a search that was stopped or killed.

    Args:
        env: Gymnasium id of the environment.
        trials: Runs of the search.
        budget: Environment steps of each.
        algo: The algorithm, by the name of softdpg train; the one recommended for your own tasks unless given.
        params: Hyperparameters to search, named as the flags of softdpg train. All that have a range unless given.
        config: Settings of every trial in a YAML or TOML file; those above and those searched go first.
        seed: Seed of the search and of its runs.
        evaluate_every: Steps between two evaluations, after each of which a trial may be stopped early.
        workers: Trials side by side. All cores unless given.
        env_kwargs: Arguments of the environment's constructor.
        normalize: Normalise observations by their running mean and variance.
        her: Hindsight replay, for environments with goals.
        out: Directory of the search: its database, its runs, best.yaml for softdpg train --config, importance.png.
    """
    require_extra("tune", "softdpg tune")
    require_extra("report", "softdpg tune")
    from softdpg.runs.config_file import read_config_file
    from softdpg.studies.tune import run

    settings = read_config_file(config) if config else {}
    given = {"env": env, "algo": algo, "evaluate_every": evaluate_every, "env_kwargs": _env_kwargs(env_kwargs)}
    given |= {"normalize": normalize or None, "her": her or None}
    settings |= {name: value for name, value in given.items() if value is not None}
    sys.exit(run(settings | {"steps": budget, "seed": seed}, out, trials=trials, params=params, workers=workers))


def race(
    envs: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(name="env", metavar="[ENV ...]")]] = (),
    algos: Annotated[tuple[str, ...], tyro.conf.arg(metavar="ALGO [ALGO ...]")] = paper.CONTENDERS,
    seeds: int = paper.RACE_SEEDS,
    first_seed: int = 0,
    budget: int = paper.RACE_BUDGET,
    goal: Annotated[float | None, tyro.conf.arg(metavar="SCORE")] = None,
    hold: int = 0,
    out: Path = Path("runs/race"),
    engine: Literal["local", "ray"] = "local",
    address: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT")] = None,
    workers: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    earlier: tuple[Path, ...] = (),
) -> None:
    """How many steps and CPU seconds until the paper's score? The same command again goes on with what is left.

    Args:
        envs: Columns of the paper's tables: Ant for both rewards, AntDiscrete or Ant-v5 for one. All 22 unless given.
        algos: Contenders, by the names of softdpg train.
        seeds: Runs of each contender on each column.
        first_seed: The first of the seeds.
        budget: Environment steps after which a run ends that has not crossed the line.
        goal: Finishing line instead of the paper's better score; with it any Gymnasium id is a column.
        hold: Steps that a run goes on after it has crossed, to see whether it falls back.
        out: Directory of the run directories, tables and pictures.
        engine: Processes on this machine, or tasks on a Ray cluster.
        address: Head of a Ray cluster, host:port or auto. Without it a local one is started.
        workers: Processes at a time on this machine. All cores unless given.
        earlier: race.csv files of the same race from elsewhere: their runs are shown too, and those that came to an
            end there with the same settings are not made again.
    """
    require_extra("report", "softdpg race")
    from softdpg.studies.race import race

    code = race(
        envs,
        out,
        algos=algos,
        seeds=seeds,
        first_seed=first_seed,
        budget=budget,
        goal=goal,
        hold=hold,
        engine=engine,
        address=address,
        workers=workers,
        earlier=earlier,
    )
    sys.exit(code)


def evaluate(
    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]],
    episodes: int = 100,
    seed: int = 0,
    env: Annotated[str | None, tyro.conf.arg(metavar="ID")] = None,
    env_kwargs: EnvKwargsFlag = None,
    trust: bool = False,
) -> None:
    """Evaluate the policy of a run anew, with deterministic episodes. Runs no code from the run's files.

    Args:
        run: A run directory; the run may be unfinished.
        episodes: Number of episodes.
        seed: Seed of the episodes.
        env: An environment instead of the run's own, by id; its module, if it names one, is imported.
        env_kwargs: Arguments of the environment instead of the run's own.
        trust: Do what the run's settings ask for, which can run any code: import a module (module:Id-v0), use texts.
    """
    from softdpg.runs.threads import use_one_thread

    use_one_thread()
    from softdpg.runs.evaluate_run import evaluate_run

    returns = evaluate_run(
        run, episodes=episodes, seed=seed, env_id=env, env_kwargs=_env_kwargs(env_kwargs), trust=trust
    )
    print(f"{returns.mean():.2f} ± {returns.std():.2f} over {episodes} episodes", end="")
    print(f" (from {returns.min():.2f} to {returns.max():.2f})")


def watch(
    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]],
    out: Path | None = None,
    episodes: int = 1,
    seed: int = 0,
    env: Annotated[str | None, tyro.conf.arg(metavar="ID")] = None,
    env_kwargs: EnvKwargsFlag = None,
    trust: bool = False,
) -> None:
    """Render the policy of a run to a video, without a screen. Runs no code from the run's files.

    Args:
        run: A run directory; the run may be unfinished.
        out: The video, ending in .mp4 or .gif. RUN/video.mp4 unless given.
        episodes: Number of episodes.
        seed: Seed of the episodes.
        env: An environment instead of the run's own, by id; its module, if it names one, is imported.
        env_kwargs: Arguments of the environment instead of the run's own.
        trust: Do what the run's settings ask for, which can run any code: import a module (module:Id-v0), use texts.
    """
    require_extra("video", "softdpg watch")
    from softdpg.runs.watch import watch

    chosen: Any = {"env_id": env, "env_kwargs": _env_kwargs(env_kwargs), "trust": trust}
    print(f"wrote {watch(run, out=out, episodes=episodes, seed=seed, **chosen)}")


def export(
    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]],
    to: Literal["onnx", "numpy", "safetensors"] = "onnx",
    out: Path | None = None,
    env: Annotated[str | None, tyro.conf.arg(metavar="ID")] = None,
    env_kwargs: EnvKwargsFlag = None,
    trust: bool = False,
) -> None:
    """Write the policy of a run for use without softdpg. Runs no code from the run's files.

    Args:
        run: A run directory; the run may be unfinished.
        to: onnx, one Python file that needs NumPy alone, or safetensors.
        out: The file. RUN/policy.onnx, policy.py or policy.safetensors unless given.
        env: An environment instead of the run's own, by id; its module, if it names one, is imported.
        env_kwargs: Arguments of the environment instead of the run's own.
        trust: Do what the run's settings ask for, which can run any code: import a module (module:Id-v0), use texts.
    """
    from softdpg.runs.export_run import export_run

    chosen: Any = {"env_id": env, "env_kwargs": _env_kwargs(env_kwargs), "trust": trust}
    print(f"wrote {export_run(run, to=to, out=out, **chosen)}")


def theory(
    all_cases: Annotated[bool, tyro.conf.arg(name="all")] = False,
    json: bool = False,
    out: Path = Path("runs/theory"),
) -> None:
    """Check the paper's statements on problems that are solved exactly: a table and a figure, in seconds.

    Args:
        all_cases: One row a case, instead of the worst case of each statement and family of problems.
        json: Print a JSON list of objects to standard output, and nothing else.
        out: Directory of the figure.
    """
    require_extra("report", "softdpg theory")
    from softdpg.theory.report import run

    run(all_cases, json, out)


def toy(
    seeds: int = 3,
    steps: int = 5_000,
    epsilon: float = 0.05,
    gamma: float = 0.9,
    sigma: float = 0.2,
    batch_size: int = 64,
    action_layer: Literal["second", "input"] = "second",
    workers: int = 2,
    algos: Annotated[tuple[str, ...], tyro.conf.arg(metavar="ALGO [ALGO ...]")] = paper.STUDY_ALGORITHMS,
    out: Path = Path("runs/toy"),
) -> None:
    """Train on the paper's toy and draw its figure 1: learned critics beside the exact ones. Under 3 minutes.

    Args:
        seeds: Runs of each algorithm.
        steps: Environment steps of a run; the first 1,000 are uniformly random.
        epsilon: Half the width of the rewarded interval.
        gamma: Discount factor. The critic needs steps in proportion to 1 / (1 - gamma).
        sigma: Smoothing parameter.
        batch_size: Transitions of an update.
        action_layer: Hidden layer of the critic where the action enters.
        workers: Runs side by side, one thread each.
        evaluate_every: Steps between two evaluations; the last step is evaluated as well.
        algos: Algorithms, by the names of softdpg train; not those of other libraries.
        out: Directory of the picture.
    """
    require_extra("report", "softdpg toy")
    from softdpg.studies.toy import ToySettings, run

    run(ToySettings(seeds, steps, epsilon, gamma, sigma, batch_size, action_layer, workers, algos), out)


def envs(markdown: bool = False) -> None:
    """List the environments: sizes, reward rules, ceilings of the return, and the paper's scores.

    Args:
        markdown: Print the tables in Markdown.
    """
    from softdpg.envs import listing
    from softdpg.paper import PAPER_SCORES

    if markdown:
        print(listing.markdown(PAPER_SCORES), end="")
    else:
        listing.print_listing(PAPER_SCORES)


def demo(out: Path = Path("demo"), budget: int = 16_000, seed: int = 0) -> None:
    """A small race, Soft TD3 beside SBX's SAC on MountainCar with discrete rewards: minutes, a table and pictures.

    Args:
        out: Directory of the runs, the table and the pictures.
        budget: Environment steps after which a run ends that has not crossed the line.
        seed: Seed of the runs.
    """
    require_extra("report", "softdpg demo")
    require_extra("peers", "softdpg demo")
    from softdpg.studies.demo import demo

    sys.exit(demo(out, budget, seed))


def version() -> None:
    """Print the version."""
    from softdpg import __version__

    print(__version__)


def report(path: tyro.conf.Positional[Path], out: Path | None = None, earlier: tuple[Path, ...] = ()) -> None:
    """Tables, figures and one HTML page from finished or unfinished runs.

    Args:
        path: Directory with run directories anywhere below it, or a results.csv that an earlier report wrote.
        out: Where to write. By default PATH/report, or beside the results.csv.
        earlier: race.csv files of the same race from elsewhere, whose runs are shown too. Of the same column, contender
            and seed that of PATH counts, unless only the other one has come to its end.
    """
    require_extra("report", "softdpg report")
    from softdpg.report.writing import write_report

    written = write_report(path, out, earlier)
    for warning in written.warnings:
        print(f"softdpg: warning: {warning}", file=sys.stderr)
    print(written.coverage)
    print("\n".join(f"wrote {file}" for file in written.files))


COMMANDS: dict[str, Callable[..., Any]] = {
    "demo": demo,
    "envs": envs,
    "train": train,
    "reproduce": reproduce,
    "race": race,
    "tune": tune,
    "eval": evaluate,
    "watch": watch,
    "export": export,
    "theory": theory,
    "toy": toy,
    "report": report,
    "version": version,
}


def _env_kwargs(texts: tuple[str, ...] | None) -> Any:
    """What ``--env-kwargs`` gives; None if it was not given."""
    return None if texts is None else parse(texts)


def _config_file(arguments: list[str]) -> dict[str, Any]:
    """The settings in the file behind ``--config``: read before the flags, whose defaults they are."""
    given = [later for flag, later in pairwise([*arguments, ""]) if flag == "--config"]
    given += [argument.partition("=")[2] for argument in arguments if argument.startswith("--config=")]
    if not given:
        return {}
    from softdpg.runs.config_file import read_config_file

    return read_config_file(Path(given[-1]))


def main() -> None:
    """Entry point of the console script."""
    speak_any_encoding()
    try:
        from softdpg.runs.flags import settings_class

        command, *arguments = sys.argv[1:] or ["--help"]
        if command == "--version":
            return version()
        if not command.startswith("-") and command not in COMMANDS:
            known = ", ".join(COMMANDS)
            raise UserError(f"no command {command!r}{near_matches(command, list(COMMANDS))} (commands: {known})")
        # Here and not above: plugins may have added algorithms.
        defaults = _config_file(arguments) if command == "train" else {}
        train.__annotations__["settings"] = Annotated[settings_class(defaults), tyro.conf.arg(name="")]
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS, prog="softdpg", description="Soft Deterministic Policy Gradient: train, reproduce, inspect."
        )
    except UserError as error:
        print(f"softdpg: error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # as with | head; what is left in the buffer goes nowhere
        silence(sys.stdout)
        sys.exit(1)
