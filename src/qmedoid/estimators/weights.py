"""Weights of rows: how many rows each row of a fit stands for.

Whole numbers are copies. All other weights are factors of what a row adds to every loss, scaled to a mean of 1.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import column_or_1d

from qmedoid.arrays import Array, Codes
from qmedoid.estimators.inputs import loss_weights
from qmedoid.exceptions import DataError, ParameterError

MOST_COPIES = 10
"""Whole weights are copies of rows up to so many times the rows of a table; beyond, they are factors."""
# Weights that differ by less than this share are equal.
_SAME = 1e-12


class WeightedRows(NamedTuple):
    """The rows that a fit goes over, and what each of them counts.

    Attributes
    ----------
    rows : ndarray of shape (m,)
        Row numbers of the table: those without weight are left out, those that are copies occur several times.
    factors : ndarray of shape (m,) or None
        Weights of mean 1; None where every row counts as one.
    n_given : int
        Rows of the table.
    """

    rows: Codes
    factors: Array | None
    n_given: int

    @property
    def is_plain(self) -> bool:
        """Whether every row of the table counts as one."""
        return self.factors is None and np.array_equal(self.rows, np.arange(self.n_given))

    @property
    def has_copies(self) -> bool:
        """Whether a row occurs several times."""
        return len(np.unique(self.rows)) < len(self.rows)


def weighted_rows(sample_weight: Any, class_weight: Any, codes: Codes, classes: npt.NDArray[Any]) -> WeightedRows:
    """Rows and factors of a fit, from weights of rows and of classes."""
    n = len(codes)
    if sample_weight is None and class_weight is None:
        return WeightedRows(np.arange(n), None, n)
    weights = np.ones(n) if sample_weight is None else check_weights(sample_weight, n)
    kept = np.flatnonzero(weights)
    if class_weight is not None:
        weights = weights * loss_weights(class_weight, codes, classes, weights)[codes]
    rows, weights = kept, weights[kept]
    if (weights == np.round(weights)).all() and weights.sum() <= MOST_COPIES * len(rows):
        return WeightedRows(np.repeat(rows, weights.astype(np.intp)), None, n)
    factors = weights / weights.mean()
    return WeightedRows(rows, None if np.ptp(factors) <= _SAME else factors, n)


def check_weights(sample_weight: Any, n_rows: int) -> Array:
    """Weights of rows as numbers; raise for the first that is none, below 0 or not finite, and where all are 0."""
    try:
        weights = np.array(column_or_1d(sample_weight), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must be one number for every row: {error}") from error
    if len(weights) != n_rows:
        raise DataError(f"X has {n_rows} rows and sample_weight has {len(weights)}: pass one weight for every row.")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(
            f"sample_weight contains {weights[bad[0]]:g}, first at row {bad[0]} ({len(bad)} of {n_rows} rows). A "
            "weight says how many rows a row stands for: pass numbers from 0 up; rows of weight 0 are left out."
        )
    if not weights.any():
        raise DataError("sample_weight is zero for all rows: at least 2 rows need a weight above 0.")
    return weights


def classes_of(classes: npt.NDArray[Any], codes: Codes, rows: Codes) -> tuple[npt.NDArray[Any], Codes]:
    """Classes of some rows, and the number of the class of each row."""
    found, again = np.unique(codes[rows], return_inverse=True)
    if len(found) < 2:
        raise DataError(
            f"The rows with a weight above 0 are of one class only, {classes.tolist()[found[0]]!r}: a classifier needs "
            "records of at least 2 classes."
        )
    return classes[found], again.astype(np.intp)


def refuse_factors(factors: Array | None, who: str) -> None:
    """Raise where weights are no whole numbers."""
    if factors is not None:
        raise ParameterError(
            f"{who} takes weights that are copies of rows: whole numbers, at most {MOST_COPIES} times as many in all "
            "as there are rows. Round sample_weight and class_weight to such, or use another method."
        )
