"""``qmedoid demo --compare`` and ``qmedoid reproduce``: our figures next to the paper's and to plain baselines."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from qmedoid.cli._output import grid, keeps, note, plain_console, print_json, progress_bar, tell, with_error
from qmedoid.cli.options import EVALUATION, LARGE, OUTPUT, Force, Options, Seed, argument, option
from qmedoid.exceptions import OutputError
from qmedoid.studies import plan
from qmedoid.studies.catalog import cell_folder
from qmedoid.studies.document import Document, Table
from qmedoid.studies.paper import PAPER
from qmedoid.studies.plan import PARTS, Outcome, Part, Plan
from qmedoid.studies.report import PAPER_TABLES, make_report, require_extras
from qmedoid.studies.report_files import check_folder, check_replaceable, write_report
from qmedoid.studies.results import StudyResults
from qmedoid.studies.runner import Study, find_done, run_cells
from qmedoid.studies.splits import Cell, Result

if TYPE_CHECKING:
    from qmedoid.cli.demo import DemoOptions

# The paper calls its nearest-medoid method so in its tables.
_NAMES_IN_PAPER = {"qmedoid, as printed": "Fusion"}
# What a frame adds to the width of a cell.
_FRAME = 3


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Options):
    """Run the paper's experiments again, and set ours beside them.

    On the paper's terms and on held-out rows. A run that was stopped goes on where it was. Needs the extras
    'baselines' and 'plots', for devices 'ibm'.
    """

    most_used = ("output", "quick", "jobs", "seed", "cache", "force", "json")
    examples = ("qmedoid reproduce heart --quick",)

    what: Annotated[
        Literal["all", "heart", "breast-cancer", "wine", "fraud", "devices"],
        argument(
            "WHAT",
            "Data set: heart, breast-cancer, wine, fraud or all; devices: decisions of simulated quantum devices.",
        ),
    ] = "all"
    output: Annotated[
        Path, option(OUTPUT, "Folder for tables, plots and the page.", "--output", "-o", metavar="FOLDER")
    ] = Path("reproduction")
    jobs: Annotated[int | None, option(LARGE, "Processes side by side. Default: one per core.", min=1, metavar="N")] = (
        None
    )
    seed: Seed = 0
    quick: Annotated[
        bool, option(EVALUATION, "A smoke run: few splits or records, a sample of the frauds.", "--quick")
    ] = False
    cache: Annotated[
        Path | None,
        option(LARGE, "Folder of results that are done. Default: one in the user's cache.", metavar="FOLDER"),
    ] = None
    force: Force = False


def compare_methods(options: "DemoOptions") -> None:
    """Compare every method on every data set and print the result, part by part or as one JSON document."""
    console = plain_console()
    folder: Path | None = cell_folder()
    try:
        check_folder(cell_folder())
    except OutputError as error:
        note(f"{error} Results of this run are not kept.")
        folder = None
    splits = 5 if options.splits is None else options.splits
    fraud_splits = 2 if options.fraud_splits is None else options.fraud_splits
    small_seeds, rare_seeds = (range(options.seed, options.seed + n) for n in (splits, fraud_splits))
    small = list(plan.small_outcomes(_demo_results(plan.demo_cells("small", small_seeds), folder)))
    if not options.json:
        for name in dict.fromkeys(outcome.data for outcome in small):
            outcomes = [outcome for outcome in small if outcome.data == name]
            console.print(_comparison(outcomes, ("accuracy", "macro-F1", "paper acc.", "paper F1")))
        for finding in findings(small, "macro_f1", "macro-F1"):
            console.print(finding)
    frauds = list(plan.rare_outcomes(_demo_results(plan.demo_cells("rare", rare_seeds), folder))) if rare_seeds else []
    if options.json:
        parts = {"small": small, "fraud": frauds}
        print_json({part: [outcome.as_dict() for outcome in outcomes] for part, outcomes in parts.items()})
    elif frauds:
        console.print()
        console.print(_comparison(frauds, ("PR-AUC", "recall", "log-loss")))
        about = frauds[0].about
        console.print(
            f"recall: of the frauds, among the {100 * about['alert_budget']:.0f} % most suspicious test rows. "
            f"{100 * about['prevalence']:.1f} % of the rows are frauds; in the whole table it is 0.17 %, and PR-AUC "
            "and log-loss would be others. log-loss: smaller is better."
        )
        for finding in (*circuit_findings(frauds), *findings(frauds, "pr_auc", "PR-AUC")):
            console.print(finding)


def findings(outcomes: Sequence[Outcome], metric: str, title: str) -> Iterator[str]:
    """A sentence for every data set: whether the best plain baseline is ahead of ours."""
    for name in dict.fromkeys(outcome.data for outcome in outcomes):
        means = {outcome.method: outcome.metrics[metric].mean for outcome in outcomes if outcome.data == name}
        plain = {method: mean for method, mean in means.items() if not method.startswith("qmedoid")}
        best = max(plain, key=plain.__getitem__)
        ahead = round(plain[best] - means["qmedoid"], 3)
        verdict = f"is {'ahead' if ahead > 0 else 'behind'} by {abs(ahead):.3f}" if ahead else "is level with ours"
        yield f"{name}: the best plain baseline, {best}, {verdict} in {title}."


def circuit_findings(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A sentence on the records that the circuit decided."""
    decided = [
        f"{100 * outcome.about['by_circuit']:.0f} % in {outcome.method!r} (method: {outcome.about['chosen_method']})"
        for outcome in outcomes
        if outcome.about["by_circuit"] is not None
    ]
    if decided:
        yield "Records decided by the circuit: " + ", ".join(decided) + "."


