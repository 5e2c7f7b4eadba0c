"""``qmedoid importance`` and ``qmedoid effect``: which columns decide, and how their values do."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from qmedoid.cli.documents import ImportanceDict
from qmedoid.cli.options import (
    OUTPUT,
    RESULTS,
    Force,
    Json,
    ModelPath,
    ReadingOptions,
    Table,
    Text,
    argument,
    command,
    option,
)
from qmedoid.cli.output import grid, print_json, reading_bar, show, tell
from qmedoid.exceptions import ParameterError
from qmedoid.explain.documents import EffectDict
from qmedoid.explain.effect import Effect, EffectTally
from qmedoid.metrics.texts import odds_text
from qmedoid.model.importance import ImportanceTally, by_importance, check_explained
from qmedoid.model.storage.atomic import atomic_file, check_unchanged
from qmedoid.model.storage.model_file import load_model
from qmedoid.spelling import printable
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import TableReading, decide_batch, read_through


@command("qmedoid importance patients.qmedoid", "qmedoid importance patients.qmedoid new.csv", most_used=("json",))
def run(
    model: ModelPath,
    table: Annotated[Text, argument("TABLE", "Table of other rows. Default: the training rows.")] = None,
    *,
    reading: ReadingOptions,
    json: Json = False,
) -> None:
    """Show how much each column counts (feature importance).

    The mean absolute contribution of each column to the decisions, about the training rows or about a table.
    """
    keep_pandas_away()
    loaded = load_model(model)
    check_explained(loaded)
    found, rows, of = loaded.importances, None, "training rows"
    if table is not None:
        tally: ImportanceTally = _tallied(
            partial(read_through, loaded, table, ScoreSettings(**vars(reading))),
            lambda: ImportanceTally(loaded),
            lambda tally, _, columns, decided: tally.add(columns, decided),
        )
        found, rows, of = tally.importances, tally.rows, f"{tally.rows:,} rows"
    if found is None:
        raise ParameterError("This model keeps no importances: give a table whose decisions they are of.")
    importances = by_importance(loaded.contract.names, found)
    if json:
        document: ImportanceDict = {"rows": rows, "importances": importances}
        print_json(document)
        return
    unit = "log-odds" if loaded.decision.probabilistic else "units of the score"
    total = sum(importances.values())
    show(f"Importance: the mean absolute contribution of each column to decisions about {of}, in {unit}.")
    shares = [f"{100 * one / total:.1f} %" if total else "–" for one in importances.values()]
    parts = [
        (printable(name), f"{one:.4f}", share) for (name, one), share in zip(importances.items(), shares, strict=True)
    ]
    show(grid(("column", "importance", "share"), parts))


def _tallied(read: Callable[..., Any], start: Callable[[], Any], add: Callable[..., None]) -> Any:
    """A tally of the decisions about a table: `add` counts a batch in, its encoded columns and its decisions."""

    def look(reading: TableReading) -> Any:
        tally = start()
        for batch, _ in reading.batches(on_progress=progress):
            decided, columns = decide_batch(reading.model, batch, reading.issues)
            add(tally, batch, columns, decided)
        return tally

    with reading_bar("contributions") as progress:
        return read(look=look)[0]


@command(
    "qmedoid effect patients.qmedoid new.csv --column age --plot age.svg",
    most_used=("column", "toward", "bins", "plot", "json"),
)
def effect(
    model: ModelPath,
    table: Table,
    *,
    reading: ReadingOptions,
    json: Json = False,
    column: Annotated[str, option(RESULTS, "COLUMN", "Column to show.")],
    toward: Annotated[
        Text, option(RESULTS, "CLASS", "Class that values speak for or against. Default: the positive one.")
    ] = None,
    bins: Annotated[
        int, option(RESULTS, "N", "Number of bins of a number or a date, of about equally many rows.", min=1)
    ] = 10,
    plot: Annotated[Path | None, option(OUTPUT, "FILE", "Picture to write, an SVG file.")] = None,
    force: Force = False,
) -> None:
    """Show what the values of one column add to the decisions."""
    keep_pandas_away()
    if plot is not None and plot.suffix.lower() != ".svg":
        raise ParameterError(f"--plot must be a file that ends in .svg. Got {str(plot)!r} instead.")
    loaded = load_model(model)
    check_explained(loaded)
    EffectTally(loaded, column, toward)  # wrong names are refused before anything is read
    tally: EffectTally = _tallied(
        partial(read_through, loaded, table, ScoreSettings(**vars(reading)), all_columns=True),
        lambda: EffectTally(loaded, column, toward),
        lambda tally, batch, columns, _: tally.add(batch, columns),
    )
    found: Effect = tally.report(bins)
    if plot is not None:
        from qmedoid.markup import charts
        from qmedoid.markup.page import picture_file

        content = picture_file(charts.effect(found.to_dict())).encode()
        if not force:
            check_unchanged(str(plot), content)
        with atomic_file(plot) as file:
            file.write(content)
    if json:
        document: EffectDict = {**found.to_dict(), "plot": None if plot is None else str(plot)}
        print_json(document)
        return
    against = "all others" if found.against is None else printable(found.against)
    odds = ("odds",) if found.unit == "log-odds" and found.against is not None else ()
    show(
        f"What the values of {printable(found.column)} contribute: above 0 toward {printable(found.toward)}, below 0 "
        f"toward {against}, in {found.unit}; 10 % of the rows are below the first bound, 10 % above the second."
    )
    rows = []
    for one in (*found.bins, *([found.missing] if found.missing else [])):
        means = [*(odds_text(one["mean"]) for _ in odds), f"{one['mean']:+.4f}"]
        rows.append((printable(one["value"]), f"{one['rows']:,}", *means, f"{one['p10']:+.4f}", f"{one['p90']:+.4f}"))
    show(grid((printable(found.column), "rows", *odds, "mean", "10 %", "90 %"), rows))
    if found.kept < found.rows:
        tell(f"note: {found.kept:,} of {found.rows:,} rows were drawn at random.")
    if plot is not None:
        tell(f"drawn in {plot}")
