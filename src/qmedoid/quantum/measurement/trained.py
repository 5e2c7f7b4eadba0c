"""A trained circuit whose qubits are all read: its observables, and their values with errors."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import ModelError
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.kernels import statevector
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.methods.variational.model import ExpectationFunction
from qmedoid.quantum.devices.packs import Pack
from qmedoid.quantum.measurement.calibration import Estimates, Lines, Readings, estimated, expected_lines, fit_lines
from qmedoid.quantum.measurement.recorder import Decided
from qmedoid.quantum.measurement.running import Read

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
    chance = 2.0 * float(ndtr(-abs(shift) / np.sqrt(variance)))
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


Values = Callable[[Codes, Array], Array]
"""Expectation values, shape (n, K), of n of the circuit's records, by their places among these and their inputs."""


@dataclass(frozen=True, eq=False)
class TrainedCircuit:
    """A trained circuit, and the records that it decides.

    Attributes
    ----------
    ansatz : Ansatz
    rotations : ndarray of shape ``ansatz.weight_shape``
    observables : ndarray of shape (K, 2**n)
        Eigenvalues at the basis states, of two different values each.
    names : tuple of K str
        What the observables are called.
    rows : ndarray of shape (n,)
        Numbers of the records, ascending.
    decide : callable (swap_test, rows, expectations) -> Decided
        Decides about some of all records with the distances of a SWAP test and a circuit that a backend runs.
    """

    ansatz: Ansatz
    rotations: Array
    observables: Array
    names: tuple[str, ...]
    rows: Codes
    decide: Callable[[SwapTestFunction, Codes, ExpectationFunction], Decided]

    def __post_init__(self) -> None:
        ends = np.stack([self.least, self.least + self.span], axis=1)
        if np.any(self.span == 0) or not np.all((self.observables[..., None] == ends[:, None]).any(axis=-1)):
            raise ModelError(
                "The trained circuit has an observable of one or of more than two eigenvalues, whose shots are not "
                "counted here: simulate it with refine='simulated'."
            )

    @cached_property
    def least(self) -> Array:
        """Smaller eigenvalue of each observable, shape (K,)."""
        return np.asarray(self.observables.min(axis=1))

    @cached_property
    def span(self) -> Array:
        """Difference of its two eigenvalues, shape (K,)."""
        return np.asarray(self.observables.max(axis=1) - self.observables.min(axis=1))

    @cached_property
    def masks(self) -> Flags:
        """Basis states with the larger eigenvalue of each observable, shape (K, 2**n)."""
        return self.observables > self.least[:, None]

    @cached_property
    def qubits_read(self) -> Array:
        """Share of the qubits that each observable depends on, shape (K,)."""
        states, n = np.arange(self.masks.shape[1]), self.ansatz.n_qubits
        depends = [np.any(self.masks != self.masks[:, states ^ (1 << qubit)], axis=1) for qubit in range(n)]
        return np.asarray(np.mean(depends, axis=0))

    def values(self, shares: Array) -> Array:
        """Expectation values, shape (n, K), from shares of shots with the larger eigenvalue."""
        return self.least + self.span * shares

    def probabilities(self, inputs: Array) -> Array:
        """Exact probabilities of the basis states, shape (n, 2**n)."""
        states = statevector.states(self.ansatz.qubit_angles(inputs), self.rotations, reupload=self.ansatz.reupload)
        probabilities: Array = states.real**2 + states.imag**2
        return probabilities

    def shares(self, inputs: Array) -> Array:
        """Exact shares of shots with the larger eigenvalue of each observable, shape (n, K)."""
        return np.asarray(self.probabilities(inputs) @ self.masks.T)

    def exact(self, _: Codes, inputs: Array) -> Array:
        """Exact expectation values; they are `Values`."""
        return self.values(self.shares(inputs))

    def backend(self, rows: Codes, values: Values) -> ExpectationFunction:
        """A backend for those of some records that the circuit decides, in their order."""
        places = np.searchsorted(self.rows, rows[np.isin(rows, self.rows)])

        def expectations(_: Ansatz, __: Array, inputs: Array, ___: Array, /) -> Array:
            if len(inputs) != len(places):
                raise ModelError(
                    "The model gives other records to its circuit than were planned: the records or the model changed "
                    "after the plan was made. Make a new plan."
                )
            return values(places, inputs)

        return expectations