def _demo_results(cells: Sequence[Cell], folder: Path | None) -> StudyResults:
    """Results of the cells; those that are not in the store are run."""
    done = {} if folder is None else find_done(plan.STUDY, cells, folder)
    return StudyResults(done | _run_left(plan.STUDY, [cell for cell in cells if cell not in done], folder))


def _comparison(outcomes: Sequence[Outcome], names: Sequence[str]) -> Any:
    """A table of methods on one data set; with the figures of the paper, where it has any."""
    name, splits, printed = outcomes[0].data, outcomes[0].splits, PAPER.get(outcomes[0].data)
    over = "one stratified split" if splits == 1 else f"{splits} stratified splits (mean ± standard error)"
    rows = []
    for outcome in outcomes:
        row = [outcome.method, *(with_error(spread.mean, spread.error) for spread in outcome.metrics.values())]
        if printed is not None:
            figure = printed.get(_NAMES_IN_PAPER.get(outcome.method, outcome.method))
            row += ["", ""] if figure is None else [f"{figure.accuracy:.4f}", f"{figure.macro_f1:.4f}"]
        rows.append(row)
    return grid(("method", *names), rows, title=f"{name}: test rows of {over}")


class _Experiment(NamedTuple):
    """What is run again: its cells, the document that their results make, and the tables of it that are printed."""

    study: Study
    cells: Sequence[Cell]
    report: Callable[[StudyResults, str], Document]
    shown: Sequence[str]


def _experiment(options: ReproduceOptions) -> _Experiment:
    """The study of devices, or the paper's experiments on some of its data sets; raises where packages are missing."""
    if options.what == "devices":
        # Here and not at the top: most calls are not about devices.
        from qmedoid.studies import devices

        devices.require_extras()
        from qmedoid.studies.device_report import SHOWN_TABLES, make_device_report

        chosen = devices.DevicePlan(seed=options.seed)
        chosen = chosen.quick() if options.quick else chosen
        return _Experiment(devices.STUDY, chosen.cells, partial(make_device_report, chosen), SHOWN_TABLES)
    parts: Sequence[Part] = PARTS if options.what == "all" else [part for part in PARTS if part == options.what]
    asked = Plan(parts, seed=options.seed)
    asked = asked.quick() if options.quick else asked
    require_extras(asked)
    return _Experiment(plan.STUDY, asked.cells, partial(make_report, asked), PAPER_TABLES)


def reproduce(options: ReproduceOptions) -> None:
    """Run what is not done yet, write the folder, and print the main tables and the findings."""
    study, cells, report, shown = _experiment(options)
    check_folder(options.output)
    if not options.force:
        check_replaceable(options.output)
    folder = options.cache or cell_folder()
    done = find_done(study, cells, folder)
    left = [cell for cell in cells if cell not in done]
    if left:
        check_folder(folder)
        jobs = options.jobs or os.cpu_count() or 1
        tell(_outlook(study, len(done), left, jobs))
        done |= _run_left(study, left, folder, jobs)
    # The call that gives the same tables on any machine.
    words = ["qmedoid", "reproduce", options.what, *(["--quick"] if options.quick else [])]
    words += ["--seed", str(options.seed)] if options.seed else []
    document = report(StudyResults(done), " ".join(words))
    written = write_report(document, options.output, force=options.force)
    if options.json:
        tables = {
            table.name: {"title": table.title, "columns": table.labels, "rows": [list(row) for row in table.rows]}
            for table in document.tables
        }
        print_json(
            {"provenance": dict(document.provenance), "findings": list(document.findings), "tables": tables,
             "folder": str(options.output), "files": [path.name for path in written]}
        )  # fmt: skip
        return
    console = plain_console()
    for table in document.tables:
        if table.name in shown:
            print_table(console, table)
    for finding in document.findings:
        console.print(f"• {finding}")
    tell(f"{len(written)} files written to {options.output}; open {options.output / 'index.html'}.")


