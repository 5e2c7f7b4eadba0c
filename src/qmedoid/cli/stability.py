"""``qmedoid stability``: how much a model changes when the rows change."""

from dataclasses import dataclass
from typing import Annotated

from qmedoid.cli.fitting import parse_method, read_dataset
from qmedoid.cli.options import EVALUATION, MaxRows, TrainingOptions, command, option
from qmedoid.cli.output import facts, note, print_json, progress_bar, show
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.source import open_table


@dataclass(frozen=True, kw_only=True)
class StabilityOptions(TrainingOptions):
    """What is fitted, and how often."""

    max_rows: MaxRows = 20_000
    bootstraps: Annotated[
        int, option(EVALUATION, "N", "Number of bootstrap samples that are fitted, 2 or more.", min=2)
    ] = 20


@command(
    "qmedoid stability patients.csv --target outcome",
    most_used=("target", "bootstraps", "positive", "ignore", "method", "max_rows", "seed", "json"),
)
def run(options: StabilityOptions) -> None:
    """Refit samples of the rows, and count decisions that change.

    Fits bootstrap samples of a table, and shows how often decisions, groups of columns and medoids are others than in
    the fit of all rows.
    """
    from qmedoid.estimators.medoid import MedoidClassifier
    from qmedoid.estimators.stability import stability

    keep_pandas_away()
    method = parse_method(options.method, options.medoids, options.neighbors)
    with open_table(options.table, delimiter=options.delimiter, decimal=options.decimal) as source:
        data = read_dataset(options, source)
    for one in data.repeats:
        note(f"{one.message()}.")
    classifier = MedoidClassifier(method=method, positive=options.positive, random_state=options.seed)
    with progress_bar() as bar:
        task = bar.add_task("fitting", total=options.bootstraps + 1)
        report = stability(
            classifier,
            data,
            n_bootstraps=options.bootstraps,
            random_state=options.seed,
            progress=lambda done, _: bar.update(task, completed=done, description="fitting again"),
        )
    if options.json:
        print_json(report.as_dict())
        return
    show(f"{report.n_rows:,} rows, fitted again on {report.n_bootstraps} bootstrap samples of them")
    decisions, groups, medoids = report.decisions, report.groups, report.medoids
    error = "" if decisions["flip_error"] is None else f" ± {decisions['flip_error']:.3f}"
    figures = {
        "decisions that change": f"{_nan(decisions['flip_rate']):.3f}{error}",
        "rows that every refit decides alike": f"{_nan(decisions['never_flipped']):.3f}",
    }
    show(
        "\nDecisions: a refit decides about rows that it did not have, and is compared with the fit of all rows.",
        facts(figures),
    )
    if groups is not None:
        kept, agreement = f"{groups['kept']:.3f}", f"{groups['agreement']:.3f}"
        show(
            f"\nGroups of columns: {groups['groups']:,} (1: the same groups; 0: no column in common).",
            facts({"found again by a refit": kept, "agreement with the fit of all rows": agreement}),
        )
    if medoids is not None:
        kept = f"{_nan(medoids['kept']):.3f}"
        show(f"\nMedoids: {medoids['medoids']:,}.", facts({"chosen again, if the sample has the row": kept}))
    show(*report.notes)


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value
