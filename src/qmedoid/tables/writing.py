"""Results to a file, by one atomic replace, or to standard output; and rows that a model cannot decide about."""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyarrow import types

from qmedoid.arrays import Flags
from qmedoid.exceptions import ParameterError, QMedoidError
from qmedoid.model.contract import Column, Encoding, Numbers
from qmedoid.model.model import Model
from qmedoid.model.storage.atomic import atomic_file, would_be_lost
from qmedoid.tables import cells
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import as_text
from qmedoid.tables.difference import Issues
from qmedoid.tables.encode import count_wrong, read_column
from qmedoid.tables.source import TableSource, find_files, open_table

TEXT_SUFFIXES = (".csv", ".csv.gz", ".tsv")
SUFFIXES = (*TEXT_SUFFIXES, ".parquet", ".pq", ".feather", ".arrow")
"""Endings of the files that can be written."""

_RESULTS = frozenset(("prediction", "score", "margin", "decided_by"))
"""Columns that the results of every model have."""

# What a spreadsheet takes for the beginning of a formula, unless the cell is a plain number, however it is written.
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
_NUMBER = r"^(-|[+-]?(\d[\d.,]*|[.,]\d+)([eE][+-]?\d+)?)$"

# Types whose cells Arrow writes as CSV.
_NUMBERS = (types.is_integer, types.is_floating, types.is_decimal)
_TIMES = (types.is_date, types.is_time, types.is_timestamp, types.is_duration)
_WRITTEN = (*_NUMBERS, *_TIMES, types.is_string, types.is_large_string, types.is_boolean, types.is_null)
# Rows of a row group of Parquet.
_GROUP_ROWS = 2**18


Write = Callable[[pa.RecordBatch], object]
"""Takes one batch of rows after the other."""


def check_output(
    out: str, table: str | None = None, *, force: bool = False, columns: Collection[str] = _RESULTS
) -> None:
    """Refuse an output before any work is done: an ending that says no format, a folder that does not exist.

    Results about a table must not replace the table itself nor, unless forced, a file that holds no results, which have
    at least these columns.
    """
    file = Path(out)
    if out == "-":
        return
    if not out.lower().endswith(SUFFIXES):
        raise ParameterError(
            f"The output {out!r} must end in one of {', '.join(SUFFIXES)}, or be '-' for CSV on standard output."
        )
    if not file.absolute().parent.is_dir():
        raise ParameterError(f"The folder of the output {out!r} does not exist: make it first.")
    if table is None or not file.is_file():
        return
    if table != "-" and any(file.samefile(one) for one in find_files(table)):
        raise ParameterError(f"The output {out!r} is the table itself, which would be lost. Give another output.")
    if force or file.stat().st_size == 0:
        return
    try:
        with open_table(out) as source:
            is_result = set(source.names) >= set(columns)
    except QMedoidError:
        is_result = False
    if not is_result:
        raise would_be_lost(out)


@contextmanager
def open_sink(
    where: str,
    schema: pa.Schema,
    *,
    safe_csv: bool = True,
    harmless: Collection[str] = (),
    facts: Callable[[], Mapping[str, str]] | None = None,
) -> Iterator[Write]:
    """Write rows of a schema to a file by its ending, or as CSV to standard output (``"-"``).

    With `safe_csv`, texts in CSV that a spreadsheet would run as a formula get an apostrophe before them; `harmless`
    columns are known to hold none. `facts` are asked when all rows are written, and kept in the foot of a Parquet file.
    """
    ending = where.lower()
    with ExitStack() as stack:
        file: Any = sys.stdout.buffer if where == "-" else stack.enter_context(atomic_file(Path(where)))
        if ending.endswith((".parquet", ".pq")):
            yield from _parquet(file, schema, facts)
        elif ending.endswith((".feather", ".arrow")):
            yield stack.enter_context(pa.ipc.new_file(file, schema)).write
        else:
            if ending.endswith(".gz"):
                file = stack.enter_context(pa.CompressedOutputStream(file, "gzip"))
            delimiter = "\t" if ending.endswith(".tsv") else ","
            yield from _csv(file, schema, delimiter, harmless if safe_csv else schema.names)
    if where == "-":
        sys.stdout.buffer.flush()


def _parquet(file: Any, schema: pa.Schema, facts: Callable[[], Mapping[str, str]] | None) -> Iterator[Write]:
    """Batches gathered to row groups of a size that is good to read."""
    from pyarrow.parquet import ParquetWriter

    # Probabilities and margins hardly repeat: a dictionary of them, or packing, costs time and gains nothing.
    floats = [field.name for field in schema if pa.types.is_floating(field.type)]
    others = [name for name in schema.names if name not in floats]
    packing = {name: "NONE" if name in floats else "SNAPPY" for name in schema.names}
    waiting = list[pa.RecordBatch]()

    def write(batch: pa.RecordBatch) -> None:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _GROUP_ROWS:
            flush()

    def flush() -> None:
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting))
            waiting.clear()

    with ParquetWriter(file, schema, use_dictionary=others, compression=packing, write_statistics=others) as writer:
        yield write
        flush()
        if facts is not None:
            writer.add_key_value_metadata(dict(facts()))


