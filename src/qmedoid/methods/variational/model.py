"""The variational network with its loss and exact gradient, and the fitted model (algorithms 14, 15 and 17)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Table, row_slices
from qmedoid.exceptions import DataError, ModelError, ParameterError
from qmedoid.geometry.overlap import real_array
from qmedoid.kernels import statevector
from qmedoid.kernels.backend import row_block
from qmedoid.kernels.cross_entropy import cross_entropy
from qmedoid.methods.contributions import Contributions
from qmedoid.methods.part import KeptRows, Part, PartFacts, Scored
from qmedoid.methods.variational.ansatz import AngleMap, Ansatz
from qmedoid.methods.variational.readout import READOUTS, Readout
from qmedoid.schema import RefusedError, Tagged, Values


class ExpectationFunction(Protocol):
    """Anything that measures diagonal observables on the circuit of every row: a simulator or a machine.

    The variational backends of :mod:`qmedoid.quantum` are such functions.
    """

    def __call__(self, ansatz: Ansatz, rotations: Array, inputs: Array, observables: Array, /) -> npt.NDArray[Any]:
        """Expectation values, shape (n_rows, K).

        Parameters
        ----------
        ansatz : Ansatz
        rotations : ndarray of shape ``ansatz.weight_shape``
        inputs : ndarray of shape (n_rows, m)
            Angles, already multiplied by their scales.
        observables : ndarray of shape (K, 2**n)
            Eigenvalues at the basis states; qubit q is bit q of the index.
        """
        ...


def checked_expectations(found: Any, n_rows: int, observables: Array, *, bounded: bool = True) -> Array:
    """Expectation values as a backend returned them; raise unless there is a possible one for each row and observable.

    Calibrated ones may lie beyond the eigenvalues of their observables, (K, 2**n), and are not bounded by them.
    """
    values = real_array(found, "What the backend returned as expectation values", returned=True)
    if values.shape != (n_rows, len(observables)):
        raise DataError(
            f"The backend gave expectation values of shape {values.shape} instead of {(n_rows, len(observables))}."
        )
    if not np.isfinite(values).all():
        raise DataError(
            f"The backend gave {np.count_nonzero(~np.isfinite(values))} of {values.size} expectation values that are "
            "no numbers: nothing is decided by them."
        )
    least, most = observables.min(axis=1) - _ROUNDING, observables.max(axis=1) + _ROUNDING
    beyond = values[(values < least) | (values > most)]
    if bounded and beyond.size:
        raise DataError(
            f"The backend gave {beyond.size} of {values.size} expectation values beyond the eigenvalues of their "
            f"observables, such as {beyond[0]:g}: nothing is decided by them."
        )
    return values


# How far an exact value of a backend may lie beyond what is possible.
_ROUNDING = 1e-9
Real = npt.NDArray[Any]
Precision = Literal["float64", "float32"]


class Batch(NamedTuple):
    """Rows of a loss: inputs (rows, m), class codes, weights, and fixed scores (rows, C) that the network corrects."""

    inputs: Real
    codes: Codes
    weights: Array
    offset: Array | None = None


class Parameters(NamedTuple):
    """The flat parameter vector, split: rotations (layers, n), input scales (m,), read-out."""

    rotations: Array
    scales: Array
    readout: Array


@dataclass(frozen=True, eq=False)
class Network:
    """A circuit family with a read-out; its parameters are one vector θ."""

    ansatz: Ansatz
    readout: Annotated[Readout, Tagged(READOUTS.__getitem__, READOUTS)]
    scales: Annotated[Array, Values("m")]  # input scales λ: fixed, or where training starts, (m,)
    learn_scales: bool = True  # whether θ holds the scales too
    precision: Precision = "float64"  # of the simulation; parameters and sums over rows are float64

    def validate(self) -> None:
        """Refuse a stored network whose parts do not fit together."""
        if self.readout.n_qubits != self.ansatz.n_qubits:
            raise RefusedError(f"readout.n_qubits must be that of ansatz, {self.ansatz.n_qubits}")
        if len(self.scales) != self.ansatz.n_inputs:
            raise RefusedError(f"ansatz.n_inputs must be {len(self.scales)}, the number of scales")

    @cached_property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of rotations, of learned scales and of read-out parameters in θ."""
        layers, qubits = self.ansatz.weight_shape
        return layers * qubits, self.ansatz.n_inputs if self.learn_scales else 0, self.readout.n_parameters

    @cached_property
    def _observables(self) -> Real:
        return np.ascontiguousarray(self.readout.observables, dtype=self.precision)

    @cached_property
    def _unscaled(self) -> bool:
        """Whether the scales are fixed at 1, as printed: nothing to multiply then."""
        return not self.learn_scales and bool(np.all(self.scales == 1.0))

    @cached_property
    def n_parameters(self) -> int:
        """Length of θ."""
        return sum(self.sizes)

    def split(self, theta: Array) -> Parameters:
        """θ, split; views, where it has the values."""
        rotations, scales, _ = self.sizes
        if theta.shape != (self.n_parameters,):
            raise ParameterError(
                f"The parameters of this network are one vector of {self.n_parameters} numbers. "
                f"Got shape {theta.shape} instead."
            )
        return Parameters(
            theta[:rotations].reshape(self.ansatz.weight_shape),
            theta[rotations : rotations + scales] if self.learn_scales else self.scales,
            theta[rotations + scales :],
        )

    def start(self, rng: np.random.Generator, *, spread: float = 0.1, shares: Array | None = None) -> Array:
        """Parameters to train from: small normal numbers, and the input scales as they were given.

        With `shares` (C,), the classes' shares in the loss, the biases of the read-out begin there: a training would
        take long to find out by itself how rare a class is.
        """
        theta = rng.normal(scale=spread, size=self.n_parameters)
        if shares is not None:
            readout = self.split(theta).readout
            readout[:] = self.readout.start(readout, shares)
        if self.learn_scales:
            self.split(theta).scales[:] = self.scales
        return theta

    def scores(self, theta: Array, inputs: Real, *, threads: int | None = None) -> Real:
        """Class scores of every row, shape (n_rows, C)."""
        parts = self.split(theta)
        measured = statevector.expectations(
            self._qubit_angles(parts, inputs),
            parts.rotations,
            self._observables,
            reupload=self.ansatz.reupload,
            threads=threads,
        )
        return self.readout.scores(measured, parts.readout)

    def measured_scores(self, theta: Array, inputs: Real, backend: ExpectationFunction) -> Real:
        """Class scores from expectation values of a backend, such as those of `qmedoid.quantum`."""
        parts, observables = self.split(theta), self.readout.observables
        measured = backend(self.ansatz, parts.rotations, self.encoded(theta, inputs), observables)
        bounded = getattr(backend, "bounded", True)
        return self.readout.scores(
            checked_expectations(measured, len(inputs), observables, bounded=bounded), parts.readout
        )

    def encoded(self, theta: Array, inputs: Real) -> Array:
        """What enters the circuit of a backend for every row, λ_j·a_j in double precision, shape (n_rows, m)."""
        return self._scaled(self.split(theta), inputs, "float64")

    def loss(self, theta: Array, batch: Batch) -> float:
        """Weighted cross-entropy."""
        scores = self.scores(theta, batch.inputs, threads=1)
        return cross_entropy(_shifted(scores, batch.offset), batch.codes, batch.weights)

    def loss_and_gradient(self, theta: Array, batch: Batch) -> tuple[float, Array]:
        """Weighted cross-entropy and its exact gradient, by one pass forward and one back."""
        parts = self.split(theta)
        tape = statevector.Tape(
            self._qubit_angles(parts, batch.inputs), parts.rotations, self._observables, reupload=self.ansatz.reupload
        )
        scores = _shifted(self.readout.scores(tape.expectations, parts.readout), batch.offset)
        by_scores = np.empty(scores.shape)
        loss = cross_entropy(scores, batch.codes, batch.weights, by_scores)
        by_expectations, by_readout = self.readout.gradient(
            tape.expectations, parts.readout, by_scores.astype(scores.dtype, copy=False)
        )
        by_rotations, by_angles = tape.gradient(by_expectations)
        gradient = np.empty(self.n_parameters)
        rotations, scales, _ = self.sizes
        gradient[:rotations] = by_rotations.ravel()
        if scales:
            by_inputs = by_angles[:, self.ansatz.input_qubits] * batch.inputs
            gradient[rotations : rotations + scales] = by_inputs.sum(axis=0, dtype=np.float64)
        gradient[rotations + scales :] = by_readout
        return loss, gradient

    def _qubit_angles(self, parts: Parameters, inputs: Real) -> Real:
        return self.ansatz.qubit_angles(self._scaled(parts, inputs, self.precision))

    def _scaled(self, parts: Parameters, inputs: Real, precision: Precision) -> Real:
        """Angles λ_j·a_j, shape (n_rows, m)."""
        if inputs.ndim != 2 or inputs.shape[1] != self.ansatz.n_inputs:
            raise DataError(
                f"The inputs of this network must be of shape (rows, {self.ansatz.n_inputs}). "
                f"Got shape {inputs.shape} instead."
            )
        angles = inputs.astype(precision, copy=False)
        if self._unscaled:
            return angles
        scaled: Real = angles * parts.scales.astype(precision, copy=False)
        return scaled


