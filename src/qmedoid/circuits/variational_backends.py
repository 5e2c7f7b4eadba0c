"""Ways to run the variational circuit, each called as ``backend(ansatz, rotations, inputs, observables)``.

Every row of inputs is one circuit. Observables are diagonal: their eigenvalues at the basis states, in Qiskit's order
of bits, which is also that of :mod:`qmedoid.kernels.statevector`.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from qiskit.primitives import BitArray
from qiskit.quantum_info import Statevector

from qmedoid.arrays import Array
from qmedoid.circuits._sampling import Sampling
from qmedoid.circuits.variational import checked_inputs, checked_rotations, variational_circuit
from qmedoid.exceptions import DataError
from qmedoid.variational.ansatz import Ansatz


@dataclass(frozen=True)
class StatevectorExpectations:
    """Exact expectation values, from the statevector of every row's circuit."""

    def __call__(
        self,
        ansatz: Ansatz,
        rotations: npt.ArrayLike,
        inputs: npt.ArrayLike,
        observables: npt.ArrayLike,
        /,
    ) -> Array:
        """Expectation values of every row, shape (n_rows, K)."""
        weights, rows, values = _checked(ansatz, rotations, inputs, observables)
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
        Whose ``run([(circuit, inputs)], shots=shots)`` takes the measurements. None stands for
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
    """

    rows_per_job: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_count("rows_per_job")

    def __call__(
        self,
        ansatz: Ansatz,
        rotations: npt.ArrayLike,
        inputs: npt.ArrayLike,
        observables: npt.ArrayLike,
        /,
    ) -> Array:
        """Means of the observables over the shots of every row, shape (n_rows, K)."""
        weights, rows, values = _checked(ansatz, rotations, inputs, observables)
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


def _checked(
    ansatz: Ansatz, rotations: npt.ArrayLike, inputs: npt.ArrayLike, observables: npt.ArrayLike
) -> tuple[Array, Array, Array]:
    values = np.asarray(observables, dtype=np.float64)
    size = 2**ansatz.n_qubits
    if values.ndim != 2 or values.shape[1] != size:
        raise DataError(f"Observables must be of shape (K, {size}). Got shape {values.shape} instead.")
    return checked_rotations(ansatz, rotations), checked_inputs(ansatz, inputs), values
