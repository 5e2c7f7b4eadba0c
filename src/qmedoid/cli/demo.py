"""``qmedoid demo``: ours beside the paper's figures and plain baselines, on three small data sets and on frauds."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from qmedoid.cli._output import tell
from qmedoid.cli._printing import over_splits, progress_bar, verdict, with_error
from qmedoid.exceptions import OutputError
from qmedoid.reporting.files import check_folder
from qmedoid.studies.catalog import cell_folder
from qmedoid.studies.paper import PAPER, PaperFigure
from qmedoid.studies.plan import STUDY, Outcome, demo_cells, rare_outcomes, small_outcomes
from qmedoid.studies.results import StudyResults
from qmedoid.studies.runner import find_done, run_cells
from qmedoid.studies.splits import Cell

_PRINTED_NAMES = {"qmedoid, as printed": "Fusion"}


def run(*, splits: int, fraud_splits: int, seed: int, as_json: bool) -> None:
    """Compare every method on every data set and print the result, part by part or as one JSON document."""
    console, folder = Console(), _folder()
    small = list(small_outcomes(_results(demo_cells("small", range(seed, seed + splits)), folder)))
    if not as_json:
        for name in dict.fromkeys(outcome.data for outcome in small):
            console.print(_small_table(name, [outcome for outcome in small if outcome.data == name]))
        for finding in findings(small, "macro_f1", "macro-F1"):
            console.print(finding)
    rare_seeds = range(seed, seed + fraud_splits)
    frauds = list(rare_outcomes(_results(demo_cells("rare", rare_seeds), folder))) if rare_seeds else []
    if as_json:
        parts = {"small": small, "fraud": frauds}
        print(json.dumps({part: [outcome.as_dict() for outcome in own] for part, own in parts.items()}, indent=1))
    elif frauds:
        console.print()
        console.print(_fraud_table(frauds))
        for finding in (*circuit_findings(frauds), *findings(frauds, "pr_auc", "PR-AUC")):
            console.print(finding)


def findings(outcomes: Sequence[Outcome], metric: str, title: str) -> Iterator[str]:
    """A sentence for every data set: whether the best plain baseline is ahead of ours."""
    for name in dict.fromkeys(outcome.data for outcome in outcomes):
        means = {outcome.method: outcome.metrics[metric].mean for outcome in outcomes if outcome.data == name}
        plain = {method: mean for method, mean in means.items() if not method.startswith("qmedoid")}
        best = max(plain, key=plain.__getitem__)
        yield f"{name}: the best plain baseline, {best}, {verdict(plain[best] - means['qmedoid'])} in {title}."


def circuit_findings(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A sentence on the records that the circuit decided."""
    decided = [
        f"{100 * outcome.about['by_circuit']:.0f} % in {outcome.method!r} (method: {outcome.about['chosen_method']})"
        for outcome in outcomes
        if outcome.about["by_circuit"] is not None
    ]
    if decided:
        yield "Records decided by the circuit: " + ", ".join(decided) + "."


def _folder() -> Path | None:
    """The store of results; None, with a note, where the cache cannot be written."""
    try:
        check_folder(cell_folder())
    except OutputError as error:
        tell(f"note: {error} StudyResults of this run are not kept.")
        return None
    return cell_folder()


def _results(cells: Sequence[Cell], folder: Path | None) -> StudyResults:
    """Results of the cells; those that are not in the store are run, with a bar meanwhile."""
    done = {} if folder is None else find_done(STUDY, cells, folder)
    with progress_bar() as bar:
        task = bar.add_task("comparing", total=len(cells), completed=len(done))
        left = [cell for cell in cells if cell not in done]
        done |= run_cells(
            STUDY, left, folder, report=lambda cell, _: bar.update(task, advance=1, description=cell.data)
        )
    return StudyResults(done)


def _small_table(name: str, outcomes: Sequence[Outcome]) -> Table:
    table = Table(title=f"{name}: test rows of {over_splits(outcomes[0].splits)}", title_justify="left")
    table.add_column("method")
    for column in ("accuracy", "macro-F1", "paper acc.", "paper F1"):
        table.add_column(column, justify="right")
    for outcome in outcomes:
        figure: PaperFigure | None = PAPER[name].get(_PRINTED_NAMES.get(outcome.method, outcome.method))
        printed = ("", "") if figure is None else (f"{figure.accuracy:.4f}", f"{figure.macro_f1:.4f}")
        table.add_row(outcome.method, *_means(outcome), *printed)
    return table


def _fraud_table(outcomes: Sequence[Outcome]) -> Table:
    first = outcomes[0]
    table = Table(
        title=f"{first.data}: test rows of {over_splits(first.splits)}",
        title_justify="left",
        caption=f"recall: of the frauds, among the {100 * first.about['alert_budget']:.0f} % most suspicious test "
        f"rows. {100 * first.about['prevalence']:.1f} % of the rows are frauds; in the whole table it is 0.17 %, and "
        "PR-AUC and log-loss would be others. log-loss: smaller is better.",
        caption_justify="left",
    )
    table.add_column("method")
    for column in ("PR-AUC", "recall", "log-loss"):
        table.add_column(column, justify="right")
    for outcome in outcomes:
        table.add_row(outcome.method, *_means(outcome))
    return table


def _means(outcome: Outcome) -> list[str]:
    return [with_error(spread.mean, spread.error) for spread in outcome.metrics.values()]
