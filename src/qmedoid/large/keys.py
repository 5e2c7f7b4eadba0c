"""Chance that depends on nothing but a seed and the place of a row, or its content: hashes as uniform numbers."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array

Bits = npt.NDArray[np.uint64]
# Shifts and factors of SplitMix64's finalizer: every bit of what is hashed moves half of the bits of the hash.
_MIXING = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST_SHIFT = np.uint64(31)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MISSING = np.uint64(0x7FF8_0000_0000_0001)


def key_of(*parts: Any) -> np.uint64:
    """A key from plain values."""
    return np.uint64(int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest(), "little"))


def mixed(bits: Bits) -> Bits:
    """Hash of every number, in place."""
    for shift, factor in _MIXING:
        bits ^= bits >> shift
        bits *= factor
    bits ^= bits >> _LAST_SHIFT
    return bits


def uniform(bits: Bits) -> Array:
    """Hashes as numbers from 0 up to, and without, 1."""
    shares: Array = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return shares


def chances(key: np.uint64, first_row: int, n_rows: int) -> Array:
    """The chance of every row by its place in the table, shape (n,)."""
    return uniform(place_hashes(key, np.arange(first_row, first_row + n_rows)))


def place_hashes(key: np.uint64, places: npt.NDArray[np.int64]) -> Bits:
    """The hash of every row by its place in the table, shape (n,)."""
    with np.errstate(over="ignore"):
        return mixed(mixed(places.astype(np.uint64) * _STEP + key) + key)


def content_hashes(key: np.uint64, columns: Sequence[pa.Array | pa.ChunkedArray | npt.NDArray[Any]]) -> Bits:
    """The hash of every row by its cells, shape (n,): rows with equal cells have the same.

    Numbers are compared as numbers, dates as moments, and all else as texts.
    """
    with np.errstate(over="ignore"):
        hashes = np.full(len(columns[0]), key)
        for column in columns:
            hashes = mixed((hashes + _STEP) ^ cell_bits(column))
        return mixed(hashes + key)


def cell_bits(column: pa.Array | pa.ChunkedArray | npt.NDArray[Any]) -> Bits:
    """Every cell as 64 bits, equal for equal cells: of a number its own, of a text those of a hash."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "M":
            return column.astype("M8[us]").astype(np.int64).view(np.uint64)
        values = column.astype(np.float64) + 0.0  # -0.0 is 0
        return np.where(np.isnan(values), _MISSING, values.view(np.uint64))
    encoded = column.dictionary_encode()
    bits = [np.zeros(0, dtype=np.uint64)]
    for chunk in encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]:
        texts = [str(value).encode("utf-8", "surrogatepass") for value in chunk.dictionary.to_pylist()]
        known = [int.from_bytes(blake2b(text, digest_size=8).digest(), "little") for text in texts]
        table = np.array([*known, int(_MISSING)], dtype=np.uint64)
        bits.append(table[chunk.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)])
    return np.concatenate(bits)
