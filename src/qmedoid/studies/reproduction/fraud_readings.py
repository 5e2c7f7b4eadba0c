"""What the printed fraud figures hang on: open points of the paper read otherwise, and what that explains."""

from collections.abc import Iterator

from qmedoid.reporting.document import Column, Table, Value
from qmedoid.studies.paper import FRAUD
from qmedoid.studies.reproduction.fraud import FIXED, MATCHED
from qmedoid.studies.reproduction.fraud_printed import READINGS
from qmedoid.studies.reproduction.fraud_tables import measure_of
from qmedoid.studies.reproduction.results import Measure, Results, mean_columns, with_error

FIGURES: dict[str, tuple[str, Measure]] = {
    "PR-AUC": ("PR-AUC", measure_of("PR-AUC", "all", FIXED)),
    "ROC-AUC": ("ROC-AUC", measure_of("ROC-AUC", "all", FIXED)),
    "alert rate at τ = 0.3": ("alert rate", measure_of("alert rate", "all", FIXED)),
    "recall at τ = 0.3": ("recall", measure_of("recall", "all", FIXED)),
    "precision at τ = 0.3": ("precision", measure_of("precision", "all", FIXED)),
    "recall at 1.31 % alerts": ("recall", measure_of("recall", "all", MATCHED)),
}
"""By title, the paper's name of a figure and ours of all rows."""


def readings_table(results: Results, data: str) -> Table:
    """The paper's own method on all rows, read in several ways, beside its printed figures."""
    printed = FRAUD["fraud_matched"]["ours"]
    columns = [Column("reading")]
    for title in FIGURES:
        columns += [*mean_columns("mean", title), Column("low", title), Column("high", title), Column("fits", title)]
    columns += mean_columns("mean", "PR-AUC, test rows")
    rows: list[list[Value]] = [["the paper"]]
    for figure, _ in FIGURES.values():
        rows[0] += [printed[figure], None, None, None, None]
    rows[0] += [None, None]
    for reading in READINGS:
        if not results.of(data, reading):
            continue
        row: list[Value] = [reading]
        for figure, measure in FIGURES.values():
            spread = results.spread(data, reading, measure)
            if spread is None:
                row += [None] * 5
                continue
            fits = "yes" if spread.contains(printed[figure]) else "no"
            row += [spread.mean, spread.error, spread.low, spread.high, fits]
        rows.append([*row, *with_error(results.spread(data, reading, measure_of("PR-AUC", "test", FIXED)))])
    return Table(
        "fraud_readings",
        "What the printed fraud figures hang on: open points of the paper read otherwise",
        columns,
        rows,
        "All rows, as in the paper, but for the last column. Fits: the paper's figure lies in the range of the splits, "
        "or within two standard deviations of their mean. Which readings to show was chosen on other splits of these "
        "rows. Without a circuit the threshold is 0 of the fusion margin, not 0.3 of a probability.",
    )


def readings_findings(results: Results, data: str) -> Iterator[str]:
    """Why the paper preset is not where the paper is: class weights that stop the search, and a circuit that loses."""
    own = results.of(data, "printed")
    idle = [result["search"] for result in own if result["search"]["different"] == 1]
    if idle:
        yield (
            f"Frauds, as printed: on {len(idle)} of {len(own)} splits all {idle[0]['evaluations']:,} evaluations of "
            "the search have the same macro-F1: class weights of 1/√π let no row be called a fraud, so that there is "
            "nothing to choose from."
        )
    area = measure_of("PR-AUC", "test", FIXED)
    with_circuit = results.spread(data, "printed, no class weights", area)
    without = results.spread(data, "printed, no class weights, no circuit", area)
    if with_circuit is not None and without is not None and without.mean > with_circuit.mean:
        yield (
            f"Frauds, as printed but without class weights: the fusion score alone has a PR-AUC of {without.mean:.3f} "
            f"on test rows, and {with_circuit.mean:.3f} after the printed circuit, which is fed by it."
        )
    printed = FRAUD["fraud_matched"]["ours"]
    fitting = []
    for reading in READINGS:
        spreads = [results.spread(data, reading, measure) for _, measure in FIGURES.values()]
        figures = [figure for figure, _ in FIGURES.values()]
        if all(own is not None and own.contains(printed[name]) for own, name in zip(spreads, figures, strict=True)):
            fitting.append(f"'{reading}'")
    yield (
        f"Frauds: readings of the paper whose spread over the splits holds all of {', '.join(FIGURES)}: "
        f"{', '.join(fitting) or 'none'}."
    )
