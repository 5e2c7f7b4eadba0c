"""``qmedoid recalibrate``: probabilities and operating point of a saved model from new labels."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from qmedoid.cli.options import (
    Json,
    ModelPath,
    Output,
    PointOptions,
    ReadingOptions,
    Table,
    TargetName,
    command,
    cut_of,
)
from qmedoid.cli.output import grid, print_json, reading_bar, show, tell_cut
from qmedoid.estimators.documents import RecalibrateDict
from qmedoid.exceptions import DataError
from qmedoid.metrics.texts import CALIBRATION_NAMES, FIGURE_NAMES
from qmedoid.model.storage.atomic import check_target
from qmedoid.saved import SavedModel, load
from qmedoid.spelling import printable
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.evaluating import LabeledTally, class_column
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import TableReading, read_through


@command(
    "qmedoid recalibrate patients.qmedoid labeled.csv -o patients-2.qmedoid",
    most_used=("output", "target", "alert_rate", "operating_point", "min_precision", "min_recall", "cost", "json"),
)
def run(
    model: ModelPath,
    table: Table,
    reading: ReadingOptions,
    point: PointOptions,
    *,
    output: Output,
    target: TargetName = None,
    json: Json = False,
) -> None:
    """Fit probabilities and threshold to newly labeled rows.

    For a model that is in use while the frequency of the classes changes: everything else stays as it was, and the
    new model names the old one.
    """
    from qmedoid.estimators.recalibration import SAME, check_point, recalibrated

    keep_pandas_away()
    requested = cut_of(point)
    requested = SAME if requested is None else requested
    check_point(requested)
    check_target(output)
    saved = load(model)
    tally, novelty = _labeled(saved, table, target, reading)
    found = recalibrated(saved, tally, requested)
    written = found.model.save(output)
    novelty.warn()
    if json:
        document: RecalibrateDict = {"model": str(written), **found.as_dict(), "novelty": novelty.found}
        print_json(document)
        return
    show(
        f"{printable(Path(table).name)}: {found.rows:,} labeled rows that the model was not fitted on",
        grid(("", "before", "after, out of fold"), _rows(found.before, found.after)),
        found.verdict,
    )
    tell_cut(found.model.model)
    parent = found.model.model.parent
    show(f"Saved {printable(written)}, a recalibrated copy of the model with the SHA-256 {parent}.")


def _labeled(saved: SavedModel, table: str, target: str | None, how: ReadingOptions) -> tuple[LabeledTally, Any]:
    """The labeled rows of the table, and how unlike the training rows they are."""
    LabeledTally(saved.model)  # a model that has no calibration is refused before anything is read

    def collect(reading: TableReading) -> LabeledTally:
        name = class_column(saved.model, target, reading.source.names)
        tally = LabeledTally(saved.model)
        for batch, extra in reading.batches([name], as_text=True, on_progress=progress):
            tally.add(batch, extra.column(name), reading.issues, reading.novelty)
        return tally

    with reading_bar("scoring") as progress:
        tally, reading = read_through(saved.model, table, ScoreSettings(**vars(how)), collect)
    novelty = reading.novelty.report(saved.model)
    if not tally.labeled + tally.missing + tally.unknown:
        raise DataError("The table has no rows: there is nothing to calibrate on.")
    return tally, novelty


def _rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, name in (FIGURE_NAMES | CALIBRATION_NAMES).items():
        values = [one.get(key, one.get("calibration", {}).get(key)) for one in (before, after)]
        if key in before or key in before.get("calibration", {}):
            yield name, *("–" if value is None else f"{value:.4f}" for value in values)
