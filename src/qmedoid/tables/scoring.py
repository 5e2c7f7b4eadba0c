"""Tables against a model: open, check, and decide batch by batch, with memory for one batch."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError
from qmedoid.model.table import Decisions, TableModel
from qmedoid.tables.arrow import CellTypeError, without_missing
from qmedoid.tables.bad_rows import BadRows, OnBadRow, find_bad_rows
from qmedoid.tables.difference import Difference, OnMismatch, compare_columns
from qmedoid.tables.encode import encode_batch, note_grouped, training_sizes
from qmedoid.tables.issues import Issues
from qmedoid.tables.novelty import NoveltyTally
from qmedoid.tables.source import open_table

OnProgress = Callable[[int, int, int | None], None]
"""Progress callback; receives the rows and the bytes read so far, and all bytes there are, where that is known."""

_TYPES: dict[str, Any] = {"number": pa.float64, "category": pa.string, "boolean": pa.bool_}
# Rows from which on several threads are faster than one.
_LONG = 100_000


class TableReading:
    """The batches of a table under the names of a model's contract; a context manager.

    Cells of a text file are read as the kinds of the contract. Where one cannot be, `batches` is asked again with
    ``lenient=True``: texts stay as they are, so that every such cell is counted and can be taken as missing. `issues`
    and `novelty` are those of the last reading.
    """

    def __init__(
        self,
        model: TableModel,
        where: str,
        on_mismatch: OnMismatch,
        *,
        all_columns: bool = False,
        on_bad_row: OnBadRow = "refuse",
        types: Mapping[str, pa.DataType] | None = None,
        **dialect: Any,
    ) -> None:
        self.model, self.on_mismatch, self.on_bad_row = model, on_mismatch, on_bad_row
        # An explanation shows what the model does not read as well.
        self._places = range(len(model.contract.columns)) if all_columns else model.layout.used
        self.source = open_table(where, **dialect, tolerant=on_bad_row != "refuse")
        for name, kind in (types or {}).items():
            # The file is a part of a table, whose other files may have these columns in other types.
            place = self.source.schema.get_field_index(name)
            self.source.schema = self.source.schema.set(place, pa.field(name, kind))
        self.can_repeat = self.source.n_bytes is not None
        self._trusts_points = dialect.get("decimal") is not None
        self.issues, self.novelty = Issues(), NoveltyTally(model)
        # Types of a text file are a guess, and its cells are read as the contract says: they are judged one by one.
        given = self.source.names if self.source.is_text else self.source.schema
        try:
            self._difference = compare_columns(model.contract, given)
            if on_mismatch == "error":
                self._difference.raise_or_warn(on_mismatch)
        except BaseException:
            self.source.close()
            raise
        self._names = {new: old for old, new in self._difference.renames.items()}
        """Names in the table, by those of the contract, where they differ."""

    def __enter__(self) -> "TableReading":
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()

    def batches(
        self,
        lenient: bool,
        extra: Sequence[str] = (),
        *,
        as_text: bool = False,
        verbatim: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Batches of the columns that the best model reads, under the names of the contract, and of `extra` ones.

        The extra ones can be had as text from text files, and verbatim: cells such as ``NA`` are then not missing.
        """
        self.issues, self.novelty = Issues(trusts_points=self._trusts_points), NoveltyTally(self.model)
        source, renames = self.source, self._difference.renames
        wanted = [self.model.contract.columns[place] for place in self._places]
        here = {self._names.get(column.name, column.name): column for column in wanted}
        here = {name: column for name, column in here.items() if name in source.names}
        plain = [name for name, column in here.items() if column.kind == "number" and not column.spelling]
        types: dict[str, pa.DataType] = {}
        if source.is_text:
            types = {name: _TYPES[column.kind]() for name, column in here.items() if column.kind in _TYPES}
            # What was spelt in some way is read by the same rule; what is carried stays as it is written, even where
            # the model reads it as a number.
            texts = [name for name, column in here.items() if column.spelling or lenient]
            texts += extra if as_text or (lenient and self.can_repeat) else ()
            types |= dict.fromkeys(texts, pa.string())
        rows = 0
        # A carried column may be one that the model reads as well: it is read once. Rows without any column cannot be
        # counted.
        columns = list(dict.fromkeys([*here, *extra])) or [source.names[0]]
        verbatim = verbatim and source.is_text and bool(extra)
        watched = () if lenient or self._trusts_points else plain
        for batch in source.batches(columns, types, verbatim=verbatim, watched=watched):
            rows += len(batch)
            if on_progress is not None:
                on_progress(rows, source.bytes_read, source.n_bytes)
            read = batch.select(list(here))
            if verbatim:
                cells = [without_missing(one) if one.type == pa.string() else one for one in read.columns]
                read = pa.record_batch(cells, names=read.schema.names)
            if source.is_text and source.decimal == ",":
                read = _with_points(read, plain)
            if renames:
                read = read.rename_columns([renames.get(name, name) for name in read.schema.names])
            yield read, batch.select(list(extra))

    def decided(
        self, lenient: bool, extra: Sequence[str] = (), **reading: Any
    ) -> Iterator[tuple["DecidedRows", pa.RecordBatch]]:
        """Decisions about the rows of `batches` that are not bad, and the extra columns of all rows."""
        passed = 0
        for batch, more in self.batches(lenient, extra, **reading):
            malformed = self.source.origin.malformed(len(batch))
            yield (
                decide_rows(self.model, batch, self.issues, self.novelty, self.on_bad_row, malformed, passed),
                more,
            )
            passed += len(batch)

    def schema(self, extra: Sequence[str], *, as_text: bool = False) -> pa.Schema:
        """The types that `extra` columns are read in, as `batches` has them."""
        source = self.source
        types = {name: source.schema.field(name).type for name in extra}
        texts = [name for name, kind in types.items() if pa.types.is_null(kind) or (as_text and source.is_text)]
        return pa.schema(list((types | dict.fromkeys(texts, pa.string())).items()))

    def in_kind(self, run: Callable[[bool], Any], *, once: bool = False) -> Any:
        """The result of a run over the batches: first with cells read as the contract says, then leniently if needed.

        What can be read only once is read leniently at once, and so is what must not be run twice.
        """
        if once or not self.can_repeat:
            return run(True)
        try:
            return run(False)
        except CellTypeError:
            return run(True)

    def row(self, number: int) -> pa.Table:
        """The row of that number, counted from 0, as a table."""

        def find(lenient: bool) -> pa.Table:
            passed = 0
            for batch, _ in self.batches(lenient):
                if number < passed + len(batch):
                    return pa.Table.from_batches([batch.slice(number - passed, 1)])
                passed += len(batch)
            raise DataError(f"There is no row {number}: the table has {passed:,} rows, counted from 0.")

        found: pa.Table = self.in_kind(find)
        return found

    def check(self, *, warns: bool = True) -> Difference:
        """How columns and cells differ, once all batches were decided; refused or a warning, as was asked for."""
        if self.source.is_text:
            known = {self._names.get(name, name): name for name in training_sizes(self.model, self._places)}
            named = [name for name in known if name in self.source.names]
            grouped = self.source.first_grouped(named) if named else {}
            if grouped:
                note_grouped(self.issues, self.model, {known[name]: one for name, one in grouped.items()})
        difference = replace(self._difference, issues=self.issues)
        difference.raise_or_warn(self.on_mismatch, warns=warns)
        return difference


