r"""Learn the metric of neighbors by the likelihood of rows that are left out one by one.

A row's neighbors are all rows but those of its group. The scores :math:`S` of other statements and the mean vote m of
the neighbors give the loss

.. math:: -\log \operatorname{softmax}\bigl(S(x_i) + g\,m(x_i)\bigr)_{y_i}, \qquad
          m(x_i) = \sum_j \operatorname{softmax}_j(-D_{ij}/\tau)\,v_j,

whose gradient by the logarithms of the column weights u, of τ and of the gain g is exact. Adam takes steps on some rows
and candidates at a time.

References
----------
J. Goldberger, S. Roweis, G. Hinton and R. Salakhutdinov, "Neighbourhood components analysis", NeurIPS, 2004.
"""

from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.row_groups import draw_rows, draws_per_row, first_rows, is_clear_gain, part_of
from qmedoid.geometry.scaling import RankScaling
from qmedoid.kernels.cross_entropy import log_softmax, row_losses
from qmedoid.kernels.nearest import nearest_squared
from qmedoid.methods.neighbors.model import NeighborsModel, averaged
from qmedoid.optimize.newton import softmax_weights

N_NEAREST = 16
"""Neighbors of a record."""
MOST_ROWS = 50_000
"""Training rows that are kept at most."""
_STEPS, _FIRST_STEPS = 160, 40
_QUERIES, _CANDIDATES = 384, 2500
_RATE = 0.05
# Columns whose weight is below this share of the largest are ignored.
_LEAST_SHARE = 1e-3
# Share of the rows that judge the metric, and rows that judge its first steps.
_JUDGES, _JUDGED = 1 / 3, 1500
# Minimum gain in log-likelihood of rows that are left out, in standard errors and absolute.
_WORTH_IT, _LEAST_GAIN = 1.5, 4.0
_SMALLEST = 1e-12


class Metric(NamedTuple):
    """Logarithms of the column weights, shape (M,), of τ and of the gain."""

    columns: Array
    length: float
    gain: float


class FittedNeighbors(NamedTuple):
    """Neighbors, and the dissimilarities of every training row by rows of other groups, shape (n, C)."""

    model: NeighborsModel
    out_of_fold: Array


def fit_neighbors(
    X: Array, codes: Codes, scores: Array, scaling: RankScaling, rng: np.random.Generator, groups: Codes | None = None
) -> FittedNeighbors | None:
    """Fit neighbors to what scores miss; None where they do not make left-out rows clearly likelier.

    Parameters
    ----------
    X : ndarray of shape (n, M)
    codes : ndarray of shape (n,)
    scores : ndarray of shape (n, C)
        Out-of-fold scores of other statements, whose softmax is a probability.
    groups : ndarray of shape (n,), optional
        Rows of one group are no neighbors of each other.
    """
    n, n_classes = scores.shape
    n_draws = n if groups is None else int(groups.max()) + 1
    if n_draws < 4 * N_NEAREST or not (np.diff(scaling.offsets) > 1).any():
        return None
    values, together = scaling.apply(X), np.arange(n) if groups is None else groups
    votes = np.eye(n_classes)[codes] - np.exp(log_softmax(scores))
    heads = np.arange(n)
    if groups is not None:  # one row of a group is enough, with the mean vote of all
        heads = first_rows(groups)
        votes = (
            np.column_stack([np.bincount(groups, vote) for vote in votes.T])[groups] / np.bincount(groups)[groups, None]
        )
    metric = _start(values, np.diff(scaling.offsets) > 1, rng)
    state = _AdamState(np.zeros(len(metric.columns) + 2), np.zeros(len(metric.columns) + 2), 0)
    kept = draw_rows(heads, MOST_ROWS, rng)
    # Rows that the metric is not learnt for say whether it is worth its price.
    is_judge = (rng.random(int(together.max()) + 1) < _JUDGES)[together]
    learning, judges = np.flatnonzero(~is_judge), np.flatnonzero(is_judge)
    for steps, rows in ((_FIRST_STEPS, draw_rows(judges, _JUDGED, rng)), (_STEPS - _FIRST_STEPS, judges)):
        metric, state = _descend(metric, state, steps, learning, values, codes, scores, votes, together, rng)
        moved = _left_out(metric, values, votes, kept, together, rows)
        if not _pays(scores[rows], moved, codes[rows], part_of(groups, rows)):
            return None
    weights, moved = _weights(metric), _left_out(metric, values, votes, kept, together, np.arange(n))
    model = NeighborsModel(
        X[kept], kept.astype(np.intp), codes[kept].astype(np.intp), votes[kept], scaling, weights,
        float(np.exp(metric.length)), min(N_NEAREST, len(kept)),
    )  # fmt: skip
    return FittedNeighbors(model, -moved)


