"""The NumPy twin of the scoring kernel: the same numbers up to rounding, one block of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qmedoid.arrays import Array, Codes, Table

if TYPE_CHECKING:
    from qmedoid.kernels.scoring import ScoringPlan, ScoringResults


EPSILON = 1e-12
# Squared norms outside these bounds may have lost digits or overflowed.
_SMALLEST, _LARGEST = 2.0**-960, 2.0**960


def score(columns: Table, plan: ScoringPlan, angle: str, out: ScoringResults) -> int:
    """Fill the results that are asked for; return how many rows were left undecided, as the compiled kernel does."""
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
    for whole, part, missing in (
        (out.distance, distance, np.nan),
        (out.theta, theta, np.nan),
        (out.nearest, nearest, -1),
        (out.scores, scores, np.nan),
        (out.labels, np.argmin(scores, axis=1), -1),
    ):
        if whole is not None:
            whole[...] = part
            whole[undecided] = missing
    return int(np.count_nonzero(undecided))


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
