"""Calibration error of probabilities, compared with the error expected by chance."""

from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array, Codes, Flags

N_BINS = 15
"""Bins of about as many records each."""
# Labels drawn in all, so that large tables do not wait; and the fewest and most tables of them.
_DRAWS = 40_000_000
_FEWEST, _MOST = 20, 500


@dataclass(frozen=True)
class CalibrationError:
    """An expected calibration error, and that of a perfectly calibrated model with the same probabilities.

    Attributes
    ----------
    error : float
        Mean over the records of how far the share of outcomes in their bin lies from the mean probability there.
    by_chance, by_chance_high : float
        Mean and 95 % quantile of the error where outcomes are drawn from the probabilities themselves.
    """

    error: float
    by_chance: float
    by_chance_high: float

    @property
    def ratio(self) -> float:
        """The error in units of what chance shows; 1 where both are 0."""
        if self.by_chance == 0.0:
            return 1.0 if self.error == 0.0 else float("inf")
        return self.error / self.by_chance


def calibration_error(
    outcomes: Flags, probabilities: Array, *, rng: np.random.Generator, n_bins: int = N_BINS
) -> CalibrationError:
    """The expected calibration error in bins of equal mass; records of equal probability share a bin.

    Parameters
    ----------
    outcomes : ndarray of bool of shape (n,)
        What happened.
    probabilities : ndarray of shape (n,)
        The probability that it would.
    rng : numpy.random.Generator
        Draws the outcomes of a perfectly calibrated model.
    """
    order = np.argsort(probabilities, kind="stable")
    ranked = probabilities[order]
    starts = _bin_starts(ranked, n_bins)
    promised = np.add.reduceat(ranked, starts)
    error = _error(np.add.reduceat(outcomes[order].astype(np.float64), starts), promised, len(ranked))
    n_tables = int(np.clip(_DRAWS // len(ranked), _FEWEST, _MOST))
    drawn = np.array([_drawn_error(ranked, starts, promised, rng) for _ in range(n_tables)])
    return CalibrationError(error, float(drawn.mean()), float(np.quantile(drawn, 0.95)))


def confidence_outcomes(codes: Codes, probabilities: Array) -> tuple[Flags, Array]:
    """What is calibrated: of two classes the second and its probability, else whether the likeliest one is right.

    Parameters
    ----------
    codes : ndarray of shape (n,)
    probabilities : ndarray of shape (n, C)
    """
    if probabilities.shape[1] == 2:
        return codes == 1, probabilities[:, 1]
    return np.argmax(probabilities, axis=1) == codes, probabilities.max(axis=1)


def _bin_starts(ranked: Array, n_bins: int) -> Codes:
    """Where bins begin among rising probabilities: every n/n_bins records, or next where a new probability begins."""
    wanted = np.arange(n_bins) * len(ranked) // n_bins
    starts: Codes = np.unique(np.searchsorted(ranked, ranked[wanted], side="left"))
    return starts


def _drawn_error(ranked: Array, starts: Codes, promised: Array, rng: np.random.Generator) -> float:
    happened = rng.random(len(ranked)) < ranked
    return _error(np.add.reduceat(happened.astype(np.float64), starts), promised, len(ranked))


def _error(happened: Array, promised: Array, n: int) -> float:
    return float(np.abs(happened - promised).sum() / n)
