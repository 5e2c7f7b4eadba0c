"""``qmedoid stability``: how much a model changes when the rows change."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from qmedoid.cli.fitting import asked_method
from qmedoid.cli.options import EVALUATION, MaxRows, TrainingOptions, option
from qmedoid.cli.output import facts, grid, plain_console, print_json, progress_bar, with_error
from qmedoid.cli.training_rows import open_source, read_dataset
from qmedoid.estimators.documents import (
    DecisionStabilityDict,
    GroupStabilityDict,
    MedoidStabilityDict,
    UnstableRowDict,
)
from qmedoid.estimators.stability_report import StabilityReport
from qmedoid.spelling import printable
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.dataset import Dataset

# Groups, and medoids, that are printed one by one.
_LISTED = 12
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
    for part in (*_decisions(report.decisions), *_groups(report.groups), *_medoids(report.medoids), *report.notes):
        console.print(part)


def _stability(options: StabilityOptions, method: Any, data: Dataset) -> StabilityReport:
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
        "spread of the probability (mean standard deviation)": _known(found["mean_spread"]) or None,
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


def _groups(found: GroupStabilityDict | None) -> Iterator[Any]:
    if found is None:
        return
    yield "\nGroups of columns (1: the same groups; 0: no column in common)."
    figures = {
        "agreement of a refit with the fit of all rows": found["with_full_fit"],
        "agreement of two refits": found["between_refits"],
        "pairs of one group that stay together": found["pairs_kept"],
        "the same by chance": found["pairs_by_chance"],
    }
    yield facts({name: f"{_nan(value):.3f}" for name, value in figures.items()})
    best = sorted(found["groups"], key=lambda one: -one["best_match"])
    rows = [
        (printable(", ".join(one["columns"])), f"{one['kept']:.2f}", f"{one['best_match']:.2f}")
        for one in best[:_LISTED]
    ]
    yield grid(("group", "found again", "best match"), rows)
    if len(best) > _LISTED:
        yield f"{len(best) - _LISTED:,} more groups are less alike."


def _medoids(found: MedoidStabilityDict | None) -> Iterator[Any]:
    if found is None:
        return
    yield f"\nMedoids: {found['medoids']:,} (a distance of 1 is that between two rows of the class)."
    figures = {
        "chosen again, if the sample has the row": found["kept"],
        "if not, distance to the nearest new medoid": found["moved"],
        "the same if medoids were drawn at random": found["by_chance"],
    }
    yield facts({name: f"{_nan(value):.3f}" for name, value in figures.items()})
    each = sorted(found.get("each", []), key=lambda one: -1.0 if one["kept"] is None else one["kept"], reverse=True)
    rows = [
        (
            f"{one['row']}",
            printable(one["class"]),
            f"{one['present']}",
            _known(one["kept"], 2),
            _known(one["moved"]),
            f"{one['by_chance']:.3f}",
        )
        for one in each[:_LISTED]
    ]
    if rows:
        yield grid(("row", "class", "in samples", "chosen again", "distance if not", "at random"), rows)
    if len(each) > _LISTED:
        yield f"{len(each) - _LISTED:,} more medoids are chosen again less often."


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _known(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"
