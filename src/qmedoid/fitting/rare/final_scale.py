"""Out-of-fold logits on the scale of the final model.

A model of a part of the rows knows fewer rare rows than the final one, so its logits are on another scale, and a cut
that calls one in a hundred of them positive calls more or fewer rows of the final model's. Common rows that the final
model does not compare with, because they are no prototypes of it, have both logits. What turns the quantiles of the one
into those of the other is a monotone function, the same for both classes: no order changes, and no label is used but
that these rows are common.
"""

import numpy as np

from qmedoid.arrays import Array, Flags

# Quantiles that are matched. Beyond the first and the last, logits are moved as there.
_LEVELS = np.linspace(0.005, 0.995, 199)
# Rows that show quantiles so far out, at least.
_FEWEST_ROWS = 2000


def on_final_scale(out_of_fold: Array, final: Array, shared: Flags) -> Array:
    """Out-of-fold logits as the final model would give them.

    Parameters
    ----------
    out_of_fold, final : ndarray of shape (n,)
        Logits of the training rows.
    shared : ndarray of bool of shape (n,)
        Common rows that are no prototypes of the final model. Too few of them leave the logits as they are.
    """
    if np.count_nonzero(shared) < _FEWEST_ROWS:
        return out_of_fold
    places, targets = np.quantile(out_of_fold[shared], _LEVELS), np.quantile(final[shared], _LEVELS)
    places, first = np.unique(places, return_index=True)
    targets = targets[first]
    inside = np.interp(out_of_fold, places, targets)
    below = out_of_fold - places[0] + targets[0]
    above = out_of_fold - places[-1] + targets[-1]
    moved: Array = np.where(out_of_fold < places[0], below, np.where(out_of_fold > places[-1], above, inside))
    return moved
