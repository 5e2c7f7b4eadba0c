r"""Learn the metric of neighbors by the likelihood of rows that are left out one by one.

A row's neighbors are all rows but those of its group. The scores :math:`S` of other statements and the mean vote m of
the neighbors give the loss

.. math:: -\log \operatorname{softmax}\bigl(S(x_i) + g\,m(x_i)\bigr)_{y_i}, \qquad
          m(x_i) = \sum_j \operatorname{softmax}_j(-D_{ij}/\tau)\,v_j,

whose gradient by the logarithms of the column weights u, of τ and of the gain g is exact. Adam takes steps on some rows
and candidates at a time.

A metric is flattered by the rows that it was learnt from, be it that they asked or that they voted. So rows are dealt
into parts: the out-of-fold votes of each part come from a metric that was learnt without it, and decide whether
neighbors are kept. The last metric starts at the mean of those of the parts and is learnt from all rows.

References
----------
J. Goldberger, S. Roweis, G. Hinton and R. Salakhutdinov, "Neighbourhood components analysis", NeurIPS, 2004.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.groups import MOST_COLUMNS
from qmedoid.geometry.row_groups import draw_rows, first_rows, is_clear_gain, part_of
from qmedoid.geometry.scaling import RankScaling
from qmedoid.kernels.cross_entropy import log_softmax, row_losses
from qmedoid.kernels.nearest import CellSearch, cell_centers, cells_of, nearest_squared
from qmedoid.methods.calibration import slope_and_gain
from qmedoid.methods.neighbors.part import NeighborsPart, RowCells, averaged

N_NEAREST = 16
"""Neighbors of a record."""
MOST_ROWS = 200_000
"""Training rows that are kept at most."""
ROWS_IN_CELLS = 10_000
"""From so many kept rows on, neighbors are looked for in cells."""
LEAST_ROWS = 1000
"""With fewer training rows a metric is not learnt."""
_PARTS = 3
# Steps for each part, those of the first part after which neighbors may be given up, and those on all rows.
_STEPS, _FIRST_STEPS, _LAST_STEPS = 120, 40, 40
_QUERIES, _CANDIDATES = 384, 2500
_RATE = 0.05
# Columns whose weight is below this share of the largest are ignored.
_LEAST_SHARE = 1e-3
# Rows that judge the first steps.
_JUDGED = 1500
# Minimum gain in log-likelihood of rows that are left out, in standard errors and absolute: after the first steps, and
# in the end.
_HOPEFUL, _WORTH_IT = (1.0, 1.0), (2.0, 4.0)
# Steps of the logarithms of a metric, per unit.
_GRID = 128
_SMALLEST = 1e-12
# Slopes below this share of the largest are rounding in single precision.
_NOISE = 1e-5


Metric = tuple[Array, float, float]
"""Logarithms of the column weights, shape (M,), of τ and of the gain."""
_Table = tuple[Array, Codes, Array, Array, Codes]
"""Scaled rows, their classes, scores and votes; and their groups, rows of which do not see each other."""


def fit_neighbors(
    X: Array,
    codes: Codes,
    scores: Array,
    scaling: RankScaling,
    rng: np.random.Generator,
    groups: Codes | None = None,
    most_rows: int = MOST_ROWS,
    progress: Callable[[float], None] = lambda _: None,
) -> tuple[NeighborsPart, Array] | None:
    """Fit neighbors to what scores miss; None where they do not make left-out rows clearly likelier.

    Also the dissimilarities of every training row by rows of other groups, shape (n, C). `scores` (n, C) are
    out-of-fold scores of other statements, whose softmax is a probability. Rows of one group are no neighbors of each
    other. At most `most_rows` are kept. With more than `MOST_COLUMNS` columns that vary a metric is not learned.
    """
    n, n_classes = scores.shape
    n_draws = n if groups is None else int(groups.max()) + 1
    varies = np.diff(scaling.offsets) > 1
    if n_draws < LEAST_ROWS or not 0 < varies.sum() <= MOST_COLUMNS:
        return None
    together = np.arange(n) if groups is None else groups
    votes = np.eye(n_classes)[codes] - np.exp(log_softmax(scores))
    heads = np.arange(n)
    if groups is not None:  # one row of a group is enough, with the mean vote of all
        heads = first_rows(groups)
        votes = (
            np.column_stack([np.bincount(groups, vote) for vote in votes.T])[groups] / np.bincount(groups)[groups, None]
        )
    values = scaling.apply(X)
    table = values, codes, scores, votes, together
    kept, start = draw_rows(heads, most_rows, rng), _start(values, varies, rng)
    part = rng.permutation(np.arange(n_draws) % _PARTS)[together]
    metrics, moved = list[Metric](), np.empty_like(votes)
    for number in range(_PARTS):
        learning, judges = np.flatnonzero(part != number), np.flatnonzero(part == number)
        descent = _Adam(_taken(table, learning), start, _STEPS)
        if not metrics:
            some = draw_rows(judges, _JUDGED, rng)
            hoped = _left_out(_rounded(descent.steps(_FIRST_STEPS, rng)), table, kept, some, rng)
            if not _pays(scores[some], hoped, codes[some], part_of(groups, some), *_HOPEFUL):
                return None
            progress(0.5 / (_PARTS + 1))
        metrics.append(_rounded(descent.steps(_STEPS - descent.done, rng)))
        progress((number + 0.75) / (_PARTS + 1))
        moved[judges] = _left_out(metrics[-1], table, kept, judges, rng)
        progress((number + 1) / (_PARTS + 1))
    if not _pays(scores, moved, codes, groups, *_WORTH_IT):
        return None
    metric = _rounded(_Adam(table, _mean(metrics), _LAST_STEPS).steps(_LAST_STEPS, rng))
    cells = _cells(_coordinates(metric, values[kept]), rng)
    records = X[kept], kept.astype(np.intp), codes[kept].astype(np.intp), votes[kept]
    learned = _weights(metric), float(np.exp(metric[1])), min(N_NEAREST, len(kept))
    return NeighborsPart(*records, scaling, *learned, cells), -moved


def _taken(table: _Table, rows: Codes) -> _Table:
    values, codes, scores, votes, together = table
    return values[rows], codes[rows], scores[rows], votes[rows], together[rows]


def _start(values: Array, varies: Flags, rng: np.random.Generator) -> Metric:
    """Equal weights, and a third of the median distance to the fifth neighbor of some rows."""
    some = values[rng.choice(len(values), min(len(values), 1000), replace=False)]
    squared, _ = nearest_squared(np.ascontiguousarray(some), np.ascontiguousarray(some), k=6)
    length = max(float(np.median(np.sqrt(squared[:, -1]))) / 3.0, 1e-3)
    return np.where(varies, 0.0, -np.inf), float(np.log(length)), float(np.log(2.0))


def _rounded(metric: Metric) -> Metric:
    """The metric to two digits of its logarithms: steps in single precision end elsewhere on each processor."""
    columns, length, gain = (np.round(_GRID * np.asarray(one)) / _GRID for one in metric)
    return columns, float(length), float(gain)


def _mean(metrics: Sequence[Metric]) -> Metric:
    columns, lengths, gains = zip(*metrics, strict=True)
    return np.mean(columns, axis=0), float(np.mean(lengths)), float(np.mean(gains))


class _Adam:
    """Adam's steps, which grow shorter along half a cosine, on rows drawn from a table."""

    def __init__(self, table: _Table, start: Metric, n_steps: int) -> None:
        values, codes, scores, votes, together = table
        # Single precision is enough for a direction, and half the work.
        narrow: list[Any] = [one.astype(np.float32) for one in (values, scores, votes)]
        self.table = narrow[0], codes, *narrow[1:], together
        self.metric, self.n_steps, self.done = start, n_steps, 0
        self.first, self.second = np.zeros(len(start[0]) + 2), np.zeros(len(start[0]) + 2)

    def steps(self, count: int, rng: np.random.Generator) -> Metric:
        """Go so many steps further."""
        n = len(self.table[1])
        for _ in range(count):
            rows, codes, scores, _, own = _taken(self.table, rng.choice(n, min(n, _QUERIES), replace=False))
            others, _, _, votes, of_others = _taken(self.table, rng.choice(n, min(n, _CANDIDATES), replace=False))
            same = own[:, None] == of_others
            _, gradient = loss_and_gradient(self.metric, rows, codes, scores, others, votes, same)
            # Steps are equally long for any slope: one that is rounding would go another way on each processor.
            gradient[np.abs(gradient) < _NOISE * np.abs(gradient).max()] = 0.0
            rate = 0.5 * _RATE * (1.0 + np.cos(np.pi * self.done / self.n_steps))
            self.done += 1
            self.first = 0.9 * self.first + 0.1 * gradient
            self.second = 0.99 * self.second + 0.01 * gradient**2
            scale = np.sqrt(self.second / (1 - 0.99**self.done)) + 1e-8
            moved = rate * (self.first / (1 - 0.9**self.done)) / scale
            columns, length, gain = self.metric
            self.metric = columns - moved[:-2], length - float(moved[-2]), gain - float(moved[-1])
        return self.metric


