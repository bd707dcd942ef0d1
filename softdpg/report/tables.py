"""The paper's tables beside what was measured, as a document of text (see ``document.py``)."""

from collections.abc import Iterable

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS, Algorithm
from softdpg.report.document import Section, Table, Text
from softdpg.report.settings_tables import settings_tables
from softdpg.report.style import SYMBOLS
from softdpg.results.cells import Cell, Results, Row, Sweep, deviations, differences, show, symbol
from softdpg.results.statistics import (
    Comparison,
    Estimate,
    interquartile_mean,
    mean_std,
    probability_of_improvement,
)

SIGNIFICANCE = 0.05
MISSING = "–"
REWARDS: tuple[paper.Rewards, ...] = ("discrete", "continuous")

HOW_TO_READ = (
    "A seed's final score is the mean return over the last tenth of its evaluations (10 deterministic episodes "
    "every 5,000 steps, unless a cell says otherwise). The paper does not state its own protocol.",
    "*Reported* is the paper's number, *measured* is ours: mean ± sample standard deviation (n - 1) over seeds. "
    "† marks a cell with fewer seeds or steps than the paper's 5 and 1M, or with other settings: it is not a "
    "reproduction of the number beside it.",
    "*Order as in the paper* compares the means of DDPG and Soft DDPG. It is *undecided* where an exact two-sided "
    "Mann-Whitney test over seeds has p of at least 0.05. Bold: the better one as reported, and as measured where "
    "p is below 0.05.",
    "IQM is the interquartile mean. P(X > DDPG) is the probability that a seed of X scores above a seed of DDPG, "
    "ties counting one half. Brackets: 95 % percentile bootstrap intervals, stratified. With as few seeds as here "
    "they tend to be too narrow; the p-value does not.",
    "Soft DDPG is the paper's estimator to the letter. *Soft DDPG, centered (ours)* is not in the paper.",
)

HOW_TO_READ_OTHERS = (
    "A seed's final score is the mean return over the last tenth of its evaluations. Scores are mean ± sample standard "
    "deviation (n - 1) over seeds.",
    HOW_TO_READ[3],
)


def in_paper(results: Results) -> bool:
    """Whether any run is on an environment of the paper."""
    return any(run.env in paper.ENV_IDS for run in results.runs)


def how_to_read(results: Results) -> tuple[str, ...]:
    """What a reader must know; without what the paper's numbers alone need if there are none."""
    return HOW_TO_READ if in_paper(results) else HOW_TO_READ_OTHERS


def sections(results: Results) -> list[Section]:
    """All sections that have something to show, in the paper's order."""
    found = [
        _paper_section(results, 1, "Table 1: MuJoCo environments"),
        _paper_section(results, 2, "Table 2: Gym environments"),
        _sensitivity_section(results.sweeps),
        _other_environments(results),
        _other_settings(results),
        Section("settings", "Settings and provenance", tables=settings_tables(results.runs)) if results.runs else None,
    ]
    return [section for section in found if section is not None]


def coverage(results: Results) -> str:
    """One sentence on how much of the paper's tables is reproduced, or on what there is if nothing is from there."""
    if not in_paper(results):
        runs, envs = len(results.runs), len({run.env for run in results.runs})
        return f"{runs} run{'s' * (runs != 1)} on {envs} environment{'s' * (envs != 1)} that the paper did not run."
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


def format_steps(steps: int) -> str:
    """A number of steps, short: 500, 30k, 1M."""
    if steps >= 1_000_000:
        return f"{steps / 1_000_000:g}M"
    return f"{steps / 1_000:g}k" if steps >= 1_000 else str(steps)


def describe(cell: Cell, swept: bool = False) -> str:
    """The seeds and steps behind a cell, runs still under way; in the paper's environments against its protocol."""
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
    """Mean ± std of a cell, marked where it falls short of what the paper did in this environment."""
    if cell is None:
        return Text(MISSING)
    mean, std = mean_std(cell.scores)
    text = f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"
    return Text(f"{text} †" if cell.in_paper and not cell.is_complete(swept) else text, describe(cell, swept), bold)


def order(row: Row, scores: paper.Scores, rewards: paper.Rewards) -> Text:
    """Whether method and baseline come in the paper's order, and whether the seeds suffice to say so."""
    method, baseline = row.cells.get(paper.METHOD), row.cells.get(paper.BASELINE)
    reported = [scores.score(rewards, name) for name in (paper.METHOD, paper.BASELINE)]
    assert reported[0]
    assert reported[1]
    if method is None or baseline is None:
        return Text(MISSING)
    comparison = row.comparisons.get(paper.METHOD)
    if comparison is None:
        return Text(MISSING, "not at the same step yet")
    theirs = reported[0].mean - reported[1].mean
    ours = float(method.scores.mean() - baseline.scores.mean())
    if theirs == 0:
        return Text("a tie in the paper", _p_value(comparison))
    verdict = "tie" if ours == 0 else "yes" if (ours > 0) == (theirs > 0) else "no"
    return Text(verdict if _decided(comparison) else f"{verdict}, undecided", _p_value(comparison))


