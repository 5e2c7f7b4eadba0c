"""Which training rows an evidence model looks at: medoids of every class, and a sample of a long table."""

import numpy as np
from scipy.spatial.distance import cdist

from qmedoid.arrays import Array, Codes
from qmedoid.fitting.row_groups import equal_rows, first_rows
from qmedoid.kernels.ties import nearest_of, stable_order

# Rows of a class among which its medoids are sought, and steps of the search.
_MAX_CLASS_ROWS = 3000
_N_STEPS = 12


def class_rows(codes: Codes, n_classes: int) -> list[Codes]:
    """Rows of every class that has any."""
    return [rows for rows in (np.flatnonzero(codes == code) for code in range(n_classes)) if len(rows)]


def stratified_sample(
    codes: Codes, n_classes: int, max_rows: int, rng: np.random.Generator, groups: Codes | None = None
) -> Codes:
    """At most about `max_rows` rows, rising, each class by its share but with no class left out.

    Groups are drawn as a whole, by the class of their first row.
    """
    if len(codes) <= max_rows:
        return np.arange(len(codes))
    if groups is not None:
        first = first_rows(groups)
        drawn_groups = stratified_sample(
            codes[first], n_classes, max(1, round(max_rows * len(first) / len(codes))), rng
        )
        missing = np.setdiff1d(codes, codes[taken := np.isin(groups, drawn_groups)])
        return np.flatnonzero(taken | np.isin(codes, missing))
    share = max_rows / len(codes)
    drawn = [rng.choice(rows, max(1, round(share * len(rows))), replace=False) for rows in class_rows(codes, n_classes)]
    return np.sort(np.concatenate(drawn))


def medoids_of_classes(
    Z: Array,
    codes: Codes,
    n_classes: int,
    n_medoids: int,
    rng: np.random.Generator,
    taken: Codes | None = None,
    counts: Codes | None = None,
) -> Codes:
    """Rows near the centres of k clusters of each class, classes in turn, large clusters first.

    Any number of leading rows is thus spread over the classes. k is the same for all classes, but at most half of the
    rows of a class and at least 1. Rows that are `taken` are passed over in classes that have enough others. With
    `counts` a row counts so many times, and one that counts 0 times is equal to another, and not looked at.
    """
    per_class = max(1, n_medoids // n_classes)
    found = []
    for rows in class_rows(codes, n_classes):
        rows = rows if counts is None else rows[counts[rows] > 0]
        k = min(per_class, max(1, len(rows) // 2))
        free = rows if taken is None else np.setdiff1d(rows, taken)
        rows = free if len(free) >= k else rows
        if len(rows) > _MAX_CLASS_ROWS:
            rows = np.sort(rng.choice(rows, _MAX_CLASS_ROWS, replace=False))
        found.append(rows[_cluster_rows(Z[rows], k, rng, None if counts is None else counts[rows])])
    turns = range(max(len(rows) for rows in found))
    return np.array([rows[turn] for turn in turns for rows in found if turn < len(rows)], dtype=np.intp)


def counted_rows(rows: Array, codes: Codes) -> Codes:
    """How often every row occurs in its class, 0 where it has occurred before."""
    cells = equal_rows(np.column_stack([rows, codes]))
    counts = np.zeros(len(rows), dtype=np.intp)
    counts[first_rows(cells)] = np.bincount(cells)
    return counts


def _cluster_rows(Z: Array, k: int, rng: np.random.Generator, counts: Codes | None = None) -> Codes:
    """Lloyd's k-means from k random rows; each centre is then replaced by the nearest row that is still free."""
    each = np.ones(len(Z)) if counts is None else counts.astype(np.float64)
    centers = Z[rng.choice(len(Z), k, replace=False)] if k > 1 else np.average(Z, axis=0, weights=each)[None]
    before = None
    for _ in range(_N_STEPS):
        nearest = nearest_of(cdist(Z, centers, "sqeuclidean"))
        if before is not None and np.array_equal(nearest, before):
            break
        sizes = np.bincount(nearest, weights=each, minlength=k)
        members = np.zeros((k, len(Z)))
        members[nearest, np.arange(len(Z))] = each
        # A centre that no row is nearest to stays where it is.
        centers = np.where(sizes[:, None] > 0, members @ Z / np.maximum(sizes, 1)[:, None], centers)
        before = nearest
    distances = cdist(centers, Z)
    taken: list[int] = []
    for cluster in np.argsort(-sizes, kind="stable"):
        order = stable_order(distances[cluster])[: k + 1]
        taken.append(next(int(row) for row in order if int(row) not in taken))
    return np.array(taken, dtype=np.intp)
