"""Exact outcome distributions of circuits that fall into small blocks of qubits, for many rows of parameters at once.

A block is a set of qubits that gates join. States and channels are written in the basis of normalized Pauli operators,
in which both are real: the state of a block is a tensor with an axis of length four per qubit and a last axis for the
rows of parameters, a channel on m qubits its Pauli transfer matrix of shape (4ᵐ, 4ᵐ). The last qubit of a gate comes
first in the order of the basis, as everywhere in Qiskit. Gates without parameters and their noise are multiplied
beforehand as far as they act on the same qubits; a gate with a parameter is a Fourier series in it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import rustworkx
from qiskit import QuantumCircuit
from qiskit.circuit import Barrier, Gate, Instruction, Measure, Parameter, ParameterExpression
from qiskit.circuit.library import get_standard_gate_name_mapping
from qiskit.providers import BackendV2
from qiskit.quantum_info import PTM, Operator, SuperOp
from qiskit.transpiler import Target
from qiskit_aer import AerSimulator
from qiskit_aer.noise import NoiseModel, QuantumError

from qmedoid.arrays import Array, row_slices
from qmedoid.exceptions import ParameterError
from qmedoid.quantum.devices.sampling import noise_digest

# Rotations by θ have the frequencies 0, 1/2 and 1 (controlled ones have all): five values tell the series.
_KNOTS = 4 * np.pi / 5 * np.arange(5.0)
_ELSEWHERE = np.array([0.7])


class DeviceNoise:
    """What a noise model of Aer does after each gate of each qubit, looked up once and kept.

    With a target, gates that the device does not have are refused; without it, those that the noise model does not
    know.
    """

    def __init__(self, model: NoiseModel, target: Target | None = None) -> None:
        self.model = model
        self._target = target
        self._known = {"measure", *model.basis_gates, *model.noise_instructions}
        self._errors: dict[tuple[str, tuple[int, ...] | None], dict[str, object]] = {}
        self._readout: dict[int | None, Array] = {}
        self._channels: dict[tuple[str, tuple[int, ...] | None], Array] = {}
        for error in model.to_dict()["errors"]:
            places: list[tuple[int, ...] | None] = [*map(tuple, error.get("gate_qubits", []))] or [None]
            for qubits in places:
                if error["type"] != "roerror":
                    self._errors.update({(name, qubits): error for name in error["operations"]})
                elif qubits is None or len(qubits) == 1:
                    self._readout[None if qubits is None else qubits[0]] = np.asarray(
                        error["probabilities"], dtype=float
                    )
                else:
                    raise ParameterError(
                        f"The noise model has a readout error of the {len(qubits)} qubits {qubits} together. Blocks "
                        "are measured qubit by qubit: give one readout error per qubit."
                    )

    def channel(self, operation: Instruction, qubits: tuple[int, ...]) -> Array | None:
        """The transfer matrix of the error that comes with an operation on physical qubits, or None."""
        name = operation.label or operation.name
        for key in ((name, qubits), (name, None)):
            if key in self._errors:
                if key not in self._channels:
                    self._channels[key] = transfer_matrix(SuperOp(QuantumError.from_dict(self._errors[key])))
                return self._channels[key]
        return None

    def readout(self, qubit: int) -> Array:
        """Probabilities of what is read (columns) given the qubit's state (rows)."""
        return self._readout.get(qubit, self._readout.get(None, np.eye(2)))

    def check(self, operation: Gate | Measure, qubits: tuple[int, ...]) -> None:
        """Refuse what has no entry in the device or in the noise model, and so would be done without noise."""
        if self._target is not None:
            known = self._target.instruction_supported(operation.name, qubits)
        else:
            known = self.model.is_ideal() or not self._known.isdisjoint({operation.name, operation.label})
        if not known:
            raise ParameterError(
                f"The device has no operation {operation.name!r} on the qubits {qubits}. Transpile the circuit for it "
                "first: generate_preset_pass_manager(backend=backend).run(circuit)."
            )


_NOISE: dict[tuple[str, str], DeviceNoise] = {}
# Devices whose noise is kept: it is made in seconds, and takes megabytes.
_MOST_KEPT = 8


