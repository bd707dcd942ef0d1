"""The paper's tables beside the measured scores, and the settings and machines behind the runs."""

from collections import Counter
from collections.abc import Iterable

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS, Algorithm
from softdpg.report.document import MISSING, Section, Table, Text, interval
from softdpg.report.reading import show
from softdpg.report.runs import SMOOTHING, Run
from softdpg.report.scores import Cell, Results, Row, Sweep, deviations, differences, symbol
from softdpg.report.statistics import (
    Comparison,
    Estimate,
    interquartile_mean,
    mean_std,
    probability_of_improvement,
)
from softdpg.report.style import SYMBOLS, format_steps, table_order
from softdpg.runs.directory import STATES

SIGNIFICANCE = 0.05
REWARDS: tuple[paper.Rewards, ...] = ("discrete", "continuous")

_METHOD, _BASELINE = ALGORITHMS[paper.METHOD].label, ALGORITHMS[paper.BASELINE].label

HOW_TO_READ = (
    "The final score of a seed is the mean return over the last tenth of its evaluations. An evaluation has 10 "
    "deterministic episodes and takes place every 5,000 steps, unless a cell says otherwise. The paper does not state "
    "its own protocol.",
    "*Reported* is the paper's number. *Measured* is the mean ± sample standard deviation (n - 1) over seeds. † marks "
    "a cell with fewer seeds or steps than the paper's 5 and 1M, or with other settings: it does not reproduce the "
    "number beside it.",
    f"*Order as in the paper* compares the means of {_BASELINE} and {_METHOD}. It is *undecided* if an exact two-sided "
    "Mann-Whitney test over seeds gives p of at least 0.05. Bold marks the better reported score, and the better "
    "measured one if p is below 0.05.",
    f"IQM is the interquartile mean. P(X > {_BASELINE}) is the probability that a seed of X scores above a seed of "
    f"{_BASELINE}, ties counting one half. Brackets are stratified 95 % percentile bootstrap intervals. With few seeds "
    "they tend to be too narrow; the p-value does not.",
    f"{_METHOD} is Algorithm 1 of the paper with the paper's estimator.",
)

HOW_TO_READ_OTHERS = (
    "The final score of a seed is the mean return over the last tenth of its evaluations. Scores are mean ± sample "
    "standard deviation (n - 1) over seeds.",
    HOW_TO_READ[3],
)


def how_to_read(results: Results) -> tuple[str, ...]:
    """Return the notes for readers, without those about the paper if no run is on its environments.

    :param results: arranged runs
    """
    return HOW_TO_READ if results.in_paper else HOW_TO_READ_OTHERS


def sections(results: Results) -> list[Section]:
    """Return all sections that have something to show, in the paper's order.

    :param results: arranged runs
    """
    found = [
        _paper_section(results, 1, "Table 1: MuJoCo environments") if results.in_paper else None,
        _paper_section(results, 2, "Table 2: Gym environments") if results.in_paper else None,
        _sensitivity_section(results.sweeps) if results.in_paper else None,
        _other_environments(results),
        _other_settings(results),
        Section("settings", "Settings and provenance", tables=settings_tables(results.runs, results.in_paper))
        if results.runs
        else None,
    ]
    return [section for section in found if section is not None]


def coverage(results: Results) -> str:
    """Say in one sentence how much of the paper's tables is reproduced, or how many runs there are outside of them.

    :param results: arranged runs
    """
    if not results.in_paper:
        runs, envs = len(results.runs), len({run.env for run in results.runs})
        return f"{runs} run{'s' * (runs != 1)} on {envs} environment{'s' * (envs != 1)}."
    cells = [
        results.rows[environment.env_id(rewards)].cells[algorithm]
        for environment in paper.ENVIRONMENTS.values()
        for rewards in REWARDS
        for algorithm in paper.PAPER_ALGORITHMS
        if algorithm in getattr(results.rows.get(environment.env_id(rewards)), "cells", {})
    ]
    total = len(paper.ENVIRONMENTS) * len(REWARDS) * len(paper.PAPER_ALGORITHMS)
    complete = sum(cell.is_complete() for cell in cells)
    return (
        f"Of the {total} cells of the paper's Tables 1 and 2, {complete} have the paper's seeds, steps and settings, "
        f"{len(cells) - complete} fall short of them (†) and {total - len(cells)} have no runs."
    )


