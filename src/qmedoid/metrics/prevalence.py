r"""Class priors of unlabeled records, estimated from their probabilities by EM (label shift).

With training priors :math:`\pi^0` and probabilities :math:`p_{ic}` that are right for them, records among which the
classes have other priors :math:`\pi`, and look the same otherwise, have the likelihood

.. math:: \ell(\pi) = \sum_i \log \sum_c \pi_c \, p_{ic} / \pi^0_c ,

whose maximum the EM of Saerens, Latinne and Decaestecker (2002) finds. It is concave, so that there is one maximum, and
at any point :math:`\ell` is at most :math:`n\,(\max_c g_c - 1)` below it, with :math:`g_c` the mean of
:math:`(p_{ic}/\pi^0_c) / \sum_k \pi_k p_{ik}/\pi^0_k`: this is when the iteration stops.
"""

from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array, Codes
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
    n_steps : int
        Steps of the iteration.
    converged : bool
        Whether the likelihood is known to be at its maximum; if not, the estimate is the best that was found.
    """

    priors: Array
    low: Array
    high: Array
    n_rows: int
    n_steps: int
    converged: bool

    @property
    def prevalence(self) -> float:
        """The prior of the last class: of two, the second."""
        return float(self.priors[-1])


class LogOddsHistogram:
    """Log-odds of two classes, counted in bins so narrow that an estimate does not notice, in memory that is bounded.

    Every bin keeps the mean of what fell into it.
    """

    def __init__(self) -> None:
        n_bins = round(2 * _RANGE / _WIDTH)
        self._counts, self._sums = np.zeros(n_bins), np.zeros(n_bins)

    def add(self, log_odds: Array) -> None:
        """Count the log-odds of more records."""
        within = np.clip(log_odds, -_RANGE, _RANGE)
        bins = np.minimum(((within + _RANGE) / _WIDTH).astype(np.intp), len(self._counts) - 1)
        self._counts += np.bincount(bins, minlength=len(self._counts))
        self._sums += np.bincount(bins, weights=within, minlength=len(self._counts))

    def merge(self, other: "LogOddsHistogram") -> None:
        """Count the records of another histogram."""
        self._counts += other._counts
        self._sums += other._sums

    def __getstate__(self) -> tuple[Codes, Array, Array]:
        """The bins that are not empty, which are few in a part of a table."""
        filled = np.flatnonzero(self._counts)
        return filled, self._counts[filled], self._sums[filled]

    def __setstate__(self, state: tuple[Codes, Array, Array]) -> None:
        self.__init__()  # type: ignore[misc]
        filled, counts, sums = state
        self._counts[filled], self._sums[filled] = counts, sums

    @property
    def n_rows(self) -> int:
        """Number of records."""
        return int(self._counts.sum())

    def estimate(self, prior: float) -> PrevalenceEstimate:
        """The prevalence of the second class, when the log-odds are right where it is `prior`."""
        filled = np.flatnonzero(self._counts)
        log_odds = self._sums[filled] / self._counts[filled]
        log_probabilities = np.column_stack([-np.logaddexp(0.0, log_odds), -np.logaddexp(0.0, -log_odds)])
        return estimate_priors(log_probabilities, np.array([1.0 - prior, prior]), weights=self._counts[filled])


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
    mixture = _Mixture(ratios, weights / weights.sum(), float(weights.sum()))
    found, n_steps, converged = _maximized(mixture, priors / priors.sum())
    low, high = _likelihood_interval(mixture, found) if len(priors) == 2 else _curvature_interval(mixture, found)
    return PrevalenceEstimate(found, low, high, round(mixture.n), n_steps, converged)


def estimate_prevalence(log_odds: Array, prior: float) -> PrevalenceEstimate:
    """The prevalence of the second of two classes, from log-odds that are right where it is `prior`."""
    histogram = LogOddsHistogram()
    histogram.add(log_odds)
    return histogram.estimate(prior)


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Ratios p_ic/π⁰_c up to a factor of each record, shares of the records, and how many they are."""

    ratios: Array
    shares: Array
    n: float

    def log_likelihood(self, priors: Array) -> float:
        """ℓ up to a constant; −∞ where a record is impossible."""
        with np.errstate(divide="ignore"):
            return self.n * float(self.shares @ np.log(self.ratios @ priors))

    def gains(self, priors: Array) -> Array:
        """g: by what a step of EM multiplies each prior."""
        gains: Array = (self.shares / (self.ratios @ priors)) @ self.ratios
        return gains


def _maximized(mixture: _Mixture, start: Array) -> tuple[Array, int, bool]:
    """EM from the training priors, two steps extrapolated to a third where that is likelier (Varadhan and Roland)."""
    priors = start
    for step in range(_MOST_STEPS):
        gains = mixture.gains(priors)
        if mixture.n * (gains.max() - 1.0) < _MISSING:
            return priors, step, True
        once = priors * gains
        twice = once * mixture.gains(once)
        first, second = once - priors, twice - 2.0 * once + priors
        length = float(np.linalg.norm(first)) / max(float(np.linalg.norm(second)), 1e-300)
        far = priors + 2.0 * length * first + length**2 * second
        is_better = far.min() > 0 and mixture.log_likelihood(far) > mixture.log_likelihood(twice)
        priors = far / far.sum() if is_better else twice / twice.sum()
    return priors, _MOST_STEPS, False


def _likelihood_interval(mixture: _Mixture, found: Array) -> tuple[Array, Array]:
    """Priors of two classes whose likelihood is not much lower, which is right also where none or all are of one."""
    wanted = mixture.log_likelihood(found) - _GIVEN_AWAY

    def bound(inside: float, outside: float) -> float:
        if mixture.log_likelihood(np.array([1.0 - outside, outside])) >= wanted:
            return outside
        for _ in range(60):
            middle = (inside + outside) / 2.0
            enough = mixture.log_likelihood(np.array([1.0 - middle, middle])) >= wanted
            inside, outside = (middle, outside) if enough else (inside, middle)
        return inside

    low, high = bound(float(found[1]), 0.0), bound(float(found[1]), 1.0)
    return np.array([1.0 - high, low]), np.array([1.0 - low, high])


def _curvature_interval(mixture: _Mixture, found: Array) -> tuple[Array, Array]:
    """±2 standard errors by the curvature of the likelihood along the simplex, cut off at 0 and 1."""
    density = mixture.ratios @ found
    # Directions along the simplex: each class against the last.
    slopes = (mixture.ratios[:, :-1] - mixture.ratios[:, -1:]) / density[:, None]
    information = mixture.n * (slopes.T * mixture.shares) @ slopes
    covariance = np.linalg.pinv(information)
    variances = np.append(np.diag(covariance), covariance.sum())
    errors = np.sqrt(np.maximum(variances, 0.0))
    return np.maximum(found - _WIDE * errors, 0.0), np.minimum(found + _WIDE * errors, 1.0)