def device_noise(source: BackendV2 | NoiseModel) -> DeviceNoise:
    """The noise of a backend, or of a noise model; that of a backend is made once by its name and rates."""
    if isinstance(source, NoiseModel):
        return DeviceNoise(source)
    if isinstance(source, AerSimulator):  # its options say how noisy it is, and may change
        return DeviceNoise(source.options.noise_model or NoiseModel())
    if not isinstance(source, BackendV2):
        raise ParameterError(
            "Noise comes from a Qiskit backend (BackendV2) or from a qiskit_aer.noise.NoiseModel. "
            f"Got {type(source).__name__} instead."
        )
    # A device by name is another object every time; one that was calibrated anew has other rates.
    key = str(source.name), noise_digest(source)
    if key not in _NOISE:
        while len(_NOISE) >= _MOST_KEPT:
            del _NOISE[next(iter(_NOISE))]  # the oldest
        _NOISE[key] = DeviceNoise(NoiseModel.from_backend(source), source.target)
    return _NOISE[key]


def transfer_matrix(channel: SuperOp | Operator) -> Array:
    """The real matrix of a channel or a unitary in the basis of Pauli operators."""
    return np.ascontiguousarray(PTM(channel).data.real)


def gate_channel(gate: Gate) -> tuple[Array, ParameterExpression | None]:
    """Transfer matrix of a gate, (4ᵐ, 4ᵐ), or where a parameter is open its coefficients of `harmonics`, (5, 4ᵐ, 4ᵐ).

    With it comes the open angle, or None.
    """
    free = [value for value in gate.params if isinstance(value, ParameterExpression) and value.parameters]
    standard = _STANDARD_GATES.get(gate.name)
    is_standard = standard is not None and standard.base_class is gate.base_class
    if len(free) > 1 or (free and not is_standard):
        raise ParameterError(
            f"The gate {gate.name!r} has parameters without a value, and is not a standard gate of one angle. "
            "Transpile the circuit to such gates first."
        )
    if not is_standard:
        return transfer_matrix(Operator(gate)), None
    values = tuple(None if free and value is free[0] else float(value) for value in gate.params)
    return _standard_gate_channel(gate.name, values), free[0] if free else None


_STANDARD_GATES = get_standard_gate_name_mapping()


@lru_cache(maxsize=4096)
def _standard_gate_channel(name: str, values: tuple[float | None, ...]) -> Array:
    def at(angle: float) -> Array:
        gate = _STANDARD_GATES[name].base_class(*(angle if value is None else value for value in values))
        return transfer_matrix(Operator(gate))

    if None not in values:
        return at(0.0)
    # The harmonics are orthogonal over the five knots.
    basis = harmonics(_KNOTS)
    basis /= np.square(basis).sum(axis=1, keepdims=True)
    series = np.tensordot(basis, [at(angle) for angle in _KNOTS], axes=1)
    series[np.abs(series) < 1e-14] = 0.0
    if not np.allclose(np.tensordot(harmonics(_ELSEWHERE).T, series, axes=1), at(_ELSEWHERE[0])):
        raise ParameterError(
            f"The gate {name!r} is not a rotation by its parameter. Transpile the circuit to rotations first."
        )
    return series


def harmonics(angles: Array) -> Array:
    """The functions 1, cos θ/2, sin θ/2, cos θ and sin θ of n angles, of shape (5, n)."""
    half = angles / 2
    return np.stack([np.ones_like(angles), np.cos(half), np.sin(half), np.cos(angles), np.sin(angles)])


MAX_QUBITS = 10
"""Qubits of the largest block: its state has 4¹⁰ numbers per row of parameters."""

# Numbers of a state that are worked on together: they stay in the processor's cache.
_CELLS = 2**17
# Matrix products have a multiple of so many columns, and so add in the same order for all of them: no bit of a row's
# distribution depends on the rows beside it.
_COLUMNS = 16

Angles = Callable[[Array], Array]
"""From rows of parameters, of shape (n, P), to the angles of a gate, of shape (n,)."""


Step = tuple[tuple[int, ...], Array, Angles | None]
"""One channel: axes of the state, from the most significant, and its matrix, or its series in an angle."""