def describe(cell: Cell, swept: bool = False) -> str:
    """Return the seeds and steps behind a cell; in the paper's environments also where they depart from its protocol.

    :param cell: runs with equal settings
    :param swept: whether the cell is part of a sensitivity sweep
    """
    seeds, step = len(cell.runs), cell.step
    short = cell.in_paper and seeds < paper.SEEDS
    seeds_text = f"{seeds} of {paper.SEEDS} seeds" if short else f"{seeds} seed{'s' * (seeds > 1)}"
    steps_text = f"{format_steps(step)} steps"
    if not cell.in_paper and step < cell.settings.steps:
        steps_text = f"{format_steps(step)} of {format_steps(cell.settings.steps)} steps"
    if cell.in_paper and step < paper.TOTAL_TIMESTEPS:
        steps_text = f"{format_steps(step)} of {format_steps(paper.TOTAL_TIMESTEPS)} steps"
    waiting = [f"{cell.waiting} more not finished"] if cell.waiting else []
    waiting += [] if cell.runs[0].finished else ["not finished"]
    return ", ".join([seeds_text, steps_text, *waiting, *(deviations(cell, swept) if cell.in_paper else [])])


def measured(cell: Cell | None, bold: bool = False, swept: bool = False) -> Text:
    """Return mean ± std of a cell, marked with † if it falls short of the paper's protocol.

    :param cell: runs with equal settings; None if there are none
    :param bold: whether it is the better one
    :param swept: whether the cell is part of a sensitivity sweep
    """
    if cell is None:
        return Text(MISSING)
    mean, std = mean_std(cell.scores)
    text = f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"
    return Text(f"{text} †" if cell.in_paper and not cell.is_complete(swept) else text, describe(cell, swept), bold)


def order(row: Row, scores: paper.Scores, rewards: paper.Rewards) -> Text:
    """Return whether method and baseline come in the paper's order, and whether the seeds suffice to say so.

    :param row: measured scores of an environment
    :param scores: reported scores of the environment
    :param rewards: kind of rewards
    """
    method, baseline = row.cells.get(paper.METHOD), row.cells.get(paper.BASELINE)
    reported = [scores.score(rewards, name) for name in (paper.METHOD, paper.BASELINE)]
    assert reported[0]
    assert reported[1]
    if method is None or baseline is None:
        return Text(MISSING)
    comparison = row.comparisons.get(paper.METHOD)
    if comparison is None:
        return Text(MISSING, "not at the same step yet")
    expected = reported[0].mean - reported[1].mean
    found = float(method.scores.mean() - baseline.scores.mean())
    if expected == 0:
        return Text("a tie in the paper", _p_value(comparison))
    verdict = "tie" if found == 0 else "yes" if (found > 0) == (expected > 0) else "no"
    return Text(verdict if _decided(comparison) else f"{verdict}, undecided", _p_value(comparison))


def _decided(comparison: Comparison | None) -> bool:
    return comparison is not None and comparison.p_value is not None and comparison.p_value < SIGNIFICANCE


def _p_value(comparison: Comparison) -> str:
    if comparison.p_value is None:
        return "one seed: no test"
    return "p < 0.001" if comparison.p_value < 0.001 else f"p = {comparison.p_value:.3f}"


def _estimate(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} {interval(estimate)}".rstrip()


def _iqm(cell: Cell) -> Text:
    estimate = interquartile_mean(cell.scores)
    return Text(f"{estimate.value:.2f}", interval(estimate) or "one seed: no interval")


