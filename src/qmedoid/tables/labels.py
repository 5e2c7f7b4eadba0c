"""Labels of a target column as class codes of a model, however the file spells them."""

import re
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.exceptions import DataError
from qmedoid.model.contract import Label
from qmedoid.tables._types import shortened

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:[+-]?nan)", re.ASCII)

# Signs of the longest name of a class.
_LONGEST = 1000

UNKNOWN, MISSING = -1, -2
"""Codes of a label that is no class of the model, and of a missing one."""


def rest_label(positive: Label) -> str:
    """The class of all records that are not of the positive one, where that stands against the rest."""
    return f"not {positive}"


def label_codes(column: pa.Array | pa.ChunkedArray, classes: tuple[Label, ...]) -> Codes:
    """The class code of every cell; `UNKNOWN` and `MISSING` where there is none.

    Labels are compared as they are meant: 1, 1.0 and ``"1"`` are one label, and so are true and ``"True"``. A text that
    is written just like a class is of that class, whatever else it might mean.
    """
    if pa.types.is_nested(column.type):
        raise DataError(
            f"A target of type {shortened(str(column.type))} holds no classes. Give a column of names, whole numbers "
            "or truth values."
        )
    places = _places(classes)
    against_rest = len(classes) == 2 and classes[0] == rest_label(classes[1])
    encoded = column.dictionary_encode()
    chunks = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]
    return np.concatenate(
        [np.zeros(0, dtype=np.intp)] + [_chunk_codes(chunk, places, against_rest) for chunk in chunks]
    )


def labeled_rows(column: pa.Array | pa.ChunkedArray) -> Codes:
    """Row numbers of the cells that hold a label at all."""
    return np.flatnonzero(label_codes(column, ()) != MISSING)


def class_labels(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """A target column without missing cells as labels: texts without blanks around them, whole numbers, truth values.

    Raises
    ------
    DataError
        If it holds anything else.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        import pyarrow.compute as pc

        longest = pc.max(pc.utf8_length(column.cast(kind))).as_py() or 0
        if longest > _LONGEST:
            raise DataError(
                f"The target {name!r} holds a text of {longest:,} signs: that names no class. Give a column of names."
            )
        # Nobody means two classes by "yes" and "yes ".
        return pc.utf8_trim_whitespace(column.cast(kind))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return column
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = column.cast(pa.float64())
        found = values.unique().to_pylist()
        fractions = [value for value in found if not (value.is_integer() and abs(value) < 2**53)]
        if not fractions:
            # 1 became 1.0 where a missing cell made a column of floats.
            return values.cast(pa.int64())
        raise DataError(
            f"The target {name!r} holds numbers such as {fractions[0]!r}: a quantity, not classes. Give a column of "
            "names or whole numbers."
        )
    raise DataError(
        f"The target {name!r} is of type {shortened(str(kind))}. Give a column of names, whole numbers or truth values."
    )


def _places(classes: tuple[Label, ...]) -> dict[Any, int]:
    """Codes by the texts of classes, marked as such, and by the spelling that all ways to write one have in common."""
    spellings = [_spelling(label) for label in classes]
    # Where "1" and "01" are classes apart, 1.0 is neither.
    shared = {text: code for code, text in enumerate(spellings) if spellings.count(text) == 1}
    return shared | {("exactly", label): code for code, label in enumerate(classes) if isinstance(label, str)}


def _chunk_codes(chunk: pa.DictionaryArray, places: dict[Any, int], against_rest: bool) -> Codes:
    other = 0 if against_rest else UNKNOWN

    def code(value: Any) -> int:
        if ("exactly", value) in places:
            return places["exactly", value]
        text = "" if value is None else _spelling(value)
        return MISSING if text in ("", "nan") else places.get(text, other)

    codes = [code(value) for value in chunk.dictionary.to_pylist()]
    table = np.array([*codes, MISSING], dtype=np.intp)
    indices = chunk.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
    found: Codes = table[indices]
    return found


def _spelling(value: Any) -> str:
    """One text for all ways to write a label."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in ("true", "false"):
            return text.lower()
        # Not all that Python takes for a number is meant as one: 1_2 is a name.
        if not _NUMBER.fullmatch(text):
            return text
        value = int(text) if text.lstrip("+-").isdecimal() else float(text)
    if isinstance(value, int):
        return str(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