def _csv(file: Any, schema: pa.Schema, delimiter: str, exempt: Collection[str]) -> Iterator[Write]:
    """Batches as CSV, with texts made safe except in the columns that are `exempt`."""
    from pyarrow.csv import CSVWriter, WriteOptions

    # Without Arrow's functions, whose import takes longer than to score a thousand rows.
    risky = {name for name in schema.names if re.search(_FORMULA, name) and not re.search(_NUMBER, name)}
    names = [f"'{name}" if name in risky.difference(exempt) else name for name in schema.names]
    # Arrow writes bytes as well, but not safely.
    kinds = [kind if any(holds(kind) for holds in _WRITTEN) else pa.string() for kind in schema.types]
    written, texts = pa.schema(list(zip(names, kinds, strict=True))), (pa.string(), pa.large_string())
    guarded = [kind in texts and name not in exempt for name, kind in zip(schema.names, kinds, strict=True)]

    def write(batch: pa.RecordBatch) -> None:
        columns = [
            column if column.type == kind else as_text(column)
            for column, kind in zip(batch.columns, kinds, strict=True)
        ]
        columns = [_safe(column) if guard else column for column, guard in zip(columns, guarded, strict=True)]
        writer.write_batch(pa.record_batch(columns, schema=written))

    with CSVWriter(file, written, write_options=WriteOptions(delimiter=delimiter, quoting_style="needed")) as writer:
        yield write


def _safe(texts: pa.Array) -> pa.Array:
    """Texts with an apostrophe before those that a spreadsheet would run."""
    import pyarrow.compute as pc

    risky = pc.and_not(pc.match_substring_regex(texts, _FORMULA), pc.match_substring_regex(texts, _NUMBER))
    if not pc.any(risky).as_py():
        return texts
    quoted = pc.binary_join_element_wise("'", texts, "")
    return pc.if_else(risky, quoted, texts)


OnBadRow = Literal["refuse", "flag", "skip"]
"""What becomes of rows that cannot be decided about: the table is refused, they have no results, or are left out."""
NAMES = ("file", "line", "row", "reason", "record")
"""Columns of a file of rows that were set aside."""
_SCHEMA = pa.schema(list(zip(NAMES, (pa.string(), pa.int64(), pa.int64(), pa.string(), pa.string()), strict=True)))
_NOUNS = {"number": "number", "boolean": "truth value", "date": "date"}
# Characters of a cell that are shown.
_LONGEST = 40


def find_bad_rows(
    model: Model, batch: pa.RecordBatch | pa.Table, issues: Issues, malformed: Mapping[int, str] | None = None
) -> pa.Array | None:
    """Why rows of a batch are bad, null for good ones; None if all are good.

    Bad is a cell that is not of its kind, infinite or too large, or that cannot be filled in.

    Records that are `malformed`, by place and reason, are bad as well. What a model tolerates is not: unseen levels,
    missing cells that it fills in, and cells of another kind in columns that had some in training. Texts of a column
    whose spelling is in doubt are counted in `issues`, so that the table is refused: it is not known what its other
    cells mean.
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
    return cells.joined_texts(said, "; ") if said else None


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
        import pyarrow.compute as pc

        text = cells.texts(given)
        missing = text.is_null()
        if column.kind == "number":
            missing = pc.or_(missing, pc.fill_null(pc.match_substring_regex(text, "^(?i:[+-]?nan)$"), True))
        is_wrong = absent & ~missing.to_numpy(zero_copy_only=False)
        in_doubt = _in_doubt(given, column, wrong)
        if len(in_doubt):
            count_wrong(column, wrong, in_doubt, issues)
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

    from qmedoid.tables.text_kinds import POINT_MARK, in_other_spelling

    if column.spelling or column.kind != "number":
        return in_other_spelling(wrong, column) if column.kind in ("number", "date") else wrong.slice(0, 0)
    # Those with doubtful points come after all that are no numbers.
    n_no_numbers = len(cells.read(given, "number").wrong)
    marked = wrong.filter(pc.ends_with(wrong, POINT_MARK))
    return pa.concat_arrays([wrong.slice(n_no_numbers), marked])


def _quoted(name: str, given: pa.Array | pa.ChunkedArray, places: Flags, what: str) -> pa.Array:
    """What is wrong with some cells, each quoted."""
    import pyarrow.compute as pc

    array = cells.decoded(given).filter(pa.array(places))
    text = pc.utf8_slice_codeunits(cells.as_text(array).cast(pa.string()), 0, _LONGEST)
    return pc.binary_join_element_wise(f"{name}: '", text, f"' {what}", "")


def _scattered(places: Flags, texts: pa.Array) -> pa.Array:
    """Texts at their places, null elsewhere."""
    return texts.take(pa.array(np.cumsum(places) - 1, mask=~places))


@contextmanager
def bad_rows_sink(where: str, *, safe_csv: bool) -> Iterator[Callable[[pa.Array, TableSource, pa.RecordBatch], None]]:
    """Write bad rows as they were, lines of a text, or else all cells as JSON, atomically.

    What is given takes the reasons about the last batch of a source, the source, and the records.
    """
    with open_sink(where, _SCHEMA, safe_csv=safe_csv) as write:

        def set_aside(bad: pa.Array, source: TableSource, records: pa.RecordBatch) -> None:
            places = np.flatnonzero(bad.is_valid())
            written: Sequence[tuple[int | None, str]] | None = source.written(places.tolist())
            if written is None:
                plain = plain_records(pa.Table.from_batches([records.take(pa.array(places))]))
                written = [(None, json.dumps(one, ensure_ascii=False)) for one in plain]
            lines, texts = zip(*written, strict=True)
            arrays = [
                pa.repeat(source.origin[0], len(places)),
                pa.array(lines, pa.int64()),
                pa.array(places + source.origin[1]),
                bad.take(pa.array(places)),
                pa.array(texts, pa.string()),
            ]
            write(pa.record_batch(arrays, schema=_SCHEMA))

        yield set_aside
