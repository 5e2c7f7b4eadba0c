"""Medoids: the training rows that represent a class (algorithms 4 and 5).

The medoid of rows x_1 .. x_n with weights w_1 .. w_n is the row i that minimizes sum_j w_j |x_j - x_i|; K medoids
minimize sum_j w_j min_m |x_j - x_m|. Ties, and differences below ``TIE_TOLERANCE`` of the total, go to the lowest
index, so a result depends on the rows alone and not on the machine that computed it.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError, check_int
from qmedoid.geometry.row_groups import draw_rows
from qmedoid.kernels.medoid import TIE_TOLERANCE, distances, medoid, require_finite, safe_scale
from qmedoid.kernels.ties import first_smallest


def medoid_index(X: ArrayLike, *, weights: ArrayLike | None = None) -> int:
    """Return the index of the row of X with the smallest sum of distances to all rows, exactly.

    Parameters
    ----------
    X : array of shape (n, d)
    weights : array of shape (n,), optional
        Non-negative; a row of weight k counts as k equal rows, a row of weight 0 as absent.

    Returns
    -------
    int
        i minimizing ``sum_j w_j |x_j - x_i|``; totals that differ by at most ``TIE_TOLERANCE`` of themselves count as
        equal and the lowest index wins.

    Raises
    ------
    DataError
        If X has no rows or holds NaN or infinity, or if weights are negative, not finite or all zero.

    Examples
    --------
    >>> from qmedoid import medoid_index
    >>> medoid_index([[0.0], [1.0], [9.0]])
    1
    """
    rows = _table(X)
    return medoid(rows, weights=None if weights is None else _weights(weights, len(rows)))


def class_samples(codes: Codes, n_classes: int, *, max_rows: int | None, rng: np.random.Generator) -> tuple[Codes, ...]:
    """Rows of each class among which its medoids are sought, ascending: at most `max_rows`, drawn (Algorithm 4).

    The draw does not depend on features, so one draw serves every configuration that is compared.
    """
    limit = len(codes) if max_rows is None else _positive("max_rows", max_rows)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(n_classes + 1))
    return tuple(draw_rows(order[start:stop], limit, rng) for start, stop in pairwise(bounds))


def sampled_class_medoids(F: Array, samples: Sequence[Codes], *, n_medoids: int = 1) -> tuple[Codes, Codes]:
    """Rows of F that are the medoids of each class among its sample, and their class codes (Algorithm 5).

    They are ordered by class and then by row. A class without rows has none.
    """
    k = _positive("n_medoids", n_medoids)
    found = [sample[k_medoids(F[sample], k)] if len(sample) else sample for sample in samples]
    classes = np.repeat(np.arange(len(samples), dtype=np.intp), [len(rows) for rows in found])
    return np.concatenate(found).astype(np.intp), classes


def k_medoids(X: ArrayLike, k: int) -> Codes:
    """Rows of X, k of them and ascending, that no single swap improves upon as medoids; fewer where rows are equal.

    The objective is sum_j min_m |x_j - x_m|. Medoids are added greedily, then exchanged with other rows as soon as that
    helps, until nothing does. k = 1 is the exact medoid. All distances are held in memory: n * n * 8 bytes.
    """
    table = _table(X)
    if _positive("k", k) == 1:
        return np.array([medoid(table)], dtype=np.intp)
    require_finite(table)
    # Adding 0.0 turns -0.0 into 0.0: equal numbers, different bytes.
    _, first, counts = np.unique(table + 0.0, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    first, mass = first[order], counts[order].astype(np.float64)
    if k >= len(first):
        return first
    rows = safe_scale(table[first])
    D = distances(rows)
    # Add the row that lowers sum_j mass_j min_m D_mj most, until there are k (the BUILD phase of PAM).
    chosen = [medoid(rows, weights=mass)]
    nearest = D[chosen[0]].copy()
    while len(chosen) < k:
        gain = np.maximum(nearest - D, 0.0) @ mass
        # A chosen row gains nothing, but neither does any other when the rest of the mass is negligible.
        gain[chosen] = -1.0
        most = gain.max()
        chosen.append(int(np.argmax(gain >= most - TIE_TOLERANCE * abs(most))))
        np.minimum(nearest, D[chosen[-1]], out=nearest)
    return np.sort(first[_swap(D, mass, np.array(chosen, dtype=np.intp))])


def _swap(D: Array, mass: Array, medoids: Codes) -> Codes:
    """Exchange medoids for other rows, each exchange made as soon as it is found to help.

    With a = distance to the nearest and b to the second nearest medoid, putting row c in place of medoid m changes
    the objective by

        sum_{j not of m} w_j min(D_cj - a_j, 0) + sum_{j of m} w_j (min(D_cj, b_j) - a_j);

    one pass over j gives this for all m at once.
    """
    n, k = len(D), len(medoids)
    medoids = medoids.copy()
    owner, a, b = _two_nearest(D, medoids)
    since_swap = 0
    c = 0
    while since_swap < n:
        row = D[c]
        closer = mass * np.minimum(row - a, 0.0)
        taken = mass * (np.minimum(row, b) - a)
        change = closer.sum() + np.bincount(owner, taken - closer, k)
        m = first_smallest(change, float(mass @ a))
        # Only a gain beyond rounding counts, or two equal configurations would be swapped for ever.
        if change[m] < -TIE_TOLERANCE * (mass @ a):
            medoids[m] = c
            owner, a, b = _two_nearest(D, medoids)
            since_swap = 0
        since_swap += 1
        c = (c + 1) % n
    return medoids


def _two_nearest(D: Array, medoids: Codes) -> tuple[Codes, Array, Array]:
    """The position of the nearest medoid of each row, its distance and that of the second nearest."""
    to_medoids = D[medoids]
    owner = to_medoids.argmin(axis=0)
    two = np.partition(to_medoids, 1, axis=0)
    return owner, two[0], two[1]


def _table(X: ArrayLike) -> Array:
    table = np.require(X, np.float64, ["C", "ALIGNED"])
    if np.ndim(X) != 2:
        raise DataError(
            f"X has shape {np.shape(X)}. A medoid needs a table of shape (n, d): for one column pass X.reshape(-1, 1)."
        )
    if len(table) == 0:
        raise DataError("X has no rows. A medoid is one of the rows: leave out classes without any.")
    return table


def _weights(weights: ArrayLike, n: int) -> Array:
    w = np.ascontiguousarray(weights, dtype=np.float64)
    if w.shape != (n,):
        raise DataError(f"weights has shape {w.shape}. It must be ({n},): one number for each row of X.")
    if not (np.isfinite(w).all() and w.min() >= 0.0 and w.max() > 0.0):
        raise DataError(
            f"weights runs from {w.min()} to {w.max()}. They must be finite and non-negative with at least one "
            "above zero: a weight says how often a row counts."
        )
    return w


def _positive(name: str, value: int) -> int:
    check_int(f"{name!r} parameter", value, 1)
    return int(value)