def _paper_section(results: Results, number: int, title: str) -> Section | None:
    names = [name for name, environment in paper.ENVIRONMENTS.items() if environment.table == number]
    tables, envs, notes = [], [], []
    for rewards in REWARDS:
        ids = {name: paper.ENVIRONMENTS[name].env_id(rewards) for name in names}
        present = {name: results.rows[env_id] for name, env_id in ids.items() if env_id in results.rows}
        absent = [paper.ENVIRONMENTS[name].label for name in names if name not in present]
        notes += [f"Not run with {rewards} rewards: {', '.join(absent)}."] if absent else []
        if present:
            tables.append(_score_table(present, rewards))
            rows = {paper.ENVIRONMENTS[name].label: row for name, row in present.items()}
            tables.append(_robust_table(f"{rewards.capitalize()} rewards: interquartile mean and comparison", rows))
            envs += [row.env for row in present.values()]
    notes += hyperparameter_notes(results.rows[env] for env in envs)
    return Section(f"table{number}", title, notes, tables, envs) if tables else None


def hyperparameter_notes(rows: Iterable[Row]) -> list[str]:
    """Return one sentence for each peer, and for each algorithm that differs from the baseline beside it.

    :param rows: rows of a table
    """
    baseline, notes = ALGORITHMS[paper.BASELINE], []
    algorithms = _algorithms(rows)
    for algorithm in algorithms:
        own = algorithm.hyperparameters
        other = [
            f"{symbol(name)} {show(own[name])}"
            for name, value in baseline.hyperparameters.items()
            if own.get(name) not in (None, value)
        ]
        if algorithm.origin == "peer":
            notes.append(f"{algorithm.label} uses the defaults of its own library, unless a cell says otherwise.")
        elif other and baseline in algorithms:
            notes.append(f"{algorithm.label} differs from {baseline.label} in {', '.join(other)}.")
    return notes


def _algorithms(rows: Iterable[Row]) -> list[Algorithm]:
    """Return the algorithms of some rows, and the paper's if the paper ran one of the environments."""
    rows = list(rows)
    names = {name for row in rows for name in row.cells}
    if any(cell.in_paper for row in rows for cell in row.cells.values()):
        names |= set(paper.PAPER_ALGORITHMS)
    return [ALGORITHMS[name] for name in table_order() if name in names]


def _score_table(present: dict[str, Row], rewards: paper.Rewards) -> Table:
    algorithms = _algorithms(present.values())
    header = ["Environment"]
    for algorithm in algorithms:
        header += [f"{algorithm.label}, reported"] if algorithm.name in paper.PAPER_ALGORITHMS else []
        header += [f"{algorithm.label}, measured"]
    rows = []
    for name, row in present.items():
        scores = paper.PAPER_SCORES[name]
        best = max(scores.score(rewards, key) or (0.0, 0.0) for key in paper.PAPER_ALGORITHMS)[0]
        means = {key: row.cells[key].scores.mean() for key in paper.PAPER_ALGORITHMS if key in row.cells}
        decided = _decided(row.comparisons.get(paper.METHOD))
        line = [Text(paper.ENVIRONMENTS[name].label)]
        for algorithm in algorithms:
            score = scores.score(rewards, algorithm.name)
            if score:
                line.append(Text(f"{score.mean:.2f} ± {score.std:.2f}", bold=score.mean == best))
            winner = decided and means.get(algorithm.name) == max(means.values())
            line.append(measured(row.cells.get(algorithm.name), bold=winner))
        rows.append([*line, order(row, scores, rewards)])
    return Table(f"{rewards.capitalize()} rewards: mean ± std", [*header, "Order as in the paper"], rows)


def _robust_table(title: str, rows: dict[str, Row]) -> Table:
    """Interquartile means, and each algorithm against the baseline; the last row averages over environments."""
    algorithms = _algorithms(rows.values())
    others = [algorithm for algorithm in algorithms if algorithm.name != paper.BASELINE]
    others = others if ALGORITHMS[paper.BASELINE] in algorithms else []
    header = ["Environment", *(f"{algorithm.label}, IQM" for algorithm in algorithms)]
    header += [f"P({algorithm.label} > {ALGORITHMS[paper.BASELINE].label})" for algorithm in others]
    lines = []
    for label, row in rows.items():
        cells = [row.cells.get(algorithm.name) for algorithm in algorithms]
        iqm = [_iqm(cell) if cell else Text(MISSING) for cell in cells]
        lines.append([Text(label), *iqm, *(_probability(row.comparisons.get(algorithm.name)) for algorithm in others)])
    comparable = {
        algorithm.name: [
            (row.cells[algorithm.name].scores, row.cells[paper.BASELINE].scores)
            for row in rows.values()
            if algorithm.name in row.comparisons
        ]
        for algorithm in others
    }
    if any(len(pairs) > 1 for pairs in comparable.values()):
        average = [
            Text(_estimate(probability_of_improvement(pairs)), f"{len(pairs)} environments")
            if len(pairs) > 1
            else Text(MISSING)
            for pairs in comparable.values()
        ]
        lines.append([Text("Average"), *[Text("")] * len(algorithms), *average])
    return Table(title, header, lines)


