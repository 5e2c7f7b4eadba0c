"""Backends that run circuits one by one: exactly, or by the shots of a sampler.

Those of the SWAP test are called like the closed form, ``backend(X, Y)``. Every pair of a row of X and a row of Y is
one circuit, and the norms are known beforehand. A pair with a zero vector has no circuit and takes the value that
:func:`~qmedoid.compact_swap_test` gives it.

Those of the variational circuit are called as ``backend(ansatz, rotations, inputs, observables)``. Every row of inputs
is one circuit. Observables are diagonal: their eigenvalues at the basis states, in Qiskit's order of bits, which is
also that of :mod:`qmedoid.kernels.statevector`. Rotations and inputs are both open parameters of one template, so a
pass manager rewrites it once for all weights.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from qiskit import QuantumCircuit
from qiskit.primitives import BaseSamplerV2, StatevectorSampler
from qiskit.quantum_info import Statevector
from qiskit.transpiler import PassManager

from qmedoid.arrays import Array, Codes, row_slices
from qmedoid.exceptions import DataError, ModelError, ParameterError, check_int, some_of
from qmedoid.geometry.overlap import SwapTest, compact_swap_test, from_overlap, real_array, row_norms
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.quantum.circuits.compact_swap import OUTCOME, FormName, form_named
from qmedoid.quantum.circuits.variational import checked_inputs, checked_rotations, variational_circuit
from qmedoid.quantum.devices.sampling import Counts, check_sampler, counted, state_counts


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """What backends of a sampler share, a simulator's or a machine's: one template is run for many rows of angles.

    A backend keeps its sampler, so that draws go on from call to call, and its templates, so that a pass manager
    rewrites each of them once.
    """

    shots: int = 1024
    sampler: BaseSamplerV2 | None = None
    seed: int | np.random.Generator | None = None
    pass_manager: PassManager | None = None
    circuits_per_job: int = 100
    _sampler: BaseSamplerV2 = field(init=False, repr=False, compare=False)
    _templates: dict[Hashable, tuple[QuantumCircuit, Codes]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for name in ("shots", "circuits_per_job"):
            check_int(f"{name!r} parameter of {type(self).__name__}", getattr(self, name), 1)
        if self.sampler is None and self.seed is None:
            raise ParameterError("The default sampler needs a 'seed': pass an int or a numpy.random.Generator.")
        if self.sampler is not None:
            check_sampler(self.sampler)
        if self.sampler is not None and self.seed is not None:
            raise ParameterError("'seed' is for the default sampler: give the sampler its own seed and leave this out.")
        # A generator goes on from draw to draw; the sampler would start an integer afresh for every row.
        default = StatevectorSampler(seed=np.random.default_rng(self.seed)) if self.sampler is None else self.sampler
        object.__setattr__(self, "_sampler", default)

    def _template(self, key: Hashable, make: Callable[[], QuantumCircuit]) -> tuple[QuantumCircuit, Codes]:
        """A circuit as it is run, and which of the parameters that it had before it was rewritten each of its own is.

        A pass manager may drop rotations that nothing measures, and their parameters with them.
        """
        if key not in self._templates:
            circuit = make()
            positions = {parameter: position for position, parameter in enumerate(circuit.parameters)}
            rewritten = circuit if self.pass_manager is None else self.pass_manager.run(circuit)
            unknown = [parameter.name for parameter in rewritten.parameters if parameter not in positions]
            if unknown:
                raise ModelError(
                    f"The pass manager put new open parameters into the circuit, {some_of(unknown, 5)}, and nobody has "
                    "values for them. Pass one that keeps the parameters, such as generate_preset_pass_manager of "
                    "Qiskit."
                )
            columns = np.array([positions[parameter] for parameter in rewritten.parameters], dtype=np.intp)
            self._templates[key] = rewritten, columns
        return self._templates[key]

    def _counts(self, key: Hashable, make: Callable[[], QuantumCircuit], angles: Array, n_bits: int) -> Counts:
        """How often each row of angles read 1, (rows, 1), or of several bits each basis state, (rows, 1, 2**n_bits)."""
        (circuit, columns), counts = self._template(key, make), []
        for rows in row_slices(angles, self.circuits_per_job):
            job = self._sampler.run([(circuit, np.ascontiguousarray(angles[rows][:, columns]))], shots=int(self.shots))
            counts.append(counted(job.result()[0].data[OUTCOME], n_bits))
        return np.concatenate(counts)


class PairCircuits:
    """A SWAP test by one circuit for every pair of rows; classes below it say how overlaps are found."""

    circuit: FormName

    def __post_init__(self) -> None:
        form_named(self.circuit)

    def __call__(self, X: ArrayLike, Y: ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        classical = compact_swap_test(X, Y)
        left, right = (np.atleast_2d(np.asarray(rows, dtype=np.float64)) for rows in (X, Y))
        x_norms, y_norms = row_norms(left), row_norms(right)
        prepared = (x_norms > 0)[:, None] & (y_norms > 0)[None, :]
        overlap = classical.overlap.copy()
        if prepared.any():
            rows, columns = np.nonzero(prepared)
            overlap[prepared] = self._overlaps(left[rows], right[columns])
        measured = from_overlap(overlap, x_norms, y_norms)
        return SwapTest(*(np.where(prepared, m, c) for m, c in zip(measured, classical, strict=True)))

    def _overlaps(self, left: Array, right: Array) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class StatevectorSwapTest(PairCircuits):
    """The circuit's exact expectation, from its statevector.

    The overlap comes from a probability and so is known to about 1e-15. For vectors that nearly coincide this leaves
    the distance uncertain by about 1e-7·√Z; the closed form has no such limit.

    Parameters
    ----------
    circuit : {"interference", "compact_swap"}
        The circuit that measures the overlap: the one that plans take, or the paper's.

    Examples
    --------
    >>> from qmedoid.quantum import StatevectorSwapTest
    >>> StatevectorSwapTest()([[3.0, 0.0]], [[0.0, 4.0]]).distance.round(6)
    array([[5.]])
    """

    circuit: FormName = "interference"

    def _overlaps(self, left: Array, right: Array) -> Array:
        form = form_named(self.circuit)
        template = form.template(left.shape[1], measure=False)
        states = (Statevector(template.assign_parameters(angles)) for angles in form.angles(left, right))
        return form.overlap([state.probabilities([0])[1] for state in states])


@dataclass(frozen=True, kw_only=True)
class SamplerSwapTest(Sampling, PairCircuits):
    """The circuit run for a number of shots through a sampler, a simulator's or a machine's.

    One template circuit serves all pairs; each job is given the rotation angles of up to `circuits_per_job` of them.

    Parameters
    ----------
    shots : int
        Measurements per pair.
    circuit : {"interference", "compact_swap"}
        The circuit that measures the overlap: the one that plans take, with fewer gates and smaller errors, or the
        paper's.
    sampler : BaseSamplerV2 or None
        Whose ``run([(circuit, angles)], shots=shots)`` takes the measurements. None is
        ``qiskit.primitives.StatevectorSampler``. Options of the sampler, such as twirling and dynamical decoupling of
        a runtime service, are set on it before it is passed, and are left as they are.
    seed : int, numpy.random.Generator or None
        Source of randomness of the default sampler, and required for it; draws go on from call to call. A sampler
        passed in brings its own.
    pass_manager : PassManager or None
        Rewrites the template for the machine at hand, once per number of entries. None leaves its gates as they are:
        ry, cx, h and, in the SWAP test, cswap, which the simulators know.
    circuits_per_job : int
        Pairs of rows sent in one job.

    Notes
    -----
    A sampler that starts afresh from one seed in every job repeats its noise from job to job (Aer does, given
    ``seed``); ``StatevectorSampler(seed=int)`` repeats it from pair to pair. The default sampler does neither.

    Pairs are run one in a circuit. `MedoidClassifier.measurement_plan` plans a batch of records as a whole: repeats are
    measured once, tests run side by side, and noise is calibrated.

    Examples
    --------
    >>> from qmedoid.quantum import SamplerSwapTest
    >>> measured = SamplerSwapTest(shots=4096, seed=7)([[3.0, 0.0]], [[0.0, 4.0]])
    >>> bool(abs(measured.distance - 5).max() < 0.5)
    True
    """

    circuit: FormName = "interference"

    def __post_init__(self) -> None:
        Sampling.__post_init__(self)
        PairCircuits.__post_init__(self)

    def _overlaps(self, left: Array, right: Array) -> Array:
        form, n_features = form_named(self.circuit), left.shape[1]
        ones = self._counts(n_features, lambda: form.template(n_features), form.angles(left, right), 1)
        return form.overlap(ones[:, 0] / self.shots)


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
        circuits = (variational_circuit(ansatz, weights=weights, inputs=row) for row in rows)
        probabilities = [Statevector(circuit).probabilities() for circuit in circuits]
        return np.reshape(probabilities, (len(rows), 2**ansatz.n_qubits)) @ values.T


@dataclass(frozen=True, kw_only=True)
class SamplerExpectations(Sampling):
    """Expectation values from a number of shots through a sampler, a simulator's or a machine's.

    All qubits are measured, and every observable is averaged over the same outcomes. One template circuit serves all
    rows and all weights; its gates are ry, rz, cx and cz.

    Parameters
    ----------
    shots, sampler, seed, pass_manager, circuits_per_job
        As of :class:`~qmedoid.quantum.SamplerSwapTest`, for rows of inputs instead of pairs.

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

    def __call__(self, ansatz: Ansatz, rotations: ArrayLike, inputs: ArrayLike, observables: ArrayLike, /) -> Array:
        """Means of the observables over the shots of every row, shape (n_rows, K)."""
        weights, rows = checked_rotations(ansatz, rotations).ravel(), checked_inputs(ansatz, inputs)
        values = _checked_observables(ansatz, observables)
        if not len(rows):
            return np.empty((0, len(values)))
        # The parameters of the template: the rotations, then the inputs.
        angles = np.column_stack([np.broadcast_to(weights, (len(rows), len(weights))), rows])
        counts = self._counts(ansatz, lambda: variational_circuit(ansatz, measure=True), angles, ansatz.n_qubits)
        return state_counts(counts, int(self.shots))[:, 0] / self.shots @ values.T


def _checked_observables(ansatz: Ansatz, observables: ArrayLike) -> Array:
    values = real_array(observables, "observables")
    size = 2**ansatz.n_qubits
    if values.ndim != 2 or values.shape[1] != size:
        raise DataError(f"Observables must be of shape (K, {size}). Got shape {values.shape} instead.")
    return values