@dataclass(frozen=True)
class QubitBlock:
    """Qubits that gates join, what happens to them, and where their outcomes go."""

    n_qubits: int
    steps: Sequence[Step]  # gates and noise
    measured: Sequence[
        tuple[int, int, Array]
    ]  # axis, classical bit, and probabilities of what is read (columns) given the state

    @property
    def clbits(self) -> tuple[int, ...]:
        """The classical bits of the outcome, from the least significant."""
        return tuple(clbit for _, clbit, _ in self.measured)

    def probabilities(self, values: Array) -> Array:
        """Outcome probabilities for n rows of the circuit's parameters, of shape (n, 2 ** len(clbits))."""
        step = max(1, _CELLS // 4**self.n_qubits)
        widest = max((len(axes) for axes, _, _ in self.steps), default=0)
        multiple = max(1, _COLUMNS // 4 ** (self.n_qubits - widest))
        filled = np.pad(values, ((0, -len(values) % multiple), (0, 0)))
        return np.concatenate([self._probabilities(filled[rows]) for rows in row_slices(filled, step)])[: len(values)]

    def _probabilities(self, values: Array) -> Array:
        # One column until the first gate with a parameter.
        ground = reduce(np.multiply.outer, [np.array([1.0, 0.0, 0.0, 1.0]) / np.sqrt(2)] * self.n_qubits)
        state = ground[..., np.newaxis]
        for axes, channel, angles in self.steps:
            state = _apply(channel, axes, state) if angles is None else _rotate(channel, axes, angles(values), state)
        readouts = {axis: readout for axis, _, readout in self.measured}
        for axis in reversed(range(self.n_qubits)):
            if axis in readouts:
                one, z = state.take(0, axis=axis), state.take(3, axis=axis)
                ground, excited = (one + z) / np.sqrt(2), (one - z) / np.sqrt(2)
                state = np.stack([p[0] * ground + p[1] * excited for p in readouts[axis].T], axis=axis)
            else:
                state = state.take(0, axis=axis) * np.sqrt(2)
        order = np.argsort(np.argsort([axis for axis, _, _ in self.measured]))
        flat = state.transpose(*order[::-1], len(order)).reshape(2 ** len(order), -1)
        return np.broadcast_to(np.clip(flat, 0.0, None).T, (len(values), len(flat)))


def _apply(matrix: Array, axes: tuple[int, ...], state: Array) -> Array:
    """A channel without parameters on some axes of a state (or on the rows of a matrix, as a tensor)."""
    m = len(axes)
    result = np.tensordot(matrix.reshape((4,) * 2 * m), state, axes=(range(m, 2 * m), axes))
    return np.moveaxis(result, range(m), axes)


def _rotate(series: Array, axes: tuple[int, ...], angles: Array, state: Array) -> Array:
    """A channel that differs from row to row; most of its entries are zero, and those are left out."""
    m, n = len(axes), state.ndim - 1
    inside = np.ascontiguousarray(np.moveaxis(state, axes, range(m))).reshape(4**m, 4 ** (n - m), -1)
    waves = harmonics(angles)
    result = np.zeros((4**m, 4 ** (n - m), len(angles)))
    for row, column in np.argwhere(series.any(axis=0)):
        coefficients = series[:, row, column]
        weight = (coefficients[:, None] * waves).sum(axis=0) if coefficients[1:].any() else coefficients[0]
        result[row] += weight * inside[column]
    return np.moveaxis(result.reshape(*(4,) * n, len(angles)), range(m), axes)


def _add(axes: tuple[int, ...], channel: Array, angles: Angles | None, steps: list[Step]) -> None:
    """Append a step, or multiply it with the earlier one that it follows, if one acts on qubits of the other alone."""
    for place in reversed(range(len(steps))):
        earlier, before, rotates = steps[place]
        if set(earlier).isdisjoint(axes):
            continue
        if angles is not None or rotates is not None:
            break
        if set(earlier) >= set(axes):
            steps[place] = earlier, _product(axes, channel, earlier, before), None
            return
        if not set(earlier) < set(axes):
            break
        channel = channel @ _product(earlier, before, axes, np.eye(len(channel)))
        del steps[place]
    steps.append((axes, channel, angles))


def _product(axes: tuple[int, ...], channel: Array, earlier: tuple[int, ...], before: Array) -> Array:
    """The matrix of an earlier step and of one that follows on some of its axes."""
    places = tuple(earlier.index(axis) for axis in axes)
    size = len(before)
    tensor = before.reshape(*(4,) * len(earlier), size)
    return np.asarray(_apply(channel, places, tensor).reshape(size, size))


def blocks_of(circuit: QuantumCircuit, noise: DeviceNoise) -> list[QubitBlock]:
    """The measured blocks of a circuit that is transpiled for a device: its qubit i is the device's qubit i.

    Blocks come in the order of their first qubits. Barriers do not join qubits. Blocks that are not measured are left
    out.
    """
    columns = {parameter: column for column, parameter in enumerate(circuit.parameters)}
    joined: rustworkx.PyGraph = rustworkx.PyGraph()
    joined.add_nodes_from(range(circuit.num_qubits))
    steps, measured = list[Step](), dict[int, int]()  # axes are the device's qubits
    for item in circuit.data:
        operation, qubits = item.operation, tuple(circuit.find_bit(qubit).index for qubit in item.qubits)
        if isinstance(operation, Barrier):
            continue
        if not isinstance(operation, Gate | Measure):
            raise ParameterError(
                f"The circuit has the operation {operation.name!r} on the qubits {qubits}. Blocks are made of gates, "
                "barriers and measurements at the end: leave it out, or use qiskit_aer.primitives.SamplerV2."
            )
        if not measured.keys().isdisjoint(qubits):
            raise ParameterError(
                f"The circuit goes on after a measurement ({operation.name!r} on the qubits {qubits}). Blocks are "
                "measured at the end: leave out what follows, or use qiskit_aer.primitives.SamplerV2."
            )
        noise.check(operation, qubits)
        if isinstance(operation, Measure):
            clbit = circuit.find_bit(item.clbits[0]).index
            if clbit in measured.values():
                raise ParameterError(f"Two measurements go to the classical bit {clbit}. Give each its own.")
            measured[qubits[0]] = clbit
        else:
            channel, angle = gate_channel(operation)
            steps.append((qubits[::-1], channel, None if angle is None else _angles(angle, columns)))
            joined.add_edges_from_no_data([(qubits[0], qubit) for qubit in qubits[1:]])
        error = noise.channel(operation, qubits)
        if error is not None:
            steps.append((qubits[::-1], error, None))
    blocks = sorted(map(sorted, rustworkx.connected_components(joined)))
    of_qubit = {qubit: block for block, qubits in enumerate(blocks) for qubit in qubits}
    own: list[list[Step]] = [[] for _ in blocks]
    for step in steps:
        own[of_qubit[step[0][0]]].append(step)
    return [
        _block(qubits, of_block, measured, noise)
        for qubits, of_block in zip(blocks, own, strict=True)
        if not measured.keys().isdisjoint(qubits)
    ]


def _block(qubits: list[int], steps: Sequence[Step], measured: dict[int, int], noise: DeviceNoise) -> QubitBlock:
    if len(qubits) > MAX_QUBITS:
        raise ParameterError(
            f"Gates join {len(qubits)} qubits, from {qubits[0]} to {qubits[-1]}, to one block; blocks have at most "
            f"{MAX_QUBITS}. Use qiskit_aer.primitives.SamplerV2."
        )
    axes, fused = {qubit: axis for axis, qubit in enumerate(qubits)}, list[Step]()
    for on, channel, angles in steps:
        _add(tuple(axes[qubit] for qubit in on), channel, angles, fused)
    outcomes = sorted((measured[qubit], qubit) for qubit in qubits if qubit in measured)
    return QubitBlock(len(qubits), fused, [(axes[qubit], clbit, noise.readout(qubit)) for clbit, qubit in outcomes])


def _angles(expression: ParameterExpression, columns: dict[Parameter, int]) -> Angles:
    """How an angle follows from rows of parameters, in which it is linear."""
    parameters = sorted(expression.parameters, key=columns.__getitem__)
    positions = [columns[parameter] for parameter in parameters]
    try:
        gradients: list[Any] = [expression.gradient(parameter) for parameter in parameters]
        slopes = np.array([float(gradient) for gradient in gradients])
    except (RuntimeError, TypeError) as error:  # no derivative, or one that is no number
        raise ParameterError(
            f"The angle {expression} is not linear in the circuit's parameters: make it a parameter by itself."
        ) from error
    offset = float(expression.bind(dict.fromkeys(parameters, 0.0)))
    return lambda values: offset + (values[:, positions] * slopes).sum(axis=1)
