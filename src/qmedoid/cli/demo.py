"""``qmedoid demo``: ours beside the paper's figures and plain baselines, on three small data sets and on frauds."""

import json
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from qmedoid.cli._display import over_splits, progress_bar, verdict, with_error
from qmedoid.cli.fraud import fraud_findings, fraud_outcomes, fraud_table
from qmedoid.studies.comparison import METHODS, Outcome, compare
from qmedoid.studies.datasets import LOADERS, load_dataset
from qmedoid.studies.paper import PAPER, PaperFigure

_PRINTED_NAMES = {"qmedoid, as printed": "Fusion"}


def run(*, splits: int, fraud_splits: int, seed: int, as_json: bool) -> None:
    """Compare every method on every data set and print the result, part by part or as one JSON document."""
    console = Console()
    outcomes = list(_with_progress(range(seed, seed + splits)))
    if not as_json:
        for name in dict.fromkeys(outcome.data for outcome in outcomes):
            console.print(_table(name, [outcome for outcome in outcomes if outcome.data == name]))
        for finding in findings(outcomes):
            console.print(finding)
    frauds = list(fraud_outcomes(range(seed, seed + fraud_splits))) if fraud_splits else []
    if as_json:
        small, fraud = [outcome.as_dict() for outcome in outcomes], [outcome.as_dict() for outcome in frauds]
        print(json.dumps({"small": small, "fraud": fraud}, indent=1))
    elif frauds:
        console.print()
        console.print(fraud_table(frauds))
        for finding in fraud_findings(frauds):
            console.print(finding)


def findings(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A sentence for every data set on which a plain baseline is ahead of us, and one where none is."""
    for name in dict.fromkeys(outcome.data for outcome in outcomes):
        own = {outcome.method: outcome.macro_f1 for outcome in outcomes if outcome.data == name}
        plain = {method: score for method, score in own.items() if not method.startswith("qmedoid")}
        best = max(plain, key=plain.__getitem__)
        yield f"{name}: the best plain baseline, {best}, {verdict(plain[best] - own['qmedoid'])} in macro-F1."


def _with_progress(seeds: Sequence[int]) -> Iterator[Outcome]:
    with progress_bar() as bar:
        task = bar.add_task("comparing", total=len(LOADERS) * len(METHODS))
        for name in LOADERS:
            bar.update(task, description=name)
            for outcome in compare(load_dataset(name), METHODS, seeds):
                bar.advance(task)
                yield outcome


def _table(name: str, outcomes: Sequence[Outcome]) -> Table:
    table = Table(title=f"{name}: test rows of {over_splits(outcomes[0].splits)}", title_justify="left")
    table.add_column("method")
    for column in ("accuracy", "macro-F1", "paper acc.", "paper F1"):
        table.add_column(column, justify="right")
    for outcome in outcomes:
        figure: PaperFigure | None = PAPER[name].get(_PRINTED_NAMES.get(outcome.method, outcome.method))
        printed = ("", "") if figure is None else (f"{figure.accuracy:.4f}", f"{figure.macro_f1:.4f}")
        table.add_row(
            outcome.method,
            with_error(outcome.accuracy, outcome.accuracy_se),
            with_error(outcome.macro_f1, outcome.macro_f1_se),
            *printed,
        )
    return table
