"""``qmedoid demo``: the three small data sets, ours beside the paper's figures and plain baselines."""

import json
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from qmedoid.evaluation.comparison import METHODS, Outcome, compare
from qmedoid.evaluation.datasets import LOADERS, load_dataset
from qmedoid.evaluation.paper import PAPER, PaperFigure

_PRINTED_NAMES = {"qmedoid, as printed": "Fusion"}


def run(*, splits: int, seed: int, as_json: bool) -> None:
    """Compare every method on every data set and print the result."""
    seeds = range(seed, seed + splits)
    outcomes = list(_with_progress(seeds))
    if as_json:
        print(json.dumps([outcome.as_dict() for outcome in outcomes], indent=1))
        return
    console = Console()
    for name in dict.fromkeys(outcome.data for outcome in outcomes):
        console.print(_table(name, [outcome for outcome in outcomes if outcome.data == name]))
    for finding in findings(outcomes):
        console.print(finding)


def findings(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A sentence for every data set on which a plain baseline is ahead of us, and one where none is."""
    for name in dict.fromkeys(outcome.data for outcome in outcomes):
        own = {outcome.method: outcome.macro_f1 for outcome in outcomes if outcome.data == name}
        plain = {method: score for method, score in own.items() if not method.startswith("qmedoid")}
        best = max(plain, key=plain.__getitem__)
        ahead = plain[best] - own["qmedoid"]
        verdict = f"is ahead by {ahead:.3f}" if ahead > 0 else f"is behind by {-ahead:.3f}"
        yield f"{name}: the best plain baseline, {best}, {verdict} in macro-F1."


def _with_progress(seeds: Sequence[int]) -> Iterator[Outcome]:
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True, disable=not Console(stderr=True).is_terminal,
    )  # fmt: skip
    with bar:
        task = bar.add_task("comparing", total=len(LOADERS) * len(METHODS))
        for name in LOADERS:
            bar.update(task, description=name)
            for outcome in compare(load_dataset(name), METHODS, seeds):
                bar.advance(task)
                yield outcome


def _table(name: str, outcomes: Sequence[Outcome]) -> Table:
    splits = outcomes[0].splits
    over = "one stratified split" if splits == 1 else f"{splits} stratified splits (mean ± standard error)"
    table = Table(
        title=f"{name}: test rows of {over}",
        title_justify="left",
    )
    table.add_column("method")
    for column in ("accuracy", "macro-F1", "paper acc.", "paper F1"):
        table.add_column(column, justify="right")
    for outcome in outcomes:
        figure: PaperFigure | None = PAPER[name].get(_PRINTED_NAMES.get(outcome.method, outcome.method))
        printed = ("", "") if figure is None else (f"{figure.accuracy:.4f}", f"{figure.macro_f1:.4f}")
        table.add_row(
            outcome.method,
            _with_error(outcome.accuracy, outcome.accuracy_se),
            _with_error(outcome.macro_f1, outcome.macro_f1_se),
            *printed,
        )
    return table


def _with_error(mean: float, error: float | None) -> str:
    return f"{mean:.3f}" if error is None else f"{mean:.3f} ± {error:.3f}"
