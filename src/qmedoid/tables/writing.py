"""Results to a file, by one atomic replace, or to standard output."""

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from qmedoid.exceptions import ParameterError, QMedoidError
from qmedoid.model.storage.atomic import atomic_file, would_be_lost
from qmedoid.tables.cells import as_text
from qmedoid.tables.source import find_files, open_table

TEXT_SUFFIXES = (".csv", ".csv.gz", ".tsv")
SUFFIXES = (*TEXT_SUFFIXES, ".parquet", ".pq", ".feather", ".arrow")
"""Endings of the files that can be written."""

_RESULTS = frozenset(("prediction", "score", "margin", "decided_by"))
"""Columns that the results of every model have."""

# What a spreadsheet takes for the beginning of a formula, unless the cell is a plain number, however it is written.
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
_NUMBER = r"^(-|[+-]?(\d[\d.,]*|[.,]\d+)([eE][+-]?\d+)?)$"

# Rows of a row group of Parquet.
_GROUP_ROWS = 2**18


class Sink(Protocol):
    """Takes one batch of rows after the other."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch."""


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
) -> Iterator[Sink]:
    """Write rows of a schema to a file by its ending, or as CSV to standard output (``"-"``).

    With `safe_csv`, texts in CSV that a spreadsheet would run as a formula get an apostrophe before them; `harmless`
    columns are known to hold none. `facts` are asked when all rows are written, and kept in the foot of a Parquet file.
    """
    ending = where.lower()
    with ExitStack() as stack:
        file: Any = sys.stdout.buffer if where == "-" else stack.enter_context(atomic_file(Path(where)))
        if ending.endswith((".parquet", ".pq")):
            from pyarrow.parquet import ParquetWriter

            # Probabilities and margins hardly repeat: a dictionary of them, or packing, costs time and gains nothing.
            floats = [field.name for field in schema if pa.types.is_floating(field.type)]
            others = [name for name in schema.names if name not in floats]
            packing = {name: "NONE" if name in floats else "SNAPPY" for name in schema.names}
            writer = stack.enter_context(
                ParquetWriter(file, schema, use_dictionary=others, compression=packing, write_statistics=others)
            )
            groups = _RowGroups(writer)
            yield groups
            groups.flush()
            if facts is not None:
                writer.add_key_value_metadata(dict(facts()))
        elif ending.endswith((".feather", ".arrow")):
            yield stack.enter_context(pa.ipc.new_file(file, schema))
        else:
            if ending.endswith(".gz"):
                file = stack.enter_context(pa.CompressedOutputStream(file, "gzip"))
            sink = _CsvSink(
                file, schema, "\t" if ending.endswith(".tsv") else ",", harmless if safe_csv else schema.names
            )
            with sink.writer:
                yield sink
    if where == "-":
        sys.stdout.buffer.flush()


class _RowGroups:
    """Batches gathered to row groups of a size that is good to read."""

    def __init__(self, writer: Any) -> None:
        self._writer, self._waiting, self._rows = writer, list[pa.RecordBatch](), 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch, and write a row group where there are rows enough."""
        self._waiting.append(batch)
        self._rows += len(batch)
        if self._rows >= _GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
            self._waiting, self._rows = [], 0


class _CsvSink:
    """Batches as CSV, with texts made safe except in the columns that are `exempt`."""

    def __init__(self, file: Any, schema: pa.Schema, delimiter: str, exempt: Collection[str]) -> None:
        from pyarrow.csv import CSVWriter, WriteOptions

        names = [name if name in exempt else _safe_text(name) for name in schema.names]
        types = [kind if _is_plain(kind) else pa.string() for kind in schema.types]
        texts = (pa.string(), pa.large_string())
        self._guarded = [kind in texts and name not in exempt for name, kind in zip(schema.names, types, strict=True)]
        self._schema = pa.schema(list(zip(names, types, strict=True)))
        options = WriteOptions(delimiter=delimiter, quoting_style="needed")
        self.writer = CSVWriter(file, self._schema, write_options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch."""
        columns = [
            column if column.type == field.type else as_text(column)
            for column, field in zip(batch.columns, self._schema, strict=True)
        ]
        columns = [_safe(column) if guarded else column for column, guarded in zip(columns, self._guarded, strict=True)]
        self.writer.write_batch(pa.record_batch(columns, schema=self._schema))


def _is_plain(kind: pa.DataType) -> bool:
    """Whether Arrow writes cells of a type as CSV; bytes too, but not safely."""
    types = pa.types
    is_text = types.is_string(kind) or types.is_large_string(kind)
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    is_time = types.is_temporal(kind) and not types.is_interval(kind)
    return is_text or is_number or is_time or types.is_boolean(kind) or types.is_null(kind)


def _safe(texts: pa.Array) -> pa.Array:
    """Texts with an apostrophe before those that a spreadsheet would run."""
    import pyarrow.compute as pc

    risky = pc.and_not(pc.match_substring_regex(texts, _FORMULA), pc.match_substring_regex(texts, _NUMBER))
    if not pc.any(risky).as_py():
        return texts
    quoted = pc.binary_join_element_wise("'", texts, "")
    return pc.if_else(risky, quoted, texts)


def _safe_text(text: str) -> str:
    """The same for one text, without Arrow's functions, whose import takes longer than to score a thousand rows."""
    return f"'{text}" if re.search(_FORMULA, text) and not re.search(_NUMBER, text) else text