def _probability(comparison: Comparison | None) -> Text:
    return Text(_estimate(comparison.probability), _p_value(comparison)) if comparison else Text(MISSING)


def _sensitivity_section(sweeps: list[Sweep]) -> Section | None:
    notes = ["The paper finds N = 50 best at sigma = 0.2, and sigma = 0.2 best at N = 10, on continuous Ant."]
    tables = []
    for sweep in sweeps:
        symbol = SYMBOLS[sweep.parameter].text
        fixed = f"{SYMBOLS[sweep.design.fixed[0]].text} = {sweep.design.fixed[1]:g}"
        title = f"{sweep.env}, {ALGORITHMS[sweep.algorithm].label}: {symbol} at {fixed}"
        rows = [[Text(f"{value:g}"), measured(cell, swept=True), _iqm(cell)] for value, cell in sweep.cells.items()]
        tables.append(Table(title, [symbol, "Measured", "IQM"], rows))
    return Section("sensitivity", "Sensitivity to N and sigma", notes, tables) if tables else None


def _other_environments(results: Results) -> Section | None:
    rows = {env: row for env, row in results.rows.items() if not (results.in_paper and env in paper.ENV_IDS)}
    if not rows:
        return None
    tables = [_run_table(rows, [cell for cell in results.other_settings if not cell.in_paper])]
    algorithms = _algorithms(rows.values())
    if len(algorithms) > 1:
        tables.append(_robust_table("Interquartile mean and comparison", rows))
    title, notes = (
        ("Other environments", ["The paper did not run these environments."])
        if results.in_paper
        else ("Final scores and learning curves", [])
    )
    notes += hyperparameter_notes(rows.values())
    return Section("other-environments", title, notes, tables, list(rows))


def _run_table(rows: dict[str, Row], others: list[Cell]) -> Table:
    """One line for each environment, algorithm and settings; the settings name what differs from the defaults."""
    header = ["Environment", "Algorithm", "Settings", "Seeds", "Steps", "Final score: mean ± std"]
    lines = []
    others = sorted(others, key=lambda cell: -cell.step)
    for env, row in rows.items():
        for cell in [*row.cells.values(), *(cell for cell in others if cell.env == env)]:
            mean, std = mean_std(cell.scores)
            steps = format_steps(cell.step) + (f" of {format_steps(cell.settings.steps)}" * (not cell.runs[0].finished))
            waiting = f"{cell.waiting} more not finished" if cell.waiting else ""
            score = f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"
            lines.append(
                [Text(env), Text(ALGORITHMS[cell.algorithm].label), Text(changes(cell) or "defaults")]
                + [Text(str(len(cell.runs)), waiting), Text(steps), Text(score)]
            )
    return Table("Runs by environment, algorithm and settings", header, lines)


def changes(cell: Cell) -> str:
    """Return the hyperparameters of a cell that differ from the defaults of its algorithm, as a list in one string."""
    usual = ALGORITHMS[cell.algorithm].hyperparameters
    found = [
        f"{symbol(name)} {show(value)}"
        for name, value in cell.settings.hyperparameters
        if value is not None
        and name in usual
        and value != usual[name]
        and not (name == "qf_learning_rate" and value == cell.settings.learning_rate)
    ]
    return ", ".join(found + [name for name in ("normalize", "her") if getattr(cell.settings, name)])


