"""Configuration search on one fold: the current features, and what replacing one of them does to the predictions.

The stages come from the compiled kernel where it was built and from its NumPy twin otherwise; ``QMEDOID_KERNELS=numpy``
asks for the twin on purpose.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.kernels._backend import compiled

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
    backend : module or None
        The compiled kernel or its twin; None takes the kernel where there is one.

    Attributes
    ----------
    state : FoldState
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
        backend: ModuleType | None = None,
    ) -> None:
        from qmedoid.kernels import _search_numpy  # the twin imports this module

        self.backend = backend or compiled("search") or _search_numpy
        sampled = np.concatenate(samples)
        others = np.setdiff1d(np.arange(len(train)), sampled)
        by_class = np.argsort(codes_val, kind="stable")
        n_classes = len(multipliers)
        self.state = FoldState(
            train=np.ascontiguousarray(train[np.concatenate((sampled, others))].T),
            bounds=_starts([len(rows) for rows in samples]),
            repeated=np.concatenate([_repeated(train[rows]) for rows in samples]).view(np.uint8),
            val=np.ascontiguousarray(val[by_class].T),
            val_bounds=_starts(np.bincount(codes_val, minlength=n_classes)),
            multipliers=np.ascontiguousarray(multipliers, dtype=np.float64),
            alpha=float(alpha),
            angle=ANGLES[angle],
            signed=signed,
        )

    def start(self, columns: Sequence[Candidates]) -> None:
        """Compute the features of a configuration, one candidate for each anchor."""
        state = self.state
        state.sample_z = np.empty((len(columns), state.bounds[-1]))
        state.val_z = np.empty((len(columns), state.val.shape[1]))
        state.condition = np.empty(len(columns))
        for anchor, column in enumerate(columns):
            self.backend.fill_column(state, anchor, column)
        self.backend.build_squared(state)

    def replace(self, anchor: int, column: Candidates) -> None:
        """Put one candidate in the place of an anchor's feature."""
        old = self.state.sample_z[anchor].copy()
        self.backend.fill_column(self.state, anchor, column)
        self.backend.update_squared(self.state, old, self.state.sample_z[anchor])

    def evaluate(self, anchor: int, candidates: Candidates) -> tuple[npt.NDArray[np.int64], Flags]:
        """Confusion matrices with each candidate in the place of an anchor's feature; the current state stays.

        Returns
        -------
        confusion : ndarray of shape (n_candidates, C, C)
            True classes by predicted classes, counted over the validation rows.
        unsure : boolean ndarray of shape (n_candidates,)
            Where rounding decides a prediction, so that the counts may differ from those of a plain rebuild.
        """
        count, n_classes = len(candidates.picks), self.state.n_classes
        confusion = np.zeros((count, n_classes, n_classes), dtype=np.int64)
        unsure = np.zeros(count, dtype=np.bool_)
        self.backend.evaluate(self.state, anchor, candidates, confusion, unsure.view(np.uint8))
        return confusion, unsure


def _repeated(rows: Array) -> Flags:
    """Which rows are, byte for byte, equal to an earlier one."""
    keys = np.ascontiguousarray(rows).view(f"V{rows.itemsize * rows.shape[1]}")
    repeated = np.ones(len(rows), dtype=np.bool_)
    repeated[np.unique(keys, return_index=True)[1]] = False
    return repeated


def _starts(sizes: Sequence[int] | Codes) -> Codes:
    starts: Codes = np.concatenate(([0], np.cumsum(sizes))).astype(np.intp)
    return starts