def _start(values: Array, varies: Flags, rng: np.random.Generator) -> Metric:
    """Equal weights, and a third of the median distance to the fifth neighbor of some rows."""
    some = values[rng.choice(len(values), min(len(values), 1000), replace=False)]
    squared, _ = nearest_squared(np.ascontiguousarray(some), np.ascontiguousarray(some), k=6)
    length = max(float(np.median(np.sqrt(squared[:, -1]))) / 3.0, 1e-3)
    return Metric(np.where(varies, 0.0, -np.inf), float(np.log(length)), float(np.log(2.0)))


class _AdamState(NamedTuple):
    first: Array
    second: Array
    step: int


def _descend(
    metric: Metric,
    state: _AdamState,
    n_steps: int,
    learning: Codes,
    values: Array,
    codes: Codes,
    scores: Array,
    votes: Array,
    together: Codes,
    rng: np.random.Generator,
) -> tuple[Metric, _AdamState]:
    n = len(codes)
    for _ in range(n_steps):
        queries = rng.choice(learning, min(len(learning), _QUERIES), replace=False)
        candidates = rng.choice(n, min(n, _CANDIDATES), replace=False)
        same = together[queries][:, None] == together[candidates]
        _, gradient = loss_and_gradient(
            metric, values[queries], codes[queries], scores[queries], values[candidates], votes[candidates], same
        )
        step = state.step + 1
        state = _AdamState(0.9 * state.first + 0.1 * gradient, 0.99 * state.second + 0.01 * gradient**2, step)
        rate = 0.5 * _RATE * (1.0 + np.cos(np.pi * (step - 1) / _STEPS))
        moved = rate * (state.first / (1 - 0.9**step)) / (np.sqrt(state.second / (1 - 0.99**step)) + 1e-8)
        metric = Metric(metric.columns - moved[:-2], metric.length - float(moved[-2]), metric.gain - float(moved[-1]))
    return metric, state


def loss_and_gradient(
    metric: Metric, rows: Array, codes: Codes, scores: Array, others: Array, votes: Array, same: Flags
) -> tuple[float, Array]:
    """Mean loss of rows (q, M) with candidates (p, M), and its gradient by the metric, shape (M + 2,).

    `same` (q, p) says which candidates are of a row's own group and do not count.
    """
    weights, length, gain = np.exp(metric.columns), np.exp(metric.length), np.exp(metric.gain)
    roots = np.sqrt(weights)
    left, right = rows * roots, others * roots
    squared = (left * left).sum(axis=1)[:, None] + (right * right).sum(axis=1) - 2.0 * left @ right.T
    distances = np.sqrt(np.maximum(squared, _SMALLEST))
    logits = np.where(same, -np.inf, distances / -length)
    logits -= logits.max(axis=1, keepdims=True)
    shares = np.exp(logits)
    shares /= shares.sum(axis=1, keepdims=True)
    means = shares @ votes
    log_p = log_softmax(scores + gain * means)
    each = np.arange(len(codes))
    missed = np.exp(log_p) / len(codes)
    missed[each, codes] -= 1.0 / len(codes)
    by_share = gain * missed @ votes.T
    by_logit = shares * (by_share - (shares * by_share).sum(axis=1, keepdims=True))
    by_square = by_logit / (-2.0 * length * distances)
    by_column = (
        (by_square.sum(axis=1) @ (rows * rows)) + (by_square.sum(axis=0) @ (others * others))
        - 2.0 * ((by_square @ others) * rows).sum(axis=0)
    )  # fmt: skip
    by_length = (by_logit * (distances / length)).sum()
    gradient = np.concatenate([by_column * weights, [by_length, gain * (missed * means).sum()]])
    return -float(log_p[each, codes].mean()), gradient


def _weights(metric: Metric) -> Array:
    weights = np.exp(metric.columns)
    return np.where(weights >= _LEAST_SHARE * weights.max(), weights, 0.0)


def _left_out(metric: Metric, values: Array, votes: Array, kept: Codes, together: Codes, rows: Codes) -> Array:
    """Mean votes for rows by kept rows of other groups, shape (n, C)."""
    roots = np.sqrt(_weights(metric))
    places_of = np.full(int(together.max()) + 1, -1, dtype=np.intp)
    places_of[together[kept]] = np.arange(len(kept))
    squared, places = nearest_squared(
        np.ascontiguousarray(values[rows] * roots), np.ascontiguousarray(values[kept] * roots),
        k=min(N_NEAREST, len(kept) - 1), own=places_of[together[rows]],
    )  # fmt: skip
    return averaged(np.sqrt(squared), places, float(np.exp(metric.length)), votes[kept])


def _pays(scores: Array, moved: Array, codes: Codes, groups: Codes | None) -> bool:
    """Whether mean votes make left-out rows clearly likelier."""
    as_it_is, share = np.array([1.0, 0.0]), draws_per_row(groups)
    slope, gain = softmax_weights(
        [scores, moved], np.eye(scores.shape[1])[codes], as_it_is, lowest=[0.05, 0.0],
        pulls=np.array([1.0, 0.01]) / share, towards=as_it_is,
    )  # fmt: skip
    gains = row_losses(scores, codes) - row_losses(slope * scores + gain * moved, codes)
    return is_clear_gain(gains, groups, _WORTH_IT, _LEAST_GAIN)
