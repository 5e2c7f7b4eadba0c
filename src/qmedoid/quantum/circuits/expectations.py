"""Backends that run the variational circuit: exactly, by the shots of a sampler, or by an estimator.

They are called as ``backend(ansatz, rotations, inputs, observables)``. Every row of inputs is one circuit. Observables
are diagonal: their eigenvalues at the basis states, in Qiskit's order of bits, which is also that of
:mod:`qmedoid.kernels.statevector`.

Rotations and inputs are both open parameters of one template, so a pass manager rewrites it once for all weights.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from qiskit.primitives import BaseEstimatorV2, BitArray, StatevectorEstimator
from qiskit.quantum_info import SparsePauliOp, Statevector
from qiskit.transpiler import PassManager

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.quantum.circuits.backends import Sampling
from qmedoid.quantum.circuits.templates import Templates
from qmedoid.quantum.circuits.variational import checked_inputs, checked_rotations, variational_circuit

# Share of the largest eigenvalue below which a coefficient of a Pauli string is rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class StatevectorExpectations:
    """Exact expectation values, from the statevector of every row's circuit.

    Examples
    --------
    >>> import numpy as np
    >>> from qmedoid import VariationalClassifier
    >>> from qmedoid.quantum.circuits import StatevectorExpectations
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    >>> model = VariationalClassifier(n_qubits=1, n_steps=5, n_seeds=1, random_state=0).fit(X, y)
    >>> by_circuits = model.measured_by(StatevectorExpectations())
    >>> bool(np.allclose(by_circuits.predict_proba(X), model.predict_proba(X)))
    True
    """

    def __call__(self, ansatz: Ansatz, rotations: ArrayLike, inputs: ArrayLike, observables: ArrayLike, /) -> Array:
        """Expectation values of every row, shape (n_rows, K)."""
        weights = checked_rotations(ansatz, rotations)
        rows, values = checked_inputs(ansatz, inputs), _checked_observables(ansatz, observables)
        probabilities = np.empty((len(rows), 2**ansatz.n_qubits))
        for row, into in zip(rows, probabilities, strict=True):
            into[:] = Statevector(variational_circuit(ansatz, weights=weights, inputs=row)).probabilities()
        return probabilities @ values.T


@dataclass(frozen=True, kw_only=True)
class SamplerExpectations(Sampling):
    """Expectation values from a number of shots through a sampler, a simulator's or a machine's.

    All qubits are measured, and every observable is averaged over the same outcomes. One template circuit serves all
    rows and all weights; each job is given the angles of up to `rows_per_job` rows.

    Parameters
    ----------
    shots : int
        Measurements per row.
    sampler : BaseSamplerV2 or None
        Whose ``run([(circuit, angles)], shots=shots)`` takes the measurements. None is
        ``qiskit.primitives.StatevectorSampler``. Options of the sampler, such as twirling and dynamical decoupling of
        a runtime service, are set on it before it is passed, and are left as they are.
    seed : int, numpy.random.Generator or None
        Source of randomness of the default sampler, and required for it; draws go on from call to call. A sampler
        passed in brings its own.
    pass_manager : PassManager or None
        Rewrites the template for the machine at hand, once per ansatz. None leaves its gates as they are: ry, rz, cx
        and cz, which the simulators know.
    rows_per_job : int
        Rows sent in one job.
    on_job : callable or None
        Called as ``on_job(done, total)`` with numbers of rows after each job.

    Notes
    -----
    What is said of samplers and their seeds at :class:`~qmedoid.quantum.circuits.SamplerSwapTest` holds here as well.

    Examples
    --------
    >>> from qmedoid import VariationalClassifier
    >>> from qmedoid.quantum.circuits import SamplerExpectations
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
        angles, values = _angles(ansatz, rotations, inputs), _checked_observables(ansatz, observables)
        if not len(angles):
            return np.empty((0, len(values)))
        template = self._templates.get(ansatz, lambda: variational_circuit(ansatz, measure=True))
        outcomes = self._outcomes(template, lambda start, stop: angles[start:stop], len(angles), self.rows_per_job)
        return np.concatenate([_shares(outcome, ansatz.n_qubits) @ values.T for outcome in outcomes])


