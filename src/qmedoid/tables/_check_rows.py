"""What `qmedoid check` looks for across columns: equal rows, equal columns, and columns that give the class away."""

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Flags
from qmedoid.metrics.ranking import roc_auc
from qmedoid.model.contract import Column
from qmedoid.tables import cells

Codes = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]

GIVES_AWAY = 0.99
"""ROC-AUC of one column alone, or its mean recall of more than two classes, that is too good to be true."""
SAMPLE_ROWS = 100_000
"""Rows on which columns are judged alone."""
_FOLDS = 5
_FIRST = 50
"""Cells by which columns are compared before all of them are."""
_BINS, _FEWEST_BINS, _ROWS_PER_BIN = 256, 8, 10
_FEWEST = 10
"""Rows of the smallest class from which on a column is judged alone."""


class RowHashes:
    """A hash of 64 bits for every row, grown column by column; rows of one hash are taken as equal."""

    def __init__(self, n_rows: int) -> None:
        self._hashes: Hashes = np.zeros(n_rows, dtype=np.uint64)

    def add(self, codes: Codes) -> None:
        """Take in the codes of a column (the finalizer of SplitMix64 over their sum with the hash so far)."""
        mixed = self._hashes * np.uint64(0x9E3779B97F4A7C15) + (codes.astype(np.int64) + 2).astype(np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        self._hashes = mixed ^ (mixed >> np.uint64(31))

    def count(self, classes: Codes | None) -> tuple[int, int]:
        """Rows that are equal to an earlier one, and rows that are equal to one of another class."""
        _, places, counts = np.unique(self._hashes, return_inverse=True, return_counts=True)
        repeated = len(places) - len(counts)
        if classes is None or not repeated:
            return repeated, 0
        low = np.full(len(counts), np.iinfo(np.int32).max, dtype=np.int32)
        high = np.full(len(counts), -1, dtype=np.int32)
        np.minimum.at(low, places, classes)
        np.maximum.at(high, places, classes)
        return repeated, int((low < high)[places].sum())


def partition_digest(codes: Codes) -> bytes:
    """A digest of which rows of a column have equal cells, whatever the cells are."""
    return hashlib.blake2b(np.ascontiguousarray(codes).tobytes(), digest_size=16).digest()


def equal_columns(table: pa.Table, digests: Mapping[str, bytes]) -> list[list[str]]:
    """Groups of columns whose cells are equal in every row."""
    alike: dict[tuple[bytes, tuple[str | None, ...]], list[list[str]]] = {}
    for name, digest in digests.items():
        # Columns without a repeated cell have one partition; their first cells tell nearly all of them apart.
        first = tuple(cells.texts(table[name].slice(0, _FIRST)).to_pylist())
        groups = alike.setdefault((digest, first), [])
        own = next((group for group in groups if _same_cells(table[group[0]], table[name])), None)
        if own is None:
            groups.append([name])
        else:
            own.append(name)
    return [group for groups in alike.values() for group in groups if len(group) > 1]


def _same_cells(one: pa.ChunkedArray, two: pa.ChunkedArray) -> bool:
    if one.type == two.type and not pa.types.is_floating(one.type):
        return bool(one.equals(two))
    return bool(cells.texts(one).equals(cells.texts(two)))


def sample_of(n_rows: int) -> npt.NDArray[np.intp]:
    """The rows on which columns are judged alone: all, or a random sample that is always the same."""
    if n_rows <= SAMPLE_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, SAMPLE_ROWS, replace=False))


def can_judge(classes: Codes) -> bool:
    """Whether there are rows enough of every class, and two classes."""
    counts = np.bincount(classes)
    return len(counts) > 1 and int(counts.min()) >= _FEWEST


def judged_alone(column: pa.ChunkedArray, draft: Column, classes: Codes) -> float:
    """How well one column alone separates the classes, out-of-fold, from 0 to 1.

    Cells fall into bins (levels, or at most 256 quantiles of numbers and dates); a row is scored by the class
    frequencies of its bin among the rows of the other folds. Of two classes it is the ROC-AUC of that score, or of the
    number itself where that is larger; of more the mean recall of the most frequent class of the bin.
    """
    values = None if draft.kind == "category" else _values(column, draft)
    bins = _levels(column) if values is None else _quantile_bins(values)
    n_bins, n_classes = int(bins.max()) + 1, int(classes.max()) + 1
    folds = np.random.default_rng(0).permutation(len(bins)) % _FOLDS
    shares = np.bincount(classes, minlength=n_classes) / len(classes)
    scores = np.empty((len(bins), n_classes))
    for fold in range(_FOLDS):
        inside = folds == fold
        other = np.bincount(bins[~inside] * n_classes + classes[~inside], minlength=n_bins * n_classes)
        counts = other.reshape(n_bins, n_classes) + shares
        scores[inside] = (counts / counts.sum(axis=1, keepdims=True))[bins[inside]]
    if n_classes == 2:
        best = roc_auc(classes == 1, scores[:, 1])
        if values is not None and not np.isnan(values).any():
            ranked = roc_auc(classes == 1, values)
            best = max(best, ranked, 1 - ranked)
        return best
    hit = np.bincount(classes[scores.argmax(axis=1) == classes], minlength=n_classes)
    return float((hit / np.bincount(classes, minlength=n_classes)).mean())


def _levels(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The level of every cell, from 0; missing cells have their own."""
    encoded = cells.texts(column).dictionary_encode()
    places = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
    return np.asarray(places, dtype=np.int64)


def _values(column: pa.ChunkedArray, draft: Column) -> Array:
    """Numbers and dates as floats, NaN where they are missing."""
    if draft.kind == "date":
        read = cells.dates(column, draft.spelling).values
        return np.where(np.isnat(read), np.nan, read.astype(np.int64).astype(np.float64))
    given = cells.truths(column) if draft.kind == "boolean" else cells.numbers(column, draft.spelling)
    values = given.values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values) <= cells.LARGEST, values, np.nan)


def _quantile_bins(values: Array) -> npt.NDArray[np.int64]:
    """The bin of every number, from 0: one for each value where they are few, else quantiles; missing ones have one."""
    known = values[~np.isnan(values)]
    edges = np.unique(known)
    most = min(max(len(values) // _ROWS_PER_BIN, _FEWEST_BINS), _BINS)
    if len(edges) > most:
        edges = np.unique(np.quantile(known, np.arange(1, most) / most))
    places = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), len(edges) + 1, places).astype(np.int64)


def missing_in_one_class(missing: Flags, classes: Codes) -> int | None:
    """The class that has all missing cells of a column, where that is no chance (1 in 10,000); else None."""
    n_missing = int(missing.sum())
    counts = np.bincount(classes[missing], minlength=int(classes.max()) + 1)
    code = int(counts.argmax())
    share = float((classes == code).mean())
    if n_missing == 0 or counts[code] < n_missing or share == 1 or n_missing * np.log(share) > np.log(1e-4):
        return None
    return code
