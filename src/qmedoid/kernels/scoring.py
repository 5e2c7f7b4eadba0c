r"""Raw columns to fusion scores and labels in one pass over the rows.

.. math::

   z_f = \frac{x_f - c_f}{\sigma_f}, \qquad
   v_a = \frac{\pm\sqrt{\sum_{f\in\kappa(a)} (w_{af} z_f)^2} - m_a}{d_a}, \qquad
   s_c = m_c\Bigl(\alpha\,\frac{D_c}{\sum D + \varepsilon} + (1-\alpha)\,\frac{\Theta_c}{\sum\Theta + \varepsilon}\Bigr)

with D and Θ the distance and angle of v to the nearest medoid of the class. The table is read where it lies: a 2-D
array of rows in either order, or a sequence of 1-D columns. No copy of it is made, whatever its length. A row's
result depends on that row alone, bit for bit: not on its position, the rows beside it or the number of threads.

A row is left *undecided* (label −1, numbers NaN) when its feature vector is zero, not finite, or so large or small
that its square leaves the range of a double. Such rows are rare, and the caller has a slower way for them.
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
    if not plan.measurable:
        for whole in results.values():
            whole[...] = -1 if whole.dtype == np.intp else np.nan
        return
    kernel = compiled("scoring")
    in_chunks(
        partial(
            numpy_score if kernel is None else kernel.score,
            plan=plan,
            angle=plan.angle if channels or plan.alpha != 1.0 else "none",
        ),
        table,
        chunk_rows=_CHUNK_ROWS,
        rows_per_thread=_ROWS_PER_THREAD,
        threads=threads,
        **results,
    )


def _numbers(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


def _codes(values: NDArray[Any]) -> Codes:
    return np.ascontiguousarray(values, dtype=np.intp)


EPSILON = 1e-12
# Squared norms outside these bounds may have lost digits or overflowed.
_SMALLEST, _LARGEST = 2.0**-960, 2.0**960


def numpy_score(columns: Table, plan: ScoringPlan, angle: str, **results: NDArray[Any]) -> None:
    """Fill the results that are given, as the compiled kernel does."""
    with np.errstate(all="ignore"):  # rows that leave the range are marked as undecided below
        features = _features(columns, plan)
        square = np.einsum("ij,ij->i", features, features)
        undecided = ~((square >= _SMALLEST) & (square <= _LARGEST))
        features[undecided] = 1.0
        square[undecided] = features.shape[1]
        distance, theta, nearest = _channels(features, np.sqrt(square), plan, angle)
        scores = _shares(distance)
        if angle != "none":
            scores = plan.alpha * scores + (1.0 - plan.alpha) * _shares(theta)
        scores *= plan.multipliers
    found: dict[str, NDArray[Any]] = {
        "distance": distance,
        "theta": theta,
        "nearest": nearest,
        "scores": scores,
        "labels": np.argmin(scores, axis=1),
    }
    for name, whole in results.items():
        whole[...] = found[name]
        whole[undecided] = -1 if whole.dtype == np.intp else np.nan


def _features(columns: Table, plan: ScoringPlan) -> Array:
    """Standardized anchor features (u_a − center) / scale with u_a = ±√Σ(w·(x − c))², shape (n, A)."""
    raw = columns.T if isinstance(columns, np.ndarray) else columns
    centered = [np.asarray(raw[j], dtype=np.float64) - center for j, center in zip(plan.used, plan.center, strict=True)]
    features = np.empty((len(centered[0]), len(plan.feature_center)))
    for a in range(features.shape[1]):
        own = slice(plan.offsets[a], plan.offsets[a + 1])
        terms = [w * centered[j] for j, w in zip(plan.members[own], plan.weights[own], strict=True)]
        norm = np.sqrt(sum(term * term for term in terms))
        if plan.signed:
            norm = np.where(sum(terms) < 0, -norm, norm)
        features[:, a] = (norm - plan.feature_center[a]) * plan.feature_inverse_scale[a]
    return features


def _channels(features: Array, norms: Array, plan: ScoringPlan, angle: str) -> tuple[Array, Array, Codes]:
    """Distance and angle to the nearest medoid of each class, and which one that is, each of shape (n, C)."""
    n_classes = len(plan.multipliers)
    best = np.full((len(features), n_classes), np.inf)
    theta = np.zeros_like(best)
    nearest = np.zeros(best.shape, dtype=np.intp)
    classes = np.repeat(np.arange(n_classes), np.diff(plan.class_offsets))
    for c, index, mu, norm in zip(classes, plan.medoid_indices, plan.medoids, plan.medoid_norms, strict=True):
        difference = features - mu
        squared = np.einsum("ij,ij->i", difference, difference)
        nearer = squared < best[:, c]
        best[nearer, c] = squared[nearer]
        nearest[nearer, c] = index
        if angle == "printed":
            theta[nearer, c] = _printed_angle(squared[nearer], norms[nearer], norm)
        elif angle == "true":
            theta[nearer, c] = _true_angle(features[nearer], norms[nearer], mu, norm)
    return np.sqrt(best), theta, nearest


def _printed_angle(squared: Array, norms: Array, norm: float) -> Array:
    """Θ = arccos √s with s = ‖v − μ‖² / (2(‖v‖² + ‖μ‖²)); 0 for a zero medoid, which is no state."""
    if norm == 0.0:
        return np.zeros_like(squared)
    return np.arccos(np.sqrt(np.minimum(squared / (2.0 * (norms**2 + norm**2)), 1.0)))


def _true_angle(features: Array, norms: Array, mu: Array, norm: float) -> Array:
    """Angle by Kahan's formula 2·atan2(‖u − m‖, ‖u + m‖) on unit vectors; π/2 for a zero medoid."""
    if norm == 0.0:
        return np.full(len(features), np.pi / 2.0)
    unit, medoid = features / norms[:, None], mu / norm
    apart, together = unit - medoid, unit + medoid
    theta: Array = 2.0 * np.arctan2(
        np.sqrt(np.einsum("ij,ij->i", apart, apart)), np.sqrt(np.einsum("ij,ij->i", together, together))
    )
    theta[(features == mu).all(axis=1)] = 0.0
    return theta


def _shares(channel: Array) -> Array:
    """Share of each class in a channel, C_c / (Σ C + ε), shape (n, C)."""
    shares: Array = channel / (channel.sum(axis=1, keepdims=True) + EPSILON)
    return shares