def loss_and_gradient(
    metric: Metric, rows: Array, codes: Codes, scores: Array, others: Array, votes: Array, same: Flags
) -> tuple[float, Array]:
    """Mean loss of rows (q, M) with candidates (p, M), and its gradient by the metric, shape (M + 2,).

    `same` (q, p) says which candidates are of a row's own group and do not count.
    """
    kind = rows.dtype
    weights, length, gain = np.exp(metric[0]), float(np.exp(metric[1])), float(np.exp(metric[2]))
    roots = np.sqrt(weights).astype(kind)
    left, right = rows * roots, others * roots
    lengths, other_lengths = np.einsum("ij,ij->i", left, left), np.einsum("ij,ij->i", right, right)
    # The tables of all pairs cost most: they are changed in place.
    distances = left @ right.T
    distances *= -2.0
    distances += lengths[:, None]
    distances += other_lengths
    # Less than that is rounding.
    np.maximum(distances, 4.0 * np.finfo(kind).eps * (lengths.max() + other_lengths.max()) + _SMALLEST, out=distances)
    np.sqrt(distances, out=distances)
    shares = distances * (-1.0 / length)
    shares[same] = -np.inf
    shares -= shares.max(axis=1, keepdims=True)
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=1, keepdims=True)
    means = shares @ votes
    log_p = log_softmax((scores + gain * means).astype(np.float64))
    each = np.arange(len(codes))
    missed = np.exp(log_p) / len(codes)
    missed[each, codes] -= 1.0 / len(codes)
    by_logit = (gain * missed).astype(kind) @ votes.T
    by_logit -= np.einsum("ij,ij->i", shares, by_logit)[:, None]
    by_logit *= shares
    by_length = float(np.einsum("ij,ij->", by_logit, distances)) / length
    by_square = by_logit
    by_square /= distances
    by_square *= -0.5 / length
    by_column = by_square.sum(axis=1) @ (rows * rows) + by_square.sum(axis=0) @ (others * others)
    by_column = by_column - 2.0 * np.einsum("ij,ij->j", by_square @ others, rows)
    gradient = np.concatenate([by_column * weights, [by_length, gain * float((missed * means).sum())]])
    return -float(log_p[each, codes].mean()), gradient


