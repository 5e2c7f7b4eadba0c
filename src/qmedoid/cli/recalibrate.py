"""``qmedoid recalibrate``: probabilities and operating point of a saved model from new labels."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qmedoid.cli.fitting import asked_point
from qmedoid.cli.options import ModelPath, Output, PointOptions, ReadingOptions, Table, TargetName
from qmedoid.cli.output import (
    grid,
    plain_console,
    print_json,
    print_operating,
    reading_bar,
)
from qmedoid.estimators.documents import RecalibrateDict
from qmedoid.exceptions import ContractError, DataError, ParameterError, some_of
from qmedoid.metrics.texts import CALIBRATION_NAMES, FIGURE_NAMES
from qmedoid.model.storage.atomic import check_target
from qmedoid.saved import SavedModel, load
from qmedoid.spelling import did_you_mean, printable
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.evaluating import LabeledTally
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import TableReading, read_through


@dataclass(frozen=True, kw_only=True)
class RecalibrateOptions(PointOptions, ReadingOptions):
    """Fit probabilities and threshold to newly labeled rows.

    For a model that is in use while the frequency of the classes changes: everything else stays as it was, and the
    new model names the old one.
    """

    most_used = ("output", "target", "alert_rate", "operating_point", "min_precision", "min_recall", "cost", "json")
    examples = ("qmedoid recalibrate patients.qmedoid labeled.csv -o patients-2.qmedoid",)

    model: ModelPath
    table: Table
    output: Output
    target: TargetName = None


def run(options: RecalibrateOptions) -> None:
    """Score the labeled rows, calibrate, save the new model, and print figures before and after."""
    from qmedoid.estimators.recalibration import SAME, check_point, recalibrated

    keep_pandas_away()
    asked = asked_point("recalibrate", options)
    point = SAME if asked is None else asked
    check_point(point)
    check_target(options.output)
    saved = load(options.model)
    tally, novelty = _labeled(saved, options)
    found = recalibrated(saved, tally, point)
    written = found.model.save(options.output)
    novelty.warn()
    if options.json:
        document: RecalibrateDict = {"model": str(written), **found.as_dict(), "novelty": novelty.found}
        print_json(document)
        return
    console = plain_console()
    console.print(
        f"{printable(Path(options.table).name)}: {found.rows:,} labeled rows that the model was not fitted on"
    )
    console.print(grid(("", "before", "after, out of fold"), _rows(found.before, found.after)))
    console.print(found.verdict)
    if found.model.expected_ is not None:
        print_operating(found.model.expected_, found.model.model.decision.classes[1])
    parent = found.model.model.parent
    console.print(
        f"Saved {printable(written)}, a recalibrated copy of the model with the SHA-256 {parent}.", soft_wrap=True
    )


def _labeled(saved: SavedModel, options: RecalibrateOptions) -> tuple[LabeledTally, Any]:
    """The labeled rows of the table, and how unlike the training rows they are."""
    name = options.target or saved.contract.target
    if name is None:
        raise ParameterError("The model does not know the name of the target column: pass --target.")
    LabeledTally(saved.model)  # a model that has no calibration is refused before anything is read

    def collect(reading: TableReading) -> LabeledTally:
        if name not in reading.source.names:
            raise ContractError(
                f"There is no column {name!r} with the classes.{did_you_mean(name, reading.source.names)} The table "
                f"has: {some_of([*map(repr, reading.source.names)])}. Pass --target."
            )
        tally = LabeledTally(saved.model)
        for batch, extra in reading.batches([name], as_text=True, on_progress=progress):
            tally.add(batch, extra.column(name), reading.issues, reading.novelty)
        return tally

    settings = ScoreSettings(on_mismatch=options.on_mismatch, **options.dialect)
    with reading_bar("scoring") as progress:
        tally, reading = read_through(saved.model, options.table, settings, collect)
    novelty = reading.novelty.report(saved.model)
    if not tally.labeled + tally.missing + tally.unknown:
        raise DataError("The table has no rows: there is nothing to calibrate on.")
    return tally, novelty


def _rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, name in (FIGURE_NAMES | CALIBRATION_NAMES).items():
        values = [one.get(key, one.get("calibration", {}).get(key)) for one in (before, after)]
        if key in before or key in before.get("calibration", {}):
            yield name, *("–" if value is None else f"{value:.4f}" for value in values)