def _shifted(scores: Real, offset: Array | None) -> Real:
    return scores if offset is None else scores + offset


# Rows per block: enough to keep the simulator's threads busy, few enough that temporaries stay small.
_BLOCK_ROWS = 2**16


@dataclass(frozen=True)
class VariationalModel(Part):
    """A trained variational quantum classifier: it refines the decisions of other parts, or is the only part.

    Attributes
    ----------
    angle_map : AngleMap
        Of the m features, fitted on training rows.
    network : Network
        The circuit and its read-out.
    theta : ndarray
        Their parameters.
    """

    angle_map: AngleMap
    network: Network
    theta: Annotated[Array, Values("t")]

    name: ClassVar[str] = "circuit"
    backend: ClassVar[Literal["swap_test", "expectations"]] = "expectations"

    def validate(self) -> None:
        """Refuse a stored circuit whose weights or inputs are not as many as its network has."""
        if len(self.theta) != self.network.n_parameters:
            raise RefusedError(f"theta must have {self.network.n_parameters} numbers, and has {len(self.theta)}")
        if len(self.angle_map.center) != self.network.ansatz.n_inputs:
            raise RefusedError(f"angle_map.center must have {self.network.ansatz.n_inputs} numbers")

    @property
    def columns(self) -> Codes:
        """Encoded columns that it reads: all of them."""
        return np.arange(self.network.ansatz.n_inputs)

    @property
    def rows(self) -> KeptRows:
        """None: it compares with no training row."""
        return KeptRows(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp))

    @property
    def facts(self) -> PartFacts:
        """What it says of itself."""
        words = "a small trained quantum circuit, simulated exactly"
        return {"description": words, "groups": (), "kept": (), "vector_length": 0, "numbers": {}}

    def score(self, X: Table, *, channels: bool = False, threads: int | None = None) -> Scored:
        """Class scores of the circuit with their sign changed."""
        del channels  # none without medoids
        return Scored(-self.scores(_features(X), threads=threads))

    def score_measured(self, X: Table, backend: ExpectationFunction) -> Scored:
        """The same with the circuit run by a backend."""
        return Scored(-self.scores(_features(X), backend=backend))

    def contributions(self, row: Array, winner: int, other: int) -> Contributions:
        """Refused: a circuit is no sum over columns or rows."""
        self._refuse(row, winner, other)

    def column_contributions(self, X: Array, winners: Codes, others: Codes) -> Array:
        """Refused: a circuit is no sum over columns or rows."""
        self._refuse(X, winners, others)

    def _refuse(self, *_asked: Any) -> NoReturn:
        raise ModelError(
            "This model is a circuit alone: it has no medoids to explain a decision by. Explain a model of "
            "MedoidClassifier or NearestMedoidClassifier instead."
        )

    @property
    def parameters(self) -> Parameters:
        """The parameters by what they do: rotations, input scales, read-out."""
        return self.network.split(self.theta)

    def scores(
        self,
        features: Array,
        offset: Array | None = None,
        *,
        backend: ExpectationFunction | None = None,
        threads: int | None = None,
    ) -> Array:
        """Class scores, shape (n, C); the largest decides.

        An offset (n, C) is what the circuit corrects. A backend runs the circuit instead of the simulator.
        """
        if backend is not None:
            scores: Array = self.network.measured_scores(self.theta, self.angle_map.apply(features), backend)
        else:
            m = self.network.ansatz.n_inputs
            if features.ndim != 2 or features.shape[1] != m:
                raise DataError(f"The circuit takes {m} features. Got a table of shape {features.shape} instead.")
            scores = np.empty((len(features), self.network.readout.n_classes))
            for rows in row_slices(features, _BLOCK_ROWS):
                angles = self.angle_map.apply(features[rows])
                scores[rows] = self.network.scores(self.theta, angles, threads=threads)
        return scores if offset is None else scores + offset

    def encoded(self, features: Array) -> Array:
        """What enters the circuit for every record, λ_j·a_j, shape (n, m)."""
        return self.angle_map.apply(features) * self.parameters.scales


def _features(X: Table) -> Array:
    return row_block(X, slice(None))
