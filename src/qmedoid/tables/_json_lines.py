"""Tables in JSON lines: a record per line, read in blocks of whole lines."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import json

from qmedoid.exceptions import DataError
from qmedoid.tables._bytes import JSON_ADVICE, first_line
from qmedoid.tables._types import common_type

_BLOCK = 1 << 23
_LONGEST = 1 << 26


class JsonLines:
    """Records of a file, one per line.

    Parameters
    ----------
    file : pyarrow.NativeFile
    name : str
        For messages.
    schema : pyarrow.Schema or None
        Of all records; None goes through the file to find it out, with a type for each column that all blocks have in
        common.
    """

    def __init__(self, file: Any, name: str, schema: pa.Schema | None = None) -> None:
        self._file, self._name, self._known = file, name, schema
        self.schema = self._common() if schema is None else schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches of all records in the types of the schema; what a record does not have is missing."""
        for table in self._tables():
            columns = [
                self._cast(table.column(field.name), field) if field.name in table.column_names
                else pa.nulls(table.num_rows, field.type)
                for field in self.schema
            ]  # fmt: skip
            yield from pa.Table.from_arrays(columns, schema=self.schema).to_batches()

    def _cast(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        if column.type == field.type:
            return column
        from qmedoid.tables.cells import as_text

        if pa.types.is_string(field.type):
            return pa.chunked_array([as_text(chunk).cast(pa.string()) for chunk in column.chunks], pa.string())
        return column.cast(field.type)

    def _common(self) -> pa.Schema:
        kinds: dict[str, list[pa.DataType]] = {}
        rows = 0
        for table in self._tables():
            rows += table.num_rows
            for field in table.schema:
                kinds.setdefault(field.name, []).append(field.type)
        if not kinds:
            raise DataError(f"{self._name} has no records: {JSON_ADVICE}")
        if rows == 1 and any(pa.types.is_nested(kind) for found in kinds.values() for kind in found):
            # Columns of lists, or by row numbers, are one record in which all others are.
            raise DataError(f"{self._name} is a JSON document, not JSON lines: {JSON_ADVICE}")
        return pa.schema([(name, common_type(found)) for name, found in kinds.items()])

    def _tables(self) -> Iterator[pa.Table]:
        rest = b""
        while True:
            block = self._file.read(_BLOCK)
            text = rest + block
            end = len(text) if len(block) < _BLOCK else text.rfind(b"\n") + 1
            if end == 0 and len(text) > _LONGEST:
                raise DataError(f"{self._name} has a line of more than {_LONGEST >> 20} MB: {JSON_ADVICE}")
            if text[:end].strip():
                yield self._parsed(text[:end].removeprefix(b"\xef\xbb\xbf"))
            rest = text[end:]
            if len(block) < _BLOCK:
                return

    def _parsed(self, text: bytes) -> pa.Table:
        try:
            return json.read_json(
                pa.BufferReader(text), json.ReadOptions(use_threads=False, block_size=max(len(text), 1))
            )
        except pa.ArrowInvalid as error:
            reason = first_line(error).removeprefix("JSON parse error: ")
            raise DataError(f"{self._name} cannot be read as JSON lines ({reason}): {JSON_ADVICE}") from error
