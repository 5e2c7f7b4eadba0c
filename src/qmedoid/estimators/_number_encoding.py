"""Encodings of columns of numbers: the median is filled in, and missing cells, if any, have an indicator."""

import numpy as np

from qmedoid.arrays import Array, Flags
from qmedoid.model.contract import Numbers
from qmedoid.tables.number_blocks import usable


def fit_number(values: Array, missing: bool) -> Numbers:
    """The encoding of a column of numbers."""
    return Numbers(float(np.median(values[usable(values)])), indicator=missing)


def fit_number_block(values: Array, missing: Flags) -> tuple[Numbers, ...]:
    """The same for every column of a block, shape (n, k)."""
    is_number = usable(values).all(axis=0)
    fills = np.empty(values.shape[1])
    fills[is_number] = np.median(values[:, is_number], axis=0)
    for column in np.flatnonzero(~is_number):
        fills[column] = fit_number(values[:, column], True).fill
    return tuple(map(Numbers, fills.tolist(), missing.tolist()))


def encode_number_block(values: Array, encodings: tuple[Numbers, ...]) -> tuple[Array, Array]:
    """A block of columns as numbers, (n, k), and the indicators of all."""
    absent = ~usable(values)
    if absent.any():
        values = np.where(absent, [encoding.fill for encoding in encodings], values)
    return values, absent.astype(np.float64)
