"""Exact outcome distributions of circuits that fall into small blocks of qubits, for many rows of parameters at once.

A block is a set of qubits that gates join. The state of a block is a tensor with an axis of length four per qubit (see
:mod:`qmedoid.quantum.devices.channels`) and a last axis for the rows of parameters. Gates without parameters and their
noise are multiplied beforehand as far as they act on the same qubits; a gate with a parameter is a Fourier series in
it.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Real

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit import (
    Barrier,
    CircuitInstruction,
    Delay,
    Gate,
    Instruction,
    Measure,
    Parameter,
    ParameterExpression,
)
from qiskit.quantum_info import SuperOp

from qmedoid.arrays import Array, row_slices
from qmedoid.exceptions import ParameterError
from qmedoid.quantum.devices.channels import DeviceNoise, gate_channel, harmonics, transfer_matrix

MAX_QUBITS = 10
"""Qubits of the largest block: its state has 4¹⁰ numbers per row of parameters."""

# Numbers of a state that are worked on together: they stay in the processor's cache.
_CELLS = 2**17
# Matrix products have a multiple of so many columns, and so add in the same order for all of them: no bit of a row's
# distribution depends on the rows beside it.
_COLUMNS = 16

Angles = Callable[[Array], Array]
"""From rows of parameters, of shape (n, P), to the angles of a gate, of shape (n,)."""


@dataclass(frozen=True)
class ChannelStep:
    """One channel: axes of the state, from the most significant, and its matrix or its series in an angle."""

    axes: tuple[int, ...]
    channel: Array
    angles: Angles | None = None


@dataclass(frozen=True)
class QubitBlock:
    """Qubits that gates join, what happens to them, and where their outcomes go.

    Parameters
    ----------
    n_qubits : int
        Axes of the state.
    steps : sequence of ChannelStep
        Gates and noise in their order.
    measured : sequence of (axis, clbit, readout)
        The axes that are measured, the places of their outcomes among the circuit's classical bits, and the
        probabilities of what is read (columns) given the state (rows).
    """

    n_qubits: int
    steps: Sequence[ChannelStep]
    measured: Sequence[tuple[int, int, Array]]

    @property
    def clbits(self) -> tuple[int, ...]:
        """The classical bits of the outcome, from the least significant."""
        return tuple(clbit for _, clbit, _ in self.measured)

    def probabilities(self, values: Array) -> Array:
        """Outcome probabilities for n rows of the circuit's parameters, of shape (n, 2 ** len(clbits))."""
        step = max(1, _CELLS // 4**self.n_qubits)
        widest = max((len(one.axes) for one in self.steps), default=0)
        multiple = max(1, _COLUMNS // 4 ** (self.n_qubits - widest))
        filled = np.pad(values, ((0, -len(values) % multiple), (0, 0)))
        return np.concatenate([self._probabilities(filled[rows]) for rows in row_slices(filled, step)])[: len(values)]

    def _probabilities(self, values: Array) -> Array:
        # One column until the first gate with a parameter.
        ground = reduce(np.multiply.outer, [np.array([1.0, 0.0, 0.0, 1.0]) / np.sqrt(2)] * self.n_qubits)
        state = ground[..., np.newaxis]
        for step in self.steps:
            state = _apply(step.channel, step.axes, state) if step.angles is None else _rotate(step, values, state)
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


def _rotate(step: ChannelStep, values: Array, state: Array) -> Array:
    """A channel that differs from row to row; most of its entries are zero, and those are left out."""
    assert step.angles is not None
    m, n = len(step.axes), state.ndim - 1
    front = np.moveaxis(state, step.axes, range(m))
    inside = np.ascontiguousarray(front).reshape(4**m, 4 ** (n - m), -1)
    waves = harmonics(step.angles(values))
    result = np.zeros((4**m, 4 ** (n - m), len(values)))
    for row, column in np.argwhere(step.channel.any(axis=0)):
        coefficients = step.channel[:, row, column]
        weight = (coefficients[:, None] * waves).sum(axis=0) if coefficients[1:].any() else coefficients[0]
        result[row] += weight * inside[column]
    return np.moveaxis(result.reshape(*(4,) * n, len(values)), range(m), step.axes)


def _add(step: ChannelStep, steps: list[ChannelStep]) -> None:
    """Append a step, or multiply it with the earlier one that it follows, if one acts on qubits of the other alone."""
    for place in reversed(range(len(steps))):
        earlier = steps[place]
        if set(earlier.axes).isdisjoint(step.axes):
            continue
        if step.angles is not None or earlier.angles is not None:
            break
        if set(earlier.axes) >= set(step.axes):
            steps[place] = ChannelStep(earlier.axes, _product(step, earlier))
            return
        if not set(earlier.axes) < set(step.axes):
            break
        identity = ChannelStep(step.axes, np.eye(len(step.channel)))
        step = ChannelStep(step.axes, step.channel @ _product(earlier, identity))
        del steps[place]
    steps.append(step)


def _product(step: ChannelStep, earlier: ChannelStep) -> Array:
    """The matrix of an earlier step and of one that follows on some of its axes."""
    places = tuple(earlier.axes.index(axis) for axis in step.axes)
    size = len(earlier.channel)
    tensor = earlier.channel.reshape(*(4,) * len(earlier.axes), size)
    return _apply(step.channel, places, tensor).reshape(size, size)


def blocks_of(circuit: QuantumCircuit, noise: DeviceNoise) -> list[QubitBlock]:
    """The measured blocks of a circuit that is transpiled for a device: its qubit i is the device's qubit i.

    Blocks come in the order of their first qubits. Barriers do not join qubits. Blocks that are not measured are left
    out.

    Parameters
    ----------
    circuit : QuantumCircuit
        Gates of the device, delays, barriers, and measurements at the end.
    noise : DeviceNoise
        The noise of the device.
    """
    reader = _Reader(circuit, noise)
    for item in noise.with_delays(_checked(circuit)).data:
        reader.read(item)
    return reader.blocks()


def _checked(circuit: QuantumCircuit) -> QuantumCircuit:
    for item in circuit.data:
        if isinstance(item.operation, Delay) and not isinstance(item.operation.duration, Real):
            raise ParameterError("The circuit has a delay without a fixed duration. Give it a number.")
    return circuit


class _Reader:
    """Collects what happens to each qubit, instruction by instruction."""

    def __init__(self, circuit: QuantumCircuit, noise: DeviceNoise) -> None:
        self._noise = noise
        self._columns = {parameter: column for column, parameter in enumerate(circuit.parameters)}
        self._qubits = {qubit: number for number, qubit in enumerate(circuit.qubits)}
        self._clbits = {clbit: number for number, clbit in enumerate(circuit.clbits)}
        self._parents = list(range(circuit.num_qubits))
        self._steps: list[ChannelStep] = []  # axes are the device's qubits
        self._measured: dict[int, int] = {}

    def read(self, item: CircuitInstruction) -> None:
        operation = item.operation
        qubits = tuple(self._qubits[qubit] for qubit in item.qubits)
        after = not self._measured.keys().isdisjoint(qubits)
        match operation:
            case Barrier() | Delay():  # the noise of a delay follows as a channel
                pass
            case Instruction(name="quantum_channel" | "kraus" | "superop"):
                if not after:  # what is measured already does not change
                    self._append(qubits, transfer_matrix(SuperOp(operation)))
            case Gate() | Measure() if after:
                raise ParameterError(
                    f"The circuit goes on after a measurement ({operation.name!r} on the qubits {qubits}). Blocks are "
                    "measured at the end: leave out what follows, or use qiskit_aer.primitives.SamplerV2."
                )
            case Measure():
                self._measure(operation, qubits, self._clbits[item.clbits[0]])
            case Gate():
                self._gate(operation, qubits)
            case _:
                raise ParameterError(
                    f"The circuit has the operation {operation.name!r} on the qubits {qubits}. Blocks are made of "
                    "gates, delays, barriers and measurements at the end: leave it out, or use "
                    "qiskit_aer.primitives.SamplerV2."
                )

    def _measure(self, operation: Measure, qubits: tuple[int, ...], clbit: int) -> None:
        if clbit in self._measured.values():
            raise ParameterError(f"Two measurements go to the classical bit {clbit}. Give each its own.")
        self._noise.check(operation, qubits)
        error = self._noise.channel(operation, qubits)
        if error is not None:
            self._append(qubits, error)
        self._measured[qubits[0]] = clbit

    def _gate(self, gate: Gate, qubits: tuple[int, ...]) -> None:
        self._noise.check(gate, qubits)
        channel, angle = gate_channel(gate)
        self._append(qubits, channel, None if angle is None else _angles(angle, self._columns))
        error = self._noise.channel(gate, qubits)
        if error is not None:
            self._append(qubits, error)

    def _append(self, qubits: tuple[int, ...], channel: Array, angles: Angles | None = None) -> None:
        for qubit in qubits:
            self._parents[self._root(qubit)] = self._root(qubits[0])
        self._steps.append(ChannelStep(qubits[::-1], channel, angles))

    def _root(self, qubit: int) -> int:
        while self._parents[qubit] != qubit:
            qubit = self._parents[qubit]
        return qubit

    def blocks(self) -> list[QubitBlock]:
        """The blocks that are measured, each with axes of its own."""
        qubits: dict[int, list[int]] = defaultdict(list)
        for qubit in range(len(self._parents)):
            qubits[self._root(qubit)].append(qubit)
        steps: dict[int, list[ChannelStep]] = defaultdict(list)
        for step in self._steps:
            steps[self._root(step.axes[0])].append(step)
        return [self._block(qubits[root], steps[root]) for root in qubits if self._measured.keys() & qubits[root]]

    def _block(self, qubits: list[int], steps: list[ChannelStep]) -> QubitBlock:
        if len(qubits) > MAX_QUBITS:
            raise ParameterError(
                f"Gates join {len(qubits)} qubits, from {qubits[0]} to {qubits[-1]}, to one block; blocks have at most "
                f"{MAX_QUBITS}. Use qiskit_aer.primitives.SamplerV2."
            )
        axes = {qubit: axis for axis, qubit in enumerate(qubits)}
        fused: list[ChannelStep] = []
        for step in steps:
            _add(replace(step, axes=tuple(axes[qubit] for qubit in step.axes)), fused)
        measured = sorted((self._measured[qubit], qubit) for qubit in qubits if qubit in self._measured)
        outcomes = [(axes[qubit], clbit, self._noise.readout(qubit)) for clbit, qubit in measured]
        return QubitBlock(len(qubits), fused, outcomes)


def _angles(expression: ParameterExpression, columns: dict[Parameter, int]) -> Angles:
    """How an angle follows from rows of parameters: at once if it is linear in them, else row by row."""
    parameters = sorted(expression.parameters, key=columns.__getitem__)
    places = [columns[parameter] for parameter in parameters]
    try:
        slopes = [expression.gradient(parameter) for parameter in parameters]
    except RuntimeError:  # no derivative
        slopes = [expression]
    if not any(isinstance(slope, ParameterExpression) for slope in slopes):
        offset = float(expression.bind(dict.fromkeys(parameters, 0.0)))
        of_row = np.array(slopes, dtype=float)
        return lambda values: offset + (values[:, places] * of_row).sum(axis=1)
    return lambda values: np.array(
        [float(expression.bind(dict(zip(parameters, row, strict=True)))) for row in values[:, places].tolist()]
    )
