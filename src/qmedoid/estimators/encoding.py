"""Encodings of columns, fitted with scikit-learn's encoders and kept as plain arrays.

Target statistics of large categories are the share of each class among the rows of a level, and its frequency. They
are cross-fitted, so that training rows look as new rows will: shares come from other folds, frequencies count the other
rows. Folds are dealt so that the rows of a level lie in different ones: a row whose level occurs nowhere else then has
exactly the numbers of a new level.

From `FEW_ROWS` rows on, folds are dealt without a look at the classes: dealt evenly, the other folds lack a row of the
class where the row is of it, and with many categories the class could be read from that. Even so shares know the labels
of other rows of the level: methods that evaluate some rows by others ask `Statistics.fold` for both. Frequencies are
powers of two, as exact ones would name the level.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import gammaln
from sklearn.model_selection import PredefinedSplit
from sklearn.preprocessing import TargetEncoder

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.row_groups import part_of
from qmedoid.model.contract import DATE_PARTS, Column, Dates, Encoding, Levels, Numbers
from qmedoid.tables import cells
from qmedoid.tables.arrow import number_blocks
from qmedoid.tables.encode import date_part, encode_column

CROSS_FITS = 5
"""Folds of the shares: a training row is described by the rows of the other folds."""
FEW_ROWS = 1000
"""Below it, shares are dealt by class and pulled by scikit-learn's encoder."""
ROWS_OF_A_LEVEL = 50
"""With this many in the mean, the shares of a level hardly know a single label, and are the same in every fold."""
_STRENGTHS = 2.0 ** np.arange(11)


class Category(NamedTuple):
    """The cells of a category: a level that is kept, of L, by its place; L is a missing cell, L + 1 a rarer level.

    `counts` are the rows of every level of the column, in the order in which they first occur, and `order` the places
    there of those that are kept: the most frequent, and of equally frequent ones the first to occur.
    """

    levels: tuple[str, ...]
    places: Codes
    counts: Codes
    order: Codes
    max_levels: int

    @classmethod
    def of(cls, given: pa.Array, max_one_hot: int, max_levels: int) -> "Category":
        """The cells of a column."""
        counts = cells.texts(given).drop_null().value_counts()
        names = np.array(counts.field("values").to_pylist(), dtype=object)
        n_rows, n_kept = counts.field("counts").to_numpy(), max_levels
        if len(names) <= max_one_hot:
            n_kept = max(max_levels, max_one_hot)
        frequent = np.argsort(-n_rows, kind="stable")[:n_kept]
        order = frequent[np.argsort(names[frequent])]
        levels = tuple(names[order].tolist())
        return cls(levels, cells.level_codes(given, levels)[0], n_rows, order, max_levels)

    def part(self, rows: Codes) -> "Category":
        """Some of the rows, with the levels that are kept of all."""
        places, n_kept = self.places[rows], len(self.levels)
        return self._replace(
            places=places, counts=np.bincount(places, minlength=n_kept)[:n_kept], order=np.arange(n_kept)
        )

    def others(self, groups: Codes) -> tuple[Codes, Flags]:
        """Rows of its level outside of a row's group, and whether the level would be kept if there were only those."""
        places, n_kept, n_levels = self.places, len(self.levels), len(self.counts)
        others = np.bincount(places)[places] - _counts_of_pairs(places, groups)
        known = (others > 0) & (places <= n_kept)
        if n_levels > self.max_levels:
            ranks = np.sort(np.arange(n_levels) - self.counts * n_levels)
            of_level = np.flatnonzero(places < n_kept)
            lowered = self.order[places[of_level]] - others[of_level] * n_levels
            # The level itself, with all its rows, is one of those that stand before it.
            known[of_level] &= np.searchsorted(ranks, lowered) - 1 < self.max_levels
        return others, known


