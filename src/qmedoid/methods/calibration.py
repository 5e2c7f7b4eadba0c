r"""Calibration and weights of a sum, fitted to out-of-fold dissimilarities.

Slope and biases maximize the likelihood of :math:`p_c \propto \exp(b_c - \beta s_c)`. The curve is a piecewise-linear
function that is added to the log-odds z of two classes, with knots at quantiles of z where both classes count alike,
or to the score of every one of more classes, with knots at quantiles of the two highest scores of a row. It maximizes
the likelihood with a penalty :math:`\tfrac{\lambda}{2}\sum_j (\text{slope}_j)^2`; λ is chosen by cross-validation, and
there is no curve unless it improves the likelihood of out-of-fold rows.

Two rules keep probabilities honest where rows say little. A row of a class with N draws counts as 1/(4N) of the other
classes: N right rows cannot rule out an error rate of that order, so classes that are separated have a finite slope.
And log-odds or scores beyond those of all out-of-fold rows hardly grow: a record is no surer than the surest row that
the model was judged on.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.row_groups import draws_per_row, numbered
from qmedoid.kernels.cross_entropy import log_softmax, row_losses
from qmedoid.kernels.ties import TIE, first_largest, stable_order
from qmedoid.methods.part import Calibration
from qmedoid.optimize.newton import Local, newton, softmax_weights

Curve = tuple[Array, Array]
"""Knots, and the heights of the curve there."""
_LEVELS = np.linspace(0.02, 0.98, 9)
_PENALTIES = np.array([1.0, 4.0, 16.0, 64.0, 256.0])
_FOLDS = 5
# Minimum distance of two knots, in log-odds: no realistic number of rows separates nearer ones.
_NEAREST = 0.3
# Minimum slope of score plus curve, so that scores keep their order.
_FLATTEST_CURVE = 0.05
# Pull of the heights to 0, in rows, where rows say nothing.
_CURVE_PULL = 0.01
# Draws of every class that count as one of another class.
_DOUBT = 0.25
# Scores beyond those of all out-of-fold rows grow by this share, over a stretch of so many times the largest of them.
_BEYOND, _STRETCH = 0.05, 100.0


def fit_curve(log_odds: Array, positive: Flags, groups: Codes | None = None, row_weights: Array | None = None) -> Curve:
    """Fit the curve of out-of-fold log-odds (n,) of two classes; empty where a straight line will do.

    Rows of one group are in one fold, and count as one draw.
    """
    if positive.all() or not positive.any():
        return np.zeros(0), np.zeros(0)
    targets = doubtful_targets(positive.astype(np.intp), 2, draws_per_row(groups), row_weights)
    scores = np.column_stack([np.zeros(len(log_odds)), log_odds])
    order = stable_order(log_odds)
    # Weights of which each class has half.
    halves = np.where(positive[order], 0.5 / positive.sum(), 0.5 / (len(positive) - positive.sum()))
    if row_weights is not None:
        of_class = np.where(positive, row_weights[positive].sum(), row_weights[~positive].sum())
        halves = (0.5 * row_weights / of_class)[order]
    knots = curve_knots(log_odds[order], halves)
    # The first of two scores is 0 and stays there.
    return _best_curve(scores, targets, slice(1, 2), knots, groups, row_weights)


def fit_class_curve(
    scores: Array, codes: Codes, groups: Codes | None = None, row_weights: Array | None = None
) -> Curve:
    """Fit the curve of out-of-fold scores (n, C) of three or more classes; empty where a straight line will do."""
    n, n_classes = scores.shape
    highest = np.partition(scores, n_classes - 2, axis=1)[:, -2:].ravel()
    order = np.argsort(highest, kind="stable")
    shares = np.full(2 * n, 0.5 / n) if row_weights is None else np.repeat(0.5 * row_weights / n, 2)
    knots = curve_knots(highest[order], shares[order])
    return _best_curve(scores, np.eye(n_classes)[codes], slice(0, n_classes), knots, groups, row_weights)


def doubtful_targets(codes: Codes, n_classes: int, share: float = 1.0, row_weights: Array | None = None) -> Array:
    """Class probabilities to fit to, shape (n, C): 1 − d for the class of a row, d shared evenly by the others.

    d is a quarter of a draw over the N draws of the class, and at most that of one draw; `share` is draws per row. Of
    unequal rows N is the effective number, (Σu)² / Σu².
    """
    draws = share * np.bincount(codes, minlength=n_classes)
    if row_weights is not None:
        sums, squares = (np.bincount(codes, one, n_classes) for one in (row_weights, row_weights**2))
        draws = share * sums**2 / np.maximum(squares, np.finfo(np.float64).tiny)
    doubt = _DOUBT / np.maximum(draws, 1.0)[codes]
    targets = np.repeat(doubt[:, None] / (n_classes - 1), n_classes, axis=1)
    targets[np.arange(len(codes)), codes] = 1.0 - doubt
    return targets


def _summed(cells: Codes, weights: Array, shape: tuple[int, ...]) -> Array:
    """Sums of the weights of every cell of an array, one after another."""
    sums = np.asarray(np.bincount(cells, weights.ravel(), math.prod(shape)), dtype=np.float64)
    return sums.reshape(shape)


class CurveRows:
    """Rows that the heights of a curve are fitted to, with the weights of its K knots in the interpolation.

    From scores and targets (n, C), the B classes whose scores the curve is added to, and the knots (K,).
    """

    def __init__(
        self, scores: Array, targets: Array, curved: slice, knots: Array, row_weights: Array | None = None
    ) -> None:
        self.scores, self.targets, self.curved = scores, targets, curved
        self.knots, self.row_weights = knots, row_weights
        values = scores[:, curved].ravel()
        self.n_curved = scores[:, curved].shape[1]
        # The knots to the left and to the right of all n · B curved scores, and their weights.
        place = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
        share = np.clip((values - knots[place]) / (knots[place + 1] - knots[place]), 0.0, 1.0)
        self.places, self.weights = np.column_stack([place, place + 1]), np.column_stack([1.0 - share, share])

    def take(self, rows: Flags) -> "CurveRows":
        """Some of the rows."""
        weights = None if self.row_weights is None else self.row_weights[rows]
        return CurveRows(self.scores[rows], self.targets[rows], self.curved, self.knots, weights)

    def interpolated(self, heights: Array) -> Array:
        """The curve of these heights at all curved scores, shape (n · B,)."""
        both: Array = self.weights * heights[self.places]
        return both[:, 0] + both[:, 1]

    def log_chances(self, heights: Array) -> Array:
        """Logarithms of the probabilities, shape (n, C), with the curve of these heights."""
        scores = self.scores.copy()
        scores[:, self.curved] += self.interpolated(heights).reshape(-1, self.n_curved)
        return log_softmax(scores)

    def losses(self, log_chances: Array) -> Array:
        """Minus the log-likelihood of every row, times its weight."""
        losses: Array = -(self.targets * log_chances).sum(axis=1)
        return losses if self.row_weights is None else self.row_weights * losses

    @cached_property
    def _cells(self) -> tuple[Codes, Codes]:
        """Pairs of knots of every value, and knots of every row, as places in tables."""
        n_knots, n = len(self.knots), len(self.scores)
        pairs = n_knots * self.places[:, :, None] + self.places[:, None, :]
        return pairs.ravel(), (n_knots * np.arange(n)[:, None] + self.places.reshape(n, -1)).ravel()

    def likeliest(self, penalty: float, heights: Array, share: float = 1.0) -> Array:
        """Heights of the highest penalized likelihood by Newton's method, scaled down where they would turn the order.

        `share` is draws per row: the penalty belongs to the sum over draws.
        """
        knots, weights, u, n_knots = self.knots, self.weights, self.row_weights, len(self.knots)
        slopes = np.diff(np.eye(n_knots), axis=0) / np.diff(knots)[:, None]
        quadratic = (penalty * slopes.T @ slopes + _CURVE_PULL * np.eye(n_knots)) / share
        pairs, by_row = self._cells

        def local(heights: Array) -> Local:
            log_chances = self.log_chances(heights)

            def derivatives() -> tuple[Array, Array]:
                chances = np.exp(log_chances[:, self.curved])
                missed = chances - self.targets[:, self.curved]
                missed = missed if u is None else u[:, None] * missed
                along = _summed(self.places.ravel(), weights * missed.reshape(-1, 1), (n_knots,))
                likely = weights * chances.reshape(-1, 1)
                counted = likely if u is None else likely * np.repeat(u, self.n_curved)[:, None]
                crossed = _summed(pairs, weights[:, :, None] * counted[:, None, :], (n_knots, n_knots))
                # The classes of a row together: entries of one place add up.
                expected = _summed(by_row, likely, (len(self.scores), n_knots))
                once = expected if u is None else u[:, None] * expected
                return along + quadratic @ heights, crossed - once.T @ expected + quadratic

            return float(self.losses(log_chances).sum() + 0.5 * heights @ quadratic @ heights), derivatives

        heights = newton(local, heights, tolerance=2e-9, last_step=False)
        steepest = float((-np.diff(heights) / np.diff(knots)).max())
        return heights if steepest <= 1.0 - _FLATTEST_CURVE else heights * ((1.0 - _FLATTEST_CURVE) / steepest)


def curve_knots(values: Array, weights: Array) -> Array:
    """Knots at quantiles of weighted values, which ascend, none too near to the one before."""
    places = np.minimum(np.searchsorted(np.cumsum(weights), _LEVELS), len(values) - 1)
    kept: list[float] = []
    for knot in values[places].tolist():
        if not kept or knot - kept[-1] >= _NEAREST:
            kept.append(knot)
    return np.array(kept)


def _best_curve(
    scores: Array, targets: Array, curved: slice, knots: Array, groups: Codes | None, row_weights: Array | None
) -> Curve:
    """The curve with the penalty of the highest cross-validated likelihood; empty where no curve improves it."""
    if len(knots) < 2:
        return np.zeros(0), np.zeros(0)
    rows = CurveRows(scores, targets, curved, knots, row_weights)
    # In turn by the highest score, so that every fold has all of them, and nothing is drawn; classes do not matter.
    folds = np.empty(len(scores), dtype=np.intp)
    order = stable_order(scores[:, curved].max(axis=1))
    folds[order] = (np.arange(len(folds)) if groups is None else numbered(groups[order])) % _FOLDS
    share = draws_per_row(groups)
    straight = rows.losses(log_softmax(scores)).mean()
    losses = np.empty((len(_PENALTIES), len(folds)))
    for fold in range(_FOLDS):
        test, train = rows.take(folds == fold), rows.take(folds != fold)
        heights = np.zeros(len(knots))
        for number, penalty in reversed(list(enumerate(_PENALTIES.tolist()))):
            heights = train.likeliest(penalty, heights, share)
            losses[number, folds == fold] = test.losses(test.log_chances(heights))
    gains = straight - losses.mean(axis=1)
    best = first_largest(gains, float(straight))
    if gains[best] <= TIE * straight:
        return np.zeros(0), np.zeros(0)
    return knots, rows.likeliest(float(_PENALTIES[best]), np.zeros(len(knots)), share)


CalibrationKind = Literal["curve", "logistic", "temperature"]
CALIBRATION_KINDS: tuple[CalibrationKind, ...] = ("curve", "logistic", "temperature")
# Weight of one imagined row that pulls the biases to the logarithms of the priors, and β to 0 where targets leave no
# doubt: without it, classes that are separated perfectly would make β infinite.
_PULL = 1.0
# Smallest β in units of a typical spread: where out-of-fold rows speak against the score, its order is kept all the
# same.
_FLATTEST = 1e-3


def fit_calibration(
    fused: Array, codes: Codes, kind: CalibrationKind, groups: Codes | None = None, row_weights: Array | None = None
) -> Calibration:
    """Slope and biases (none with "temperature") of the highest likelihood, and with "curve" a curve and its bounds.

    From out-of-fold dissimilarities (n, C) and the classes of their rows. Rows of one group count as one draw, where it
    matters how many there are; `row_weights` say what every row counts in the likelihood, 1 in the mean.
    """
    share, n_classes = draws_per_row(groups), fused.shape[1]
    if kind != "curve":
        biased, targets = kind != "temperature", np.eye(n_classes)[codes]
        return _straight(fused, codes, targets, share, row_weights, biased=biased, pull=_PULL)
    targets = doubtful_targets(codes, n_classes, share, row_weights)
    straight = _straight(fused, codes, targets, share, row_weights)
    scores = straight.apply(fused)
    if n_classes == 2:
        log_odds = scores[:, 1] - scores[:, 0]
        curve = _bounded(fit_curve(log_odds, codes == 1, groups, row_weights), log_odds)
    else:
        curve = _bounded(fit_class_curve(scores, codes, groups, row_weights), scores)
    return Calibration(straight.slope, straight.biases, *curve)


def _straight(
    fused: Array,
    codes: Codes,
    targets: Array,
    share: float,
    row_weights: Array | None = None,
    *,
    biased: bool = True,
    pull: float = 0.0,
) -> Calibration:
    """Slope and, if asked, biases of the highest likelihood of the targets; `share` is draws per row.

    One imagined draw pulls the biases to the priors; `pull` is that of the slope to 0.
    """
    n, n_classes = fused.shape
    priors = (share * np.bincount(codes, row_weights, n_classes) + 0.5) / (share * n + 0.5 * n_classes)
    prior_biases = np.log(priors / priors.max()) if biased else np.zeros(n_classes)
    # The median spread of a row's scores, over rows whose scores differ at all: in this unit β is of the order of 1.
    spread = np.ptp(fused, axis=1)
    differing = spread[spread > 1e-12]
    unit = max(float(np.median(differing)), 1e-6) if len(differing) else 1.0
    # One bias is redundant: the last class keeps its prior.
    n_biases = n_classes - 1 if biased else 0
    found = softmax_weights(
        [-fused / unit],
        targets,
        np.append(1.0, np.zeros(n_biases)),
        lowest=[_FLATTEST],
        pulls=np.append(pull, np.full(n_biases, _PULL)) / share,
        towards=np.zeros(1 + n_biases),
        offset=prior_biases,
        row_weights=row_weights,
    )
    return Calibration(float(found[0]) / unit, prior_biases + np.pad(found[1:], (0, n_classes - n_biases)))


def _bounded(curve: Curve, scores: Array) -> Curve:
    """The curve, and beyond the lowest and the highest of these scores one that nearly cancels their growth."""
    lowest, highest = float(scores.min()), float(scores.max())
    inner = (curve[0] > lowest) & (curve[0] < highest)
    ends = np.unique([lowest, highest])
    at_ends = np.interp(ends, *curve) if len(curve[0]) else np.zeros(len(ends))
    stretch = _STRETCH * (1.0 + max(abs(lowest), abs(highest)))
    gone = (1.0 - _BEYOND) * stretch
    knots = np.concatenate([ends[:1] - stretch, ends[:1], curve[0][inner], ends[1:], ends[-1:] + stretch])
    heights = np.concatenate([at_ends[:1] + gone, at_ends[:1], curve[1][inner], at_ends[1:], at_ends[-1:] - gone])
    return knots, heights


# Imagined rows that pull the weights to equal shares and the biases to 0.
_SHARES_PULL = 4.0
# Scores whose weight is below this are dropped, and so are those that add no more than this to the log-likelihood:
# the pull to equal shares makes those that say nothing do harm.
_LEAST_WEIGHT = 0.05
_LEAST_GAIN = 0.0


# Least slope of scores that others are added to, and imagined rows that pull to them alone.
_FLATTEST_ADDED, _PULLS_ADDED = 0.05, np.array([1.0, 0.01])


class FittedSum(NamedTuple):
    """Weights of the scores, 0 for those that are dropped, shape (J,); biases, (C,); the sums, (n, C); and the loss."""

    weights: Array
    biases: Array
    scores: Array
    loss: float


def fit_sum(
    scores: Sequence[Array], codes: Codes, groups: Codes | None = None, row_weights: Array | None = None
) -> FittedSum:
    """Weights of dissimilarities of the highest likelihood; scores that add nothing to it are dropped one by one.

    From J out-of-fold dissimilarities (n, C) and the classes of their rows. Rows of one group count as one draw;
    `row_weights` say what every row counts in the likelihood, 1 in the mean.
    """
    share, kept = draws_per_row(groups), list(range(len(scores)))
    found, biases, loss = _likeliest(scores, codes, share, row_weights)
    while len(kept) > 1:
        without = [[place for place in kept if place != dropped] for dropped in kept]
        fits = [_likeliest([scores[place] for place in rest], codes, share, row_weights) for rest in without]
        least = int(np.argmin([loss for _, _, loss in fits]))
        if share * (fits[least][2] - loss) > _LEAST_GAIN and found[least] >= _LEAST_WEIGHT:
            break
        kept, (found, biases, loss) = without[least], fits[least]
    weights = np.zeros(len(scores))
    weights[kept] = found
    total = np.sum([weight * one for weight, one in zip(weights, scores, strict=True)], axis=0)
    return FittedSum(weights, biases, total - biases, loss)


def _likeliest(
    scores: Sequence[Array], codes: Codes, share: float, row_weights: Array | None
) -> tuple[Array, Array, float]:
    """Weights and biases, and minus the log-likelihood of the rows."""
    n_classes, count = scores[0].shape[1], len(scores)
    # One bias is redundant.
    towards = np.append(np.full(count, 1.0 / count), np.zeros(n_classes - 1))
    found = softmax_weights(
        [-one for one in scores], np.eye(n_classes)[codes], towards, lowest=[0.0] * count,
        pulls=np.full(len(towards), _SHARES_PULL / share), towards=towards, row_weights=row_weights,
    )  # fmt: skip
    biases = np.append(found[count:], 0.0)
    logits = biases - np.sum([weight * one for weight, one in zip(found[:count], scores, strict=True)], axis=0)
    losses = row_losses(logits, codes)
    return found[:count], biases, float((losses if row_weights is None else row_weights * losses).sum())


def slope_and_gain(scores: Array, added: Array, codes: Codes, groups: Codes | None = None) -> tuple[float, float]:
    """Slope of log-odds (n, C) and gain of what is added to them, of the highest likelihood."""
    as_it_is = np.array([1.0, 0.0])
    truth, pulls = np.eye(scores.shape[1])[codes], _PULLS_ADDED / draws_per_row(groups)
    found = softmax_weights(
        [scores, added], truth, as_it_is, lowest=[_FLATTEST_ADDED, 0.0], pulls=pulls, towards=as_it_is
    )
    return float(found[0]), float(found[1])
