"""A table in a file against a model: what differs is found out, then every record is decided, chunk by chunk."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.exceptions import DataError, ParameterError, QMedoidError
from qmedoid.model.table import TableModel
from qmedoid.storage.atomic import would_be_lost
from qmedoid.tables._bytes import find_files
from qmedoid.tables._csv import comma_numbers
from qmedoid.tables._types import without_missing
from qmedoid.tables.cells import maybe_thousands
from qmedoid.tables.difference import Difference, OnMismatch, compare_columns
from qmedoid.tables.encode import Found
from qmedoid.tables.grouped_points import note_grouped, training_sizes
from qmedoid.tables.novelty import NoveltyReport, NoveltyTally, record_novelty
from qmedoid.tables.scoring import RESULTS, check_carried, decide_encoded, result_batch
from qmedoid.tables.source import CellError, TableSource, open_table
from qmedoid.tables.writing import check_output, is_text, open_sink

OnProgress = Callable[[int, int, int | None], None]
"""Called with the rows and the bytes that were read so far, and all bytes there are, where that is known."""

_TYPES: dict[str, Any] = {"number": pa.float64, "category": pa.string, "boolean": pa.bool_}


class Part(NamedTuple):
    """Some rows of a table: the columns that a model reads, under the names of its contract, and others as they are."""

    batch: pa.RecordBatch
    extra: pa.RecordBatch


class PlainPoints:
    """Watches plain numbers of a text for points that may part thousands, as in a column of 1.275 and 935."""

    def __init__(self, source: TableSource, names: Sequence[str]) -> None:
        self._open = {name for name in names if source.may_have_thousands(name)}

    def check(self, batch: pa.RecordBatch) -> None:
        """Raise `CellError` where texts must tell what points mean."""
        for name in sorted(self._open):
            column = batch.column(name)
            if not pa.types.is_floating(column.type):
                continue
            values = column.to_numpy(zero_copy_only=False)
            if (np.trunc(values) == values).all():  # most are whole numbers throughout
                continue
            if not maybe_thousands(values):
                self._open.discard(name)
            elif (values != np.trunc(values))[~np.isnan(values)].any():
                raise CellError(f"Column {name!r} may have points between thousands.")


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
        # Pipes have no size, and are read once.
        self.can_repeat = self.source.n_bytes is not None
        self._trusts_points = dialect.get("decimal") is not None
        self.found = Found()
        self.novelty = NoveltyTally(model)
        # Types of a text file are a guess, and its cells are read as the contract says: they are judged one by one.
        given = self.source.names if self.source.is_text else self.source.schema
        try:
            self.columns_differ = compare_columns(model.contract, given)
            if on_mismatch == "error":
                self.check(self.columns_differ)
        except BaseException:
            self.source.close()
            raise

    def __enter__(self) -> "Reading":
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()

    def batches(
        self,
        extra: Sequence[str] = (),
        *,
        as_text: bool,
        lenient: bool,
        verbatim: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Iterator[Part]:
        """Parts with the columns that the best model reads, and others.

        The others can be had as text from text files, and verbatim: cells such as ``NA`` are then not missing in them.
        """
        self.found, self.novelty = Found(trusts_points=self._trusts_points), NoveltyTally(self.model)
        back = {new: old for old, new in self.columns_differ.renames.items()}
        wanted = [self.model.contract.columns[place] for place in self._places]
        here = {back.get(column.name, column.name): column for column in wanted}
        here = {name: column for name, column in here.items() if name in self.source.names}
        plain = [name for name, column in here.items() if column.kind == "number" and not column.spelling]
        types: dict[str, pa.DataType] = {}
        if self.source.is_text:
            types = {name: _TYPES[column.kind]() for name, column in here.items() if column.kind in _TYPES}
            # What was spelt in some way is read by the same rule.
            types |= {name: pa.string() for name, column in here.items() if column.spelling}
            # What is carried stays as it is written, even where the model reads it as a number.
            types |= {name: pa.string() for name in [*(here if lenient else ()), *(extra if as_text else ())]}
            if lenient and self.can_repeat:
                types |= {name: pa.string() for name in extra}
        rows = 0
        # A carried column may be one that the model reads as well: it is read once. Rows without any column cannot be
        # counted.
        columns = list(dict.fromkeys([*here, *extra])) or [self.source.names[0]]
        verbatim = verbatim and self.source.is_text and bool(extra)
        points = None
        if self.source.is_text and self.source.decimal == "." and not (lenient or self._trusts_points):
            points = PlainPoints(self.source, plain)
        for batch in self.source.batches(columns, types, verbatim=verbatim):
            rows += len(batch)
            if on_progress is not None:
                on_progress(rows, self.source.bytes_read, self.source.n_bytes)
            read = batch.select(list(here))
            if points is not None:
                points.check(read)
            if verbatim:
                read = _without_missing(read)
            if self.source.is_text and self.source.decimal == ",":
                read = _with_points(read, plain)
            yield Part(self.columns_differ.renamed(read), batch.select(list(extra)))

    def in_kind(self, run: Callable[[bool], Any], *, once: bool = False) -> Any:
        """The result of a run over the batches: first with cells read as the contract says, then leniently if needed.

        What can be read only once is read leniently at once, and so is what must not be run twice.
        """
        if once or not self.can_repeat:
            return run(True)
        try:
            return run(False)
        except CellError:
            return run(True)

    def difference(self) -> Difference:
        """How columns and cells differ, once all batches were decided."""
        self._find_grouped()
        return self.columns_differ.with_cells(self.found)

    def _find_grouped(self) -> None:
        """Note columns in which every point may part thousands, where that is more like the training numbers."""
        if not self.source.is_text:
            return
        back = {new: old for old, new in self.columns_differ.renames.items()}
        known = {back.get(name, name): name for name in training_sizes(self.model, self._places)}
        grouped = self.source.first_grouped([name for name in known if name in self.source.names])
        note_grouped(self.found, self.model, {known[name]: one for name, one in grouped.items()})

    def check(self, difference: Difference | None = None) -> Difference:
        """Refuse a table that breaks the contract, or warn, as was asked for; else how it differs."""
        difference = self.difference() if difference is None else difference
        difference.raise_or_warn(self.on_mismatch)
        return difference


def _without_missing(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with texts that stand for a missing value gone."""
    columns = [without_missing(column) if column.type == pa.string() else column for column in batch.columns]
    return pa.record_batch(columns, names=batch.schema.names)