def target_statistics(
    category: Category,
    codes: Codes,
    classes: Sequence[Any],
    rng: np.random.Generator,
    groups: Codes | None = None,
    *,
    few: bool | None = None,
    row_weights: Array | None = None,
) -> tuple[Levels, list[Array]]:
    """Share of each class (of two, the second) in a level, shrunk to that of all rows; and the level's frequency.

    Returns the numbers of the levels for new rows, and those of the training rows, each made without the row itself
    and without the other rows of its group, such as copies of one record. They are made as for a table of `few` rows,
    or as their number says. Shares are those of weighted rows, frequencies count rows as they are.
    """
    places, n_classes = category.places, len(classes)
    n_rows, n_places = len(places), len(category.levels) + 2
    groups = np.arange(n_rows) if groups is None else groups
    few = n_rows < FEW_ROWS if few is None else few
    folds = spread_folds(places, codes if few else np.zeros_like(codes), groups, rng)
    if few and row_weights is None:
        shares, own = _encoder_shares(places, folds, codes, n_places, n_classes)
    else:
        shares, own = _likeliest_shares(places, folds, codes, n_places, n_classes, row_weights)
    mean = np.bincount(codes, row_weights, n_classes) / (n_rows if row_weights is None else row_weights.sum())
    if n_classes == 2:
        mean, shares, own = mean[1:], shares[:, -1:], own[:, -1:]
    new_level = np.append(mean, 0.0)
    values = np.column_stack([shares, _power_of_two(np.bincount(places, minlength=n_places) / n_rows)])
    values[values[:, -1] == 0.0] = new_level
    # Levels that were too rare to keep are, from here on, as unknown as those of rows to come.
    values[-1] = new_level
    others, known = category.others(groups)
    known &= np.bincount(places)[places] > _counts_of_pairs(places, folds)
    own[~known] = mean
    described = classes[1:] if n_classes == 2 else classes
    outputs = (*(f": share of {label}" for label in described), ": frequency")
    return Levels(category.levels, values, outputs), [*own.T, _power_of_two(np.where(known, others, 0) / n_rows)]


def _power_of_two(frequencies: Array) -> Array:
    """The power of two that is nearest to each of them, by their ratio; 0 stays."""
    powers: Array = np.exp2(np.round(np.log2(np.where(frequencies > 0, frequencies, 1.0))))
    return np.where(frequencies > 0, powers, 0.0)


def _likeliest_shares(
    places: Codes, folds: Codes, codes: Codes, n_places: int, n_classes: int, row_weights: Array | None = None
) -> tuple[Array, Array]:
    """Shares of the classes in every place, and of every row by the other folds, pulled as the likelihood says."""
    mean = np.bincount(codes, row_weights, n_classes) / (len(codes) if row_weights is None else row_weights.sum())
    counts = class_counts(places, codes, n_places, n_classes, row_weights)
    strength = prior_strength(counts[:-1], mean)
    of_fold = places * CROSS_FITS + folds
    in_fold = class_counts(of_fold, codes, n_places * CROSS_FITS, n_classes, row_weights)
    # All are pulled to one mean: that of the other folds would say which fold, and so something of its classes.
    return _shrunk(counts, mean, strength), _shrunk(np.maximum(counts[places] - in_fold[of_fold], 0.0), mean, strength)


def _encoder_shares(places: Codes, folds: Codes, codes: Codes, n_places: int, n_classes: int) -> tuple[Array, Array]:
    """The same of few rows, by scikit-learn's encoder, which pulls each level by its own variance."""
    encoder = TargetEncoder(
        target_type="binary" if n_classes == 2 else "multiclass", cv=PredefinedSplit(folds) if len(codes) > 1 else 2
    )
    with warnings.catch_warnings():
        # A class with fewer rows than folds is known here, and costs no more than its statistics being less sure.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        if folds.max() > 0:
            own = np.asarray(encoder.fit_transform(places[:, None], codes))
        else:  # one row, or one group: nothing describes it
            encoder.fit(places[:, None], codes)
            own = np.zeros((len(codes), 1 if n_classes == 2 else n_classes))
    shares = np.zeros((n_places, own.shape[1]))
    shares[encoder.categories_[0]] = np.column_stack(encoder.encodings_)
    return shares, own


def class_counts(places: Codes, codes: Codes, n_places: int, n_classes: int, row_weights: Array | None = None) -> Array:
    """Rows of each class in each place, or their weights, shape (n_places, n_classes)."""
    counts = np.bincount(places * n_classes + codes, row_weights, n_places * n_classes)
    return counts.reshape(n_places, n_classes).astype(np.float64)


