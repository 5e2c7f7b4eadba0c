"""Labels of a target column as class codes of a model, however the file spells them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.models.contract import Label

Codes = npt.NDArray[np.intp]

UNKNOWN, MISSING = -1, -2
"""Codes of a label that is no class of the model, and of a missing one."""


def rest_label(positive: Label) -> str:
    """The class of all records that are not of the positive one, where that stands against the rest."""
    return f"not {positive}"


def label_codes(column: pa.Array | pa.ChunkedArray, classes: tuple[Label, ...]) -> Codes:
    """The class code of every cell; `UNKNOWN` and `MISSING` where there is none.

    Labels are compared as they are meant: 1, 1.0 and ``"1"`` are one label, and so are true and ``"True"``.
    """
    places = {_spelling(label): code for code, label in enumerate(classes)}
    against_rest = len(classes) == 2 and classes[0] == rest_label(classes[1])
    encoded = column.dictionary_encode()
    chunks = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]
    return np.concatenate(
        [np.zeros(0, dtype=np.intp)] + [_chunk_codes(chunk, places, against_rest) for chunk in chunks]
    )


def _chunk_codes(chunk: pa.DictionaryArray, places: dict[str, int], against_rest: bool) -> Codes:
    spelled = [None if value is None else _spelling(value) for value in chunk.dictionary.to_pylist()]
    other = 0 if against_rest else UNKNOWN
    codes = [MISSING if text in (None, "", "nan") else places.get(str(text), other) for text in spelled]
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
        try:
            value = float(text)
        except ValueError:
            return text
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