def _decided(comparison: Comparison | None) -> bool:
    return comparison is not None and comparison.p_value is not None and comparison.p_value < SIGNIFICANCE


def _p_value(comparison: Comparison) -> str:
    if comparison.p_value is None:
        return "one seed: no test"
    return "p < 0.001" if comparison.p_value < 0.001 else f"p = {comparison.p_value:.3f}"


def _interval(estimate: Estimate) -> str:
    return "" if estimate.low is None else f"[{estimate.low:.2f}, {estimate.high:.2f}]"


def _estimate(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} {_interval(estimate)}".rstrip()


def _iqm(cell: Cell) -> Text:
    estimate = interquartile_mean(cell.scores)
    return Text(f"{estimate.value:.2f}", _interval(estimate) or "one seed: no interval")


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
    """One sentence for each algorithm in the rows whose hyperparameters are not those of the baseline."""
    baseline, notes = ALGORITHMS[paper.BASELINE], []
    for algorithm in _algorithms(rows):
        own = algorithm.hyperparameters
        other = [
            f"{symbol(name)} {show(own[name])}"
            for name, value in baseline.hyperparameters.items()
            if own.get(name) not in (None, value)
        ]
        if algorithm.origin == "peer":
            notes.append(f"{algorithm.label} has the defaults of its own library, unless a cell says otherwise.")
        elif other:
            notes.append(f"{algorithm.label} differs from {baseline.label} in {', '.join(other)}.")
    return notes


def _algorithms(rows: Iterable[Row]) -> list[Algorithm]:
    names = {name for row in rows for name in row.cells}
    return [algorithm for name, algorithm in ALGORITHMS.items() if name in names or name in paper.PAPER_ALGORITHMS]


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
    """Interquartile means, and each algorithm against the baseline; the last line averages over environments."""
    algorithms = _algorithms(rows.values())
    contenders = [algorithm for algorithm in algorithms if algorithm.name != paper.BASELINE]
    header = ["Environment", *(f"{algorithm.label}, IQM" for algorithm in algorithms)]
    header += [f"P({algorithm.label} > {ALGORITHMS[paper.BASELINE].label})" for algorithm in contenders]
    lines = []
    for label, row in rows.items():
        cells = [row.cells.get(algorithm.name) for algorithm in algorithms]
        iqm = [_iqm(cell) if cell else Text(MISSING) for cell in cells]
        lines.append(
            [Text(label), *iqm, *(_probability(row.comparisons.get(algorithm.name)) for algorithm in contenders)]
        )
    comparable = {
        algorithm.name: [
            (row.cells[algorithm.name].scores, row.cells[paper.BASELINE].scores)
            for row in rows.values()
            if algorithm.name in row.comparisons
        ]
        for algorithm in contenders
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
    rows = {env: row for env, row in results.rows.items() if env not in paper.ENV_IDS}
    if not rows:
        return None
    algorithms = _algorithms(rows.values())
    scores = [[Text(env), *(measured(row.cells.get(a.name)) for a in algorithms)] for env, row in rows.items()]
    header = ["Environment", *(f"{algorithm.label}, measured" for algorithm in algorithms)]
    tables = [Table("Mean ± std", header, scores), _robust_table("Interquartile mean and comparison", rows)]
    notes = ["The paper did not run these."]
    notes += hyperparameter_notes(rows.values())
    return Section("other-environments", "Other environments", notes, tables, list(rows))


def _other_settings(results: Results) -> Section | None:
    lines = []
    for cell in results.other_settings:
        row = results.rows.get(cell.env)
        reference = (row.cells.get(cell.algorithm) or next(iter(row.cells.values()))) if row else None
        differing = differences(cell.settings, reference.settings) if reference else deviations(cell)
        label = ALGORITHMS[cell.algorithm].label
        lines.append([Text(cell.env), Text(label), Text(", ".join(differing) or MISSING), measured(cell)])
    notes = ["These runs differ in their settings from those above, so they are in none of the cells there."]
    table = Table("Runs apart", ["Environment", "Algorithm", "Differs in", "Measured"], lines)
    return Section("other-settings", "Other settings", notes, [table]) if lines else None