def _with_points(batch: pa.RecordBatch, numbers: Sequence[str]) -> pa.RecordBatch:
    """Columns of numbers that were read as text, with a point instead of the decimal comma."""
    from qmedoid.tables._numbers import comma_numbers

    for name in numbers:
        place = batch.schema.get_field_index(name)
        if pa.types.is_string(batch.column(place).type):
            batch = batch.set_column(place, name, comma_numbers(batch.column(place)))
    return batch


class DecidedRows(NamedTuple):
    """Rows of a batch that could be decided about: records, encoded columns, decisions; and those that could not."""

    n_rows: int
    records: pa.RecordBatch | pa.Table
    encoded: list[Array]
    decided: Decisions
    bad: BadRows | None = None

    @classmethod
    def none(cls, model: TableModel, n_rows: int = 0, bad: BadRows | None = None) -> "DecidedRows":
        """No row that could be decided about."""
        n_classes, codes = len(model.decision.classes), np.zeros(0, dtype=np.intp)
        nearest = None if model.method is None else np.zeros((0, n_classes), dtype=np.intp)
        decided = Decisions(codes, np.zeros((0, n_classes)), np.zeros(0), codes.astype(np.bool_), nearest)
        return cls(n_rows, pa.table({}), [], decided, bad)


def decide_rows(
    model: TableModel,
    batch: pa.RecordBatch | pa.Table,
    issues: Issues,
    tally: NoveltyTally | None = None,
    on_bad_row: OnBadRow = "refuse",
    malformed: Mapping[int, str] | None = None,
    first_row: int = 0,
) -> DecidedRows:
    """Decisions about the records of a batch; unless they are refused, bad ones are found and left out.

    `malformed` are rows that are bad however their cells are read; `first_row` is the place of the first in its table.
    """
    bad = None if on_bad_row == "refuse" else find_bad_rows(model, batch, issues, malformed)
    if bad is None:
        rows = None if on_bad_row == "refuse" else np.arange(first_row, first_row + len(batch))
        decided, encoded = decide_batch(model, batch, issues, tally, rows)
        return DecidedRows(len(batch), batch, encoded, decided)
    if bad.is_bad.all():
        return DecidedRows.none(model, len(batch), bad)
    good = batch.filter(pa.array(~bad.is_bad))
    decided, encoded = decide_batch(model, good, issues, tally, np.flatnonzero(~bad.is_bad) + first_row)
    return DecidedRows(len(batch), good, encoded, decided, bad)


