r"""Class priors of unlabeled records, estimated from their probabilities by EM (label shift).

With training priors :math:`\pi^0` and probabilities :math:`p_{ic}` that are right for them, records among which the
classes have other priors :math:`\pi`, and look the same otherwise, have the likelihood

.. math:: \ell(\pi) = \sum_i \log \sum_c \pi_c \, p_{ic} / \pi^0_c ,

whose maximum the EM of Saerens, Latinne and Decaestecker (2002) finds. It is concave, so that there is one maximum, and
at any point :math:`\ell` is at most :math:`n\,(\max_c g_c - 1)` below it, with :math:`g_c` the mean of
:math:`(p_{ic}/\pi^0_c) / \sum_k \pi_k p_{ik}/\pi^0_k`: this is when the iteration stops.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError

# Log-likelihood that is still missing when the iteration stops: a thousandth of a standard error.
_MISSING = 1e-6
_MOST_STEPS = 2000
# Half of the 95 % quantile of χ² with one degree of freedom: log-likelihood that an interval gives away.
_GIVEN_AWAY = 3.841458820694124 / 2.0
# Standard errors to either side of a normal 95 % interval.
_WIDE = 1.959963984540054
# Log-odds beyond this are as good as sure whatever the prevalence.
_RANGE, _WIDTH = 60.0, 0.01


@dataclass(frozen=True, eq=False)
class PrevalenceEstimate:
    """Priors of the classes among unlabeled records, each with a 95 % interval.

    The interval is for the records drawn; that the probabilities are right is taken for granted.

    Attributes
    ----------
    priors, low, high : ndarray of shape (C,)
    n_rows : int
    """

    priors: Array
    low: Array
    high: Array
    n_rows: int

    @property
    def prevalence(self) -> float:
        """The prior of the last class: of two, the second."""
        return float(self.priors[-1])


NO_LOG_ODDS = np.zeros((3, 0))
"""The histogram of no records."""


def log_odds_histogram(log_odds: Array, before: Array = NO_LOG_ODDS) -> Array:
    """Log-odds of two classes, in bins so narrow that an estimate does not notice, and those of the records before.

    The bins that are not empty, with counts and sums of what fell into them, shape (3, bins): memory is bounded.
    """
    within = np.clip(log_odds, -_RANGE, _RANGE)
    bins = np.minimum(((within + _RANGE) / _WIDTH).astype(np.intp), round(2 * _RANGE / _WIDTH) - 1)
    counts, sums = np.bincount(bins), np.bincount(bins, weights=within)
    filled = np.flatnonzero(counts)
    return joined_histogram(before, np.stack([filled, counts[filled], sums[filled]]))


def joined_histogram(*parts: Array) -> Array:
    """The histogram of all records of some parts."""
    bins, counts, sums = np.concatenate(parts, axis=1)
    filled, places = np.unique(bins, return_inverse=True)
    return np.stack([filled, *(np.bincount(places, weights, len(filled)) for weights in (counts, sums))])


def prevalence_of(histogram: Array, prior: float) -> PrevalenceEstimate:
    """The prevalence of the second of two classes, from log-odds that are right where it is `prior`."""
    _, counts, sums = histogram
    log_odds = sums / counts
    log_probabilities = np.column_stack([-np.logaddexp(0.0, log_odds), -np.logaddexp(0.0, -log_odds)])
    return estimate_priors(log_probabilities, np.array([1.0 - prior, prior]), weights=counts)


def estimate_priors(log_probabilities: Array, priors: Array, *, weights: Array | None = None) -> PrevalenceEstimate:
    """The most likely priors of unlabeled records.

    Parameters
    ----------
    log_probabilities : ndarray of shape (n, C)
        Of the classes of every record, right for `priors`; up to a constant of each record.
    priors : ndarray of shape (C,)
        Above 0.
    weights : ndarray of shape (n,), optional
        Number of records of each row.

    Raises
    ------
    DataError
        There are no records.
    """
    if len(log_probabilities) == 0:
        raise DataError("There are no rows, and so there is no prevalence to estimate: pass at least one.")
    weights = np.ones(len(log_probabilities)) if weights is None else weights
    ratios = log_probabilities - np.log(priors)
    ratios = np.exp(ratios - ratios.max(axis=1, keepdims=True))
    groups = ratios, weights / weights.sum(), float(weights.sum())
    found = _maximized(priors / priors.sum(), *groups)
    low, high = _likelihood_interval(found, *groups) if len(priors) == 2 else _curvature_interval(found, *groups)
    return PrevalenceEstimate(found, low, high, round(groups[2]))


def _log_likelihood(priors: Array, ratios: Array, shares: Array, n: float) -> float:
    """ℓ up to a constant, of n records in groups with shares and ratios p_ic/π⁰_c; −∞ where a record is impossible."""
    with np.errstate(divide="ignore"):
        return n * float(shares @ np.log(ratios @ priors))


def _maximized(priors: Array, ratios: Array, shares: Array, n: float) -> Array:
    """EM from the training priors, two steps extrapolated to a third where that is likelier (Varadhan and Roland)."""

    def gains(priors: Array) -> Array:
        """g: by what a step of EM multiplies each prior."""
        return np.asarray((shares / (ratios @ priors)) @ ratios)

    for _ in range(_MOST_STEPS):
        gained = gains(priors)
        if n * (gained.max() - 1.0) < _MISSING:
            break
        once = priors * gained
        twice = once * gains(once)
        first, second = once - priors, twice - 2.0 * once + priors
        length = float(np.linalg.norm(first)) / max(float(np.linalg.norm(second)), 1e-300)
        far = priors + 2.0 * length * first + length**2 * second
        known = _log_likelihood(twice, ratios, shares, n)
        is_better = far.min() > 0 and _log_likelihood(far, ratios, shares, n) > known
        priors = far / far.sum() if is_better else twice / twice.sum()
    return priors


def _likelihood_interval(found: Array, *groups: Any) -> tuple[Array, Array]:
    """Priors of two classes whose likelihood is not much lower, which is right also where none or all are of one."""
    wanted = _log_likelihood(found, *groups) - _GIVEN_AWAY

    def is_likely(share: float) -> bool:
        return _log_likelihood(np.array([1.0 - share, share]), *groups) >= wanted

    def bound(inside: float, outside: float) -> float:
        if is_likely(outside):
            return outside
        for _ in range(60):
            middle = (inside + outside) / 2.0
            inside, outside = (middle, outside) if is_likely(middle) else (inside, middle)
        return inside

    low, high = bound(float(found[1]), 0.0), bound(float(found[1]), 1.0)
    return np.array([1.0 - high, low]), np.array([1.0 - low, high])


def _curvature_interval(found: Array, ratios: Array, shares: Array, n: float) -> tuple[Array, Array]:
    """±2 standard errors by the curvature of the likelihood along the simplex, cut off at 0 and 1."""
    density = ratios @ found
    # Directions along the simplex: each class against the last.
    slopes = (ratios[:, :-1] - ratios[:, -1:]) / density[:, None]
    information = n * (slopes.T * shares) @ slopes
    covariance = np.linalg.pinv(information)
    variances = np.append(np.diag(covariance), covariance.sum())
    errors = np.sqrt(np.maximum(variances, 0.0))
    return np.maximum(found - _WIDE * errors, 0.0), np.minimum(found + _WIDE * errors, 1.0)