def prior_strength(counts: Array, mean: Array) -> float:
    """The number of imagined rows that pull the shares of every level to those of all rows.

    The likeliest of some powers of two: the rows of a level are drawn from its shares, which are drawn from a
    Dirichlet distribution around those of all rows. `counts` has shape (levels, classes).
    """
    counts, mean = counts[:, mean > 0], mean[mean > 0]
    likelihoods = []
    for strength in _STRENGTHS:
        pull = strength * mean
        of_class = (gammaln(counts + pull) - gammaln(pull)).sum(axis=1)
        of_level = of_class - gammaln(counts.sum(axis=1) + strength) + gammaln(strength)
        # In order, so that the sum does not depend on the names of the levels.
        likelihoods.append(float(np.sort(of_level).sum()))
    return float(_STRENGTHS[int(np.argmax(likelihoods))])


def _shrunk(counts: Array, mean: Array, strength: float) -> Array:
    """Shares of the classes in each row of counts, with a number of imagined rows like all rows."""
    shares: Array = (counts + strength * mean) / (counts.sum(axis=1) + strength)[:, None]
    return shares


def spread_folds(places: Codes, codes: Codes, groups: Codes, rng: np.random.Generator) -> Codes:
    """A fold for each row: rows of a level in different folds as far as possible, classes and sizes about the same.

    Groups are kept together. They are put in order, by the size of their level, the classes in it and the level, and
    dealt in turn, as cards are. Names of levels play no part in it.
    """
    _, first, of_row = np.unique(groups, return_index=True, return_inverse=True)
    level, label = places[first], codes[first]
    chance = rng.random(len(first))
    _, level_first, of_group, sizes = np.unique(level, return_index=True, return_inverse=True, return_counts=True)
    mean_label = np.bincount(of_group, weights=label) / sizes
    keys = (chance, label, chance[level_first][of_group], mean_label[of_group], sizes[of_group])
    folds = np.empty(len(first), dtype=np.intp)
    folds[np.lexsort(keys)] = np.arange(len(first)) % min(CROSS_FITS, len(first))
    return folds[of_row]


def _counts_of_pairs(places: Codes, others: Codes) -> Codes:
    """For each row the number of rows that have the same in both."""
    _, of_row, counts = np.unique(places * (others.max() + 1) + others, return_inverse=True, return_counts=True)
    pairs: Codes = counts[of_row]
    return pairs


class Statistics(NamedTuple):
    """Categories whose target statistics know single labels, each with the first of its columns in the matrix."""

    categories: tuple[Category, ...]
    columns: tuple[int, ...]
    codes: Codes
    classes: Sequence[Any]
    seed: int
    groups: Codes | None
    row_weights: Array | None

    def fold(self, X: Array, train: Codes, held: Codes) -> tuple[Array, Array]:
        """Rows of a matrix that train and rows that are held out, with statistics of the first alone."""
        trained, judged, few = X[train], X[held], len(self.codes) < FEW_ROWS
        groups, weights = part_of(self.groups, train), None if self.row_weights is None else self.row_weights[train]
        for category, first in zip(self.categories, self.columns, strict=True):
            rng = np.random.default_rng(self.seed)
            levels, own = target_statistics(
                category.part(train), self.codes[train], self.classes, rng, groups, few=few, row_weights=weights
            )
            columns = slice(first, first + len(own))
            trained[:, columns], judged[:, columns] = np.column_stack(own), levels.values[category.places[held]]
        return trained, judged


class Encoded(NamedTuple):
    """Columns with their levels, their encodings, and the training rows as numbers, shape (n, M)."""

    columns: tuple[Column, ...]
    encodings: tuple[Encoding, ...]
    matrix: Array
    statistics: Statistics | None


