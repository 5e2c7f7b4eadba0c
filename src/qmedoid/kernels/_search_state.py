"""What the search keeps of a fold, and what it is asked about it: arrays that the kernel and its twin share."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes

ANGLES = {"none": 0, "true": 1, "printed": 2}
"""How the kernels number the angular channels."""


@dataclass(frozen=True)
class Candidates:
    r"""Feature columns :math:`u = g\,\sigma\sqrt{\sum_f (w_f x_f)^2}` over some members of one group.

    Attributes
    ----------
    members : ndarray of shape (m,)
        Columns of the table that any of the candidates uses.
    weights : ndarray of shape (m,)
        Weight w of each.
    picks : ndarray of shape (n_candidates, k)
        Members of each candidate, as positions in `members`, in the order in which they are summed.
    factors : ndarray of shape (n_candidates,)
        Factor g of each candidate.
    """

    members: Codes
    weights: Array
    picks: Codes
    factors: Array


@dataclass
class FoldState:
    """A fold as columns, and the standardized features of the current configuration on the rows that need them.

    Attributes
    ----------
    train : ndarray of shape (M, n_train)
        Training columns: first the rows among which medoids are sought, class by class, then all others.
    bounds : ndarray of shape (C + 1,)
        Those of class c are rows ``bounds[c]`` to ``bounds[c + 1]``.
    repeated : uint8 ndarray of shape (bounds[C],)
        Whether an earlier row of the same class is equal. Equal rows have equal totals, so it is never the medoid.
    val, val_bounds : ndarray of shape (M, n_val) and (C + 1,)
        Validation columns, class by class, and where each class begins.
    multipliers : ndarray of shape (C,)
    alpha : float
    angle : int
        One of ``ANGLES``.
    signed : bool
        Whether features carry a sign.
    sample_z, val_z : ndarray of shape (A, bounds[C]) and (A, n_val)
        Standardized features of the medoid rows and of the validation rows.
    condition : ndarray of shape (A,)
        |mean| / deviation of each feature on the training rows: how much the rounding of the mean is magnified.
        Infinite where rounding decides what the feature is.
    squared : ndarray
        Squared distances within each class, in the layout of the backend. They are updated, not computed afresh,
        and serve as bounds only.
    slack : ndarray of shape (C,)
        At most so much is wrong with `squared`.
    """

    train: Array
    bounds: Codes
    repeated: npt.NDArray[np.uint8]
    val: Array
    val_bounds: Codes
    multipliers: Array
    alpha: float
    angle: int
    signed: bool
    sample_z: Array = field(default_factory=lambda: np.empty((0, 0)))
    val_z: Array = field(default_factory=lambda: np.empty((0, 0)))
    condition: Array = field(default_factory=lambda: np.empty(0))
    squared: Array = field(default_factory=lambda: np.empty(0))
    slack: Array = field(default_factory=lambda: np.empty(0))

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return len(self.multipliers)
