"""Encodings fitted with scikit-learn's encoders and kept as plain arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._target_statistics import Category, target_statistics
from qmedoid.model.contract import DATE_PARTS, Column, Dates, Encoding, Levels, Numbers
from qmedoid.tables import cells
from qmedoid.tables.encode import date_part, encode_column


@dataclass(frozen=True)
class EncodingSettings:
    """How categories are encoded.

    Attributes
    ----------
    max_one_hot : int
        Categories of at most so many levels have a number for each of them.
    max_levels : int
        Of larger categories so many levels, the most frequent, are told apart.
    """

    max_one_hot: int = 10
    max_levels: int = 20_000


@dataclass(frozen=True)
class Encoded:
    """Columns with their levels, their encodings, and the training rows as numbers, shape (n, M)."""

    columns: tuple[Column, ...]
    encodings: tuple[Encoding, ...]
    matrix: Array


def fit_encodings(
    table: pa.Table,
    drafts: Sequence[Column],
    codes: Codes,
    classes: Sequence[Any],
    settings: EncodingSettings,
    rng: np.random.Generator,
    groups: Codes | None = None,
) -> Encoded:
    """Fit one encoding for each column on the rows of a table.

    Parameters
    ----------
    drafts : sequence of Column
        What the columns are, by name.
    codes : ndarray of shape (n,)
        Class codes, for the target statistics of large categories.
    classes : sequence
        The classes by their codes.
    rng : Generator
        Of the folds in which those statistics are fitted for the training rows themselves.
    groups : ndarray of shape (n,), optional
        Rows of one group are in one of these folds.
    """
    columns: list[Column] = []
    encodings: list[Encoding] = []
    outputs: list[Array] = []
    # All categories have the same folds: what one is encoded as does not depend on which others stand before it.
    seed = int(rng.integers(2**63))
    for draft in drafts:
        given = cells.one_chunk(table.column(draft.name))
        column, own = draft, None
        encoding: Encoding
        if draft.kind == "category":
            generator = np.random.default_rng(seed)
            column, encoding, own = _fit_category(given, draft, codes, classes, settings, generator, groups)
        elif draft.kind == "date":
            encoding = _fit_dates(given, draft)
        else:
            encoding = _fit_numbers(given, draft)
        columns.append(column)
        encodings.append(encoding)
        outputs.extend(encode_column(given, column, encoding) if own is None else own)
    # Row by row in memory, as the models are fitted.
    return Encoded(tuple(columns), tuple(encodings), np.ascontiguousarray(np.column_stack(outputs), dtype=np.float64))


def _fit_numbers(given: pa.Array, column: Column) -> Numbers:
    values, _ = cells.truths(given) if column.kind == "boolean" else cells.numbers(given, column.spelling)
    with np.errstate(invalid="ignore"):
        usable = values[np.abs(values) <= cells.LARGEST]
    return Numbers(float(np.median(usable)), indicator=column.missing)


def _fit_dates(given: pa.Array, column: Column) -> Dates:
    values, _ = cells.dates(given, column.spelling)
    known = values[~np.isnat(values)]
    parts = {part: date_part(known, part) for part in DATE_PARTS}
    # A part that is the same everywhere, as the hour of plain days or the month of clock times, says nothing.
    kept = tuple(part for part in DATE_PARTS if np.ptp(parts[part]) > 0) or ("days",)
    fills = np.array([np.median(parts[part]) for part in kept])
    return Dates(kept, fills, indicator=column.missing)


def _fit_category(
    given: pa.Array,
    draft: Column,
    codes: Codes,
    classes: Sequence[Any],
    settings: EncodingSettings,
    rng: np.random.Generator,
    groups: Codes | None,
) -> tuple[Column, Levels, list[Array] | None]:
    """The column with its levels, the encoding, and the training rows' own numbers where they are others."""
    counts = cells.texts(given).drop_null().value_counts()
    names = np.array(counts.field("values").to_pylist(), dtype=object)
    if len(names) <= settings.max_one_hot:
        levels = tuple(sorted(names.tolist()))
        return replace(draft, levels=levels), one_hot(levels, draft.missing), None
    n_rows = counts.field("counts").to_numpy()
    frequent = np.argsort(-n_rows, kind="stable")[: settings.max_levels]
    order = frequent[np.argsort(names[frequent])]
    levels = tuple(names[order].tolist())
    places, _ = cells.level_codes(given, levels)
    category = Category(levels, places, n_rows, order, settings.max_levels)
    encoding, own = target_statistics(category, codes, classes, rng, groups)
    return replace(draft, is_open=True), encoding, own


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
