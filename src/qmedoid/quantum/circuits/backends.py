"""Backends that run circuits one by one: exactly, by the shots of a sampler, or by an estimator.

Those of the SWAP test are called like the closed form, ``backend(X, Y)``. Every pair of a row of X and a row of Y is
one circuit, and the norms are known beforehand. A pair with a zero vector has no circuit and takes the value that
:func:`~qmedoid.compact_swap_test` gives it.

Those of the variational circuit are called as ``backend(ansatz, rotations, inputs, observables)``. Every row of inputs
is one circuit. Observables are diagonal: their eigenvalues at the basis states, in Qiskit's order of bits, which is
also that of :mod:`qmedoid.kernels.statevector`. Rotations and inputs are both open parameters of one template, so a
pass manager rewrites it once for all weights.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from qiskit import QuantumCircuit
from qiskit.primitives import BaseEstimatorV2, BaseSamplerV2, StatevectorEstimator, StatevectorSampler
from qiskit.quantum_info import SparsePauliOp, Statevector
from qiskit.transpiler import PassManager

from qmedoid.arrays import Array, Codes, row_slices
from qmedoid.exceptions import DataError, ModelError, ParameterError, some_of
from qmedoid.geometry.overlap import AngleKind, SwapTest, check_angle_kind, compact_swap_test, from_overlap, row_norms
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.quantum.circuits.compact_swap import OUTCOME, FormName, form_named
from qmedoid.quantum.circuits.variational import checked_inputs, checked_rotations, variational_circuit
from qmedoid.quantum.devices.sampling import Counts, counted, state_counts


@dataclass(frozen=True, kw_only=True)
class Primitive:
    """What backends of Qiskit's primitives share: one template circuit is run for many rows of angles.

    A backend keeps its primitive, so that draws go on from call to call, and its templates, so that a pass manager
    rewrites each of them once.
    """

    seed: int | np.random.Generator | None = None
    pass_manager: PassManager | None = None
    on_job: Callable[[int, int], None] | None = None
    _templates: dict[Hashable, tuple[QuantumCircuit, Codes]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def _template(self, key: Hashable, make: Callable[[], QuantumCircuit]) -> tuple[QuantumCircuit, Codes]:
        """A circuit as it is run, and which of the parameters that it had before it was rewritten each of its own is.

        A pass manager may drop rotations that nothing measures, and their parameters with them.
        """
        if key not in self._templates:
            circuit = make()
            places = {parameter: place for place, parameter in enumerate(circuit.parameters)}
            rewritten = circuit if self.pass_manager is None else self.pass_manager.run(circuit)
            unknown = [parameter.name for parameter in rewritten.parameters if parameter not in places]
            if unknown:
                raise ModelError(
                    f"The pass manager put new open parameters into the circuit, {some_of(unknown, 5)}, and nobody has "
                    "values for them. Pass one that keeps the parameters, such as generate_preset_pass_manager of "
                    "Qiskit."
                )
            columns = np.array([places[one] for one in rewritten.parameters], dtype=np.intp)
            self._templates[key] = rewritten, columns
        return self._templates[key]

    def _jobs(self, angles: Array, columns: Codes, per_job: int) -> Iterator[tuple[slice, Array]]:
        """Rows of each job, and the values of their parameters; progress is told when the next one is asked for."""
        for rows in row_slices(angles, per_job):
            yield rows, np.ascontiguousarray(angles[rows][:, columns])
            if self.on_job is not None:
                self.on_job(rows.stop, len(angles))


@dataclass(frozen=True, kw_only=True)
class Sampling(Primitive):
    """Backends of a sampler, a simulator's or a machine's."""

    shots: int = 1024
    sampler: BaseSamplerV2 | None = None
    _sampler: BaseSamplerV2 = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_count(self, "shots")
        if self.sampler is None and self.seed is None:
            raise ParameterError("The default sampler needs a 'seed': pass an int or a numpy.random.Generator.")
        if self.sampler is not None and self.seed is not None:
            raise ParameterError("'seed' is for the default sampler: give the sampler its own seed and leave this out.")
        # A generator goes on from draw to draw; the sampler would start an integer afresh for every row.
        default = StatevectorSampler(seed=np.random.default_rng(self.seed)) if self.sampler is None else self.sampler
        object.__setattr__(self, "_sampler", default)

    def _counts(
        self, key: Hashable, make: Callable[[], QuantumCircuit], angles: Array, per_job: int, n_bits: int
    ) -> Counts:
        """How often each row of angles read 1, (rows, 1), or of several bits each basis state, (rows, 1, 2**n_bits)."""
        (circuit, columns), found = self._template(key, make), []
        for _, values in self._jobs(angles, columns, per_job):
            job = self._sampler.run([(circuit, values)], shots=int(self.shots))
            found.append(counted(job.result()[0].data[OUTCOME], n_bits))
        return np.concatenate(found)


def _check_count(owner: Any, name: str) -> None:
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ParameterError(
            f"The {name!r} parameter of {type(owner).__name__} must be an int >= 1. Got {value!r} instead."
        )


@dataclass(frozen=True)
class StatevectorSwapTest:
    """The circuit's exact expectation, from its statevector.

    The overlap comes from a probability and so is known to about 1e-15. For vectors that nearly coincide this leaves
    the distance uncertain by about 1e-7·√Z; the closed form has no such limit.

    Parameters
    ----------
    angle : {"true", "printed"}
        As in :func:`~qmedoid.compact_swap_test`.
    circuit : {"compact_swap", "interference"}
        The circuit that measures the overlap.

    Examples
    --------
    >>> from qmedoid.quantum import StatevectorSwapTest
    >>> StatevectorSwapTest()([[3.0, 0.0]], [[0.0, 4.0]]).distance.round(6)
    array([[5.]])
    """

    angle: AngleKind = "true"
    circuit: FormName = "compact_swap"

    def __post_init__(self) -> None:
        check_angle_kind(self.angle)
        form_named(self.circuit)

    def __call__(self, X: ArrayLike, Y: ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        return _by_circuit(X, Y, self.angle, self._overlaps)

    def _overlaps(self, left: Array, right: Array) -> Array:
        form = form_named(self.circuit)
        template = form.template(left.shape[1], measure=False)
        states = (Statevector(template.assign_parameters(angles)) for angles in form.angles(left, right))
        return form.overlap([state.probabilities([0])[1] for state in states])


@dataclass(frozen=True, kw_only=True)
class SamplerSwapTest(Sampling):
    """The circuit run for a number of shots through a sampler, a simulator's or a machine's.

    One template circuit serves all pairs; each job is given the rotation angles of up to `pairs_per_job` of them.

    Parameters
    ----------
    shots : int
        Measurements per pair.
    angle : {"true", "printed"}
        As in :func:`~qmedoid.compact_swap_test`.
    circuit : {"compact_swap", "interference"}
        The circuit that measures the overlap; interference takes fewer gates and has smaller errors.
    sampler : BaseSamplerV2 or None
        Whose ``run([(circuit, angles)], shots=shots)`` takes the measurements. None is
        ``qiskit.primitives.StatevectorSampler``.
    seed : int, numpy.random.Generator or None
        Source of randomness of the default sampler, and required for it; draws go on from call to call. A sampler
        passed in brings its own.
    pass_manager : PassManager or None
        Rewrites the template for the machine at hand, once per number of entries. None leaves its gates as they are:
        ry, cx, h and, in the SWAP test, cswap, which the simulators know.
    pairs_per_job : int
        Pairs of rows sent in one job.
    on_job : callable or None
        Called as ``on_job(done, total)`` with numbers of pairs after each job.

    Notes
    -----
    A sampler that starts afresh from one seed in every job repeats its noise from job to job (Aer does, given
    ``seed``); ``StatevectorSampler(seed=int)`` repeats it from pair to pair. The default sampler does neither.

    Pairs are run as they are asked for, one in a circuit. `MedoidClassifier.measurement_plan` plans a batch of records
    as a whole: repeats are measured once, tests run side by side, and noise is calibrated.

    Examples
    --------
    >>> from qmedoid.quantum import SamplerSwapTest
    >>> measured = SamplerSwapTest(shots=4096, seed=7)([[3.0, 0.0]], [[0.0, 4.0]])
    >>> bool(abs(measured.distance - 5).max() < 0.5)
    True
    """

    angle: AngleKind = "true"
    circuit: FormName = "compact_swap"
    pairs_per_job: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_angle_kind(self.angle)
        form_named(self.circuit)
        _check_count(self, "pairs_per_job")

    def __call__(self, X: ArrayLike, Y: ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        return _by_circuit(X, Y, self.angle, self._overlaps)

    def _overlaps(self, left: Array, right: Array) -> Array:
        form, n_features = form_named(self.circuit), left.shape[1]
        angles = form.angles(left, right)
        ones = self._counts(n_features, lambda: form.template(n_features), angles, self.pairs_per_job, 1)
        return form.overlap(ones[:, 0] / self.shots)


def _by_circuit(X: ArrayLike, Y: ArrayLike, angle: AngleKind, measure: Callable[[Array, Array], Array]) -> SwapTest:
    """Let `measure` find the overlap of pairs that can be prepared; the others keep the classical values."""
    classical = compact_swap_test(X, Y, angle=angle)
    left, right = (np.atleast_2d(np.asarray(rows, dtype=np.float64)) for rows in (X, Y))
    x_norms, y_norms = row_norms(left), row_norms(right)
    prepared = (x_norms > 0)[:, None] & (y_norms > 0)[None, :]
    overlap = classical.overlap.copy()
    if prepared.any():
        rows, columns = np.nonzero(prepared)
        overlap[prepared] = measure(left[rows], right[columns])
    measured = from_overlap(overlap, x_norms, y_norms, angle=angle)
    return SwapTest(*(np.where(prepared, m, c) for m, c in zip(measured, classical, strict=True)))


# Share of the largest eigenvalue below which a coefficient of a Pauli string is rounding.
_ROUNDING = 1e-13


class StatevectorExpectations:
    """Exact expectation values, from the statevector of every row's circuit.

    Examples
    --------
    >>> import numpy as np
    >>> from qmedoid import VariationalClassifier
    >>> from qmedoid.quantum import StatevectorExpectations
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
    What is said of samplers and their seeds at :class:`~qmedoid.quantum.SamplerSwapTest` holds here as well.

    Examples
    --------
    >>> from qmedoid import VariationalClassifier
    >>> from qmedoid.quantum import SamplerExpectations
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> model = VariationalClassifier(n_qubits=1, n_steps=5, n_seeds=1, random_state=0).fit(X, y)
    >>> measured = model.measured_by(SamplerExpectations(shots=4096, seed=7)).predict_proba(X)
    >>> bool(abs(measured - model.predict_proba(X)).max() < 0.1)
    True
    """

    rows_per_job: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_count(self, "rows_per_job")

    def __call__(self, ansatz: Ansatz, rotations: ArrayLike, inputs: ArrayLike, observables: ArrayLike, /) -> Array:
        """Means of the observables over the shots of every row, shape (n_rows, K)."""
        angles, values = _angles(ansatz, rotations, inputs), _checked_observables(ansatz, observables)
        if not len(angles):
            return np.empty((0, len(values)))
        counts = self._counts(
            ansatz, lambda: variational_circuit(ansatz, measure=True), angles, self.rows_per_job, ansatz.n_qubits
        )
        return state_counts(counts, int(self.shots))[:, 0] / self.shots @ values.T


@dataclass(frozen=True, kw_only=True)
class EstimatorExpectations(Primitive):
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
        As of :class:`~qmedoid.quantum.SamplerExpectations`.

    Examples
    --------
    >>> from qmedoid import VariationalClassifier
    >>> from qmedoid.quantum import EstimatorExpectations
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> model = VariationalClassifier(n_qubits=1, n_steps=5, n_seeds=1, random_state=0).fit(X, y)
    >>> measured = model.measured_by(EstimatorExpectations(precision=0.01, seed=7)).predict_proba(X)
    >>> bool(abs(measured - model.predict_proba(X)).max() < 0.1)
    True
    """

    precision: float = 1 / 32
    estimator: BaseEstimatorV2 | None = None
    rows_per_job: int = 100
    _estimator: BaseEstimatorV2 = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.precision, bool) or not 0 < self.precision < np.inf:
            raise ParameterError(
                "The 'precision' parameter of EstimatorExpectations must be a number above 0. "
                f"Got {self.precision!r} instead."
            )
        _check_count(self, "rows_per_job")
        if (self.estimator is None) == (self.seed is None):
            raise ParameterError(
                "EstimatorExpectations takes a 'seed' for its default estimator, or an 'estimator' with its own: pass "
                "one of them."
            )
        default = (
            StatevectorEstimator(seed=np.random.default_rng(self.seed)) if self.estimator is None else self.estimator
        )
        object.__setattr__(self, "_estimator", default)

    def __call__(self, ansatz: Ansatz, rotations: ArrayLike, inputs: ArrayLike, observables: ArrayLike, /) -> Array:
        """Estimates of every row, shape (n_rows, K)."""
        angles, values = _angles(ansatz, rotations, inputs), _checked_observables(ansatz, observables)
        found = np.empty((len(angles), len(values)))
        if not len(angles):
            return found
        circuit, columns = self._template(ansatz, lambda: variational_circuit(ansatz))
        strings = [one.apply_layout(circuit.layout) for one in z_strings(values)]
        for rows, values_of in self._jobs(angles, columns, self.rows_per_job):
            # Every observable for every row: the shapes (K, 1) and (rows,) are broadcast.
            pub = (circuit, [[one] for one in strings], values_of)
            found[rows] = self._estimator.run([pub], precision=float(self.precision)).result()[0].data["evs"].T
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
