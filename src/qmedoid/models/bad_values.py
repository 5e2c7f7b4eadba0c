"""Values that no model of distances can take: missing, infinite, or too large for their squares."""

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError, ModelError

LARGEST = 1e150
"""Values beyond this have squares that leave the range of double precision, and are refused."""


def refuse_bad_values(values: Array, used: Codes, rows: Codes | range) -> None:
    """Raise for the first value in a column that is read which is NaN, infinite or beyond `LARGEST`.

    Parameters
    ----------
    values : ndarray of shape (n, M)
    used : ndarray
        Columns that the model reads.
    rows : sequence of n int
        Which rows of the table these are.
    """
    # Good rows, the many, are told by their extremes: a NaN makes both NaN.
    if values.max(initial=0.0) <= LARGEST and values.min(initial=0.0) >= -LARGEST:
        return
    bad = np.argwhere(~(np.abs(values[:, used]) <= LARGEST))
    if len(bad):
        row, column = int(bad[0][0]), int(used[bad[0][1]])
        raise DataError(
            f"Row {rows[row]} holds {values[row, column]} in column {column} (both counted from 0). The model needs "
            f"finite numbers within ±{LARGEST:g}: fill in or drop such rows first."
        )


def refuse_overflow(*results: npt.ArrayLike) -> None:
    """Raise where what a model computed is NaN or infinite.

    Records are within bounds when a model takes them, so its numbers are to blame: a saved model may hold any finite
    ones, and their products leave the range of double precision.

    Raises
    ------
    ModelError
        A result is not a finite number.
    """
    for result in results:
        if not np.isfinite(result).all():
            raise ModelError(
                "The model holds numbers so large or so small that its scores leave the range of double precision: it "
                "was changed after it was saved, or fitted on numbers that are far out. Fit it again on columns in "
                "other units."
            )
