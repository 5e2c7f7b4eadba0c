"""Splits in the proportions of the paper, and cells: a method on a split of a data set.

25 % of the rows are for the test, then 25 % of the rest for validation: random within the classes (`paper_split`, as in
the paper), in the order of time (`time_split`), or with equal rows kept together (`grouped_split`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Codes
from qmedoid.datasets import Dataset
from qmedoid.exceptions import DataError

SplitKind = Literal["random", "time", "grouped"]
TEST_SHARE = 0.25
"""Share of the test rows, and of the validation rows among the others."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that multiplying by it modulo 2⁶⁴ loses nothing; its bits are those of the golden ratio."""


Result = dict[str, Any]
"""Plain numbers, strings, lists and dictionaries: what JSON can hold."""


@dataclass(frozen=True, order=True)
class Cell:
    """One fit and its metrics: a method on the split of a kind and seed, which is the seed of the method, too.

    `part` is the part of a study, with methods and a protocol for all its data sets.
    """

    part: str
    data: str
    split: SplitKind
    seed: int
    method: str

    def __str__(self) -> str:
        return f"{self.data}, {self.method}, {self.split} split {self.seed}"


@dataclass(frozen=True)
class StudyMethod:
    """How a method is fitted on the kinds of splits that it is for, and its rough time on one core.

    `run` (data, cell, **settings) is a function of a module, so that other processes find it, and its settings are what
    JSON can hold. Both are part of the key, with what the module imports: plain classifiers are run by modules that do
    not import ours, and keep their results while ours change.
    """

    run: Callable[..., Result]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 1.0
    splits: tuple[SplitKind, ...] = ("random",)


class Split(NamedTuple):
    """Row numbers of the three parts of a table."""

    train: Codes
    val: Codes
    test: Codes

    @property
    def fit(self) -> Codes:
        """Training and validation rows together, for methods that need no validation split."""
        return np.concatenate([self.train, self.val])


def split_of(data: Dataset, kind: SplitKind, seed: int) -> Split:
    """A split of a kind."""
    if kind == "time":
        if data.times is None:
            raise DataError(f"The data set {data.name!r} has no times to split it by.")
        return time_split(data.times)
    return grouped_split(data.X, data.y, seed) if kind == "grouped" else paper_split(data.y, seed)


def hold_out(y: npt.NDArray[Any], seed: int) -> tuple[Codes, Codes]:
    """Row numbers of a stratified split into rows to fit on and test rows."""
    from sklearn.model_selection import train_test_split  # a process that loads results alone need not wait for it

    rest, test = train_test_split(np.arange(len(y)), test_size=TEST_SHARE, stratify=y, random_state=seed)
    return rest, test


def paper_split(y: npt.NDArray[Any], seed: int) -> Split:
    """A stratified split for one seed."""
    rest, test = hold_out(y, seed)
    train, val = hold_out(y[rest], seed)
    return Split(rest[train], rest[val], test)


def time_split(times: npt.ArrayLike) -> Split:
    """The latest rows for the test, the latest of the rest for validation: what a model meets once it is in use.

    The parts are as large as those of `paper_split`, and in the order of time; rows of one time stay in the order of
    the table.
    """
    seconds = np.asarray(times, dtype=np.float64)
    if seconds.ndim != 1 or len(seconds) < 3 or not np.isfinite(seconds).all():
        raise DataError(
            f"A split by time needs one finite time per row, of three rows or more. Got an array of shape "
            f"{seconds.shape} with {np.count_nonzero(~np.isfinite(seconds)):,} values that are not finite."
        )
    order = np.argsort(seconds, kind="stable")
    n_rest = len(order) - ceil(TEST_SHARE * len(order))
    n_train = n_rest - ceil(TEST_SHARE * n_rest)
    return Split(order[:n_train], order[n_train:n_rest], order[n_rest:])


def grouped_split(X: npt.ArrayLike, y: npt.NDArray[Any], seed: int) -> Split:
    """A stratified split in which equal rows are always in one part, so that no test row was seen in training.

    Within a class the groups of equal rows are put in random order and cut where their rows reach the shares of
    `paper_split`: a cut is off by at most half of the group it falls on, and without equal rows the sizes are the
    same. A group with labels of several classes counts to the rarest of them. The rows of a part are in the order of
    the table, and which rows they are does not depend on that order.
    """
    groups = duplicate_groups(X)
    if len(groups) != len(y):
        raise DataError(f"A split needs a label for each row. Got {len(groups):,} rows and {len(y):,} labels.")
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    rarity = np.argsort(np.argsort(-counts, kind="stable"))  # 0 for the most frequent class
    classes = np.zeros(groups.max() + 1, dtype=np.intp)
    np.maximum.at(classes, groups, rarity[codes])
    sizes = np.bincount(groups)
    shares = [np.bincount(classes[groups[rows]], minlength=len(counts)) for rows in paper_split(classes[groups], seed)]
    generator = np.random.default_rng(seed)
    part_of = np.empty(len(sizes), dtype=np.intp)
    for code in range(len(counts)):
        order = generator.permutation(np.flatnonzero(classes == code))
        middles = np.cumsum(sizes[order]) - sizes[order] / 2
        cuts = np.cumsum([share[code] for share in shares[:2]])
        part_of[order] = np.searchsorted(cuts, middles, side="right")
    parts = part_of[groups]
    return Split(*(np.flatnonzero(parts == part) for part in range(3)))


def duplicate_groups(X: npt.ArrayLike) -> Codes:
    """Numbers 0, 1, … such that rows have the same number if and only if all their columns are equal.

    Zeros are equal whatever their sign, and so are missing values. A row's number depends on what is in the table, not
    on the order of its rows.
    """
    values = np.ascontiguousarray(X, dtype=np.float64) + 0.0  # −0 + 0 is 0
    if values.ndim != 2 or values.size == 0:
        raise DataError(f"Equal rows are looked for in a table of numbers that is not empty. Got shape {values.shape}.")
    values[np.isnan(values)] = np.nan  # one pattern of bits for all of them
    bits = values.view(np.uint64)
    _, first, groups = np.unique(_mixed(bits), return_index=True, return_inverse=True)
    if not np.array_equal(bits, bits[first[groups]]):  # two rows of one hash: compare the rows themselves
        whole = bits.view(np.dtype((np.void, bits.shape[1] * bits.itemsize))).ravel()
        _, groups = np.unique(whole, return_inverse=True)
    return groups.astype(np.intp, copy=False)


def _mixed(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A hash of every row: round numbers differ in their high bits alone, which the shift brings to the low ones."""
    hashes = np.full(len(bits), _ODD)
    for column in bits.T:
        hashes ^= column
        hashes *= _ODD
        hashes ^= hashes >> np.uint64(32)
    return hashes
