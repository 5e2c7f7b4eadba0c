r"""Self-calibration: what a device's noise does to overlaps, from pairs whose overlap is known.

Noise shrinks an overlap and shifts it, :math:`r = a + b\,s` to a good approximation. The line is fitted to known pairs
that run in every job, for each position of a circuit where that fits better, and inverted. A slope is 1 ± 0.5 before it
is measured: where known values hardly differ, as those of some trained circuits, only their shift is undone. What the
line leaves unexplained beyond the shots is counted as an error as well.

That error has much in common for similar pairs of vectors, because gate noise acts on the state that holds both. With
:math:`c = \cos(x, x')\,\cos(y, y')` for the pairs (x, y) and (x', y'), errors of circuits of many columns have a
correlation of about :math:`w c + (1 - w) c^3` on fake devices. A record is compared with many medoids that resemble
each other; errors of its margin would be understated if those of its tests were taken as independent.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc, fdtrc

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.overlap import row_norms

# A gain by chance is as rare as this, and a drift of jobs.
_SIGNIFICANT, _DRIFT_SIGNIFICANT = 0.01, 0.001
# Known pairs that a line of one position is fitted to at least.
_LEAST_PAIRS = 6
_ROUNDS = 4
# Deviation of slopes from 1, before they are measured.
_SLOPE = 0.5
# Of what noise takes from an overlap, about this share is not affine: as seen on fake devices, 1.6 to 2.6 %.
_UNEXPLAINED = 0.02
# How far that reaches among similar pairs, w: 0 to 0.4 there.
_FAR = 0.2
# Products of three random forms that are added up in a draw: a single one would be far from normal.
_PRODUCTS = 4


@dataclass(frozen=True, eq=False)
class Readings:
    """Measured tests of one shape, or an observable of a trained circuit."""

    overlaps: Array  # raw overlaps r, (n,)
    shots: float  # of each circuit
    positions: Codes  # which copy of the circuit measured each, (n,)
    slope: float  # r = at_zero + slope · share of ones
    at_zero: float
    more: Array | float = 0.0  # variances by something else than shots, (n,)
    directions: Array | None = None  # the vectors that were compared, (2, n, d); None for single numbers

    @property
    def variances(self) -> Array:
        """Of the raw overlaps by shots; half a count more on each side keeps it above zero."""
        return self.variances_at(self.overlaps)

    def variances_at(self, overlaps: Array) -> Array:
        """Variances of the raw overlaps by shots if their expectations were these."""
        share = np.clip((overlaps - self.at_zero) / self.slope, 0.0, 1.0)
        share = (share * self.shots + 0.5) / (self.shots + 1.0)
        variances: Array = self.slope**2 * share * (1.0 - share) / self.shots + self.more
        return variances


@dataclass(frozen=True, eq=False)
class Lines:
    """The fitted lines of a shape, one for all positions or one for each."""

    intercepts: Array  # a, (positions,); the same for all where one line is enough
    slopes: Array  # b
    covariances: Array  # of a and b, (positions, 2, 2)
    excess: float  # deviation of known pairs from the line beyond their shots
    by_position: bool  # whether every position has its line
    n_pairs: int  # known pairs that the lines were fitted to
    chance: float  # how likely lines as far from no change are if there is none

    @property
    def used(self) -> bool:
        """Whether the lines differ from no change by more than chance; otherwise raw overlaps are taken as they are."""
        return self.chance < _SIGNIFICANT

    def at(self, overlaps: Array, positions: Codes) -> Array:
        """What overlaps are expected to read."""
        return np.asarray(self.intercepts[positions] + self.slopes[positions] * overlaps)


@dataclass(frozen=True, eq=False)
class Estimates:
    """Overlaps of n tests with their errors, as they were read or are expected."""

    overlaps: Array  # calibrated, where a calibration is used; they may lie outside of 0 to 1
    own: Array  # standard error of each that is independent of the others
    by_shots: Array  # variances of the raw overlaps by shots alone
    raw: Array  # without calibration
    positions: Codes  # of each in its circuit
    fitted: Lines | None = None  # whether it was used or not
    directions: Array | None = None  # how alike they are says how much of the excess they share
    drift: float = 0.0  # largest change of an overlap by the drift of a job, which is undone
    bias: Array | float = 0.0  # what noise adds to each, as far as it is known, where nothing undoes it

    @property
    def lines(self) -> Lines | None:
        """The lines that were inverted, whose errors are common to all tests of a line; None for raw overlaps."""
        return None if self.fitted is None or not self.fitted.used else self.fitted

    @property
    def errors(self) -> Array:
        """Standard error of each, with that of the calibration and of what similar pairs have in common."""
        if self.lines is None:
            return np.asarray(np.hypot(self.own, self.bias))
        shared = 0.0 if self.directions is None else self.lines.excess**2
        common = _variances_of(self.lines.covariances[self.positions], self.overlaps)
        return np.asarray(np.sqrt(self.own**2 + (shared + common) / self.lines.slopes[self.positions] ** 2))

    def uncalibrated(self) -> "Estimates":
        """What the same counts say without calibration: raw overlaps, with what calibration takes off as an error."""
        bias = self.bias if self.fitted is None else self.raw - self.overlaps
        return Estimates(self.raw, np.sqrt(self.by_shots), self.by_shots, self.raw, self.positions, bias=bias)

    def draw(self, rng: np.random.Generator) -> Array:
        """Overlaps as another run might measure them if these were true."""
        drawn: Array = self.overlaps - self.bias + self.own * rng.standard_normal(len(self.own))
        lines = self.lines
        if lines is None:
            return drawn
        roots = np.linalg.cholesky(lines.covariances)
        normal = rng.standard_normal((len(lines.slopes) if lines.by_position else 1, 2))
        change = np.einsum("pij,pj->pi", roots, np.broadcast_to(normal, (len(roots), 2)))[self.positions]
        slopes = lines.slopes[self.positions]
        drawn -= (change[:, 0] + change[:, 1] * self.overlaps) / slopes
        if self.directions is not None and lines.excess:
            drawn += lines.excess * drawn_alike(self.directions, rng) / slopes
        return drawn


def estimated(readings: Readings, lines: Lines | None) -> Estimates:
    """Overlaps from raw ones, by the inverted lines where they are used.

    What scatters beyond the shots counts as an error also where there is no line to invert.
    """
    raw, positions = readings.overlaps, readings.positions
    overlaps = raw
    if lines is not None and lines.used:
        overlaps = (raw - lines.intercepts[positions]) / lines.slopes[positions]
    return _with_errors(overlaps, raw, readings.variances, positions, lines, readings.directions)


def uncalibrated(readings: Readings, guess: Lines) -> Estimates:
    """Raw overlaps without known pairs, with the bias that noise has by lines that are guessed."""
    raw, at, by_shots = readings.overlaps, readings.positions, readings.variances
    # What was there before the noise can only be what there is.
    low, high = sorted((readings.at_zero, readings.at_zero + readings.slope))
    bias = raw - np.clip((raw - guess.intercepts[at]) / guess.slopes[at], low, high)
    bias = np.where(guess.slopes[at] < 1.0, bias, 0.0)
    return Estimates(raw, np.sqrt(by_shots + guess.excess**2), by_shots, raw, at, bias=bias)


def expected_estimates(
    exact: Array,
    shots: float,
    positions: Codes,
    ends: tuple[float, float],
    guess: Lines,
    known: tuple[Readings, Array] | None,
    *,
    directions: Array | None = None,
) -> Estimates:
    """What is to be expected of n overlaps by lines that are guessed, and by known pairs if there are any.

    `ends` are slope and value at no ones, by which shares of ones are read.
    """
    raw, (slope, at_zero) = guess.at(exact, positions), ends
    # An outcome that never comes has no shot noise: equal values read 0 without noise, whatever the shots.
    share = np.clip((raw - at_zero) / slope, 0.0, 1.0)
    by_shots = slope**2 * share * (1.0 - share) / shots
    if known is None:
        return Estimates(raw, np.sqrt(by_shots + guess.excess**2), by_shots, raw, positions)
    readings, known_exact = known
    readings = replace(readings, overlaps=guess.at(known_exact, readings.positions))
    lines = fit_lines(readings, known_exact, len(guess.slopes), guess.excess**2)
    return _with_errors(exact if lines.used else raw, raw, by_shots, positions, lines, directions)


def _with_errors(
    overlaps: Array, raw: Array, by_shots: Array, positions: Codes, lines: Lines | None, directions: Array | None
) -> Estimates:
    used = lines is not None and lines.used
    # Where lines are inverted, what similar pairs share is no error of their own.
    scatter = 0.0 if lines is None or (used and directions is not None) else lines.excess**2
    slopes = np.abs(lines.slopes[positions]) if lines is not None and used else 1.0
    return Estimates(overlaps, np.sqrt(by_shots + scatter) / slopes, by_shots, raw, positions, lines, directions)


def _variances_of(covariances: Array, at: Array) -> Array:
    """Variances of a + b·s from the covariances of a and b, shape (n, 2, 2)."""
    both = np.stack([np.ones_like(at), at], axis=1)
    return np.asarray(np.einsum("ni,nij,nj->n", both, covariances, both))


# --- lines ----------------------------------------------------------------------------------------------------------

Fitted = tuple[Array, Array, Array, Array, Array]
"""Intercepts and slopes of lines, (lines, 2), and their covariances; of every known pair its variance by shots, its
weight and its distance from its line."""


def guessed_lines(shrink: Array, at_noise: float, n_qubits: int) -> Lines:
    """Lines by the error rates that a device reports.

    `shrink`, (positions,), is the share of an overlap that noise leaves, and `at_noise` what noise alone reads. Noise
    of a single qubit leaves nothing unexplained by a line.
    """
    nothing = np.tile(np.eye(2) * 1e-18, (len(shrink), 1, 1))
    changed = 0.0 if np.any(shrink < 1.0) else 1.0
    excess = _UNEXPLAINED * float(np.mean(1.0 - shrink)) if n_qubits > 1 else 0.0
    return Lines((1.0 - shrink) * at_noise, shrink, nothing, excess, True, 0, changed)


def fit_lines(readings: Readings, exact: Array, n_positions: int, scatter: float | None = None) -> Lines:
    """Fit r = a + b·s to known pairs, by weighted least squares; a variance beyond the shots may be known."""
    everywhere, by_position = np.zeros(len(exact), dtype=np.intp), False

    def fitted(place: Codes, n_lines: int) -> tuple[Fitted, float]:
        if scatter is None:
            return _with_scatter(readings, exact, place, n_lines)
        return _fit(readings, exact, place, n_lines, scatter), scatter

    if n_positions > 1 and _tell_lines(exact, readings.positions, n_positions):
        # What scatters beyond the shots scatters about every line, and is no reason for many.
        fit, beyond = fitted(readings.positions, n_positions)
        by_position = _gain_by_chance(_fit(readings, exact, everywhere, 1, beyond), fit) < _SIGNIFICANT
    if not by_position:
        fit, beyond = fitted(everywhere, 1)
    return _lines(fit, by_position, n_positions, beyond)


def _lines(fit: Fitted, by_position: bool, n_positions: int, scatter: float) -> Lines:
    lines, covariances, _, _, residuals = fit
    chance = float(chdtrc(2 * len(lines), _wald(lines - [0.0, 1.0], covariances)))
    # A slope that is not told from zero tells nothing of an overlap; its error bounds what dividing by it gives.
    least = np.sqrt(covariances[:, 1, 1])
    slopes = np.where(np.abs(lines[:, 1]) < least, least, lines[:, 1])
    copies, n_pairs = 1 if by_position else n_positions, len(residuals)
    intercepts, slopes, covariances = (np.repeat(one, copies, axis=0) for one in (lines[:, 0], slopes, covariances))
    return Lines(intercepts, slopes, covariances, float(np.sqrt(scatter)), by_position, n_pairs, chance)


def _wald(change: Array, covariances: Array) -> float:
    """Squares of changes of lines, (lines, 2), in units of their errors: a chi-square where there is none."""
    return float(np.sum(change * np.linalg.solve(covariances, change[..., None])[..., 0]))


def _tell_lines(exact: Array, place: Codes, n_lines: int) -> bool:
    """Whether every line has enough known pairs, and they differ in their overlaps."""
    count, total, square = (np.bincount(place, exact**power, minlength=n_lines) for power in range(3))
    return bool(np.all((count >= _LEAST_PAIRS) & (count * square - total**2 > 1e-9 * count**2)))


def _with_scatter(readings: Readings, exact: Array, place: Codes, n_lines: int) -> tuple[Fitted, float]:
    """Lines, and the variance about them beyond the shots.

    There is none where it is within one standard error. That is a low bar: errors that are a little too large do less
    harm than those that are too small.
    """
    fit, scatter = _fit(readings, exact, place, n_lines, 0.0), 0.0
    for _ in range(_ROUNDS):
        # What is left of a pair's variance after the lines have followed it.
        _, covariances, variances, weights, residuals = fit
        left = 1.0 - weights * _variances_of(covariances[place], exact)
        by_shots = left * variances
        beyond = float(np.sum(residuals**2 - by_shots))
        scatter = beyond / float(np.sum(left)) if beyond > np.sqrt(2.0 * np.sum(by_shots**2)) else 0.0
        fit = _fit(readings, exact, place, n_lines, scatter)
    return fit, scatter


def _gain_by_chance(one: Fitted, many: Fitted) -> float:
    """How likely lines of all positions fit so much better than one line if that is all there is."""
    (lines, *_, weights, residuals), (all_lines, *_, further) = one, many
    squares = [float(np.sum(weights * distances**2)) for distances in (residuals, further)]
    more, freedom = 2 * (len(all_lines) - len(lines)), len(further) - 2 * len(all_lines)
    scatter = max(1.0, squares[1] / freedom)
    return float(fdtrc(more, freedom, (squares[0] - squares[1]) / more / scatter))


def _fit(readings: Readings, exact: Array, place: Codes, n_lines: int, scatter: float) -> Fitted:
    """Lines by least squares; the weights are those of the shares that the lines themselves expect."""
    expected = exact
    for _ in range(_ROUNDS):
        variances = readings.variances_at(expected)
        weights = 1.0 / (variances + scatter)
        lines, covariances = _least_squares(weights, exact, readings.overlaps, place, n_lines, 1.0)
        expected = lines[place, 0] + lines[place, 1] * exact
    return lines, covariances, variances, weights, readings.overlaps - expected


def _least_squares(
    weights: Array, at: Array, values: Array, place: Codes, n_lines: int, slope: float
) -> tuple[Array, Array]:
    """Intercept and slope of each line, shape (lines, 2), and their covariances; slopes are around `slope` before."""
    factors = (1.0, at, at**2, values, at * values)
    w, ws, wss, wr, wsr = (
        np.asarray(np.bincount(place, weights * factor, minlength=n_lines), dtype=np.float64) for factor in factors
    )
    wss, wsr = wss + 1.0 / _SLOPE**2, wsr + slope / _SLOPE**2
    determinant = w * wss - ws**2
    lines = np.stack([wss * wr - ws * wsr, w * wsr - ws * wr], axis=1) / determinant[:, None]
    covariances = np.stack([wss, -ws, -ws, w], axis=1).reshape(-1, 2, 2) / determinant[:, None, None]
    return lines, covariances


# --- the drift of jobs ----------------------------------------------------------------------------------------------


def fit_drift(readings: Readings, exact: Array, lines: Lines, jobs: Codes) -> tuple[Array, Array] | None:
    """How the lines of jobs differ from the common ones, by known pairs (n,), their overlaps and their jobs from 0 on.

    Added intercept and slope of each job, (jobs, 2), and their covariances, (jobs, 2, 2). None where the drift may be
    chance.
    """
    n_jobs, expected = int(jobs.max()) + 1, lines.at(exact, readings.positions)
    if n_jobs < 2:
        return None
    weights = 1.0 / (readings.variances_at(expected) + lines.excess**2)
    shifts, covariances = _least_squares(weights, exact, readings.overlaps - expected, jobs, n_jobs, 0.0)
    by_chance = chdtrc(2 * (n_jobs - 1), _wald(shifts, covariances)) >= _DRIFT_SIGNIFICANT
    return None if by_chance else (shifts, covariances)


def without_drift(readings: Readings, lines: Lines, shifts: Array, covariances: Array, jobs: Codes) -> Readings:
    """Readings as they would be without the drift of their jobs, with its error among theirs."""
    slopes = lines.slopes[readings.positions] + shifts[jobs, 1]
    overlaps = (readings.overlaps - lines.intercepts[readings.positions] - shifts[jobs, 0]) / slopes
    change = shifts[jobs, 0] + shifts[jobs, 1] * overlaps
    more = readings.more + _variances_of(covariances[jobs], overlaps)
    return replace(readings, overlaps=readings.overlaps - change, more=more)


# --- similar pairs --------------------------------------------------------------------------------------------------


def directions_of(left: Array, right: Array) -> Array | None:
    """Pairs of vectors, none of which is zero, at length 1, shape (2, n, d); None for vectors of one column."""
    if left.shape[1] == 1:
        return None
    return np.stack([rows / row_norms(rows)[:, None] for rows in (left, right)])


def drawn_alike(directions: Array, rng: np.random.Generator) -> Array:
    """Random numbers of variance 1, shape (n,), that are correlated by w·c + (1 − w)·c³."""

    def form() -> Array:
        """A random bilinear form of every pair: its covariances are c."""
        width = directions.shape[2]
        return np.asarray(np.einsum("ni,ni->n", directions[0] @ rng.standard_normal((width, width)), directions[1]))

    drawn: Array = np.sqrt(_FAR) * form()
    for _ in range(_PRODUCTS):
        drawn += np.sqrt((1.0 - _FAR) / _PRODUCTS) * form() * form() * form()
    return drawn
