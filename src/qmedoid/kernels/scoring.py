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
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes, Table
from qmedoid.kernels.backend import Measured, compiled, in_chunks, row_count

_CHUNK_ROWS = 16384
_ROWS_PER_THREAD = 10_000


@dataclass(frozen=True)
class ScoringPlan:
    """What a fitted rule needs to decide, as contiguous arrays. U used columns, A anchors, P medoids, C classes.

    Attributes
    ----------
    n_columns : int
        Columns of the tables it can score.
    used : ndarray of shape (U,)
        Those it reads.
    center : ndarray of shape (U,)
        What is subtracted from the used columns.
    offsets, members, weights : ndarray of shape (A + 1,), (S,) and (S,)
        Members of anchor a are ``members[offsets[a]:offsets[a + 1]]``, as positions in `used`. Their weights are
        divided by the scale of the column already.
    signed : bool
        Whether features carry the sign of their weighted sum.
    feature_center, feature_inverse_scale : ndarray of shape (A,)
    medoids, medoid_norms, medoid_indices : ndarray of shape (P, A), (P,) and (P,)
        Class by class, with the index each is reported by.
    class_offsets : ndarray of shape (C + 1,)
        Medoids of class c are ``medoids[class_offsets[c]:class_offsets[c + 1]]``.
    measurable : bool
        Whether every medoid is zero or has a square within range; else all rows are left undecided.
    multipliers : ndarray of shape (C,)
    alpha : float
        Share of the distance channel; 1 where the angle does not count.
    angle : {"true", "printed"}
    """

    n_columns: int
    used: Codes
    center: Array
    offsets: Codes
    members: Codes
    weights: Array
    signed: bool
    feature_center: Array
    feature_inverse_scale: Array
    medoids: Array
    medoid_norms: Array
    medoid_indices: Codes
    class_offsets: Codes
    measurable: bool
    multipliers: Array
    alpha: float
    angle: Literal["true", "printed"]


def measure(table: Table, plan: ScoringPlan, *, channels: bool = True, threads: int | None = None) -> Measured:
    """Fusion scores and nearest medoids of every row, and distance and angle to them if `channels` are wanted.

    Parameters
    ----------
    table : ndarray of shape (n, M), or sequence of M arrays of shape (n,)
        Raw rows, or raw columns. float64 and float32 are read in place; other types are converted piece by piece.
        Arithmetic is in double precision for all of them.
    plan : ScoringPlan
    channels : bool
    threads : int or None
        None uses ``QMEDOID_THREADS`` if set, else the cores this process may run on; short tables take one.
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
    kernel = compiled("scoring")
    if kernel is None or not plan.measurable:
        for whole in results.values():
            whole[...] = -1 if whole.dtype == np.intp else np.nan
        return
    angle = plan.angle if channels or plan.alpha != 1.0 else "none"
    fill, sizes = partial(kernel.score, plan=plan, angle=angle), (_CHUNK_ROWS, _ROWS_PER_THREAD)
    in_chunks(fill, table, chunk_rows=sizes[0], rows_per_thread=sizes[1], threads=threads, **results)
