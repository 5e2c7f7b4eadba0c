"""Backends that run the compact SWAP test and the variational circuit, exactly or by shots.

SWAP tests are called like the closed form, ``backend(X, Y)``. Every pair of a row of X and a row of Y is one circuit,
and the norms are known beforehand. A pair with a zero vector has no circuit and takes the value that
:func:`~qmedoid.compact_swap_test` gives it.

The variational circuit is called as ``backend(ansatz, rotations, inputs, observables)``. Every row of inputs is one
circuit. Observables are diagonal: their eigenvalues at the basis states, in Qiskit's order of bits, which is also that
of :mod:`qmedoid.kernels.statevector`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from qiskit import QuantumCircuit
from qiskit.primitives import BaseSamplerV2, BitArray, StatevectorSampler
from qiskit.quantum_info import Statevector
from qiskit.transpiler import PassManager

from qmedoid.arrays import Array
from qmedoid.circuits.compact_swap import OUTCOME, compact_swap_angles, compact_swap_circuit, compact_swap_template
from qmedoid.circuits.variational import checked_inputs, checked_rotations, variational_circuit
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.geometry.overlap import (
    AngleKind,
    SwapTest,
    check_angle_kind,
    compact_swap_test,
    from_overlap,
    row_norms,
)
from qmedoid.variational.ansatz import Ansatz


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """What both sampling backends share: one template circuit is run for many rows of angles."""

    shots: int = 1024
    sampler: BaseSamplerV2 | None = None
    seed: int | np.random.Generator | None = None
    pass_manager: PassManager | None = None
    on_job: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        self._check_count("shots")
        if self.sampler is None and self.seed is None:
            raise ParameterError("The default sampler needs a 'seed': pass an int or a numpy.random.Generator.")
        if self.sampler is not None and self.seed is not None:
            raise ParameterError("'seed' is for the default sampler: give the sampler its own seed and leave this out.")

    def _check_count(self, name: str) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError(
                f"The {name!r} parameter of {type(self).__name__} must be an int >= 1. Got {value!r} instead."
            )

    def _outcomes(
        self, template: QuantumCircuit, angles: Callable[[int, int], Array], total: int, per_job: int
    ) -> Iterator[BitArray]:
        """What each job measured; ``angles(start, stop)`` gives the template's parameters, a row per run."""
        if self.pass_manager is not None:
            template = self.pass_manager.run(template)
        sampler = self.sampler
        if sampler is None:
            # A generator goes on from draw to draw; the sampler would start an integer afresh for every row.
            sampler = StatevectorSampler(seed=np.random.default_rng(self.seed))
        for start in range(0, total, per_job):
            stop = min(start + per_job, total)
            job = sampler.run([(template, angles(start, stop))], shots=int(self.shots))
            yield job.result()[0].data[OUTCOME]
            if self.on_job is not None:
                self.on_job(stop, total)


Pairs = list[tuple[Array, Array]]