def fit_encodings(
    table: pa.Table,
    drafts: Sequence[Column],
    codes: Codes,
    classes: Sequence[Any],
    rng: np.random.Generator,
    groups: Codes | None = None,
    row_weights: Array | None = None,
    *,
    rows: Codes | None = None,
    max_one_hot: int = 10,
    max_levels: int = 20_000,
) -> Encoded:
    """Fit one encoding for each column, as drafted, on the rows of a table, or on some of them in another order.

    A category of at most `max_one_hot` levels has a number for each of them; a larger one has target statistics of its
    `max_levels` most frequent levels, which are fitted for the training rows themselves in folds that keep groups.
    """
    columns, outputs = list(drafts), list[tuple[int, Array]]()
    rows = np.arange(table.num_rows) if rows is None else rows
    # All categories have the same folds: what one is encoded as does not depend on which others stand before it.
    seed = int(rng.integers(2**63))
    large, places, n_outputs = list[Category](), list[int](), 0
    plain, blocks = _fit_plain_numbers(table, drafts, rows)
    encodings = list[Encoding]()
    starts = np.empty(len(drafts), dtype=np.intp)
    for place, draft in enumerate(drafts):
        starts[place] = n_outputs
        if place in plain:
            encodings.append(plain[place])
            n_outputs += 1 + draft.missing
            continue
        given = table.column(draft.name).take(pa.array(rows))
        category = Category.of(given, max_one_hot, max_levels) if draft.kind == "category" else None
        own = None
        encoding: Encoding
        if category is not None and len(category.counts) > max_one_hot:
            columns[place] = replace(draft, is_open=True)
            if len(codes) < ROWS_OF_A_LEVEL * len(category.counts):
                large.append(category)
                places.append(n_outputs)
            draws = np.random.default_rng(seed)
            encoding, own = target_statistics(category, codes, classes, draws, groups, row_weights=row_weights)
        elif category is not None:
            columns[place] = replace(draft, levels=category.levels)
            encoding = one_hot(category.levels, draft.missing)
        else:
            values, _ = cells.read(given, draft.kind, draft.spelling)
            if draft.kind == "date":
                known = values[~np.isnat(values)]
                parts = {part: date_part(known, part) for part in DATE_PARTS}
                # A part that is the same everywhere, as the hour of plain days, says nothing.
                kept = tuple(part for part in DATE_PARTS if np.ptp(parts[part]) > 0) or ("days",)
                fills = np.array([np.median(parts[part]) for part in kept])
                encoding = Dates(kept, fills, indicator=draft.missing)
            else:
                encoding = fit_number(values, draft.missing)
        encodings.append(encoding)
        own = encode_column(given, columns[place], encoding) if own is None else own
        outputs += enumerate(own, n_outputs)
        n_outputs += len(own)
    # Row by row in memory, as the models are fitted.
    matrix = np.empty((len(rows), n_outputs))
    for place, output in outputs:
        matrix[:, place] = output
    for block, missing, filled, absent in blocks:
        matrix[:, starts[block]], matrix[:, starts[block[missing]] + 1] = filled, absent[:, missing]
    statistics = None
    if large:
        statistics = Statistics(tuple(large), tuple(places), codes, classes, seed, groups, row_weights)
    return Encoded(tuple(columns), tuple(encodings), matrix, statistics)


def fit_number(values: Array, missing: bool) -> Numbers:
    """The encoding of a column of numbers."""
    return Numbers(float(np.median(values[cells.is_usable(values)])), indicator=missing)


def fit_number_block(values: Array, missing: Flags) -> tuple[Numbers, ...]:
    """The same for every column of a block, shape (n, k)."""
    is_number = cells.is_usable(values).all(axis=0)
    fills = np.empty(values.shape[1])
    fills[is_number] = np.median(values[:, is_number], axis=0)
    for column in np.flatnonzero(~is_number):
        fills[column] = fit_number(values[:, column], True).fill
    return tuple(map(Numbers, fills.tolist(), missing.tolist()))


def _fit_plain_numbers(
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
        absent = ~cells.is_usable(values)
        filled = np.where(absent, [encoding.fill for encoding in fitted], values) if absent.any() else values
        blocks.append((block, missing, filled, absent.astype(np.float64)))
    return encodings, blocks


def one_hot(levels: tuple[str, ...], missing: bool) -> Levels:
    """One number for each level, and one for missing cells where there were any; of two levels the second alone.

    A level that is not known, or a missing cell where none was, is zero everywhere, as with scikit-learn's encoder.
    """
    values = np.eye(len(levels) + 2)
    values[-1] = 0.0
    names = tuple(f"={level}" for level in levels)
    if missing:
        return Levels(levels, values[:, :-1], (*names, " is missing"))
    values[-2] = 0.0
    if len(levels) == 2:
        return Levels(levels, values[:, 1:2], names[1:])
    return Levels(levels, values[:, :-2], names)