def decide_batch(
    model: TableModel,
    batch: pa.RecordBatch | pa.Table,
    issues: Issues,
    tally: NoveltyTally | None = None,
    rows: Codes | None = None,
) -> tuple[Decisions, list[Array]]:
    """Decisions about the records of a batch, and its encoded columns, those that the model reads.

    What breaks the contract is counted in `issues`, records unlike the training rows in `tally`, where `rows` are their
    places in the table if some were left out.
    """
    # A batch of a file is too short to share between threads: starting them costs as much as they save.
    threads = None if len(batch) > _LONG else 1
    counted = copy.deepcopy(issues)
    columns = encode_batch(
        batch, model.contract, model.encodings, only=model.layout.used, unchecked=model.layout.checked, issues=counted
    )
    try:
        decided = model.decide(columns, threads=threads)
    except DataError:
        # A bad value somewhere: now all of them are looked for.
        columns = encode_batch(batch, model.contract, model.encodings, only=model.layout.used, issues=issues)
        with refused_by_column(model, batch, issues):
            decided = model.decide(columns, threads=threads)
    else:
        vars(issues).update(vars(counted))
    if tally is not None:
        tally.add(columns, rows)
    return decided, columns


@contextmanager
def refused_by_column(model: TableModel, batch: pa.RecordBatch | pa.Table, issues: Issues) -> Iterator[None]:
    """Name the columns where a model refuses missing cells that it cannot fill in."""
    try:
        yield
    except DataError:
        read = replace(model.contract, columns=tuple(model.contract.columns[place] for place in model.layout.used))
        difference = replace(compare_columns(read, batch.schema), issues=issues)
        if difference.has_refused_cells:
            difference.raise_or_warn("error")
        raise
