"""Contract, encodings, classes and medoid rows of a model, as they are written and read.

All encodings together have the arrays ``encoding.fills`` (of numbers and parts of dates, in the order of the columns),
``encoding.values`` (of the levels, row by row) and ``encoding.texts``, the levels as UTF-8, where level i begins at
``encoding.offsets[i]``.
"""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from qmedoid.exceptions import ModelError
from qmedoid.fields import Arrays, Fields, RefusedError, Shelf, floats, plain, restored, shown, whole
from qmedoid.model.contract import (
    DATE_PARTS,
    KINDS,
    Column,
    Contract,
    DatePart,
    Dates,
    Encoding,
    Kind,
    Label,
    Levels,
    Numbers,
    is_spelling,
)
from qmedoid.model.table import Record

_ENCODING_TYPES = ("numbers", "dates", "levels")
# The encoding that the columns of each kind have: what applies one relies on it.
_TYPE_OF: dict[Kind, str] = {"number": "numbers", "boolean": "numbers", "date": "dates", "category": "levels"}
_MOST = 2**31
_CELLS = {type(None), bool, int, float, str}


def write_contract(contract: Contract) -> dict[str, Any]:
    """A contract for the manifest."""
    columns = [
        {
            "name": plain(column.name, "the name of a column"),
            "kind": column.kind,
            "missing": bool(column.missing),
            "levels": plain(column.levels, f"levels of column {column.name!r}"),
            "is_open": bool(column.is_open),
            "spelling": column.spelling,
        }
        for column in contract.columns
    ]
    return {
        "columns": columns,
        "target": plain(contract.target, "target"),
        "left_out": plain(contract.left_out, "left_out"),
    }


def write_encodings(encodings: Sequence[Encoding], arrays: Arrays) -> list[dict[str, Any]]:
    """Encodings for the manifest; their arrays are added."""
    entries: list[dict[str, Any]] = []
    fills, values, levels = [], [], []
    for encoding in encodings:
        match encoding:
            case Numbers():
                fills.append(np.array([encoding.fill], dtype=np.float64))
                entries.append({"type": "numbers", "indicator": bool(encoding.indicator)})
            case Dates():
                fills.append(floats(encoding.fills))
                entries.append({"type": "dates", "parts": list(encoding.parts), "indicator": bool(encoding.indicator)})
            case Levels():
                levels += [plain(level, "a level").encode() for level in encoding.levels]
                values.append(floats(encoding.values).ravel())
                outputs = plain(encoding.outputs, "outputs of a category")
                entries.append({"type": "levels", "count": len(encoding.levels), "outputs": outputs})
    arrays["encoding.fills"] = np.concatenate([np.zeros(0), *fills])
    arrays["encoding.values"] = np.concatenate([np.zeros(0), *values])
    arrays["encoding.texts"] = np.frombuffer(b"".join(levels), dtype=np.uint8)
    arrays["encoding.offsets"] = whole([0, *accumulate(map(len, levels))])
    return entries


def write_rows(records: Sequence[Record]) -> dict[str, Any]:
    """The medoids of a model as rows."""
    columns = list(records[0]) if records else []
    for record in records:
        if list(record) != columns:
            raise ModelError("The medoids kept as rows must all have the same columns in the same order.")
    cells = [plain(list(record.values()), "a medoid's row") for record in records]
    return {"columns": plain(columns, "columns of the medoids"), "rows": cells}


def read_contract(value: Any) -> Contract:
    """The columns, the target and the columns that were left out."""
    fields = Fields(value, "contract", ("columns", "target", "left_out"))
    columns = tuple(_column(entry, f"contract.columns[{i}]") for i, entry in enumerate(fields.list("columns")))
    if not columns:
        raise RefusedError("contract.columns is empty")
    _check_unique([column.name for column in columns], "contract.columns", "name")
    target = None if fields.raw("target") is None else fields.text("target")
    left_out = fields.mapping("left_out")
    if not all(isinstance(reason, str) for reason in left_out.values()):
        raise RefusedError("contract.left_out must give a text for every column")
    return Contract(columns, target, left_out)


def read_encodings(entries: Any, contract: Contract, shelf: Shelf) -> tuple[Encoding, ...]:
    """One encoding for each column of the contract."""
    if not isinstance(entries, list) or len(entries) != len(contract.columns):
        raise RefusedError(f"encodings must be a list with one entry for each of the {len(contract.columns)} columns")
    described = [
        _encoding_fields(entry, f"encodings[{i}]", column)
        for i, (entry, column) in enumerate(zip(entries, contract.columns, strict=True))
    ]
    sizes = [_sizes(fields, type_) for type_, fields in described]
    n_fills, n_levels, n_values = (sum(size[part] for size in sizes) for part in range(3))
    fills = shelf.floats("encoding.fills", n_fills, nan=True)
    values = shelf.floats("encoding.values", n_values, nan=True)
    levels = _level_texts(shelf, n_levels)
    encodings: list[Encoding] = []
    fill = level = value = 0
    for (type_, fields), (own_fills, own_levels, own_values) in zip(described, sizes, strict=True):
        if type_ == "numbers":
            encodings.append(Numbers(float(fills[fill]), fields.flag("indicator")))
        elif type_ == "dates":
            encodings.append(Dates(_parts(fields), fills[fill : fill + own_fills].copy(), fields.flag("indicator")))
        else:
            outputs = fields.texts("outputs")
            table = values[value : value + own_values].reshape(own_levels + 2, len(outputs)).copy()
            texts = levels[level : level + own_levels]
            if any(a >= b for a, b in pairwise(texts)):
                raise RefusedError(f"{fields.where} has levels that do not ascend")
            encodings.append(Levels(texts, table, outputs))
        fill, level, value = fill + own_fills, level + own_levels, value + own_values
    return tuple(encodings)


