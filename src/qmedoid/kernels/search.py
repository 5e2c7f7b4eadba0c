"""Configuration search on one fold: the current features, and what replacing one of them does to the predictions.

A visit asks what becomes of the validation predictions when the feature of one anchor is replaced by each of many
candidates. All other features stay, so their share of every distance, norm and inner product is computed once per
visit; a candidate adds one column to it. There is no NumPy twin: where the kernel is not built, the definition is
rebuilt for every candidate (:class:`qmedoid.methods.nearest.problem.RebuildObjective`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.kernels.backend import compiled

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


class FoldSearch:
    """The features of one configuration on one fold, kept up to date as single features are replaced.

    Parameters
    ----------
    train : ndarray of shape (n_train, M)
    samples : sequence of int ndarray
        For each class the rows of `train` among which its medoid is sought, rising; none may be empty.
    val : ndarray of shape (n_val, M)
    codes_val : int ndarray of shape (n_val,)
        True class codes.
    multipliers : ndarray of shape (C,)
    alpha : float
    angle : {"none", "true", "printed"}
    signed : bool
        Whether features carry a sign.

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
    angle : int
        One of ``ANGLES``.
    sample_z, val_z : ndarray of shape (A, bounds[C]) and (A, n_val)
        Standardized features of the medoid rows and of the validation rows.
    condition : ndarray of shape (A,)
        |mean| / deviation of each feature on the training rows: how much the rounding of the mean is magnified.
        Infinite where rounding decides what the feature is.
    squared : ndarray
        Squared distances within each class. They are updated, not computed afresh, and serve as bounds only.
    slack : ndarray of shape (C,)
        At most so much is wrong with `squared`.
    """

    def __init__(
        self,
        train: Array,
        samples: Sequence[Codes],
        val: Array,
        codes_val: Codes,
        *,
        multipliers: Array,
        alpha: float,
        angle: str,
        signed: bool,
    ) -> None:
        kernel = compiled("search")
        assert kernel is not None, "the caller asks `is_built` first"
        self.kernel = kernel
        sampled = np.concatenate(samples)
        others = np.setdiff1d(np.arange(len(train)), sampled)
        by_class = np.argsort(codes_val, kind="stable")
        self.train = np.ascontiguousarray(train[np.concatenate((sampled, others))].T)
        self.bounds = _starts([len(rows) for rows in samples])
        self.repeated = np.concatenate([_repeated(train[rows]) for rows in samples]).view(np.uint8)
        self.val = np.ascontiguousarray(val[by_class].T)
        self.val_bounds = _starts(np.bincount(codes_val, minlength=len(multipliers)))
        self.multipliers = np.ascontiguousarray(multipliers, dtype=np.float64)
        self.alpha, self.angle, self.signed = float(alpha), ANGLES[angle], signed
        self.sample_z = self.val_z = np.empty((0, 0))
        self.condition = self.squared = self.slack = np.empty(0)

    def start(self, columns: Sequence[Candidates]) -> None:
        """Compute the features of a configuration, one candidate for each anchor."""
        self.sample_z = np.empty((len(columns), self.bounds[-1]))
        self.val_z = np.empty((len(columns), self.val.shape[1]))
        self.condition = np.empty(len(columns))
        for anchor, column in enumerate(columns):
            self.kernel.fill_column(self, anchor, column)
        self.kernel.build_squared(self)

    def replace(self, anchor: int, column: Candidates) -> None:
        """Put one candidate in the place of an anchor's feature."""
        old = self.sample_z[anchor].copy()
        self.kernel.fill_column(self, anchor, column)
        self.kernel.update_squared(self, old, self.sample_z[anchor])

    def evaluate(self, anchor: int, candidates: Candidates) -> tuple[npt.NDArray[np.int64], Flags]:
        """Confusion matrices with each candidate in the place of an anchor's feature; the current state stays.

        Returns
        -------
        confusion : ndarray of shape (n_candidates, C, C)
            True classes by predicted classes, counted over the validation rows.
        unsure : boolean ndarray of shape (n_candidates,)
            Where rounding decides a prediction, so that the counts may differ from those of a plain rebuild.
        """
        count, n_classes = len(candidates.picks), len(self.multipliers)
        confusion = np.zeros((count, n_classes, n_classes), dtype=np.int64)
        unsure = np.zeros(count, dtype=np.bool_)
        self.kernel.evaluate(self, anchor, candidates, confusion, unsure.view(np.uint8))
        return confusion, unsure


def is_built() -> bool:
    """Whether the kernel is there."""
    return compiled("search") is not None


def _repeated(rows: Array) -> Flags:
    """Which rows are, byte for byte, equal to an earlier one."""
    keys = np.ascontiguousarray(rows).view(f"V{rows.itemsize * rows.shape[1]}")
    repeated = np.ones(len(rows), dtype=np.bool_)
    repeated[np.unique(keys, return_index=True)[1]] = False
    return repeated


def _starts(sizes: Sequence[int] | Codes) -> Codes:
    starts: Codes = np.concatenate(([0], np.cumsum(sizes))).astype(np.intp)
    return starts