@dataclass(frozen=True, kw_only=True)
class EstimatorExpectations:
    """Expectation values through an estimator, which may mitigate errors, as by zero-noise extrapolation.

    Observables are written as sums of Z strings. The estimator decides how often it measures to reach the precision.

    Parameters
    ----------
    precision : float
        Standard error that is asked of every expectation value; 1/32 is about that of 1,024 shots.
    estimator : BaseEstimatorV2 or None
        Whose ``run([(circuit, observables, angles)], precision=precision)`` estimates them. None is
        ``qiskit.primitives.StatevectorEstimator``. Its options, such as those of resilience, are set on it before it is
        passed, and are left as they are.
    seed : int, numpy.random.Generator or None
        Source of randomness of the default estimator, and required for it; draws go on from call to call.
    pass_manager, rows_per_job, on_job
        As of :class:`~qmedoid.quantum.circuits.SamplerExpectations`.

    Examples
    --------
    >>> from qmedoid import VariationalClassifier
    >>> from qmedoid.quantum.circuits import EstimatorExpectations
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> model = VariationalClassifier(n_qubits=1, n_steps=5, n_seeds=1, random_state=0).fit(X, y)
    >>> measured = model.measured_by(EstimatorExpectations(precision=0.01, seed=7)).predict_proba(X)
    >>> bool(abs(measured - model.predict_proba(X)).max() < 0.1)
    True
    """

    precision: float = 1 / 32
    estimator: BaseEstimatorV2 | None = None
    seed: int | np.random.Generator | None = None
    pass_manager: PassManager | None = None
    rows_per_job: int = 100
    on_job: Callable[[int, int], None] | None = None
    _estimator: BaseEstimatorV2 = field(init=False, repr=False, compare=False)
    _templates: Templates = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.precision, bool) or not 0 < self.precision < np.inf:
            raise ParameterError(
                "The 'precision' parameter of EstimatorExpectations must be a number above 0. "
                f"Got {self.precision!r} instead."
            )
        if (
            isinstance(self.rows_per_job, bool)
            or not isinstance(self.rows_per_job, int | np.integer)
            or (self.rows_per_job < 1)
        ):
            raise ParameterError(
                "The 'rows_per_job' parameter of EstimatorExpectations must be an int >= 1. "
                f"Got {self.rows_per_job!r} instead."
            )
        if (self.estimator is None) == (self.seed is None):
            raise ParameterError(
                "EstimatorExpectations takes a 'seed' for its default estimator, or an 'estimator' with its own: pass "
                "one of them."
            )
        default = (
            StatevectorEstimator(seed=np.random.default_rng(self.seed)) if self.estimator is None else self.estimator
        )
        object.__setattr__(self, "_estimator", default)
        object.__setattr__(self, "_templates", Templates(self.pass_manager))

    def __call__(self, ansatz: Ansatz, rotations: ArrayLike, inputs: ArrayLike, observables: ArrayLike, /) -> Array:
        """Estimates of every row, shape (n_rows, K)."""
        angles, values = _angles(ansatz, rotations, inputs), _checked_observables(ansatz, observables)
        found = np.empty((len(angles), len(values)))
        if not len(angles):
            return found
        template = self._templates.get(ansatz, lambda: variational_circuit(ansatz))
        strings = [one.apply_layout(template.circuit.layout) for one in z_strings(values)]
        for start in range(0, len(angles), self.rows_per_job):
            rows = slice(start, min(start + self.rows_per_job, len(angles)))
            # Every observable for every row: the shapes (K, 1) and (rows,) are broadcast.
            pub = (template.circuit, [[one] for one in strings], template.bound(angles[rows]))
            found[rows] = self._estimator.run([pub], precision=float(self.precision)).result()[0].data["evs"].T
            if self.on_job is not None:
                self.on_job(rows.stop, len(angles))
        return found


def z_strings(observables: Array) -> list[SparsePauliOp]:
    """Diagonal observables, given by their eigenvalues (K, 2**n), as sums of Z strings."""
    size = observables.shape[1]
    n = size.bit_length() - 1
    by_string = observables / size
    for q in range(n):  # the mean over states with bit q clear and with it set, and half their difference
        pairs = by_string.reshape(len(observables), -1, 2, 2**q)
        by_string = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
    strings = []
    for coefficients in by_string.reshape(observables.shape):
        used = np.flatnonzero(np.abs(coefficients) > _ROUNDING * np.abs(observables).max())
        qubits = [[q for q in range(n) if mask >> q & 1] for mask in used.tolist()]
        terms = [("Z" * len(on), on, coefficients[mask]) for mask, on in zip(used, qubits, strict=True)]
        strings.append(SparsePauliOp.from_sparse_list(terms or [("", [], 0.0)], num_qubits=n))
    return strings


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


def _angles(ansatz: Ansatz, rotations: ArrayLike, inputs: ArrayLike) -> Array:
    """The parameters of the template, a row for each row of inputs: the rotations, then the inputs."""
    weights, rows = checked_rotations(ansatz, rotations).ravel(), checked_inputs(ansatz, inputs)
    return np.column_stack([np.broadcast_to(weights, (len(rows), len(weights))), rows])


def _checked_observables(ansatz: Ansatz, observables: ArrayLike) -> Array:
    values = np.asarray(observables, dtype=np.float64)
    size = 2**ansatz.n_qubits
    if values.ndim != 2 or values.shape[1] != size:
        raise DataError(f"Observables must be of shape (K, {size}). Got shape {values.shape} instead.")
    return values
