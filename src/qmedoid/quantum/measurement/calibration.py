r"""Self-calibration: what a device's noise does to overlaps, from pairs whose overlap is known.

Noise shrinks an overlap and shifts it, :math:`r = a + b\,s` to a good approximation. The line is fitted to known pairs
that run in every job, for each place of a circuit where that fits better, and inverted. What the line leaves
unexplained beyond the shots is counted as an error of its own.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc, fdtrc

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ModelError
from qmedoid.quantum.measurement.scatter import Directions, far_share

# A gain by chance is as rare as this.
_SIGNIFICANT = 0.01
# Known pairs that a line of one place is fitted to at least.
_LEAST_PAIRS = 6
_ROUNDS = 4
# Of what noise takes from an overlap, about this share is not affine: as seen on fake devices, 1.6 to 2.6 %.
_UNEXPLAINED = 0.02
# How far that reaches among similar pairs: 0 to 0.4 there.
_FAR = 0.2


@dataclass(frozen=True, eq=False)
class Readings:
    """Measured tests of one shape.

    Attributes
    ----------
    overlaps : ndarray of shape (n,)
        Raw overlaps r, as the circuit's share of ones says.
    shots : ndarray of shape (n,)
    positions : ndarray of shape (n,)
        Which copy of the circuit measured each.
    slope : float
        Of the overlap by the share of ones.
    at_zero : float
        Raw overlap at no ones.
    more : ndarray of shape (n,), or 0
        Variances by something else than shots.
    directions : Directions or None
        The vectors that were compared; None for single numbers, whose line leaves nothing unexplained.
    """

    overlaps: Array
    shots: Array
    positions: Codes
    slope: float
    at_zero: float
    more: Array | float = 0.0
    directions: Directions | None = None

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
    """The fitted lines of a shape, one for all positions or one for each.

    Attributes
    ----------
    intercepts, slopes : ndarray of shape (positions,)
        a and b; the same for all positions where one line is enough.
    covariances : ndarray of shape (positions, 2, 2)
        Of a and b.
    excess : float
        Deviation of known pairs from the line beyond their shots, in units of the raw overlap.
    by_position : bool
        Whether every position has a line of its own.
    n_pairs : int
        Known pairs that the lines were fitted to.
    chance : float
        How likely lines as far from no change as these are if there is none.
    spread : float
        Deviation of the standardized residuals about the lines by shots alone; about 1 where the line is all there is.
    far : float
        How far the excess reaches that similar pairs have in common, from 0 to 1; see
        `qmedoid.quantum.measurement.scatter`.
    """

    intercepts: Array
    slopes: Array
    covariances: Array
    excess: float
    by_position: bool
    n_pairs: int
    chance: float
    spread: float
    far: float = 0.0

    @property
    def used(self) -> bool:
        """Whether the lines differ from no change by more than chance; otherwise raw overlaps are taken as they are."""
        return self.chance < _SIGNIFICANT

    def own_scatter(self, directions: Directions | None) -> float:
        """Variance of a raw overlap beyond the shots that is independent of other pairs."""
        return self.excess**2 if directions is None else 0.0

    @property
    def n_lines(self) -> int:
        """Different lines, and groups of errors that are common to several tests."""
        return len(self.slopes) if self.by_position else 1


def guessed_lines(shrink: Array, at_noise: float, n_qubits: int) -> Lines:
    """Lines by the error rates that a device reports.

    Parameters
    ----------
    shrink : ndarray of shape (positions,)
        Share of an overlap that noise leaves at each position.
    at_noise : float
        What noise alone reads.
    n_qubits : int
        Of a test; noise of a single qubit leaves nothing unexplained by a line.
    """
    n = len(shrink)
    nothing = np.tile(np.eye(2) * 1e-18, (n, 1, 1))
    changed = 0.0 if np.any(shrink < 1.0) else 1.0
    excess = _UNEXPLAINED * float(np.mean(1.0 - shrink)) if n_qubits > 1 else 0.0
    return Lines((1.0 - shrink) * at_noise, shrink, nothing, excess, True, 0, changed, 1.0, _FAR)


def expected_lines(guess: Lines, readings: Readings, exact: Array) -> Lines:
    """Lines as known pairs are expected to tell them, with the errors that they will have then.

    Parameters
    ----------
    guess : Lines
        Of an earlier run, or guessed.
    readings : Readings
        Of the known pairs; their overlaps are not looked at.
    exact : ndarray of shape (n,)
        Overlaps of the known pairs.
    """
    positions, n_positions = readings.positions, len(guess.slopes)
    readings = replace(readings, overlaps=guess.intercepts[positions] + guess.slopes[positions] * exact)
    scatter, everywhere = guess.excess**2, np.zeros_like(positions)
    one = _fit(readings, exact, everywhere, 1, scatter)
    by_position = guess.by_position and n_positions > 1
    by_position = by_position and _tell_lines(exact, positions, n_positions, least=_LEAST_PAIRS)
    many = _fit(readings, exact, positions, n_positions, scatter) if by_position else one
    if guess.n_pairs == 0 and by_position:
        by_position = _gain_by_chance(one, many) < _SIGNIFICANT
    return _lines(many if by_position else one, by_position, n_positions, scatter, 1.0, guess.far)


def fit_lines(readings: Readings, exact: Array, n_positions: int) -> Lines:
    """Fit r = a + b·s to known pairs, by weighted least squares.

    Raises
    ------
    ModelError
        All pairs have the same overlap, which tells no line.
    """
    everywhere = np.zeros(len(exact), dtype=np.intp)
    if not _tell_lines(exact, everywhere, 1, least=2):
        raise ModelError(
            f"The {len(exact)} known pair(s) do not differ in their overlaps, which tells no line: measure others, or "
            "pass calibrate=False."
        )
    place, n_lines, by_position = everywhere, 1, False
    if n_positions > 1 and _tell_lines(exact, readings.positions, n_positions, least=_LEAST_PAIRS):
        # What scatters beyond the shots scatters about every line, and is no reason for many.
        many, scatter = _with_scatter(readings, exact, readings.positions, n_positions)
        one = _fit(readings, exact, everywhere, 1, scatter)
        by_position = _gain_by_chance(one, many) < _SIGNIFICANT
        if by_position:
            place, n_lines = readings.positions, n_positions
    spread = _fit(readings, exact, place, n_lines, 0.0).spread
    fitted, scatter = _with_scatter(readings, exact, place, n_lines)
    far = 0.0
    if readings.directions is not None:
        far = far_share(fitted.residuals, 1.0 / fitted.weights, scatter, readings.directions)
    return _lines(fitted, by_position, n_positions, scatter, spread, far)


def _lines(fitted: "_LineFit", by_position: bool, n_positions: int, scatter: float, spread: float, far: float) -> Lines:
    change = np.stack([fitted.intercepts, fitted.slopes - 1.0], axis=1)
    wald = float(np.sum(change * np.linalg.solve(fitted.covariances, change[..., None])[..., 0]))
    # A slope that is not told from zero tells nothing of an overlap; its error bounds what dividing by it gives.
    least = np.sqrt(fitted.covariances[:, 1, 1])
    slopes = np.where(np.abs(fitted.slopes) < least, least, fitted.slopes)
    copies = 1 if by_position else n_positions
    return Lines(
        np.repeat(fitted.intercepts, copies),
        np.repeat(slopes, copies),
        np.repeat(fitted.covariances, copies, axis=0),
        float(np.sqrt(scatter)),
        by_position,
        len(fitted.residuals),
        float(chdtrc(2 * len(change), wald)),
        spread,
        far,
    )


def _tell_lines(exact: Array, place: Codes, n_lines: int, *, least: int) -> bool:
    """Whether every line has so many known pairs at least, and they differ in their overlaps."""
    count, total, square = (np.bincount(place, exact**power, minlength=n_lines) for power in range(3))
    return bool(np.all((count >= least) & (count * square - total**2 > 1e-9 * count**2)))


def _with_scatter(readings: Readings, exact: Array, place: Codes, n_lines: int) -> tuple["_LineFit", float]:
    """Lines, and the variance about them beyond the shots.

    There is none where it is within one standard error. That is a low bar: errors that are a little too large do less
    harm than those that are too small.
    """
    fitted, scatter = _fit(readings, exact, place, n_lines, 0.0), 0.0
    for _ in range(_ROUNDS):
        # What is left of a pair's variance after the lines have followed it.
        left = 1.0 - fitted.leverages(exact, place)
        by_shots = left * fitted.variances
        beyond = float(np.sum(fitted.residuals**2 - by_shots))
        scatter = beyond / float(np.sum(left)) if beyond > np.sqrt(2.0 * np.sum(by_shots**2)) else 0.0
        fitted = _fit(readings, exact, place, n_lines, scatter)
    return fitted, scatter


def _gain_by_chance(one: "_LineFit", many: "_LineFit") -> float:
    """How likely lines of all positions fit so much better than one line if that is all there is."""
    squares = [float(np.sum(one.weights * fit.residuals**2)) for fit in (one, many)]
    more, freedom = one.freedom - many.freedom, many.freedom
    scatter = max(1.0, squares[1] / freedom)
    return float(fdtrc(more, freedom, (squares[0] - squares[1]) / more / scatter))


@dataclass(frozen=True, eq=False)
class _LineFit:
    """Lines, and for every known pair its variance by shots, its weight and its distance from its line."""

    intercepts: Array
    slopes: Array
    covariances: Array
    variances: Array
    weights: Array
    residuals: Array

    @property
    def freedom(self) -> int:
        return len(self.residuals) - 2 * len(self.slopes)

    @property
    def spread(self) -> float:
        """Deviation of the standardized residuals."""
        chi_square = float(np.sum(self.weights * self.residuals**2))
        return float(np.sqrt(chi_square / self.freedom)) if self.freedom > 0 else 1.0

    def leverages(self, exact: Array, place: Codes) -> Array:
        """How much of each pair's own reading is in its line."""
        at = np.stack([np.ones_like(exact), exact], axis=1)
        leverages: Array = self.weights * np.einsum("ni,nij,nj->n", at, self.covariances[place], at)
        return leverages