def _other_settings(results: Results) -> Section | None:
    lines = []
    for cell in filter(lambda cell: cell.in_paper, results.other_settings):
        row = results.rows.get(cell.env)
        reference = (row.cells.get(cell.algorithm) or next(iter(row.cells.values()))) if row else None
        differing = differences(cell.settings, reference.settings) if reference else deviations(cell)
        label = ALGORITHMS[cell.algorithm].label
        lines.append([Text(cell.env), Text(label), Text(", ".join(differing) or MISSING), measured(cell)])
    notes = ["The settings of these runs differ from those above, so no cell above counts them."]
    table = Table("Runs with other settings", ["Environment", "Algorithm", "Differs in", "Measured"], lines)
    return Section("other-settings", "Other settings", notes, [table]) if lines else None


def settings_tables(runs: list[Run], in_paper: bool = False) -> list[Table]:
    """Return tables of states and times, of hyperparameters beside the paper's, and of software and machines.

    :param runs: runs without a target score
    :param in_paper: whether some are compared with the paper's tables
    """
    return [
        _plain_table("Runs", ["", ""], _summary(runs)),
        _plain_table("Hyperparameters", *_hyperparameters(runs, in_paper)),
        _plain_table("Software and machines", ["Name", "Value"], _software(runs)),
    ]


def _plain_table(title: str, header: list[str], rows: list[list[str]]) -> Table:
    return Table(title, header, [[Text(text) for text in row] for row in rows])


def _summary(runs: list[Run]) -> list[list[str]]:
    states = Counter(run.state for run in runs)
    steps = sum(run.last_step for run in runs)
    hours = sum(run.wall_seconds for run in runs) / 3600
    return [
        ["Runs", str(len(runs))],
        *([state.capitalize(), str(states[state])] for state in STATES if states[state]),
        ["Steps evaluated, all runs together", f"{steps:,}"],
        ["Wall time, all runs together", f"{hours:.2f} hours"],
    ]


def _values(strings: Iterable[str]) -> str:
    """The one value that all runs share, or each value with the number of its runs."""
    counts = Counter(strings)
    if len(counts) == 1:
        return next(iter(counts)) or "not recorded"
    return ", ".join(f"{text or 'not set'} ({count} run{'s' * (count > 1)})" for text, count in sorted(counts.items()))


def _hyperparameters(runs: list[Run], in_paper: bool) -> tuple[list[str], list[list[str]]]:
    """Header and rows; the paper's column is there if some are compared with its tables."""
    settings = [run.settings for run in runs]
    rows = []
    for name, in_the_paper in (("sigma", paper.SIGMA), ("n_samples", paper.N_SAMPLES)):
        values = [show(value) for value in (getattr(s, name) for s in settings) if value is not None]
        if values:
            rows += [[f"{symbol(name)} (smoothed algorithms)", _values(values), show(in_the_paper)]]
    rows += [["total timesteps", _values(f"{s.steps:,}" for s in settings), f"{paper.TOTAL_TIMESTEPS:,}"]]
    for name in sorted({name for s in settings for name, _ in s.hyperparameters if name not in SMOOTHING}):
        stated = show(paper.HYPERPARAMETERS[name]) if name in paper.HYPERPARAMETERS else "not stated"
        given = [dict(s.hyperparameters).get(name) for s in settings]
        rows.append([name, _values("" if value is None else show(value) for value in given), stated])
    rows += [["evaluation every", _values(f"{s.evaluate_every:,} steps" for s in settings), "not stated"]]
    rows += [["evaluation episodes", _values(str(s.evaluation_episodes) for s in settings), "not stated"]]
    header, columns = ["Name", "Here", "Paper"], 3 if in_paper else 2
    return header[:columns], [row[:columns] for row in rows]


def _software(runs: list[Run]) -> list[list[str]]:
    rows = [["commit", _values(run.commit for run in runs)]]
    for title, groups in (("version of", [run.versions for run in runs]), ("machine:", [run.machine for run in runs])):
        for name in sorted({name for items in groups for name, _ in items}):
            rows.append([f"{title} {name}", _values(dict(items).get(name, "") for items in groups)])
    return rows
