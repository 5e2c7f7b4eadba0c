r"""A bend of scores: probabilities that no straight line gives, from held-out rows.

A piecewise-linear function is added to the log-odds z of two classes, with its knots at quantiles of z where both
classes count alike, or, of more classes, to the score of every class, with its knots at quantiles of the two highest
scores of a row. It is the likeliest with a penalty :math:`\tfrac{\lambda}{2}\sum_j (\text{slope}_j)^2`; λ is
chosen by cross-validation, and where the bend does not make held-out rows likelier, there is none.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.fitting.row_groups import draws_per_row, numbered
from qmedoid.kernels.ties import TIE, first_largest, stable_order
from qmedoid.variational.loss import log_softmax

Bend = tuple[Array, Array]
"""Knots, and what is added there."""

_LEVELS = np.linspace(0.02, 0.98, 9)
_PENALTIES = np.array([1.0, 4.0, 16.0, 64.0, 256.0])
_FOLDS = 5
# Knots are at least so far apart, in log-odds: nearer ones cannot be told apart by any number of rows that there is.
_NEAREST = 0.3
# Scores keep at least this share of their steps, so that their order is kept.
_FLATTEST = 0.05
# A row's worth of pull to no bend at all, where rows say nothing.
_PULL = 0.01
_MOST_STEPS = 50


def fit_bend(log_odds: Array, positive: Flags, groups: Codes | None = None) -> Bend:
    """The bend of log-odds of rows that a model has not seen; empty where a straight line will do.

    Parameters
    ----------
    log_odds : ndarray of shape (n,)
    positive : ndarray of bool of shape (n,)
        Which rows are of the second class.
    groups : ndarray of shape (n,), optional
        Rows of one group are in one fold, and count as one draw.
    """
    if positive.all() or not positive.any():
        return np.zeros(0), np.zeros(0)
    targets = smoothed_targets(positive, draws_per_row(groups))
    scores = np.column_stack([np.zeros(len(log_odds)), log_odds])
    knots = _apart(*_balanced(log_odds, positive))
    # The first of two scores is 0 and stays there.
    return _likeliest_bend(_Rows(scores, np.column_stack([1.0 - targets, targets]), slice(1, 2)), knots, groups)


def fit_class_bend(scores: Array, codes: Codes, groups: Codes | None = None) -> Bend:
    """The bend of the scores of every class, of rows that a model has not seen; empty where straight lines will do.

    Parameters
    ----------
    scores : ndarray of shape (n, C)
        Their softmax is a probability.
    codes, groups : ndarray of shape (n,)
    """
    n, n_classes = scores.shape
    highest = np.sort(np.partition(scores, n_classes - 2, axis=1)[:, -2:].ravel())
    knots = _apart(highest, np.full(2 * n, 0.5 / n))
    return _likeliest_bend(_Rows(scores, np.eye(n_classes)[codes], slice(0, n_classes)), knots, groups)


def smoothed_targets(positive: Flags, share: float = 1.0) -> Array:
    """1 and 0 with the doubt that N draws of a class leave (Platt): (N + 1)/(N + 2), and 1/(N + 2)."""
    n_positive = share * int(positive.sum())
    n_others = share * len(positive) - n_positive
    targets: Array = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_others + 2.0))
    return targets


class _Rows(NamedTuple):
    """Scores and targets, shape (n, C), and the B classes whose scores are bent."""

    scores: Array
    targets: Array
    bent: slice

    @property
    def n_bent(self) -> int:
        """B."""
        return int(self.scores[:, self.bent].shape[1])

    def take(self, rows: Flags) -> "_Rows":
        return _Rows(self.scores[rows], self.targets[rows], self.bent)

    def hats(self, knots: Array) -> csr_array:
        """Weight of every knot in the interpolation at every score that is bent, shape (n · B, K)."""
        values = self.scores[:, self.bent].ravel()
        place = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
        share = np.clip((values - knots[place]) / (knots[place + 1] - knots[place]), 0.0, 1.0)
        weights = np.column_stack([1.0 - share, share]).ravel()
        places = np.column_stack([place, place + 1]).ravel()
        return csr_array((weights, places, np.arange(0, len(places) + 1, 2)), shape=(len(values), len(knots)))

    def log_chances(self, added: Array) -> Array:
        """Logarithms of the probabilities, shape (n, C), with what is added to the scores that are bent."""
        scores = self.scores.copy()
        scores[:, self.bent] += added.reshape(-1, self.n_bent)
        return log_softmax(scores)

    def losses(self, log_chances: Array) -> Array:
        """Minus the log-likelihood of every row."""
        losses: Array = -(self.targets * log_chances).sum(axis=1)
        return losses


def _balanced(log_odds: Array, positive: Flags) -> tuple[Array, Array]:
    """Log-odds that ascend, and weights of which each class has half."""
    order = stable_order(log_odds)
    n_positive = int(positive.sum())
    return log_odds[order], np.where(positive[order], 0.5 / n_positive, 0.5 / (len(positive) - n_positive))


def _apart(values: Array, weights: Array) -> Array:
    """Quantiles of weighted values, which ascend, none too near to the one before."""
    places = np.minimum(np.searchsorted(np.cumsum(weights), _LEVELS), len(values) - 1)
    kept: list[float] = []
    for knot in values[places].tolist():
        if not kept or knot - kept[-1] >= _NEAREST:
            kept.append(knot)
    return np.array(kept)


def _likeliest_bend(rows: _Rows, knots: Array, groups: Codes | None = None) -> Bend:
    """With the penalty that makes left-out rows likeliest; empty where none does."""
    if len(knots) < 2:
        return np.zeros(0), np.zeros(0)
    # In turn by the highest score, so that every fold has all of them, and nothing is drawn; classes have no say in it.
    folds = np.empty(len(rows.scores), dtype=np.intp)
    order = stable_order(rows.scores[:, rows.bent].max(axis=1))
    folds[order] = (np.arange(len(folds)) if groups is None else numbered(groups[order])) % _FOLDS
    share = draws_per_row(groups)
    straight = rows.losses(log_softmax(rows.scores)).mean()
    gains = straight - _held_out_losses(rows, knots, folds, share).mean(axis=1)
    best = first_largest(gains, float(straight))
    if gains[best] <= TIE * straight:
        return np.zeros(0), np.zeros(0)
    return knots, _likeliest(rows, rows.hats(knots), knots, float(_PENALTIES[best]), np.zeros(len(knots)), share)


def _held_out_losses(rows: _Rows, knots: Array, folds: Codes, share: float) -> Array:
    """Of every penalty and row."""
    losses = np.empty((len(_PENALTIES), len(folds)))
    for fold in range(_FOLDS):
        own, others = rows.take(folds == fold), rows.take(folds != fold)
        own_hats, hats, bends = own.hats(knots), others.hats(knots), np.zeros(len(knots))
        for number, penalty in reversed(list(enumerate(_PENALTIES.tolist()))):
            bends = _likeliest(others, hats, knots, penalty, bends, share)
            losses[number, folds == fold] = own.losses(own.log_chances(own_hats @ bends))
    return losses


def _likeliest(rows: _Rows, hats: csr_array, knots: Array, penalty: float, bends: Array, share: float = 1.0) -> Array:
    """Bends of the highest penalised likelihood by Newton's method, held back where they would turn the order.

    A row is this share of a draw: the penalty is that beside the sum over draws.
    """
    slopes = np.diff(np.eye(len(knots)), axis=0) / np.diff(knots)[:, None]
    quadratic = (penalty * slopes.T @ slopes + _PULL * np.eye(len(knots))) / share

    def loss(bends: Array) -> tuple[float, Array]:
        log_chances = rows.log_chances(hats @ bends)
        return float(rows.losses(log_chances).sum() + 0.5 * bends @ quadratic @ bends), log_chances

    value, log_chances = loss(bends)
    for _ in range(_MOST_STEPS):
        chances = np.exp(log_chances[:, rows.bent])
        gradient = hats.T @ (chances - rows.targets[:, rows.bent]).ravel() + quadratic @ bends
        likely = hats.data * np.repeat(chances.ravel(), 2)
        by_class = (hats.T @ csr_array((likely, hats.indices, hats.indptr), hats.shape)).toarray()
        # The classes of a row together: entries of one place add up.
        expected = csr_array((likely, hats.indices, hats.indptr[:: rows.n_bent]), (len(chances), len(knots))).toarray()
        step = np.linalg.solve(by_class - expected.T @ expected + quadratic, gradient)
        following, log_chances = loss(bends - step)
        while following > value and np.abs(step).max() > 1e-9:
            step = step / 2.0
            following, log_chances = loss(bends - step)
        if value - following < 1e-9 * (1.0 + abs(value)):
            break
        bends, value = bends - step, following
    steepest = float((-np.diff(bends) / np.diff(knots)).max())
    return bends if steepest <= 1.0 - _FLATTEST else bends * ((1.0 - _FLATTEST) / steepest)