def _outlook(study: Study, n_done: int, left: Sequence[Cell], jobs: int) -> str:
    """What is to come, for those who see no bar: cells, and roughly how long they take."""
    before = f"{n_done:,} of {n_done + len(left):,} cells are there from before; " if n_done else ""
    cells = "" if n_done else " cells"
    minutes = max(1, round(sum(map(study.seconds, left)) / 60 / jobs))
    return f"{before}{len(left):,}{cells} are to be run. On a common machine that takes about {minutes} min."


def _run_left(study: Study, cells: Sequence[Cell], folder: Path | None, jobs: int = 1) -> dict[Cell, Result]:
    """Run cells, with a bar over the seconds that they are expected to take."""
    from rich.progress import TextColumn

    n_done = 0
    with progress_bar(TextColumn("{task.fields[count]}")) as bar:
        task = bar.add_task("starting", total=sum(map(study.seconds, cells)), count=f"0/{len(cells)}")

        def report(cell: Cell, _: Result) -> None:
            nonlocal n_done
            n_done += 1
            if folder is not None:
                keeps(f"{n_done:,} results of this run are kept in {folder}, and the same command goes on from there")
            bar.update(task, advance=study.seconds(cell), description=str(cell), count=f"{n_done}/{len(cells)}")

        return run_cells(study, cells, folder, jobs=jobs, report=report)


class _Strip(NamedTuple):
    """A column as it is printed: its headings and its cells."""

    group: str
    name: str
    texts: tuple[str, ...]
    is_label: bool


def print_table(console: Any, table: Table) -> None:
    """Print a table; means and their errors share a column."""
    strips = list(_strips(table))
    labels, figures = [one for one in strips if one.is_label], [one for one in strips if not one.is_label]
    console.print(table.title)
    for page in _pages(figures, console.width - 1 - _width(labels)):
        together = [*labels, *page]
        names = [f"{group}\n{strip.name}" for group, strip in zip(_headings(together), together, strict=True)]
        rows = zip(*(strip.texts for strip in together), strict=True)
        console.print(grid(names, rows, left=range(len(labels))))
    if table.note:
        console.print(table.note)
    console.print()


def _strips(table: Table) -> Iterator[_Strip]:
    rows = range(len(table.rows))
    for place, column in enumerate(table.columns):
        if column.is_error:
            continue
        texts = [table.cell_text(row, place) for row in rows]
        if place + 1 < len(table.columns) and table.columns[place + 1].is_error:
            errors = [table.cell_text(row, place + 1) for row in rows]
            texts = [f"{text} ± {error}" if error else text for text, error in zip(texts, errors, strict=True)]
        is_label = not column.group and all(isinstance(row[place], str) for row in table.rows)
        yield _Strip(column.group, column.name, tuple(texts), is_label)


def _pages(strips: Sequence[_Strip], width: int) -> Iterator[list[_Strip]]:
    """Strips that fit side by side; those of one group stay together where they can."""
    page: list[_Strip] = []
    for _, members in groupby(strips, key=lambda strip: strip.group or strip.name):
        group = list(members)
        for part in [group] if _width(group) <= width else [[strip] for strip in group]:
            if page and _width([*page, *part]) > width:
                yield page
                page = []
            page += part
    if page:
        yield page


def _headings(strips: Sequence[_Strip]) -> list[str]:
    """The group of each strip, where the strip before is of another one."""
    before = ["", *(strip.group for strip in strips)]
    return ["" if strip.group == above else strip.group for strip, above in zip(strips, before, strict=False)]


def _width(strips: Sequence[_Strip]) -> int:
    """Columns of text that strips take side by side."""
    headed = zip(_headings(strips), strips, strict=True)
    return sum(_FRAME + max(map(len, (heading, strip.name, *strip.texts))) for heading, strip in headed)