def _with_points(batch: pa.RecordBatch, numbers: Sequence[str]) -> pa.RecordBatch:
    """Columns of numbers that were read as text, with a point instead of the decimal comma."""
    for name in numbers:
        place = batch.schema.get_field_index(name)
        if pa.types.is_string(batch.column(place).type):
            batch = batch.set_column(place, name, comma_numbers(batch.column(place)))
    return batch


class Scored(NamedTuple):
    """What was written.

    Attributes
    ----------
    rows : int
    predicted : dict of str to int
        How many rows were called each class.
    difference : Difference
        How the table differs from the contract.
    novelty : NoveltyReport
        How unlike the training rows its records are.
    """

    rows: int
    predicted: dict[str, int]
    difference: Difference
    novelty: NoveltyReport


def score_file(
    model: TableModel,
    where: str,
    out: str,
    *,
    carried: Sequence[str] = (),
    on_mismatch: OnMismatch = "error",
    safe_csv: bool = True,
    force: bool = False,
    novelty: bool = False,
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
    force : bool
        Whether to overwrite a file that holds something else than results of an earlier scoring.
    novelty : bool
        Whether the results have a last column with the novelty of each record.
    """
    check_output(out)
    with Reading(model, where, on_mismatch, **dialect) as reading:
        check_other_file(where, out)
        if not force:
            check_results_file(out)
        check_carried(model, carried, reading.source.names, novelty=novelty)

        def write(lenient: bool) -> Scored:
            batches = reading.batches(
                carried, as_text=is_text(out), lenient=lenient, verbatim=is_text(out), on_progress=on_progress
            )
            return _write(model, reading, batches, carried, out, safe_csv, novelty)

        # What went to a pipe cannot be taken back.
        is_pipe = out == "-" or (Path(out).exists() and not Path(out).is_file())
        scored: Scored = reading.in_kind(write, once=is_pipe)
    return scored


def check_other_file(where: str, out: str) -> None:
    """Refuse to write the results over the table they are about."""
    target = Path(out)
    if "-" in (where, out) or not target.is_file():
        return
    if any(target.samefile(file) for file in find_files(where)):
        raise ParameterError(f"The output {out!r} is the table itself, which would be lost. Give another output.")


def check_results_file(out: str) -> None:
    """Refuse to overwrite a file whose columns are not those of results."""
    file = Path(out)
    if out == "-" or not file.is_file() or file.stat().st_size == 0:
        return
    try:
        with open_table(out) as source:
            names = set(source.names)
    except QMedoidError:
        names = set()
    if not names >= RESULTS:
        raise would_be_lost(out)


def _write(
    model: TableModel,
    reading: Reading,
    parts: Iterator[Part],
    carried: Sequence[str],
    out: str,
    safe: bool,
    with_novelty: bool,
) -> Scored:
    first = next(parts, None)
    if first is None:
        raise DataError(f"{reading.source.description} has no rows: there is nothing to score.")
    counts = np.zeros(len(model.classes), dtype=np.int64)

    def results(part: Part) -> pa.RecordBatch:
        decided, columns = decide_encoded(model, part.batch, reading.found, reading.novelty)
        counts[:] += np.bincount(decided.codes, minlength=len(counts))
        novelty = record_novelty(model, columns, threads=1) if with_novelty else None
        return result_batch(model, part.extra, decided, carried=carried, novelty=novelty)

    result = results(first)
    with open_sink(out, result.schema, safe_csv=safe, harmless=("stage",)) as sink:
        sink.write(result)
        for part in parts:
            sink.write(results(part))
        # Before the file is put in its place: a table that is refused leaves none behind.
        difference = reading.check()
    predicted = {str(label): int(count) for label, count in zip(model.classes, counts, strict=True)}
    return Scored(int(counts.sum()), predicted, difference, reading.novelty.report())
