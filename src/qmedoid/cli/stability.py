"""``qmedoid stability``: how much a model changes when the rows change."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from qmedoid.cli.fitting import asked_method
from qmedoid.cli.options import EVALUATION, MaxRows, TrainingOptions, option
from qmedoid.cli.output import facts, grid, plain_console, print_json, progress_bar, with_error
from qmedoid.cli.training_rows import open_source, read_dataset
from qmedoid.estimators.documents import DecisionStabilityDict, UnstableRowDict
from qmedoid.spelling import printable
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.dataset import Dataset

if TYPE_CHECKING:
    from qmedoid.estimators.stability import StabilityReport

_FIFTHS = ("smallest", "small", "middle", "large", "largest")


@dataclass(frozen=True, kw_only=True)
class StabilityOptions(TrainingOptions):
    """Refit samples of the rows, and count decisions that change.

    Fits bootstrap samples of a table, and shows how often decisions, groups of columns and medoids are others than in
    the fit of all rows.
    """

    most_used = ("target", "bootstraps", "positive", "ignore", "method", "max_rows", "seed", "json")
    examples = ("qmedoid stability patients.csv --target outcome",)

    max_rows: MaxRows = 20_000
    bootstraps: Annotated[
        int, option(EVALUATION, "N", "Number of bootstrap samples that are fitted, 2 or more.", min=2)
    ] = 20


def run(options: StabilityOptions) -> None:
    """Fit the table and samples of it, and print what changes."""
    keep_pandas_away()
    method = asked_method(options.method, options.medoids, options.neighbors)
    with open_source(options) as source:
        data = read_dataset(options, source)
    report = _stability(options, method, data)
    if options.json:
        print_json(report.as_dict())
        return
    console = plain_console()
    console.print(f"{report.n_rows:,} rows, fitted again on {report.n_bootstraps} bootstrap samples of them")
    for part in _decisions(report.decisions):
        console.print(part)
    groups, medoids = report.groups, report.medoids
    if groups is not None:
        kept, agreement = f"{groups['kept']:.3f}", f"{groups['agreement']:.3f}"
        console.print(f"\nGroups of columns: {groups['groups']:,} (1: the same groups; 0: no column in common).")
        console.print(facts({"found again by a refit": kept, "agreement with the fit of all rows": agreement}))
    if medoids is not None:
        console.print(f"\nMedoids: {medoids['medoids']:,}.")
        console.print(facts({"chosen again, if the sample has the row": f"{_nan(medoids['kept']):.3f}"}))
    for note in report.notes:
        console.print(note)


def _stability(options: StabilityOptions, method: Any, data: Dataset) -> "StabilityReport":
    from qmedoid.estimators.medoid import MedoidClassifier
    from qmedoid.estimators.stability import stability

    classifier = MedoidClassifier(method=method, positive=options.positive, random_state=options.seed)
    with progress_bar() as bar:
        task = bar.add_task("fitting", total=options.bootstraps + 1)
        return stability(
            classifier,
            data,
            n_bootstraps=options.bootstraps,
            random_state=options.seed,
            progress=lambda done, _: bar.update(task, completed=done, description="fitting again"),
        )


def _decisions(found: DecisionStabilityDict) -> Iterator[Any]:
    yield "\nDecisions: a refit decides about rows that it did not have, and is compared with the fit of all rows."
    figures = {
        "decisions that change": with_error(_nan(found["flip_rate"]), found["flip_error"]),
        "rows that every refit decides alike": f"{_nan(found['never_flipped']):.3f}",
    }
    yield facts(figures)
    if found["by_margin"]:
        parts = found["by_margin"]
        fifths = _FIFTHS if len(parts) == len(_FIFTHS) else [""] * len(parts)
        rows = [
            (name, f"{part['low']:.3g}", f"{part['high']:.3g}", f"{part['n_rows']:,}", _known(part["flip_rate"]))
            for name, part in zip(fifths, parts, strict=True)
        ]
        yield grid(("margin", "from", "to", "rows", "decisions that change"), rows)
    if found["least_stable"]:
        yield "The least stable rows:"
        names = ("row", "class", "decision", "else", "share of refits", "refits", "margin")
        yield grid(names, [_unstable(one) for one in found["least_stable"]])


def _unstable(one: UnstableRowDict) -> tuple[str, ...]:
    margin = "" if one["margin"] is None else f"{one['margin']:.3g}"
    labels = (printable(label) for label in (one["label"], one["decided"], one["otherwise"]))
    return f"{one['row']}", *labels, f"{one['flip_rate']:.2f}", f"{one['n_votes']}", margin


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _known(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