def _fit(readings: Readings, exact: Array, place: Codes, n_lines: int, scatter: float) -> _LineFit:
    """Lines by least squares; the weights are those of the shares that the lines themselves expect."""
    expected = exact
    for _ in range(_ROUNDS):
        variances = readings.variances_at(expected)
        weights = 1.0 / (variances + scatter)
        w, ws, wss, wr, wsr = (
            np.bincount(place, weights * factor, minlength=n_lines)
            for factor in (1.0, exact, exact**2, readings.overlaps, exact * readings.overlaps)
        )
        determinant = w * wss - ws**2
        intercepts, slopes = (wss * wr - ws * wsr) / determinant, (w * wsr - ws * wr) / determinant
        expected = intercepts[place] + slopes[place] * exact
    covariances = np.stack([wss, -ws, -ws, w], axis=1).reshape(-1, 2, 2) / determinant[:, None, None]
    return _LineFit(intercepts, slopes, covariances, variances, weights, readings.overlaps - expected)


@dataclass(frozen=True, eq=False)
class Estimates:
    """Overlaps of tests with their errors.

    Attributes
    ----------
    overlaps : ndarray of shape (n,)
        Calibrated, where a calibration is used; they may lie outside of 0 to 1.
    own : ndarray of shape (n,)
        Standard error of each that is independent of the others: by shots, and by what a line leaves unexplained where
        the vectors are not known.
    positions : ndarray of shape (n,)
        Position whose line was inverted.
    lines : Lines or None
        Whose errors are common to all tests of a line; None for raw overlaps.
    directions : Directions or None
        The vectors that were compared, whose likeness says how much of what the line leaves unexplained they share.
    """

    overlaps: Array
    own: Array
    positions: Codes
    lines: Lines | None
    directions: Directions | None = None

    @property
    def shared(self) -> Array:
        """Standard error of each by what its line leaves unexplained, and similar pairs have in common."""
        if self.lines is None or self.directions is None:
            return np.zeros_like(self.own)
        shared: Array = self.lines.excess / np.abs(self.lines.slopes[self.positions])
        return shared

    @property
    def errors(self) -> Array:
        """Standard error of each, with that of the calibration."""
        if self.lines is None:
            return self.own
        at = np.stack([np.ones_like(self.overlaps), self.overlaps], axis=1)
        common = np.einsum("ni,nij,nj->n", at, self.lines.covariances[self.positions], at)
        errors: Array = np.sqrt(self.own**2 + self.shared**2 + common / self.lines.slopes[self.positions] ** 2)
        return errors

    def draw(self, rng: np.random.Generator) -> Array:
        """Overlaps as another run might measure them if these were true."""
        drawn: Array = self.overlaps + self.own * rng.standard_normal(len(self.own))
        if self.lines is None:
            return drawn
        roots = np.linalg.cholesky(self.lines.covariances)
        normal = rng.standard_normal((self.lines.n_lines, 2))
        change = np.einsum("pij,pj->pi", roots, np.broadcast_to(normal, (len(roots), 2)))[self.positions]
        slopes = self.lines.slopes[self.positions]
        drawn -= (change[:, 0] + change[:, 1] * self.overlaps) / slopes
        if self.directions is not None and self.lines.excess:
            drawn += self.lines.excess * self.directions.draw(rng, self.lines.far) / slopes
        return drawn


def estimated(readings: Readings, lines: Lines | None) -> Estimates:
    """Overlaps from raw ones, by the inverted lines where they are used.

    What scatters beyond the shots counts as an error also where there is no line to invert.
    """
    if lines is None or not lines.used:
        scatter = 0.0 if lines is None else lines.excess**2
        return Estimates(readings.overlaps, np.sqrt(readings.variances + scatter), readings.positions, None)
    slopes = lines.slopes[readings.positions]
    overlaps = (readings.overlaps - lines.intercepts[readings.positions]) / slopes
    own = np.sqrt(readings.variances + lines.own_scatter(readings.directions)) / np.abs(slopes)
    return Estimates(overlaps, own, readings.positions, lines, readings.directions)
