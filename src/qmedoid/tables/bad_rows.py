"""Rows that a model cannot decide about: which they are, why, and where they are set aside."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Codes, Flags
from qmedoid.model.contract import Column, Encoding, Numbers
from qmedoid.model.table import TableModel
from qmedoid.tables import cells
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.encode import read_column
from qmedoid.tables.issues import Issues
from qmedoid.tables.source import Origin
from qmedoid.tables.writing import Sink, open_sink

OnBadRow = Literal["refuse", "flag", "skip"]
"""What becomes of rows that cannot be decided about: the table is refused, they have no results, or are left out."""
NAMES = ("file", "line", "row", "reason", "record")
"""Columns of a file of rows that were set aside."""
_SCHEMA = pa.schema(list(zip(NAMES, (pa.string(), pa.int64(), pa.int64(), pa.string(), pa.string()), strict=True)))
_NOUNS = {"number": "number", "boolean": "truth value", "date": "date"}
# Characters of a cell that are shown.
_LONGEST = 40


class BadRows(NamedTuple):
    """Which rows of a batch cannot be decided about, shape (n,), and why; null for the others."""

    is_bad: Flags
    reasons: pa.Array

    @property
    def places(self) -> Codes:
        """Places of the bad rows."""
        return np.flatnonzero(self.is_bad)


def find_bad_rows(
    model: TableModel, batch: pa.RecordBatch | pa.Table, issues: Issues, malformed: Mapping[int, str] | None = None
) -> BadRows | None:
    """The rows of a batch with a cell that is not of its kind, infinite or too large, or that cannot be filled in.

    Records that are `malformed`, by place and reason, are bad as well. What a model tolerates is not: unseen levels,
    missing cells that it fills in, and cells of another kind in columns that had some in training. Texts of a column
    whose spelling is in doubt are counted in `issues`, so that the table is refused: it is not known what its other
    cells mean.

    Returns
    -------
    BadRows or None
        None where all rows are good.
    """
    said = []
    if malformed:
        is_malformed = np.zeros(len(batch), dtype=np.bool_)
        is_malformed[list(malformed)] = True
        said.append(_scattered(is_malformed, pa.array([malformed[place] for place in sorted(malformed)])))
        # What such a line holds in which column is not known.
        batch = batch.filter(pa.array(~is_malformed)) if len(malformed) < len(batch) else batch.slice(0, 0)
    found = [
        one
        for place in model.layout.used
        if (name := model.contract.columns[place].name) in batch.schema.names
        for one in _bad_cells(batch.column(name), model.contract.columns[place], model.encodings[place], issues)
    ]
    if malformed:
        back = np.cumsum(~is_malformed) - 1
        found = [one.take(pa.array(back, mask=is_malformed)) for one in found]
    said += found
    if not said:
        return None
    reasons = cells.joined_texts(said, "; ")
    return BadRows(reasons.is_valid().to_numpy(zero_copy_only=False), reasons)


def _bad_cells(
    given: pa.Array | pa.ChunkedArray, column: Column, encoding: Encoding, issues: Issues
) -> Iterator[pa.Array]:
    """For each thing that is wrong in a column, what is said of its rows."""
    if column.kind == "category" or not len(given):
        return
    given = cells.without_missing_values(given, column)
    values, wrong = read_column(given, column, issues)
    absent = np.isnat(values) if column.kind == "date" else np.isnan(values)
    is_wrong = np.zeros(len(absent), dtype=np.bool_)
    if len(wrong):
        is_wrong = absent & ~_are_missing(given, column)
        in_doubt = _in_doubt(given, column, wrong)
        if len(in_doubt):
            issues.column(column.name).add_wrong(wrong, in_doubt)
        if not column.is_open:
            yield _scattered(is_wrong, _quoted(column.name, given, is_wrong, f"is no {_NOUNS[column.kind]}"))
    if column.kind == "number":
        with np.errstate(invalid="ignore"):
            is_huge = np.abs(values) > cells.LARGEST
        if is_huge.any():
            yield _scattered(is_huge, _quoted(column.name, given, is_huge, f"is beyond {cells.LARGEST:g}"))
    if isinstance(encoding, Numbers) and np.isnan(encoding.fill):
        unfilled = absent & ~(is_wrong & (not column.is_open))
        if unfilled.any():
            text = pa.array([f"{column.name} is missing, and the model cannot fill it in"])
            yield _scattered(unfilled, text.take(pa.array(np.zeros(int(unfilled.sum()), dtype=np.intp))))


def _in_doubt(given: pa.Array | pa.ChunkedArray, column: Column, wrong: pa.Array) -> pa.Array:
    """The wrong cells because of which it is not known what the other cells of a column mean.

    A date in another order, and a number in another spelling than that of the column. Among plain numbers those whose
    point may part thousands, and those with a point among decimal commas; a single 1,234 is just a bad cell.
    """
    import pyarrow.compute as pc

    from qmedoid.tables._numbers import POINT_MARK, in_other_spelling

    if column.spelling or column.kind != "number":
        return in_other_spelling(wrong, column) if column.kind in ("number", "date") else wrong.slice(0, 0)
    # Those with doubtful points come after all that are no numbers.
    n_no_numbers = len(cells.read(given, "number").wrong)
    marked = wrong.filter(pc.ends_with(wrong, POINT_MARK))
    return pa.concat_arrays([wrong.slice(n_no_numbers), marked])


def _are_missing(given: pa.Array | pa.ChunkedArray, column: Column) -> Flags:
    """Which cells hold nothing, as those do that are read as missing and are not wrong."""
    import pyarrow.compute as pc

    array = cells.one_chunk(given)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary.take(array.indices)
    missing = array.is_null(nan_is_null=True)
    if cells.is_text(array.type):
        nothing = r"^\s*(?i:[+-]?nan)?\s*$" if column.kind == "number" else r"^\s*$"
        missing = pc.or_(missing, pc.fill_null(pc.match_substring_regex(array, nothing), True))
    flags: npt.NDArray[np.bool_] = missing.to_numpy(zero_copy_only=False)
    return flags


def _quoted(name: str, given: pa.Array | pa.ChunkedArray, places: Flags, what: str) -> pa.Array:
    """What is wrong with some cells, each quoted."""
    import pyarrow.compute as pc

    array = cells.one_chunk(given).filter(pa.array(places))
    if pa.types.is_dictionary(array.type):
        array = array.dictionary.take(array.indices)
    text = pc.utf8_slice_codeunits(cells.as_text(array).cast(pa.string()), 0, _LONGEST)
    return pc.binary_join_element_wise(f"{name}: '", text, f"' {what}", "")


def _scattered(places: Flags, texts: pa.Array) -> pa.Array:
    """Texts at their places, null elsewhere."""
    return texts.take(pa.array(np.cumsum(places) - 1, mask=~places))


@contextmanager
def bad_rows_sink(where: str | None, *, safe_csv: bool) -> Iterator[Sink | None]:
    """A file for rows that are set aside, written atomically; None where there is none."""
    if where is None:
        yield None
        return
    with open_sink(where, _SCHEMA, safe_csv=safe_csv) as sink:
        sink.write(pa.RecordBatch.from_pylist([], schema=_SCHEMA))
        yield sink


def set_aside(sink: Sink, bad: BadRows, origin: Origin, records: pa.RecordBatch) -> None:
    """Write bad rows as they were: lines of a text, or else all cells as JSON."""
    places = bad.places
    written = origin.written(places.tolist())
    if written is None:
        plain = plain_records(pa.Table.from_batches([records.take(pa.array(places))]))
        lines = pa.nulls(len(places), pa.int64())
        texts = pa.array([json.dumps(one, ensure_ascii=False) for one in plain], pa.string())
    else:
        lines = pa.array([one.line for one in written], pa.int64())
        texts = pa.array([one.text for one in written], pa.string())
    columns = [pa.repeat(origin.source, len(places)), lines, pa.array(places + origin.first_row),
               bad.reasons.take(pa.array(places)), texts]  # fmt: skip
    sink.write(pa.record_batch(columns, schema=_SCHEMA))