@dataclass(frozen=True)
class StatevectorSwapTest:
    """The circuit's exact expectation, from its statevector.

    The overlap is the difference of two probabilities and so is known to about 1e-15. For vectors that nearly
    coincide this leaves the distance uncertain by about 1e-7·√Z; the closed form has no such limit.

    Parameters
    ----------
    angle : {"true", "printed"}
        As in :func:`~qmedoid.compact_swap_test`.

    Examples
    --------
    >>> from qmedoid.circuits import StatevectorSwapTest
    >>> StatevectorSwapTest()([[3.0, 0.0]], [[0.0, 4.0]]).distance.round(6)
    array([[5.]])
    """

    angle: AngleKind = "true"

    def __post_init__(self) -> None:
        check_angle_kind(self.angle)

    def __call__(self, X: ArrayLike, Y: ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        return _by_circuit(X, Y, self.angle, lambda pairs: np.array([_probability_of_zero(x, y) for x, y in pairs]))


@dataclass(frozen=True, kw_only=True)
class SamplerSwapTest(Sampling):
    """The circuit run for a number of shots through a sampler, a simulator's or a machine's.

    One template circuit serves all pairs; each job is given the rotation angles of up to `pairs_per_job` of them.

    Parameters
    ----------
    shots : int
        Measurements of the ancilla per pair.
    angle : {"true", "printed"}
        As in :func:`~qmedoid.compact_swap_test`.
    sampler : BaseSamplerV2 or None
        Whose ``run([(circuit, angles)], shots=shots)`` takes the measurements. None is
        ``qiskit.primitives.StatevectorSampler``.
    seed : int, numpy.random.Generator or None
        Source of randomness of the default sampler, and required for it. A sampler passed in brings its own.
    pass_manager : PassManager or None
        Rewrites the template for the machine at hand, once per call. None leaves its gates as they are: ry, cx, h
        and cswap, which the simulators know.
    pairs_per_job : int
        Pairs of rows sent in one job.
    on_job : callable or None
        Called as ``on_job(done, total)`` with numbers of pairs after each job.

    Notes
    -----
    A sampler that starts afresh from one seed in every job repeats its noise from job to job (Aer does, given
    ``seed``); ``StatevectorSampler(seed=int)`` repeats it from pair to pair. The default sampler does neither.

    Examples
    --------
    >>> from qmedoid.circuits import SamplerSwapTest
    >>> measured = SamplerSwapTest(shots=4096, seed=7)([[3.0, 0.0]], [[0.0, 4.0]])
    >>> bool(abs(measured.distance - 5).max() < 0.5)
    True
    """

    angle: AngleKind = "true"
    pairs_per_job: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_angle_kind(self.angle)
        self._check_count("pairs_per_job")

    def __call__(self, X: ArrayLike, Y: ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        return _by_circuit(X, Y, self.angle, self._share_of_zeros)

    def _share_of_zeros(self, pairs: Pairs) -> Array:
        def angles(start: int, stop: int) -> Array:
            return np.stack([compact_swap_angles(x, y) for x, y in pairs[start:stop]])

        template = compact_swap_template(len(pairs[0][0]))
        shares = []
        for outcome in self._outcomes(template, angles, len(pairs), self.pairs_per_job):
            ones = outcome.bitcount().sum(axis=-1, dtype=np.int64)
            shares.append((outcome.num_shots - ones) / outcome.num_shots)
        return np.concatenate(shares)


def _probability_of_zero(x: Array, y: Array) -> float:
    """Probability that the ancilla, the first qubit of the circuit, reads 0."""
    return float(Statevector(compact_swap_circuit(x, y, measure=False)).probabilities([0])[0])


def _by_circuit(X: ArrayLike, Y: ArrayLike, angle: AngleKind, measure: Callable[[Pairs], Array]) -> SwapTest:
    """Let `measure` find p0 for the pairs that can be prepared; the others keep the classical values."""
    classical = compact_swap_test(X, Y, angle=angle)
    left, right = (np.atleast_2d(np.asarray(rows, dtype=np.float64)) for rows in (X, Y))
    x_norms, y_norms = row_norms(left), row_norms(right)
    prepared = (x_norms > 0)[:, None] & (y_norms > 0)[None, :]
    overlap = classical.overlap.copy()
    if prepared.any():
        p0 = measure([(left[i], right[j]) for i, j in np.argwhere(prepared)])
        overlap[prepared] = np.clip(2.0 * p0 - 1.0, 0.0, 1.0)
    measured = from_overlap(overlap, x_norms, y_norms, angle=angle)
    return SwapTest(*(np.where(prepared, m, c) for m, c in zip(measured, classical, strict=True)))


@dataclass(frozen=True)
class StatevectorExpectations:
    """Exact expectation values, from the statevector of every row's circuit.

    Examples
    --------
    >>> import numpy as np
    >>> from qmedoid import VariationalClassifier
    >>> from qmedoid.circuits import StatevectorExpectations
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    >>> model = VariationalClassifier(n_qubits=1, n_steps=5, n_seeds=1, random_state=0).fit(X, y)
    >>> by_circuits = model.measured_by(StatevectorExpectations())
    >>> bool(np.allclose(by_circuits.predict_proba(X), model.predict_proba(X)))
    True
    """

    def __call__(self, ansatz: Ansatz, rotations: ArrayLike, inputs: ArrayLike, observables: ArrayLike, /) -> Array:
        """Expectation values of every row, shape (n_rows, K)."""
        weights, rows, values = _checked_observables(ansatz, rotations, inputs, observables)
        probabilities = np.empty((len(rows), 2**ansatz.n_qubits))
        for row, into in zip(rows, probabilities, strict=True):
            into[:] = Statevector(variational_circuit(ansatz, weights=weights, inputs=row)).probabilities()
        return probabilities @ values.T


@dataclass(frozen=True, kw_only=True)
class SamplerExpectations(Sampling):
    """Expectation values from a number of shots through a sampler, a simulator's or a machine's.

    All qubits are measured, and every observable is averaged over the same outcomes. One template circuit with the
    weights in place serves all rows; each job is given the inputs of up to `rows_per_job` of them.

    Parameters
    ----------
    shots : int
        Measurements per row.
    sampler : BaseSamplerV2 or None
        Whose ``run([(circuit, inputs)], shots=shots)`` takes the measurements. None is
        ``qiskit.primitives.StatevectorSampler``.
    seed : int, numpy.random.Generator or None
        Source of randomness of the default sampler, and required for it. A sampler passed in brings its own.
    pass_manager : PassManager or None
        Rewrites the template for the machine at hand, once per call. None leaves its gates as they are: ry, rz, cx
        and cz, which the simulators know.
    rows_per_job : int
        Rows sent in one job.
    on_job : callable or None
        Called as ``on_job(done, total)`` with numbers of rows after each job.

    Notes
    -----
    What is said of samplers and their seeds at :class:`~qmedoid.circuits.SamplerSwapTest` holds here as well.

    Examples
    --------
    >>> from qmedoid import VariationalClassifier
    >>> from qmedoid.circuits import SamplerExpectations
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> model = VariationalClassifier(n_qubits=1, n_steps=5, n_seeds=1, random_state=0).fit(X, y)
    >>> measured = model.measured_by(SamplerExpectations(shots=4096, seed=7)).predict_proba(X)
    >>> bool(abs(measured - model.predict_proba(X)).max() < 0.1)
    True
    """

    rows_per_job: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_count("rows_per_job")

    def __call__(self, ansatz: Ansatz, rotations: ArrayLike, inputs: ArrayLike, observables: ArrayLike, /) -> Array:
        """Means of the observables over the shots of every row, shape (n_rows, K)."""
        weights, rows, values = _checked_observables(ansatz, rotations, inputs, observables)
        if not len(rows):
            return np.empty((0, len(values)))
        # The weights are in place before a pass manager sees the circuit: it may drop rotations that nothing measures,
        # and their parameters with them.
        template = variational_circuit(ansatz, weights=weights, measure=True)
        outcomes = self._outcomes(template, lambda start, stop: rows[start:stop], len(rows), self.rows_per_job)
        return np.concatenate([_shares(outcome, ansatz.n_qubits) @ values.T for outcome in outcomes])


def _shares(outcome: BitArray, n_qubits: int) -> Array:
    """Share of every basis state among the shots, shape (rows, 2**n); bit k of the index is bit k of the register."""
    size = 2**n_qubits
    # Each shot is a few bytes, the most significant first.
    index = np.zeros(outcome.array.shape[:-1], dtype=np.intp)
    for byte in np.moveaxis(outcome.array, -1, 0):
        index = index << 8 | byte
    row = np.arange(len(index))[:, None]
    counts = np.bincount((row * size + index).ravel(), minlength=len(index) * size).reshape(len(index), size)
    shares: Array = counts / outcome.num_shots
    return shares


def _checked_observables(
    ansatz: Ansatz, rotations: ArrayLike, inputs: ArrayLike, observables: ArrayLike
) -> tuple[Array, Array, Array]:
    values = np.asarray(observables, dtype=np.float64)
    size = 2**ansatz.n_qubits
    if values.ndim != 2 or values.shape[1] != size:
        raise DataError(f"Observables must be of shape (K, {size}). Got shape {values.shape} instead.")
    return checked_rotations(ansatz, rotations), checked_inputs(ansatz, inputs), values
