"""The benchmark in tables: time to the target score by task and algorithm, ratios between algorithms, total cost."""

from collections import Counter
from collections.abc import Sequence

from softdpg import paper
from softdpg.algorithms.registry import ALGORITHMS
from softdpg.report.benchmark import SECONDS, STEPS, Benchmark, Entry, Ratio, cost_ratio, fallbacks
from softdpg.report.document import MISSING, Section, Table, Text, interval
from softdpg.report.runs import FALLBACK, STEPS_AFTER
from softdpg.report.statistics import Estimate
from softdpg.report.style import env_title, format_steps

HOW_TO_READ = (
    "The target score of a task is the better of the paper's two mean scores, or the score that was given. A run "
    "reaches it when two evaluations in a row have a mean at or above it, and the second one counts. An evaluation has "
    "10 deterministic episodes; evaluations are 2,000 steps apart.",
    "Costs are environment steps and CPU seconds of training (user and system time of the whole process). Evaluation "
    "and compilation are counted apart, in a table of their own.",
    "Cells show the average runtime: the cost of all seeds, divided by the number of seeds that reached the target "
    "score. A seed that did not reach it counts with its whole budget. If no seed reached it, the cell shows the "
    "budget and the median score at its end. An algorithm reached a target score if more than half of its seeds did.",
)

HOW_TO_READ_RATIOS = (
    "Ratios are geometric means of the ratios of average runtimes over the tasks that both algorithms have run. Below "
    "1 means faster. Brackets are 95 % percentile bootstrap intervals over seeds. With few seeds they tend to be too "
    "narrow, and there is none if some task has a single seed. Where no seed reached the target score, the cost of "
    "all seeds counts, which is less than the average runtime. The tables count these tasks as not reached."
)


def benchmark_sections(benchmark: Benchmark) -> list[Section]:
    """Return the section of the report with all tables of the benchmark.

    :param benchmark: all runs
    """
    budgets = sorted({run.settings.steps for run in benchmark.runs})
    notes = [*HOW_TO_READ, f"The budget is {' or '.join(map(format_steps, budgets))} steps."]
    notes += processors_note(benchmark)
    tables = [main_table(benchmark), algorithm_table(benchmark)]
    if len(benchmark.algorithms) > 1:
        notes.append(HOW_TO_READ_RATIOS)
    if len(benchmark.algorithms) > 1 and not ablated(benchmark):
        reference = paper.RACE_ALGORITHMS[0]
        tables += [comparison_table(benchmark, reference)] if reference in benchmark.algorithms else []
        tables.append(ratio_table(benchmark))
    return [Section("benchmark", "Benchmark", notes, tables)]


def processors_note(benchmark: Benchmark) -> list[str]:
    """Say which runs were made on which processor, if there are several: CPU seconds depend on it, steps do not.

    :param benchmark: all runs
    """
    runs = Counter((str(dict(run.machine).get("processor") or ""), run.algorithm) for run in benchmark.runs)
    processors = sorted({processor for processor, _ in runs if processor})
    if len(processors) < 2:
        return []
    counts = {
        processor: [
            f"{ALGORITHMS[name].label} {runs[processor, name]}"
            for name in benchmark.algorithms
            if runs[processor, name]
        ]
        for processor in processors
    }
    which = "; ".join(f"{processor}: {', '.join(counted)}" for processor, counted in counts.items())
    return [f"The runs are from different processors, so CPU seconds compare less well than steps. Runs on {which}."]


def ablated(benchmark: Benchmark) -> str:
    """Return the algorithm of which all the others are variants, or an empty string.

    :param benchmark: all runs
    """
    names = benchmark.algorithms
    bases = {ALGORITHMS[name].base for name in names}
    base = bases.pop()
    return base if not bases and base in names and len(names) > 1 else ""


def main_table(benchmark: Benchmark) -> Table:
    """Return the table of costs to the target score, with a row per task, or per variant in an ablation.

    :param benchmark: all runs
    """
    reference = ablated(benchmark)
    return effect_table(benchmark, reference) if reference else target_table(benchmark)


def effect_table(benchmark: Benchmark, reference: str) -> Table:
    """Return the cost of each variant divided by that of the reference, and its cost on each task.

    :param benchmark: all runs
    :param reference: name of the algorithm whose cost is the divisor
    """
    rows = []
    for name in [reference, *(name for name in benchmark.algorithms if name != reference)]:
        ratio = cost_ratio(benchmark, name, reference) if name != reference else None
        ratios = _ratio_cells(ratio) if ratio else [MISSING] * 4
        cells = [entry_text(entries.get(name)) for entries in benchmark.tasks.values()]
        rows.append([Text(ALGORITHMS[name].label, bold=name == reference), *map(Text, ratios), *cells])
    label = ALGORITHMS[reference].label
    header = ["Algorithm", f"CPU time (÷ {label})", f"Steps (÷ {label})", "Shared tasks"]
    header.append(f"Not reached (variant, {label})")
    header += [f"{env_title(task.env)}, {task.target_score:,.2f}" for task in benchmark.tasks]
    return Table("Cost to the target score with one setting changed", header, rows)


def _estimate_text(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} {interval(estimate)}".rstrip()


def _ratio_cells(ratio: Ratio) -> list[str]:
    """CPU time, steps, shared tasks, tasks not reached by either algorithm."""
    not_reached = f"{ratio.not_reached}, {ratio.reference_not_reached}"
    return [_estimate_text(ratio.seconds), _estimate_text(ratio.steps), f"{ratio.tasks}", not_reached]


