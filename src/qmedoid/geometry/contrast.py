r"""How far each column alone tells two classes apart: :math:`|2\,\mathrm{AUC} - 1|`, 0 for not at all, 1 for fully."""

import numpy as np
from scipy.stats import rankdata

from qmedoid.arrays import Array, Flags


def column_contrast(values: Array, is_rare: Flags) -> Array:
    """Contrast of every column, shape (M,), from the middle ranks of its values; a constant column has 0.

    Parameters
    ----------
    values : ndarray of shape (n, M)
    is_rare : ndarray of shape (n,)
        Which rows belong to one of the classes; both need at least one.
    """
    n_rare = int(is_rare.sum())
    pairs = n_rare * (len(values) - n_rare)
    ranks = np.column_stack([rankdata(column) for column in values.T])
    wins = ranks[is_rare].sum(axis=0) - n_rare * (n_rare + 1) / 2
    contrast: Array = np.abs(2.0 * wins / pairs - 1.0)
    return contrast
