"""``qmedoid evaluate``: a model's decisions beside the classes in a table."""

from pathlib import Path
from typing import Any

import numpy as np

from qmedoid.cli._metrics import print_metrics
from qmedoid.cli._output import print_json, reading_bar, tell
from qmedoid.exceptions import ContractError, DataError, ParameterError, some_of
from qmedoid.model.table import TableModel
from qmedoid.storage.model_file import load_model
from qmedoid.tables.arrow_alone import keep_pandas_away
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.evaluating import joined, labeled_report, report_notes
from qmedoid.tables.files import Reading
from qmedoid.tables.labels import label_codes
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.seen import row_hashes


def run(model: Path, table: str, *, target: str | None, on_mismatch: OnMismatch, as_json: bool, **dialect: Any) -> None:
    """Decide about every record and print metrics."""
    keep_pandas_away()
    loaded = load_model(model)
    name = target or loaded.contract.target
    if name is None:
        raise ParameterError("The model does not know the name of the target column: pass --target.")
    with Reading(loaded, table, on_mismatch, **dialect) as reading:
        if name not in reading.source.names:
            raise ContractError(
                f"There is no column {name!r} with the classes. The table has: {some_of(reading.source.names)}. "
                "Pass --target."
            )
        with reading_bar("evaluating") as advance:
            parts = reading.in_kind(lambda lenient: list(_decided(loaded, reading, name, lenient, advance)))
        reading.check()
        novelty = reading.novelty.report()
    if not parts:
        raise DataError("The table has no rows: there is nothing to evaluate.")
    codes, decided, hashes = zip(*parts, strict=True)
    report = labeled_report(
        loaded, np.concatenate(codes), joined(decided), None if loaded.seen is None else np.concatenate(hashes)
    )
    left_out = report["left_out"]
    if any(left_out.values()):
        tell(f"note: left out: {left_out['missing']:,} rows without a class, {left_out['unknown']:,} of other classes.")
    notes = report_notes(loaded, report)
    for note in notes:
        tell(f"note: {note}")
    novelty.warn()
    if as_json:
        print_json({**report, "notes": notes, "novelty": novelty.as_dict()})
    else:
        print_metrics(report, f"{Path(table).name}: {report['rows']:,} rows")


def _decided(model: TableModel, reading: Reading, target: str, lenient: bool, advance: Any) -> Any:
    for batch, extra in reading.batches([target], as_text=True, lenient=lenient, on_progress=advance):
        decided = decide_batch(model, batch, reading.found, reading.novelty)
        codes = label_codes(extra.column(target), model.classes)
        yield codes, decided._replace(nearest=None), row_hashes(model, batch)
