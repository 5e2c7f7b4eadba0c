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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes, Table
from qmedoid.exceptions import ParameterError
from qmedoid.kernels._backend import compiled, in_chunks, row_count

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


class ScoringResults(NamedTuple):
    """Measurements of n rows; of an undecided row all numbers are NaN and the medoids −1.

    Attributes
    ----------
    scores : ndarray of shape (n, C)
        Fusion scores.
    nearest : ndarray of shape (n, C)
        Index of the nearest medoid of each class.
    distance, angle : ndarray of shape (n, C)
        To the nearest medoid of each class; empty unless they were asked for.
    """

    scores: Array
    nearest: Codes
    distance: Array
    angle: Array


def make_plan(
    *,
    center: Array,
    scale: Array,
    subsets: Sequence[Sequence[int]],
    weights: Sequence[Array],
    signed: bool,
    feature_center: Array,
    feature_scale: Array,
    medoids: Array,
    medoid_classes: Codes,
    multipliers: Array,
    alpha: float,
    use_angular: bool,
    angle: Literal["true", "printed"],
) -> ScoringPlan:
    """A plan from the parts of a model: scalings, the columns and weights of each anchor, medoids and the fusion."""
    lengths = [len(subset) for subset in subsets]
    by_class = np.argsort(medoid_classes, kind="stable")
    counts = np.bincount(medoid_classes, minlength=len(multipliers))
    if len(counts) != len(multipliers) or not counts.all():
        raise ParameterError(
            f"Every class needs a medoid: there are {len(multipliers)} classes, and the classes of the medoids are "
            f"{sorted(set(medoid_classes.tolist()))}."
        )
    medoids = medoids[by_class]
    used, members = np.unique(np.concatenate([np.asarray(s, dtype=np.intp) for s in subsets]), return_inverse=True)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):  # shows in the rows it touches
        feature_inverse_scale = 1.0 / feature_scale
        scaled_weights = np.concatenate(list(weights)) / scale[used][members]
        medoid_norms = np.linalg.norm(medoids, axis=1)
    in_range = (medoid_norms >= 2.0**-480) & (medoid_norms <= 2.0**480)
    return ScoringPlan(
        n_columns=len(center),
        used=_codes(used),
        center=_numbers(center[used]),
        offsets=_codes(np.concatenate([[0], np.cumsum(lengths)])),
        members=_codes(members),
        weights=_numbers(scaled_weights),
        signed=bool(signed),
        feature_center=_numbers(feature_center),
        feature_inverse_scale=_numbers(feature_inverse_scale),
        medoids=_numbers(medoids),
        medoid_norms=_numbers(medoid_norms),
        medoid_indices=_codes(by_class),
        class_offsets=_codes(np.concatenate([[0], np.cumsum(counts)])),
        measurable=bool(np.all(in_range | ~medoids.any(axis=1))),
        multipliers=_numbers(multipliers),
        alpha=float(alpha) if use_angular else 1.0,
        angle=angle,
    )


def measure(table: Table, plan: ScoringPlan, *, channels: bool = True, threads: int | None = None) -> ScoringResults:
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
    found = ScoringResults(np.empty(shape), np.empty(shape, dtype=np.intp), distance, angle)
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
    in_chunks(
        partial(kernel.score, plan=plan, angle=angle), table, chunk_rows=_CHUNK_ROWS, rows_per_thread=_ROWS_PER_THREAD,
        threads=threads, **results,
    )  # fmt: skip


def _numbers(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


def _codes(values: NDArray[Any]) -> Codes:
    return np.ascontiguousarray(values, dtype=np.intp)
