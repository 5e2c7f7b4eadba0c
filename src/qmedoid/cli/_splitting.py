"""Rows of a table for training, validation and test: by files, by shares, or in the order of time."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.geometry.row_groups import group_classes

Rows = npt.NDArray[np.int64]


class Parts(NamedTuple):
    """Row numbers of the three parts; empty where there is none."""

    train: Rows
    valid: Rows
    test: Rows


def share_or_file(option: str, value: str | None) -> float | str:
    """A share of the rows as a number, or the name of a file; None and 0 are no rows at all."""
    if value is None:
        return 0.0
    try:
        share = float(value)
    except ValueError:
        return value
    if not 0 <= share < 1:
        raise ParameterError(f"{option} must be a file or a share of at least 0 and below 1. Got {value} instead.")
    return share


def split_rows(
    labels: Codes,
    valid: float,
    test: float,
    *,
    order: Rows | None,
    seed: int,
    groups: Codes | None = None,
) -> Parts:
    """Split rows by shares: in an order, where one is given (the last rows are the test), else by chance and class.

    Of every class the same share goes to each part, rounded; a class of one row stays in training. Rows of one group
    go to one part, except in an order.
    """
    if valid + test >= 1:
        raise ParameterError(f"--valid and --test take {valid + test:.3g} of the rows: nothing is left to train on.")
    n = len(labels)
    if order is not None:
        n_test, n_valid = round(test * n), round(valid * n)
        rest = n - n_test - n_valid
        return Parts(order[:rest], order[rest : rest + n_valid], order[rest + n_valid :])
    rng = np.random.default_rng(seed)
    if groups is not None:
        return _split_groups(labels, groups, valid, test, rng)
    parts: tuple[list[Rows], list[Rows], list[Rows]] = ([], [], [])
    for code in np.unique(labels):
        own = rng.permutation(np.flatnonzero(labels == code))
        n_test, n_valid = round(test * len(own)), round(valid * len(own))
        for part, rows in zip(parts, np.split(own, [len(own) - n_test - n_valid, len(own) - n_test]), strict=True):
            part.append(rows)
    return Parts(*(np.sort(np.concatenate(part)).astype(np.int64) for part in parts))


def _split_groups(labels: Codes, groups: Codes, valid: float, test: float, rng: np.random.Generator) -> Parts:
    """Whole groups by chance, each as one of its rarest class; the shares are those of the rows."""
    classes, sizes, use = group_classes(groups, labels), np.bincount(groups), np.zeros(groups.max() + 1, dtype=np.intp)
    for code in np.unique(classes):
        own = rng.permutation(np.flatnonzero(classes == code))
        # A group goes where its middle row would go; one group alone has its middle at a half, and stays in training.
        middles = (np.cumsum(sizes[own]) - sizes[own] / 2.0) / sizes[own].sum()
        use[own] = 0 if len(own) == 1 else (middles > 1.0 - valid - test).astype(np.intp) + (middles > 1.0 - test)
    return Parts(*(np.flatnonzero(use[groups] == part).astype(np.int64) for part in range(3)))


def time_order(column: pa.ChunkedArray, name: str, date_order: str | None = None) -> Rows:
    """Row numbers in the order of a time column; rows of one time keep their order."""
    import pyarrow.compute as pc

    from qmedoid.tables._types import shortened
    from qmedoid.tables.kinds import kind_of_type
    from qmedoid.tables.times import moments_of_text

    if column.null_count:
        raise DataError(f"The time column {name!r} is missing in {column.null_count:,} rows: fill in or drop them.")
    if kind_of_type(column.type) is None:
        raise DataError(
            f"The time column {name!r} is of type {shortened(str(column.type))}. Give a column of dates, times or "
            "numbers."
        )
    if kind_of_type(column.type) == "category":
        column = moments_of_text(column, name, date_order)
    order: Rows = pc.sort_indices(pa.table({"time": column}), sort_keys=[("time", "ascending")]).to_numpy()
    return order.astype(np.int64)
