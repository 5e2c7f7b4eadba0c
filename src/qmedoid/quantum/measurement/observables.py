"""Several observables that are read from the same shots: their common errors, and lines that known inputs tell.

An observable of two eigenvalues is read as the share of shots with the larger one, a number from 0 to 1 as an overlap
is: so what calibrates overlaps calibrates these shares.
"""

from dataclasses import replace

import numpy as np

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import ModelError
from qmedoid.quantum.measurement.calibration import Estimates, Lines, Readings, expected_lines, fit_lines
from qmedoid.quantum.measurement.chances import chance_below

# Largest error of a slope, as a share of it, with which a line is inverted; else known inputs tell a shift alone.
_SLOPE_ERROR = 0.1
_ROUNDS = 3


def fit_line_or_shift(readings: Readings, exact: Array, n_positions: int) -> Lines:
    """Lines where known inputs tell their slopes, else a shift that all positions have in common.

    Some trained circuits hardly change an observable, whatever the input: then no slope can be told, and as little is
    lost by leaving it at 1.
    """
    try:
        return _told(fit_lines(readings, exact, n_positions)) or fit_shift(readings, exact, n_positions)
    except ModelError:  # all known inputs have the same expectation value
        return fit_shift(readings, exact, n_positions)


def expected_line_or_shift(guess: Lines, readings: Readings, exact: Array) -> Lines:
    """The same as it is to be expected by lines that are guessed."""
    positions = readings.positions
    expected = replace(readings, overlaps=guess.intercepts[positions] + guess.slopes[positions] * exact)
    told = None if np.ptp(exact) < _SLOPE_ERROR / 100 else _told(expected_lines(guess, expected, exact))
    return told or fit_shift(expected, exact, len(guess.slopes))


def _told(lines: Lines) -> Lines | None:
    errors = np.sqrt(lines.covariances[:, 1, 1])
    return lines if np.all(errors < _SLOPE_ERROR * np.abs(lines.slopes)) else None


def fit_shift(readings: Readings, exact: Array, n_positions: int) -> Lines:
    """The mean distance of known readings from what they should be, as a line of slope 1."""
    off, variances, excess = readings.overlaps - exact, readings.variances, 0.0
    for _ in range(_ROUNDS):
        weights = 1.0 / (variances + excess)
        shift, variance = float(weights @ off / weights.sum()), float(1.0 / weights.sum())
        excess = max(0.0, float(np.mean((off - shift) ** 2 - variances)))
    spread = float(np.sqrt(np.mean((off - shift) ** 2 / variances)))
    chance = 2.0 * float(chance_below(np.array(-abs(shift) / np.sqrt(variance))))
    covariances = np.tile(np.diag([variance, 1e-18]), (n_positions, 1, 1))
    return Lines(
        np.full(n_positions, shift),
        np.ones(n_positions),
        covariances,
        float(np.sqrt(excess)),
        False,
        len(off),
        chance,
        spread,
    )


def common_roots(probabilities: Array, masks: Flags, estimates: tuple[Estimates, ...], by_shots: Array) -> Array:
    """Roots of the correlations between the errors of K observables that are read from the same shots.

    Errors by shots are correlated as the outcomes are; what scatters beyond them is taken as independent.

    Parameters
    ----------
    probabilities : ndarray of shape (n, 2**q)
        Of the basis states, as they were read.
    masks : ndarray of shape (K, 2**q)
        States with the larger eigenvalue of each observable.
    estimates : tuple of K Estimates
        Shares of the n records.
    by_shots : ndarray of shape (n, K)
        Variances of the raw shares by shots.

    Returns
    -------
    ndarray of shape (n, K, K)
        R with R·Rᵀ the correlations: R times independent normal numbers has them.
    """
    slopes = np.stack(
        [np.ones(len(one.own)) if one.lines is None else one.lines.slopes[one.positions] for one in estimates], axis=1
    )
    own = np.stack([one.own for one in estimates], axis=1) * slopes
    # The sign of a slope stays: what is divided by it turns over.
    part = np.divide(np.sqrt(by_shots), own, out=np.zeros_like(own), where=own != 0)
    part = np.clip(part, -1.0, 1.0)
    means = probabilities @ masks.T
    both = (masks[:, None] & masks[None]).reshape(-1, masks.shape[1])
    covariances = (probabilities @ both.T).reshape(-1, len(masks), len(masks)) - means[:, :, None] * means[:, None]
    deviations = np.sqrt(np.clip(np.einsum("nkk->nk", covariances), 1e-300, None))
    part = part / deviations
    correlations = covariances * part[:, :, None] * part[:, None]
    np.einsum("nkk->nk", correlations)[...] = 1.0
    sizes, vectors = np.linalg.eigh(correlations)
    roots: Array = vectors * np.sqrt(np.clip(sizes, 0.0, None))[:, None]
    return roots


def lines_of_values(lines: Lines, least: float, span: float) -> Lines:
    """Lines of shares as lines of the expectation values, least + span · share."""
    change = np.array([[span, -least], [0.0, 1.0]])
    return replace(
        lines,
        intercepts=span * lines.intercepts + least * (1.0 - lines.slopes),
        covariances=change @ lines.covariances @ change.T,
        excess=span * lines.excess,
    )