def _weights(metric: Metric) -> Array:
    weights = np.exp(metric[0])
    return np.where(weights >= _LEAST_SHARE * weights.max(), weights, 0.0)


def _coordinates(metric: Metric, values: Array) -> Array:
    weights = _weights(metric)
    used = np.flatnonzero(weights)
    return np.ascontiguousarray(values[:, used] * np.sqrt(weights[used]))


def _cells(coordinates: Array, rng: np.random.Generator) -> RowCells | None:
    if len(coordinates) < ROWS_IN_CELLS:
        return None
    centers = cell_centers(coordinates, rng)
    return RowCells(centers, cells_of(coordinates, centers))


def _left_out(metric: Metric, table: _Table, kept: Codes, rows: Codes, rng: np.random.Generator) -> Array:
    """Mean votes for rows by kept rows of other groups, shape (n, C)."""
    values, _, _, votes, together = table
    places_of = np.full(int(together.max()) + 1, -1, dtype=np.intp)
    places_of[together[kept]] = np.arange(len(kept))
    x, others = _coordinates(metric, values[rows]), _coordinates(metric, values[kept])
    k, own, cells = min(N_NEAREST, len(kept) - 1), places_of[together[rows]], _cells(others, rng)
    if cells is None:
        squared, places = nearest_squared(x, others, k=k, own=own)
    else:
        squared, places = CellSearch(others, cells.centers, cells.members).nearest_squared(x, k=k, own=own)
    return averaged(np.sqrt(squared), places, float(np.exp(metric[1])), votes[kept])


def _pays(scores: Array, moved: Array, codes: Codes, groups: Codes | None, n_errors: float, least: float) -> bool:
    """Whether mean votes make left-out rows clearly likelier."""
    slope, gain = slope_and_gain(scores, moved, codes, groups)
    gains = row_losses(scores, codes) - row_losses(slope * scores + gain * moved, codes)
    return is_clear_gain(gains, groups, n_errors, least)
