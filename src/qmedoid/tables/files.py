"""A table in a file against a model: what differs is found out, then every record is decided, chunk by chunk."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.models.table import TableModel
from qmedoid.tables.difference import Difference, OnMismatch, compare_columns
from qmedoid.tables.encode import Found
from qmedoid.tables.scoring import check_carried, decide_batch, result_batch
from qmedoid.tables.source import CellError, open_table
from qmedoid.tables.writing import check_output, is_text, open_sink

OnProgress = Callable[[int, int], None]
"""Called with the rows and the bytes that were read so far."""

_TYPES: dict[str, Any] = {"number": pa.float64, "category": pa.string, "boolean": pa.bool_}


class Reading:
    """The batches of a table under the names of a model's contract.

    Cells of a text file are read as the kinds of the contract. Where one cannot be, `batches` is asked again with
    ``lenient=True``: texts stay as they are, so that every such cell is counted and can be taken as missing.
    """

    def __init__(
        self, model: TableModel, where: str, on_mismatch: OnMismatch, *, all_columns: bool = False, **dialect: Any
    ) -> None:
        self.model, self.on_mismatch = model, on_mismatch
        # An explanation shows what the model does not read as well.
        self._places = range(len(model.contract.columns)) if all_columns else model.used_columns
        self.source = open_table(where, **dialect)
        self.can_repeat = where != "-"
        self.found = Found()
        self.columns_differ = compare_columns(model.contract, self.source.schema)
        if on_mismatch == "error":
            self.columns_differ.raise_or_warn("error")

    def __enter__(self) -> "Reading":
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()

    def batches(
        self, extra: Sequence[str] = (), *, as_text: bool, lenient: bool, on_progress: OnProgress | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches with the columns that the best model reads, and others (of text files as text if asked for)."""
        self.found = Found()
        renames = self.columns_differ.renames
        back = {new: old for old, new in renames.items()}
        wanted = [self.model.contract.columns[place] for place in self._places]
        here = {back.get(column.name, column.name): column.kind for column in wanted}
        here = {name: kind for name, kind in here.items() if name in self.source.names}
        types = {name: pa.string() for name in extra if as_text} if self.source.is_text else {}
        if self.source.is_text:
            types |= {name: _TYPES[kind]() for name, kind in here.items() if kind in _TYPES}
            types |= {name: pa.string() for name in here if lenient}
        rows = 0
        # A carried column may be one that the model reads as well: it is read once.
        columns = list(dict.fromkeys([*here, *extra]))
        for batch in self.source.batches(columns, types):
            rows += len(batch)
            if on_progress is not None:
                on_progress(rows, self.source.bytes_read)
            yield batch.rename_columns([renames.get(name, name) for name in columns])

    def in_kind(self, run: Callable[[bool], Any]) -> Any:
        """The result of a run over the batches: first with cells read as the contract says, then leniently if needed.

        What can be read only once is read leniently at once.
        """
        if not self.can_repeat:
            return run(True)
        try:
            return run(False)
        except CellError:
            return run(True)

    def difference(self) -> Difference:
        """How columns and cells differ, once all batches were decided."""
        return self.columns_differ.with_cells(self.found)


class Scored(NamedTuple):
    """What was written: the number of rows, how many were called each class, and how the table differed."""

    rows: int
    predicted: dict[str, int]
    difference: Difference


def score_file(
    model: TableModel,
    where: str,
    out: str,
    *,
    carried: Sequence[str] = (),
    on_mismatch: OnMismatch = "error",
    safe_csv: bool = True,
    on_progress: OnProgress | None = None,
    **dialect: Any,
) -> Scored:
    """Score a table into a file (or ``"-"``) that is there whole or not at all.

    Parameters
    ----------
    carried : sequence of str
        Columns that go through to the output, before the results.
    on_mismatch : {"error", "warn"}
        Whether a table that breaks the contract is refused, or scored as well as can be.
    """
    check_output(out)
    with Reading(model, where, on_mismatch, **dialect) as reading:
        check_carried(model, carried, reading.source.names)

        def write(lenient: bool) -> Scored:
            batches = reading.batches(carried, as_text=is_text(out), lenient=lenient, on_progress=on_progress)
            return _write(model, reading, batches, carried, out, safe_csv)

        scored: Scored = reading.in_kind(write)
    return scored


def _write(
    model: TableModel, reading: Reading, batches: Iterator[pa.RecordBatch], carried: Sequence[str], out: str, safe: bool
) -> Scored:
    first = next(batches, None)
    if first is None:
        raise DataError(f"{reading.source.description} has no rows: there is nothing to score.")
    counts = np.zeros(len(model.classes), dtype=np.int64)

    def results(batch: pa.RecordBatch) -> pa.RecordBatch:
        decided = decide_batch(model, batch, reading.found)
        counts[:] += np.bincount(decided.codes, minlength=len(counts))
        return result_batch(model, batch, decided, carried=carried)

    result = results(first)
    with open_sink(out, result.schema, safe_csv=safe) as sink:
        sink.write(result)
        for batch in batches:
            sink.write(results(batch))
        # Before the file is put in its place: a table that is refused leaves none behind.
        difference = reading.difference()
        difference.raise_or_warn(reading.on_mismatch)
    predicted = {str(label): int(count) for label, count in zip(model.classes, counts, strict=True)}
    return Scored(int(counts.sum()), predicted, difference)
