"""Encodings of columns of numbers: the median is filled in, and missing cells, if any, have an indicator."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.model.contract import Column, Numbers
from qmedoid.tables.cells import is_usable
from qmedoid.tables.number_blocks import number_blocks


def fit_number(values: Array, missing: bool) -> Numbers:
    """The encoding of a column of numbers."""
    return Numbers(float(np.median(values[is_usable(values)])), indicator=missing)


def fit_number_block(values: Array, missing: Flags) -> tuple[Numbers, ...]:
    """The same for every column of a block, shape (n, k)."""
    is_number = is_usable(values).all(axis=0)
    fills = np.empty(values.shape[1])
    fills[is_number] = np.median(values[:, is_number], axis=0)
    for column in np.flatnonzero(~is_number):
        fills[column] = fit_number(values[:, column], True).fill
    return tuple(map(Numbers, fills.tolist(), missing.tolist()))


def encode_number_block(values: Array, encodings: tuple[Numbers, ...]) -> tuple[Array, Array]:
    """A block of columns as numbers, (n, k), and the indicators of all."""
    absent = ~is_usable(values)
    if absent.any():
        values = np.where(absent, [encoding.fill for encoding in encodings], values)
    return values, absent.astype(np.float64)


def fit_plain_numbers(
    table: pa.Table, drafts: Sequence[Column], rows: Codes
) -> tuple[dict[int, Numbers], list[tuple[Codes, Flags, Array, Array]]]:
    """Encodings of columns that are encoded many at a time, by their places; and these, block by block."""
    numbers = np.array([place for place, draft in enumerate(drafts) if draft.kind == "number"], dtype=np.intp)
    encodings, blocks = dict[int, Numbers](), []
    for of_block, values in number_blocks(table, [drafts[place].name for place in numbers]):
        block, values = numbers[of_block], values[rows]
        missing = np.array([drafts[place].missing for place in block])
        fitted = fit_number_block(values, missing)
        encodings.update(zip(block.tolist(), fitted, strict=True))
        blocks.append((block, missing, *encode_number_block(values, fitted)))
    return encodings, blocks