def read_classes(values: Any) -> tuple[Label, ...]:
    """At least two different labels."""
    if not isinstance(values, list) or len(values) < 2:
        raise RefusedError("classes must be a list of at least 2 labels")
    for value in values:
        if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
            raise RefusedError(f"classes must be texts, numbers or truth values, and hold {shown(value)}")
    kinds = {str if isinstance(value, str) else bool if isinstance(value, bool) else float for value in values}
    if len(kinds) > 1:
        raise RefusedError("classes must be all texts, all numbers or all truth values, and are a mixture")
    _check_unique([value for value in values if isinstance(value, str)], "classes", "label")
    # Sorted, because different numbers can be made to collide in a set.
    numbers = sorted(value for value in values if not isinstance(value, str))
    if any(a == b for a, b in pairwise(numbers)):
        raise RefusedError("classes has a label twice")
    return tuple(values)


def read_rows(value: Any, counts: list[int]) -> tuple[tuple[Record, ...], ...]:
    """For each model its medoids as rows: all of them, or none where they were not kept."""
    if not isinstance(value, list) or len(value) != len(counts):
        raise RefusedError(f"it must be a list with one entry for each of the {len(counts)} models")
    return tuple(_records(entry, f"[{i}]", count) for i, (entry, count) in enumerate(zip(value, counts, strict=True)))


def _records(entry: Any, where: str, count: int) -> tuple[Record, ...]:
    fields = Fields(entry, where, ("columns", "rows"))
    columns, rows = fields.texts("columns"), fields.list("rows")
    _check_unique(list(columns), f"{where}.columns", "name")
    if len(rows) not in (0, count):
        raise RefusedError(f"{where} must hold {count} rows, one for each medoid, or none, and holds {len(rows)}")
    records = []
    for row in rows:
        if not isinstance(row, list) or len(row) != len(columns):
            raise RefusedError(f"{where} holds a row that has not one cell for each of its {len(columns)} columns")
        cells = row if set(map(type, row)) <= _CELLS else restored(row)
        if not set(map(type, cells)) <= _CELLS:
            raise RefusedError(f"{where} holds a cell that is neither text, number, truth value nor null")
        records.append(dict(zip(columns, cells, strict=True)))
    return tuple(records)


def _column(entry: Any, where: str) -> Column:
    fields = Fields(entry, where, ("name", "kind", "missing", "levels", "is_open", "spelling"))
    kind, levels, is_open = fields.choice("kind", KINDS), fields.texts("levels"), fields.flag("is_open")
    if levels and kind != "category":
        raise RefusedError(f"{where} has levels, and is a {kind}")
    if is_open and kind == "boolean":
        raise RefusedError(f"{where} is open, and is a {kind}")
    spelling = fields.text("spelling")
    if not is_spelling(kind, spelling):
        raise RefusedError(f"{where}.spelling is {shown(spelling)}, which is none of a {kind}")
    _check_unique(list(levels), f"{where}.levels", "text")
    return Column(fields.text("name"), kind, fields.flag("missing"), levels, is_open, spelling)


def _encoding_fields(entry: Any, where: str, column: Column) -> tuple[str, Fields]:
    type_ = entry.get("type") if isinstance(entry, dict) else None
    own = {"numbers": ("indicator",), "dates": ("parts", "indicator"), "levels": ("count", "outputs")}
    names = own.get(type_, ()) if isinstance(type_, str) else ()
    fields = Fields(entry, where, ("type", *names))
    if fields.choice("type", _ENCODING_TYPES) != _TYPE_OF[column.kind]:
        raise RefusedError(f"{where} is of type {type_!r}, and the column is a {column.kind}")
    return _TYPE_OF[column.kind], fields


def _sizes(fields: Fields, type_: str) -> tuple[int, int, int]:
    """How many fills, levels and values an encoding has."""
    if type_ == "numbers":
        return 1, 0, 0
    if type_ == "dates":
        return len(_parts(fields)), 0, 0
    count, outputs = fields.whole("count", 0, _MOST), fields.texts("outputs")
    if not outputs:
        raise RefusedError(f"{fields.where}.outputs is empty")
    return 0, count, (count + 2) * len(outputs)


def _parts(fields: Fields) -> tuple[DatePart, ...]:
    texts = fields.texts("parts")
    parts = tuple(part for part in DATE_PARTS if part in texts)
    if not texts or set(texts) != set(parts) or len(texts) != len(parts):
        raise RefusedError(f"{fields.where}.parts must be some of {list(DATE_PARTS)}, each once")
    return tuple(sorted(parts, key=texts.index))


def _level_texts(shelf: Shelf, count: int) -> tuple[str, ...]:
    content = shelf.bytes("encoding.texts")
    offsets = shelf.offsets("encoding.offsets", count, len(content), step=0).tolist()
    try:
        return tuple(content[a:b].decode() for a, b in pairwise(offsets))
    except UnicodeDecodeError:
        raise RefusedError("array 'encoding.texts' holds a level that is not UTF-8") from None


def _check_unique(values: list[str], where: str, what: str) -> None:
    if len(set(values)) != len(values):
        raise RefusedError(f"{where} has a {what} twice")
