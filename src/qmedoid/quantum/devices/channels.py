"""The noise of a device as real matrices: what gates, delays and measurements do to the qubits of a block.

States and channels are written in the basis of normalized Pauli operators, in which both are real. A state of n qubits
is a vector of length 4ⁿ, a channel on m qubits its Pauli transfer matrix of shape (4ᵐ, 4ᵐ). The last qubit of a gate
comes first in the order of the basis, as everywhere in Qiskit.
"""

from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit import Delay, Gate, Instruction, Measure, ParameterExpression
from qiskit.circuit.library import get_standard_gate_name_mapping
from qiskit.providers import BackendV2
from qiskit.quantum_info import PTM, Operator, SuperOp
from qiskit.transpiler import Target
from qiskit_aer import AerSimulator
from qiskit_aer.noise import NoiseModel, QuantumError

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError

# Rotations by θ have the frequencies 0, 1/2 and 1 (controlled ones have all): five values tell the series.
_KNOTS = 4 * np.pi / 5 * np.arange(5.0)
_ELSEWHERE = np.array([0.7])


class DeviceNoise:
    """What a noise model does after each gate of each qubit, looked up once and kept.

    Parameters
    ----------
    model : NoiseModel
        Aer's noise model.
    target : Target or None
        The device's gates. With it, gates that the device does not have are refused. Without it, gates that the
        noise model does not know are.
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
                if error["type"] == "roerror":
                    self._add_readout(qubits, np.asarray(error["probabilities"], dtype=float))
                else:
                    self._errors.update({(name, qubits): error for name in error["operations"]})

    def _add_readout(self, qubits: tuple[int, ...] | None, probabilities: Array) -> None:
        if qubits is not None and len(qubits) != 1:
            raise ParameterError(
                f"The noise model has a readout error of the {len(qubits)} qubits {qubits} together. Blocks are "
                "measured qubit by qubit: give one readout error per qubit."
            )
        self._readout[None if qubits is None else qubits[0]] = probabilities

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

    def with_delays(self, circuit: QuantumCircuit) -> QuantumCircuit:
        """The circuit with the noise of its delays as channels, as Aer itself inserts it before it simulates."""
        passes = self.model._pass_manager()
        if passes is None or not any(isinstance(item.operation, Delay) for item in circuit.data):
            return circuit
        return passes.run(circuit)

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


_NOISE: WeakKeyDictionary[BackendV2, DeviceNoise] = WeakKeyDictionary()


def device_noise(source: BackendV2 | NoiseModel) -> DeviceNoise:
    """The noise of a backend, or of a noise model; that of a backend is found once per object."""
    if isinstance(source, NoiseModel):
        return DeviceNoise(source)
    if isinstance(source, AerSimulator):  # its options say how noisy it is, and may change
        return DeviceNoise(source.options.noise_model or NoiseModel())
    if not isinstance(source, BackendV2):
        raise ParameterError(
            "Noise comes from a Qiskit backend (BackendV2) or from a qiskit_aer.noise.NoiseModel. "
            f"Got {type(source).__name__} instead."
        )
    if source not in _NOISE:
        _NOISE[source] = DeviceNoise(NoiseModel.from_backend(source), source.target)
    return _NOISE[source]


def transfer_matrix(channel: SuperOp | Operator) -> Array:
    """The real matrix of a channel or a unitary in the basis of Pauli operators."""
    return np.ascontiguousarray(PTM(channel).data.real)


def gate_channel(gate: Gate) -> tuple[Array, ParameterExpression | None]:
    """Transfer matrix of a gate, as a Fourier series in the one parameter that has no value.

    Returns
    -------
    channel : ndarray of shape (4ᵐ, 4ᵐ) or (5, 4ᵐ, 4ᵐ)
        The matrix if all parameters have values, else the coefficients of :func:`harmonics`.
    parameter : ParameterExpression or None
        The angle of the series.
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
