"""The protocol that all methods share: sizes, repeated splits, and the same rows in the forms that methods take.

A split holds out 25 % of the rows, stratified. Of the others a stratified sample of a size is fitted on, of the
held-out ones at most 10,000 are scored. A cell of the study is a table at a size, a seed and a method.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.quality.tables import Column, Table
from benchmarks.studies.cells import TEST_SHARE, hold_out
from qmedoid.arrays import Array, Codes, Flags

Seeds = Literal["report", "third", "second", "first", "tuning"]
FIRST_SEED: dict[Seeds, int] = {"report": 60, "third": 40, "second": 20, "first": 0, "tuning": 100}
"""Splits of seed 60 and up are reported and never tuned on, as those of seed 0, 20 and 40 and up were by earlier
recipes; those of seed 100 and up are there to be looked at."""
SIZES = (1_000, 4_000, 20_000, 100_000)
LEAST = {1_000: 0, 4_000: 2_000, 20_000: 10_000, 100_000: 50_000}
"""Rows that a table must have beside its test rows to take part at a size; where it has fewer than the size, it is
fitted on all of them."""
SPLITS = {1_000: 3, 4_000: 3, 20_000: 2, 100_000: 1}
MAX_TEST = 10_000
MISSING = "missing"
"""The level of a category that is empty."""


class Split(NamedTuple):
    """Row numbers of a table that are fitted on and scored."""

    fit: Codes
    test: Codes


def takes_part(table: Table, size: int) -> bool:
    """Whether a table has rows enough for a size."""
    return int((1.0 - TEST_SHARE) * len(table)) >= LEAST[size]


def make_split(y: Codes, size: int, seed: int) -> Split:
    """The split of a seed at a size."""
    rest, test = hold_out(y, seed)
    return Split(_at_most(size, rest, y, seed), _at_most(MAX_TEST, test, y, seed))


def _at_most(n: int, rows: Codes, y: Codes, seed: int) -> Codes:
    if len(rows) <= n:
        return rows
    kept, _ = train_test_split(rows, train_size=n, stratify=y[rows], random_state=seed)
    return np.asarray(kept)


class Pair(NamedTuple):
    """The fit rows and the test rows in one form."""

    fit: Array
    test: Array


@dataclass(frozen=True, eq=False)
class Rows:
    """A split of a table.

    Attributes
    ----------
    fit, test : dict of str to Column
        The table as it is.
    y, y_test : ndarray of shape (n,) and (n_test,)
    n_classes : int
    """

    fit: dict[str, Column]
    test: dict[str, Column]
    y: Codes
    y_test: Codes
    n_classes: int

    @cached_property
    def is_category(self) -> Flags:
        """Which columns are categories, shape (M,)."""
        return np.array([column.dtype == object for column in self.fit.values()])

    @cached_property
    def words(self) -> tuple[dict[str, Column], dict[str, Column]]:
        """Columns as they are, with a word for cells of categories that are empty."""
        return {name: _filled(own) for name, own in self.fit.items()}, {
            name: _filled(own) for name, own in self.test.items()
        }

    @cached_property
    def coded(self) -> Pair:
        """Numbers as they are and categories as codes of their levels; what is missing or not among them is NaN."""
        fit, test = self.words
        pairs = [_coded(fit[name], test[name]) for name in fit]
        return Pair(*(np.column_stack(side) for side in zip(*pairs, strict=True)))

    @cached_property
    def one_hot(self) -> Pair:
        """One column per level (two levels are one column); missing numbers as the median, with an indicator."""
        fit, test = self.words
        pairs = [_encode(fit[name], test[name]) for name in fit]
        return Pair(*(np.column_stack([part for pair in pairs for part in pair[side]]) for side in (0, 1)))


def split_rows(table: Table, size: int, seed: int) -> Rows:
    """A split of a table."""
    rows = make_split(table.y, size, seed)
    fit, test = ({name: column[own] for name, column in table.columns.items()} for own in rows)
    return Rows(fit, test, table.y[rows.fit], table.y[rows.test], len(table.class_names))


known_rows = lru_cache(1)(split_rows)  # the methods of a split run one after another


def _filled(column: Column) -> Column:
    if column.dtype != object:
        return column
    return np.array([MISSING if cell is None else cell for cell in column], dtype=object)


def _coded(fit: Column, test: Column) -> tuple[Array, Array]:
    if fit.dtype != object:
        return fit, test
    code = {level: float(place) for place, level in enumerate(sorted(set(fit)))}
    known, new = (np.array([code.get(cell, np.nan) for cell in column]) for column in (fit, test))
    return known, new


def _encode(fit: Column, test: Column) -> tuple[list[Array], list[Array]]:
    """The columns that one column becomes, for the fit rows and for the test rows."""
    if fit.dtype == object:
        levels = sorted(set(fit))
        kept = levels[1:] if len(levels) <= 2 else levels
        return [(fit == level).astype(float) for level in kept], [(test == level).astype(float) for level in kept]
    gone, gone_in_test = np.isnan(fit), np.isnan(test)
    if not (gone.any() or gone_in_test.any()):
        return [fit], [test]
    median = float(np.nanmedian(fit))
    filled = [np.where(gone, median, fit)], [np.where(gone_in_test, median, test)]
    if gone.any():  # a column that is empty in test rows alone has nothing to learn from
        filled[0].append(gone.astype(float))
        filled[1].append(gone_in_test.astype(float))
    return filled
