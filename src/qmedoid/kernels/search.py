"""Configuration search on one fold: the current features, and what replacing one of them does to the predictions.

The stages come from the compiled kernel where it was built and from its NumPy twin otherwise; ``QMEDOID_KERNELS=numpy``
asks for the twin on purpose.
"""

from collections.abc import Sequence
from types import ModuleType

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.kernels import _search_numpy
from qmedoid.kernels._backend import compiled
from qmedoid.kernels._search_state import ANGLES, Candidates, FoldState

__all__ = ["Candidates", "FoldSearch"]


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
