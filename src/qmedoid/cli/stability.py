"""``qmedoid stability``: how much a model changes when the rows change."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from qmedoid.cli._fitting import asked_method
from qmedoid.cli._training_rows import open_source, read_dataset
from qmedoid.cli.options import EVALUATION, MaxRows, TrainingOptions, option
from qmedoid.cli.output import facts, grid, plain_console, print_json, progress_bar, shown, with_error
from qmedoid.estimators.stability_report import (
    DecisionStability,
    GroupStability,
    MedoidStability,
    StabilityReport,
    UnstableRow,
)
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


def _decisions(found: DecisionStability) -> Iterator[Any]:
    yield "\nDecisions: a refit decides about rows that it did not have, and is compared with the fit of all rows."
    spread = None if found.mean_spread is None else f"{found.mean_spread:.3f}"
    figures = {
        "decisions that change": with_error(found.flip_rate, found.flip_error),
        "rows that every refit decides alike": f"{found.never_flipped:.3f}",
        "spread of the probability (mean standard deviation)": spread,
    }
    yield facts(figures)
    if found.by_margin:
        fifths = _FIFTHS if len(found.by_margin) == len(_FIFTHS) else [""] * len(found.by_margin)
        rows = [
            (name, f"{part.low:.3g}", f"{part.high:.3g}", f"{part.n_rows:,}", f"{part.flip_rate:.3f}")
            for name, part in zip(fifths, found.by_margin, strict=True)
        ]
        yield grid(("margin", "from", "to", "rows", "decisions that change"), rows)
    if found.least_stable:
        yield "The least stable rows:"
        names = ("row", "class", "decision", "else", "share of refits", "refits", "margin")
        yield grid(names, [_unstable(one) for one in found.least_stable])


def _unstable(one: UnstableRow) -> tuple[str, ...]:
    margin = "" if one.margin is None else f"{one.margin:.3g}"
    labels = (shown(label) for label in (one.label, one.decided, one.otherwise))
    return f"{one.row}", *labels, f"{one.flip_rate:.2f}", f"{one.n_votes}", margin


def _groups(found: GroupStability | None) -> Iterator[Any]:
    if found is None:
        return
    yield "\nGroups of columns (1: the same groups; 0: no column in common)."
    figures = {
        "agreement of a refit with the fit of all rows": found.with_full_fit,
        "agreement of two refits": found.between_refits,
        "pairs of one group that stay together": found.pairs_kept,
        "the same by chance": found.pairs_by_chance,
    }
    yield facts({name: f"{value:.3f}" for name, value in figures.items()})
    order = np.argsort(-found.best_match, kind="stable")
    named = [(shown(", ".join(found.names(found.groups[place]))), place) for place in order[:_LISTED]]
    rows = [(name, f"{found.kept[place]:.2f}", f"{found.best_match[place]:.2f}") for name, place in named]
    yield grid(("group", "found again", "best match"), rows)
    if len(order) > _LISTED:
        yield f"{len(order) - _LISTED:,} more groups are less alike."


def _medoids(found: MedoidStability | None) -> Iterator[Any]:
    if found is None:
        return
    yield f"\nMedoids: {found.n_medoids:,} (a distance of 1 is that between two rows of the class)."
    figures = {
        "chosen again, if the sample has the row": found.mean_kept,
        "if not, distance to the nearest new medoid": found.mean_moved,
        "the same if medoids were drawn at random": found.by_chance.mean(),
    }
    yield facts({name: f"{value:.3f}" for name, value in figures.items()})
    order = np.argsort(-np.nan_to_num(found.kept, nan=-1.0), kind="stable")
    rows = [
        (
            f"{found.rows[place]}",
            shown(found.classes[place]),
            f"{found.present[place]}",
            _known(found.kept[place], 2),
            _known(found.moved[place]),
            f"{found.by_chance[place]:.3f}",
        )
        for place in order[:_LISTED]
    ]
    yield grid(("row", "class", "in samples", "chosen again", "distance if not", "at random"), rows)
    if len(order) > _LISTED:
        yield f"{len(order) - _LISTED:,} more medoids are chosen again less often."


def _known(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else ""