def target_table(benchmark: Benchmark, algorithms: Sequence[str] = ()) -> Table:
    """Return average CPU seconds and steps to the target score, a row per task, the fastest algorithm in bold.

    :param benchmark: all runs
    :param algorithms: names of the algorithms to show; all if empty
    """
    names = [name for name in benchmark.algorithms if not algorithms or name in algorithms]
    rows = []
    for task, everyone in benchmark.tasks.items():
        entries = {name: everyone[name] for name in names if name in everyone}
        reached = {name: entry.average(SECONDS) for name, entry in entries.items() if entry.reached}
        fastest = min(reached.values(), default=None) if len(entries) > 1 else None
        cells = [entry_text(entries.get(name), reached.get(name) == fastest) for name in names]
        rows.append([Text(env_title(task.env)), Text(f"{task.target_score:,.2f}"), *cells])
    labels = [ALGORITHMS[name].label for name in names]
    return Table("CPU seconds and steps to the target score", ["Task", "Target score", *labels], rows)


def entry_text(entry: Entry | None, bold: bool = False) -> Text:
    """Return the cell of an algorithm on a task: its cost, or the score at the end; seeds, failures, running runs.

    :param entry: runs of the algorithm on the task; None if there are none
    :param bold: whether it is the fastest
    """
    if entry is None:
        return Text(MISSING)
    seeds = [f"{entry.reached} of {len(entry.runs)} seeds reached it"] if entry.runs else []
    failed = [f"{len(entry.failed)} failed: {entry.failed[0].message}"] if entry.failed else []
    waiting = [f"{entry.waiting} not finished"] if entry.waiting else []
    detail = ", ".join(seeds + failed + waiting)
    if entry.reached:
        steps = format_steps(int(float(f"{entry.average(STEPS):.3g}")))
        return Text(f"{entry.average(SECONDS):,.0f} s, {steps} steps", detail, bold)
    if not entry.runs:
        return Text("running", detail)
    if len(entry.failed) == len(entry.runs):
        return Text("failed", detail)
    score = "" if entry.last_score is None else f", {entry.last_score:,.2f}"
    return Text(f"not reached in {format_steps(int(entry.missed_in))}{score}", detail)


def algorithm_table(benchmark: Benchmark) -> Table:
    """Return for each algorithm how many target scores it reached, how often it fell back, and its total cost.

    :param benchmark: all runs
    """
    header = ["Algorithm", "Target scores reached", f"Fell back {format_steps(STEPS_AFTER)} steps later"]
    header += ["Training", "Evaluation", "Compilation", "Wall time"]
    rows = []
    for name in benchmark.algorithms:
        tasks = benchmark.shared_tasks(name)
        reached = sum(benchmark.tasks[task][name].reached_in_median for task in tasks)
        runs = [run for run in benchmark.runs if run.algorithm == name]
        after = fallbacks(benchmark, name)
        part = f"{after.fell_back} of {after.followed}" if after.followed else MISSING
        on = f"{after.tasks} task{'s' * (after.tasks != 1)}"
        detail = f"runs, below {FALLBACK:.0%} of the target score; {on}" if after.followed else ""
        timed = [(run.train[-1], run.evaluate[-1], run.compile[-1]) for run in runs if len(run.means)]
        hours = [float(sum(seconds)) / 3600 for seconds in zip(*timed, strict=True)] or [0.0] * 3
        hours.append(sum(run.wall_seconds for run in runs) / 3600)
        cells = [Text(f"{reached} of {len(tasks)}", f"{len(runs)} runs"), Text(part, detail)]
        rows.append([Text(ALGORITHMS[name].label), *cells, *(Text(f"{hour:.2f} h") for hour in hours)])
    return Table("CPU hours of all runs, by algorithm", header, rows)


def ratio_table(benchmark: Benchmark) -> Table:
    """Return the ratio of CPU seconds, and below it that of steps, for every pair of algorithms.

    :param benchmark: all runs
    """
    rows = []
    for name in benchmark.algorithms:
        cells = [_ratio_text(benchmark, name, other) if other != name else Text("") for other in benchmark.algorithms]
        rows.append([Text(ALGORITHMS[name].label), *cells])
    header = ["Cost of", *(f"÷ {ALGORITHMS[name].label}" for name in benchmark.algorithms)]
    return Table("CPU time and steps to the target score, every algorithm against every other", header, rows)


def _ratio_text(benchmark: Benchmark, algorithm: str, reference: str) -> Text:
    ratio = cost_ratio(benchmark, algorithm, reference)
    if ratio is None:
        return Text(MISSING)
    seconds, steps, tasks, not_reached = _ratio_cells(ratio)
    out = f"; {ratio.left_out} left out" if ratio.left_out else ""
    detail = f"{tasks} shared task{'s' * (ratio.tasks != 1)}; not reached: {not_reached}{out}"
    return Text(seconds, f"steps {steps}; {detail}")


def comparison_table(benchmark: Benchmark, algorithm: str) -> Table:
    """Return the cost of an algorithm divided by that of each of the others, a row for each of these.

    :param benchmark: all runs
    :param algorithm: name of the algorithm
    """
    rows = []
    for name in benchmark.algorithms:
        ratio = cost_ratio(benchmark, algorithm, name) if name != algorithm else None
        if ratio is not None:
            rows.append([Text(ALGORITHMS[name].label), *map(Text, _ratio_cells(ratio))])
    label = ALGORITHMS[algorithm].label
    header = ["Peer", f"CPU time ({label} ÷ peer)", f"Steps ({label} ÷ peer)", "Shared tasks"]
    return Table(f"{label} and its peers", [*header, f"Not reached ({label}, peer)"], rows)
