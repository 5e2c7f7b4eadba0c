"""Standard errors of figures that are no plain means, by leaving out one unit at a time."""

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.metrics.classification import ClassMetrics


def jackknife_error(left_out: npt.ArrayLike, counts: npt.ArrayLike | None = None) -> float:
    r"""Standard error of a figure from what it is without each of n units.

    .. math:: \sqrt{\frac{n-1}{n} \sum_i (\theta_{(i)} - \bar\theta)^2}

    For a mean this is the usual s/√n.

    Parameters
    ----------
    left_out : array-like of shape (m,)
        The figure without one unit of each kind.
    counts : array-like of shape (m,) or None
        How many units there are of each kind; None is one of each. Fewer than two units have no spread, and 0.
    """
    values = np.asarray(left_out, dtype=np.float64)
    units = np.ones(len(values)) if counts is None else np.asarray(counts, dtype=np.float64)
    n = units.sum()
    if n < 2:
        return 0.0
    mean = units @ values / n
    return float(np.sqrt((n - 1) / n * (units @ (values - mean) ** 2)))


def macro_f1_error(confusions: npt.ArrayLike) -> float:
    """Standard error of the macro-F1 of pooled predictions.

    Parameters
    ----------
    confusions : array-like of shape (F, C, C)
        Confusion matrices of whole counts, one for each fold. Folds are left out one at a time or, where there is one
        fold, its rows. Rows of one true and one predicted class are alike, so there are at most C² kinds of them.
    """
    folds = np.asarray(confusions, dtype=np.float64)
    pooled = folds.sum(axis=0)
    if len(folds) > 1:
        return jackknife_error([ClassMetrics(pooled - fold).macro_f1 for fold in folds])
    cells = np.argwhere(pooled > 0)
    return jackknife_error([_without_one(pooled, true, said) for true, said in cells], pooled[tuple(cells.T)])


def _without_one(confusion: Array, true: int, said: int) -> float:
    """Macro-F1 with one row of a cell left out."""
    fewer = confusion.copy()
    fewer[true, said] -= 1
    return ClassMetrics(fewer).macro_f1
