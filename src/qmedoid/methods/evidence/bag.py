r"""One bag of an evidence model: its design matrix, the weights of its terms, and leave-one-out outputs.

Columns of the design are brought to a common scale before they are weighted, by ridge regression and, for two classes,
by logistic regression. Leave-one-out logits of the latter are exact to first order: where :math:`H = T^\top W T +
\lambda I` is the curvature at the solution (with the intercept among the columns of T), leaving row i out moves its
logit by one Newton step:

.. math:: \eta_{-i} = \eta_i - \frac{h_i}{1 - h_i}\,\frac{y_i - p_i}{w_i}, \qquad h_i = w_i\, t_i^\top H^{-1} t_i .
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import expit

from qmedoid.arrays import Array, Codes
from qmedoid.methods.evidence.model import DISTANCE, NEAR, SQUARE, Group
from qmedoid.methods.evidence.ridge import Ridge, RowGroups, fit_ridge, moved_logits
from qmedoid.methods.evidence.settings import Block, RidgePath, Selection
from qmedoid.optimize.newton import logistic_weights

Columns = tuple[int, ...]
# Nearness reaches this far: in deviations for one column, else in medians of the distances between rows and medoids.
_SINGLE_LENGTH = 1.0
_RELATIVE_LENGTH = 0.7
# Rows whose distances to the medoids give the median.
_LENGTH_ROWS = 300
# Minimum gap of two medoids in a column, in deviations, for the difference of their squares to represent it.
_MIN_SPAN = 0.05


class Scaled(NamedTuple):
    """Rows scaled both ways, each of shape (n, M)."""

    ranks: Array
    plain: Array

    def of(self, group: Group) -> Array:
        """Columns of a group, weighted, shape (n, g)."""
        values = self.ranks if group.by_rank else self.plain
        return np.asarray(values[:, list(group.columns)] * np.sqrt(group.weights))

    def take(self, rows: Codes) -> "Scaled":
        """Some of the rows."""
        return Scaled(self.ranks[rows], self.plain[rows])


@dataclass(frozen=True, eq=False)
class DesignPart:
    """Terms of one group and channel, and the features that are made of them.

    Attributes
    ----------
    block : str
    group : Group
    medoids : ndarray of shape (q,)
        Places of the medoids.
    channel, length : int, float
    mixing : ndarray of shape (q, r) or None
        r features as sums of the q terms; None where every term is a feature.
    """

    block: Block
    group: Group
    medoids: Codes
    channel: int
    length: float
    mixing: Array | None = None

    def values(self, rows: Scaled, medoids: Scaled) -> Array:
        """Channels of the terms, shape (n, q)."""
        return _channel(self.group, self.channel, self.length, rows, medoids.take(self.medoids))

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return len(self.medoids) if self.mixing is None else self.mixing.shape[1]

    def features(self, values: Array) -> Array:
        """Features from channels, (n, q) to (n, r)."""
        return values if self.mixing is None else values @ self.mixing

    def term_weights(self, weights: Array, scale: float) -> Array:
        """Weights of the terms from those of the scaled features, (r, K) to (q, K)."""
        return scale * weights if self.mixing is None else scale * self.mixing @ weights


def linear_part(column: int, rows: Scaled, medoids: Scaled) -> DesignPart:
    """One column as it is: the difference of the squared distances to the two medoids with the widest gap in it.

    In a column of two values a single distance does. So it does where all medoids agree, mostly at the end of a column
    that is nearly always 0: from there on the distance is the column.
    """
    group = Group((column,), np.ones(1), False)
    of_medoids, values = medoids.plain[:, column], rows.plain[:, column]
    low, high = int(of_medoids.argmin()), int(of_medoids.argmax())
    two_valued = bool(np.all((values == values.min()) | (values == values.max())))
    if two_valued or of_medoids[high] - of_medoids[low] < _MIN_SPAN:
        places, channel, mixing = np.array([low]), DISTANCE, np.ones((1, 1))
    else:
        places, channel, mixing = np.array([low, high]), SQUARE, np.array([[1.0], [-1.0]])
    part = DesignPart("linear", group, places, channel, 1.0, mixing)
    spread = float(part.features(part.values(rows, medoids)).std())
    return replace(part, mixing=mixing / spread) if spread > 0 else part


def single_part(column: int, by_rank: bool, places: Codes, n_medoids: int, medoids: Scaled) -> DesignPart | None:
    """Nearness in one column to medoids at about evenly spaced values; None if all have the same."""
    of_medoids = (medoids.ranks if by_rank else medoids.plain)[places, column]
    values, first = np.unique(of_medoids, return_index=True)
    if len(values) < 2:
        return None
    wanted = np.unique(np.round(np.linspace(0, len(values) - 1, min(n_medoids, len(values)))).astype(np.intp))
    group = Group((column,), np.ones(1), by_rank)
    return DesignPart("single", group, places[first[wanted]], NEAR, _SINGLE_LENGTH)


def near_part(
    block: Block, columns: Columns, by_rank: bool, places: Codes, rows: Scaled, medoids: Scaled
) -> DesignPart:
    """Nearness to medoids over a group of columns."""
    group = Group(columns, np.ones(len(columns)), by_rank)
    sample = rows.take(np.linspace(0, len(rows.ranks) - 1, min(len(rows.ranks), _LENGTH_ROWS)).astype(np.intp))
    distances = cdist(sample.of(group), medoids.take(places).of(group))
    positive = distances[distances > 0]
    length = _RELATIVE_LENGTH * float(np.median(positive)) if len(positive) else 1.0
    return DesignPart(block, group, places, NEAR, length)


def _channel(group: Group, channel: int, length: float, rows: Scaled, medoids: Scaled) -> Array:
    distances: Array = cdist(rows.of(group), medoids.of(group))
    if channel == NEAR:
        return np.exp(distances / -length)
    return distances * distances if channel == SQUARE else distances


@dataclass(frozen=True, eq=False)
class Design:
    """Features of n training rows, each block of total variance 1.

    Attributes
    ----------
    parts : tuple of DesignPart
    centers : tuple of ndarray of shape (q,)
        Means of the channels of each part.
    scales : tuple of float
        What the features of each part are multiplied by.
    features : ndarray of shape (n, p)
        Of mean 0.
    """

    parts: tuple[DesignPart, ...]
    centers: tuple[Array, ...]
    scales: tuple[float, ...]
    features: Array

    def term_weights(self, weights: Array) -> list[Array]:
        """Weights of the terms of every part, each of shape (q, K), from those of the features, of shape (p, K)."""
        found, first = [], 0
        for part, scale in zip(self.parts, self.scales, strict=True):
            last = first + part.n_features
            found.append(part.term_weights(weights[first:last], scale))
            first = last
        return found


def evidence_design(parts: list[DesignPart], rows: Scaled, medoids: Scaled) -> Design:
    """The features of all parts."""
    features = np.empty((len(rows.ranks), sum(part.n_features for part in parts)))
    centers, places, first = [], [], 0
    for part in parts:
        values = part.values(rows, medoids)
        centers.append(values.mean(axis=0))
        place = slice(first, first + part.n_features)
        features[:, place] = part.features(values - centers[-1])
        places.append(place)
        first = place.stop
    variances = np.einsum("ij,ij->j", features, features) / len(features)
    totals = dict.fromkeys((part.block for part in parts), 0.0)
    for part, place in zip(parts, places, strict=True):
        totals[part.block] += float(variances[place].sum())
    scales = [totals[part.block] ** -0.5 if totals[part.block] > 0 else 1.0 for part in parts]
    for scale, place in zip(scales, places, strict=True):
        features[:, place] *= scale
    return Design(tuple(parts), tuple(centers), tuple(scales), features)


# Minimum curvature of a row, which keeps out-of-fold logits bounded where classes are separated perfectly.
_LEAST_CURVATURE = 1e-3
_LEAST_FREE = 1e-3
_INTERCEPT_PENALTY = 1e-6


class Logistic(NamedTuple):
    r"""Logits :math:`b + T\beta`: intercept, coefficients of shape (r,), and out-of-fold logits, shape (n,)."""

    intercept: float
    coefficients: Array
    out_of_fold: Array


def fit_logistic(
    rotated: Array,
    positive: Array,
    penalty: float,
    intercept: float,
    coefficients: Array,
    together: RowGroups | None = None,
    *,
    same_intercept: bool = False,
) -> Logistic:
    r"""Fit a logistic regression with a ridge from a start, such as a ridge regression gives.

    Parameters
    ----------
    rotated : ndarray of shape (n, r)
    positive : ndarray of shape (n,)
        1 for the rows of the second class, else 0.
    penalty : float
        λ of :math:`\tfrac\lambda2|\beta|^2`, added to the sum of the losses.
    intercept, coefficients : float, ndarray of shape (r,)
        The start.
    together : RowGroups, optional
        Rows of one group are left out together.
    same_intercept : bool
        Whether out-of-fold logits have the intercept of all rows, see `fit_ridge`; rows of groups that are not all
        equal never have.
    """
    columns = np.column_stack([np.ones(len(rotated)), rotated])
    penalties = np.append(_INTERCEPT_PENALTY, np.full(rotated.shape[1], penalty))
    weights = logistic_weights(rotated, positive, penalties, np.append(intercept, coefficients))
    logits = columns @ weights
    shares = expit(logits)
    curvature = _curvature(shares)
    factor = _factored(columns, shares, penalties)
    reach, residuals = solve_triangular(factor, columns.T, lower=True, check_finite=False), positive - shares
    alone = reach
    if same_intercept:
        factor = _factored(rotated, shares, penalties[1:])
        alone = solve_triangular(factor, rotated.T, lower=True, check_finite=False)
    leverage = curvature * (alone**2).sum(axis=0)
    if together is None:
        moved = leverage / np.maximum(1.0 - leverage, _LEAST_FREE) * residuals / curvature
    else:
        # Equal rows move by what all of them miss.
        leverage, missed = together.sizes * leverage, together.means(residuals[:, None])[:, 0]
        moved = leverage / np.maximum(1.0 - leverage, _LEAST_FREE) * missed / curvature
        mixed = moved_logits(together, reach, curvature, residuals, _LEAST_FREE)
        for rows in together.batches:
            moved[rows] = mixed[rows]
    return Logistic(float(weights[0]), weights[1:], logits - moved)


def _curvature(shares: Array) -> Array:
    return np.maximum(shares * (1.0 - shares), _LEAST_CURVATURE)


def _factored(columns: Array, shares: Array, penalties: Array) -> Array:
    """Lower Cholesky factor of the curvature H."""
    scaled = columns * np.sqrt(_curvature(shares))[:, None]
    hessian = scaled.T @ scaled
    hessian[np.diag_indices(len(hessian))] += penalties
    factor: Array = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)[0]
    return factor


# The curvature of a logistic loss is a quarter at most, and less where a row is predicted with confidence: its λ is
# this share of the one that would be the same ridge at the quarter.
_LOGISTIC_SHARE = 0.8
# Directions that the logistic refit keeps: at most so many, and none that the ridge shrinks below this share.
_MAX_DIRECTIONS = 400
_LEAST_SHARE = 0.003


class Bag(NamedTuple):
    """A design with the weights of its terms.

    Attributes
    ----------
    design : Design
    weights : list of ndarray of shape (q, K)
        Weights of the terms of each part.
    intercepts : ndarray of shape (K,)
    out_of_fold : ndarray of shape (n, K)
        Leave-one-out outputs.
    penalty, error : float
        The λ that was chosen and its leave-one-out error.
    path : RidgePath
    """

    design: Design
    weights: list[Array]
    intercepts: Array
    out_of_fold: Array
    penalty: float
    error: float
    path: RidgePath


def class_targets(codes: Codes, n_classes: int) -> Array:
    """±1 for the second of two classes, shape (n, 1), or for each of more, shape (n, C)."""
    wanted = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    return np.where(codes[:, None] == wanted, 1.0, -1.0)


def fit_bag(
    design: Design,
    targets: Array,
    logistic: bool,
    selection: Selection,
    judged: Codes | None,
    together: RowGroups | None = None,
) -> Bag:
    """Fit the weights of a design: ridge regression on ±1, then, if asked and with one output, logistic regression.

    λ is chosen on the `judged` rows, by which no group was chosen. Rows of one group are left out `together`.
    """
    ridge = fit_ridge(design.features, targets, selection, judged, together=together, same_intercept=True)
    if logistic and targets.shape[1] == 1:
        weights, intercepts, out_of_fold = _logistic(ridge, targets, together)
    else:
        weights, intercepts, out_of_fold = ridge.directions @ ridge.coefficients, ridge.means, ridge.out_of_fold
    error = float(ridge.path.errors[ridge.place])
    return Bag(design, design.term_weights(weights), intercepts, out_of_fold, ridge.penalty, error, ridge.path)


def _logistic(ridge: Ridge, targets: Array, together: RowGroups | None) -> tuple[Array, Array, Array]:
    """Weights of the features, intercepts and leave-one-out outputs, all as logits."""
    penalty = ridge.penalty * len(targets)
    kept = np.flatnonzero(ridge.sizes > _LEAST_SHARE * penalty)[-_MAX_DIRECTIONS:]
    # An output t of the ridge is a probability (1 + t) / 2, whose logit starts as 2 t.
    fitted = fit_logistic(
        ridge.rotated[:, kept], (targets[:, 0] + 1.0) / 2.0, _LOGISTIC_SHARE * penalty / 4.0,
        2.0 * float(ridge.means[0]), 2.0 * ridge.coefficients[kept, 0], together, same_intercept=True,
    )  # fmt: skip
    weights = ridge.directions[:, kept] @ fitted.coefficients
    return weights[:, None], np.array([fitted.intercept]), fitted.out_of_fold[:, None]