@dataclass(frozen=True, eq=False)
class TrainedReading:
    """Expectation values of a trained circuit with their errors, as they were read or are expected.

    Attributes
    ----------
    circuit : TrainedCircuit
    inputs : ndarray of shape (n, m)
        Angles that the circuit ran with.
    estimates : tuple of K Estimates
        Shares of shots with the larger eigenvalue of each observable.
    roots : ndarray of shape (n, K, K)
        Roots of the correlations of their errors.
    reads : tuple of K Read
        What was read; empty where nothing was.
    """

    circuit: TrainedCircuit
    inputs: Array
    estimates: tuple[Estimates, ...]
    roots: Array
    reads: tuple[Read, ...] = ()

    @cached_property
    def values(self) -> Array:
        """Expectation values, shape (n, K)."""
        return self.circuit.values(np.stack([one.overlaps for one in self.estimates], axis=1))

    @cached_property
    def raw(self) -> Array:
        """The same without calibration."""
        return self.circuit.values(np.stack([one.raw for one in self.reads], axis=1))

    @cached_property
    def errors(self) -> Array:
        """Stated standard errors of the expectation values, shape (n, K)."""
        return self.circuit.span * np.stack([one.errors for one in self.estimates], axis=1)

    @cached_property
    def exact(self) -> Array:
        """Expectation values by exact simulation with the same inputs, shape (n, K)."""
        return self.circuit.values(self.circuit.shares(self.inputs))

    @property
    def lines(self) -> tuple[Lines | None, ...]:
        """The calibration of each observable, as lines of expectation values; None where there was none."""
        return tuple(
            None if one.lines is None else lines_of_values(one.lines, least, span)
            for one, least, span in zip(self.reads, self.circuit.least, self.circuit.span, strict=True)
        )

    def measured(self, places: Codes, _: Array) -> Array:
        """The expectation values of some records; they are `Values`."""
        return self.values[places]

    def drawn(self, rng: np.random.Generator) -> Values:
        """Values as another run might read them if these were true, with inputs that may differ."""
        normal = np.einsum("nij,nj->ni", self.roots, rng.standard_normal(self.roots.shape[:2]))
        shares = np.stack([replace(one, own=np.zeros_like(one.own)).draw(rng) for one in self.estimates], axis=1)
        shares += np.stack([one.own for one in self.estimates], axis=1) * normal
        off = self.circuit.values(shares) - self.exact
        return lambda places, inputs: self.circuit.exact(places, inputs) + off[places]

    def without_calibration(self, shots: Codes) -> "TrainedReading":
        """What the same counts say without calibration: values as they were read, with errors by shots alone."""
        estimates = tuple(
            estimated(Readings(one.raw, shots.astype(np.float64), one.estimates.positions, 1.0, 0.0), None)
            for one in self.reads
        )
        return replace(self, estimates=estimates)


def trained_notes(reading: TrainedReading, pack: Pack) -> Iterator[str]:
    """What is worth knowing about the calibration of a trained circuit, in sentences."""
    fitted = [lines for lines in reading.lines if lines is not None]
    if not fitted and np.any(pack.shrink < 1.0):
        yield (
            f"Trained circuit: noise leaves about {pack.shrink.mean():.2f} of an expectation value, by the device's "
            "error rates. Without calibration it goes into the decisions, and stated errors are those of shots alone."
        )
    elif fitted and not any(lines.used for lines in fitted):
        yield (
            "Trained circuit: known inputs read what they should, within their shots, so expectation values are taken "
            "as they are, without calibration."
        )
    least = min((float(np.min(lines.slopes)) for lines in fitted), default=1.0)
    if least < 0.2:
        yield (
            f"Trained circuit: noise leaves {least:.2f} of an expectation value at the worst place; errors are large. "
            "Fit a circuit of fewer repetitions or qubits."
        )
    drifts = [
        span * read.drift.largest
        for read, span in zip(reading.reads, reading.circuit.span, strict=True)
        if read.drift is not None
    ]
    if drifts:
        yield (
            f"Trained circuit: known inputs of different jobs disagree by up to {max(drifts):.3f} of an expectation "
            "value: the device drifted. It is undone job by job."
        )
