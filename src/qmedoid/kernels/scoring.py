r"""Raw columns to fusion scores and labels in one pass over the rows.

.. math::

   z_f = \frac{x_f - c_f}{\sigma_f}, \qquad
   v_a = \frac{\pm\sqrt{\sum_{f\in\kappa(a)} (w_{af} z_f)^2} - m_a}{d_a}, \qquad
   s_c = m_c\Bigl(\alpha\,\frac{D_c}{\sum D + \varepsilon} + (1-\alpha)\,\frac{\Theta_c}{\sum\Theta + \varepsilon}\Bigr)

with D and Θ the distance and angle of v to the nearest medoid of the class. The table is read where it lies: a 2-D
array of rows in either order, or a sequence of 1-D columns. No copy of it is made, whatever its length. A row's
result depends on that row alone, bit for bit: not on its position, the rows beside it or the number of threads.

A row is left *undecided* (label −1, numbers NaN) when its feature vector is zero, not finite, or so large or small
that its square leaves the range of a double. Such rows are rare, and the caller has a slower way for them: the
definition. Where the kernel is not built, all rows are left to it.

`FoldSearch` scores the configurations that a fit searches among.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes, Flags, Table
from qmedoid.kernels.backend import Measured, compiled, in_chunks, row_count

_CHUNK_ROWS = 16384
_ROWS_PER_THREAD = 10_000


@dataclass(frozen=True)
class ScoringPlan:
    """What a fitted rule needs to decide, as contiguous arrays. U used columns, A anchors, P medoids, C classes."""

    n_columns: int  # of the tables it can score
    used: Codes  # (U,): columns that it reads
    center: Array  # (U,): what is subtracted from them
    offsets: Codes  # (A + 1,): members of anchor a are `members[offsets[a]:offsets[a + 1]]`
    members: Codes  # (S,): positions in `used`
    weights: Array  # (S,): divided by the scale of the column already
    signed: bool  # whether features carry the sign of their weighted sum
    feature_center: Array  # (A,)
    feature_inverse_scale: Array  # (A,)
    medoids: Array  # (P, A): class by class
    medoid_norms: Array  # (P,)
    medoid_indices: Codes  # (P,): the index each is reported by
    class_offsets: Codes  # (C + 1,): medoids of class c are `medoids[class_offsets[c]:class_offsets[c + 1]]`
    measurable: bool  # whether every medoid is zero or has a square within range; else all rows are left undecided
    multipliers: Array  # (C,)
    alpha: float  # share of the distance channel; 1 where the angle does not count
    angle: Literal["true", "printed"]


def measure(table: Table, plan: ScoringPlan, *, channels: bool = True, threads: int | None = None) -> Measured:
    """Fusion scores and nearest medoids of every row, and distance and angle to them if `channels` are wanted.

    The table has rows (n, M), or is a sequence of M columns (n,), of raw numbers; see `kernels.backend.in_chunks`.
    """
    shape = n, _ = row_count(table, plan.n_columns), len(plan.multipliers)
    distance, angle = np.empty((2, n if channels else 0, shape[1]))
    found = Measured(np.empty(shape), np.empty(shape, dtype=np.intp), distance, angle)
    wanted = {"distance": distance, "theta": angle} if channels else {}
    _fill(table, plan, channels, threads, scores=found.scores, nearest=found.nearest, **wanted)
    return found


def labels(table: Table, plan: ScoringPlan, *, threads: int | None = None) -> Codes:
    """Class code of every row, shape (n,): the smallest score, of equal ones the first; −1 for undecided rows."""
    found = np.empty(row_count(table, plan.n_columns), dtype=np.intp)
    _fill(table, plan, False, threads, labels=found)
    return found


def _fill(table: Table, plan: ScoringPlan, channels: bool, threads: int | None, **results: NDArray[Any]) -> None:
    """Fill the results that are given; without channels, no angle is computed where it does not count."""
    angle = plan.angle if channels or plan.alpha != 1.0 else "none"
    arguments, sizes = {"plan": plan, "angle": angle}, (_CHUNK_ROWS, _ROWS_PER_THREAD)
    in_chunks("scoring.score" if plan.measurable else "", _undecided, table, sizes, threads, arguments, results)


def _undecided(_table: Table, plan: ScoringPlan, angle: str, **results: NDArray[Any]) -> None:
    """Leave all rows to the definition."""
    del plan, angle
    for whole in results.values():
        whole[...] = -1 if whole.dtype == np.intp else np.nan


ANGLES = {"none": 0, "true": 1, "printed": 2}
"""How the kernels number the angular channels."""


@dataclass(frozen=True)
class Candidates:
    r"""Feature columns :math:`u = g\,\sigma\sqrt{\sum_f (w_f x_f)^2}` over some members of one group."""

    members: Codes  # (m,): columns of the table that any of the candidates uses
    weights: Array  # (m,): weight w of each
    picks: Codes  # (n_candidates, k): positions in `members`, in the order in which they are summed
    factors: Array  # (n_candidates,): factor g of each candidate


class FoldSearch:
    """The features of one configuration on one fold, kept up to date as single features are replaced.

    A visit asks what becomes of the validation predictions when the feature of one anchor is replaced by each of many
    candidates. All other features stay, so their share of every distance, norm and inner product is computed once per
    visit; a candidate adds one column to it. There is no NumPy twin: where the kernel is not built, the definition is
    rebuilt for every candidate (:class:`qmedoid.methods.nearest.problem.RebuildObjective`).

    `samples` are for each class the rows of `train` (n_train, M) among which its medoid is sought, rising and one at
    least. Predictions are those of the rows `val`, whose class codes are `codes_val`. `angle` is one of `ANGLES`.
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
        assert kernel is not None, "the caller knows that it is built"
        self.kernel = kernel
        sampled = np.concatenate(samples)
        others = np.setdiff1d(np.arange(len(train)), sampled)
        by_class = np.argsort(codes_val, kind="stable")
        # Columns of the rows among which medoids are sought, class by class, then of all others; `bounds` of classes.
        self.train = np.ascontiguousarray(train[np.concatenate((sampled, others))].T)
        self.bounds = _starts([len(rows) for rows in samples])
        # Rows that are equal to an earlier one of their class have equal totals, and are never the medoid.
        self.repeated = np.ones(len(sampled), dtype=np.uint8)
        for start, rows in zip(self.bounds, samples, strict=False):
            keys = np.ascontiguousarray(train[rows]).view(f"V{train.itemsize * train.shape[1]}")
            self.repeated[start + np.unique(keys, return_index=True)[1]] = 0
        self.val = np.ascontiguousarray(val[by_class].T)
        self.val_bounds = _starts(np.bincount(codes_val, minlength=len(multipliers)))
        self.multipliers = np.ascontiguousarray(multipliers, dtype=np.float64)
        self.alpha, self.angle, self.signed = float(alpha), ANGLES[angle], signed
        # Standardized features of the rows among which medoids are sought, and of the validation rows.
        self.sample_z = self.val_z = np.empty((0, 0))
        # |mean| / deviation of each feature, by which the rounding of the mean is magnified; infinite where rounding
        # decides what the feature is. Squared distances within each class, which are updated and so are bounds only,
        # and at most so much is wrong with them.
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

        They count true classes by predicted classes of the validation rows, shape (n_candidates, C, C). The flags are
        set where rounding decides a prediction, so that the counts may differ from those of a plain rebuild.
        """
        count, n_classes = len(candidates.picks), len(self.multipliers)
        confusion = np.zeros((count, n_classes, n_classes), dtype=np.int64)
        unsure = np.zeros(count, dtype=np.bool_)
        self.kernel.evaluate(self, anchor, candidates, confusion, unsure.view(np.uint8))
        return confusion, unsure


def _starts(sizes: Sequence[int] | Codes) -> Codes:
    starts: Codes = np.concatenate(([0], np.cumsum(sizes))).astype(np.intp)
    return starts
