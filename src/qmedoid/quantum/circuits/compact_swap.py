r"""The circuits that measure an overlap: the compact SWAP test (algorithm 6), and interference, which is cheaper.

**The compact SWAP test.** Qubits, in Qiskit's order (the first qubit of a register is the least significant bit of
its index):

``ancilla[0]``
    The qubit that is measured: it reads 0 with probability :math:`(1 + s)/2`.
``phi[0]``
    The norms: :math:`(\lVert x\rVert\,|0\rangle - \lVert y\rVert\,|1\rangle)/\sqrt{Z}`.
``psi[0]`` to ``psi[n-1]``
    The directions, interleaved: amplitude :math:`2k` is :math:`x_k/(\sqrt2\lVert x\rVert)` and amplitude
    :math:`2k+1` is :math:`y_k/(\sqrt2\lVert y\rVert)`, padded with zeros to :math:`2^n`.

The controlled swap exchanges ``phi[0]`` with ``psi[0]``, the qubit that tells *x* (index even) from *y* (odd).

All amplitudes are real, so Y rotations prepare them, from the most significant qubit down, and the gates depend on the
number of entries alone: one template can be transpiled once and run with a row of angles per pair.

**Interference.** One register holds both vectors,
:math:`(\lVert x\rVert\,|0\rangle|\hat x\rangle + \lVert y\rVert\,|1\rangle|\hat y\rangle)/\sqrt{Z}`. A Hadamard gate on
the qubit that tells *x* from *y* makes them interfere, and that qubit then reads 1 with probability
:math:`\lVert x - y\rVert^2/(2Z) = s`: the overlap itself, without an ancilla and without a controlled swap.

Qubits, in Qiskit's order:

``index[0]``
    The qubit that is measured: 0 stands for *x* and 1 for *y* before the Hadamard gate.
``data[0]`` to ``data[n-1]``
    Which column; vectors of d entries take :math:`\lceil\log_2 d\rceil` of them, none for one column.

The data qubits are rotated first, by the lengths of the columns :math:`\sqrt{x_k^2 + y_k^2}`, then the index qubit by
:math:`2\operatorname{atan2}(y_k, x_k)` for each column k. The last flip of every multiplexed rotation is saved: on a
data qubit it only renames columns, on the index qubit it becomes a sign behind the Hadamard gate, which nobody reads.
Nothing but the index qubit is read: the circuit is a mixture over columns of one-qubit circuits, as the compact SWAP
test is one of three-qubit circuits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister
from qiskit.circuit import ParameterExpression, ParameterVector, Qubit

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.geometry.overlap import real_array

OUTCOME = "outcome"
"""Name of the classical register that circuits are measured into."""
Angle = float | ParameterExpression


def measured(circuit: QuantumCircuit, qubits: QuantumRegister) -> QuantumCircuit:
    """The circuit with a register measured into ``outcome``."""
    outcome = ClassicalRegister(len(qubits), OUTCOME)
    circuit.add_register(outcome)
    circuit.measure(qubits, outcome)
    return circuit


def append_multiplexed_ry(
    circuit: QuantumCircuit, angles: Sequence[Angle], target: Qubit, controls: Sequence[Qubit], *, last: bool = True
) -> None:
    """Rotate the target by an angle for each state of the controls, in the order of a Gray code.

    Between two rotations one control flips the sense of those to come, so 2**k of each do for k controls. The last
    flip may be left out: the target is then flipped where the last of the controls reads 1.
    """
    for step, angle in enumerate(angles, start=1):
        circuit.ry(angle, target)
        if controls and (last or step < len(angles)):
            lowest_set_bit = (step & -step).bit_length() - 1
            circuit.cx(controls[min(lowest_set_bit, len(controls) - 1)], target)


def multiplexed(angles: Array) -> Array:
    r"""Angles :math:`\theta` of the Gray code sequence that rotates by ``angles[..., j]`` when the controls read j.

    .. math:: \text{angles}_j = \sum_i (-1)^{|j \wedge g(i)|}\,\theta_i, \qquad g(i) = i \oplus \lfloor i/2\rfloor .
    """
    size = angles.shape[-1]
    index = np.arange(size)
    gray = index ^ (index >> 1)
    signs = 1.0 - 2.0 * (np.bitwise_count(gray[:, None] & index[None, :]) % 2)
    theta: Array = angles @ signs.T / size
    return theta


def tree_angles(amplitudes: Array, *, without_last: bool = False) -> Array:
    """Angles that prepare real amplitudes (..., 2**n): one for the highest qubit, two for the next, and so on.

    With `without_last` they are those of multiplexed rotations without their last flip.
    """
    layers: list[Array] = []
    while amplitudes.shape[-1] > 1:
        half = amplitudes.shape[-1] // 2
        if without_last and half > 1:  # the lowest qubit is flipped where the highest reads 1
            upper = amplitudes[..., half:].reshape(*amplitudes.shape[:-1], half // 2, 2)[..., ::-1]
            flipped = upper.reshape(*amplitudes.shape[:-1], half)
            amplitudes = np.concatenate([amplitudes[..., :half], flipped], axis=-1)
        low, high = amplitudes[..., 0::2], amplitudes[..., 1::2]
        layers.append(multiplexed(2.0 * np.arctan2(high, low)))
        amplitudes = np.hypot(low, high)
    return np.concatenate([np.zeros((*amplitudes.shape[:-1], 0)), *reversed(layers)], axis=-1)


def directions(rows: Array) -> Array:
    """Rows divided by their norms, by way of their largest entries so that no square leaves the range."""
    scaled: Array = rows / np.abs(rows).max(axis=1, keepdims=True)
    unit: Array = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return unit


def _rows(values: npt.ArrayLike, name: str) -> Array:
    given = real_array(values, name)
    rows = given[None] if given.ndim == 1 else given
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise DataError(f"{name} has shape {given.shape}: pass one vector of at least one entry, shape (d,), or rows.")
    if not rows.any(axis=1).all():
        raise DataError(
            f"{name} is a zero vector, which cannot be prepared as a state: use compact_swap_test, which handles zero "
            "vectors, or a backend of qmedoid.quantum, which sends them there."
        )
    return rows


def shape_of(n_features: int) -> int:
    """Qubits that distinguish columns: vectors with the same number of them share a template."""
    return (n_features - 1).bit_length()


FormName = Literal["interference", "compact_swap"]


@dataclass(frozen=True)
class CircuitForm:
    """A circuit that measures the overlap of two vectors by the share of ones of one qubit."""

    name: FormName
    build: Callable[[Sequence[Angle], bool], QuantumCircuit]
    n_angles: Callable[[int], int]  # by the number of qubits that distinguish columns, see `shape_of`
    angles_of: Callable[[Array, Array], Array]  # for rows that are checked, (pairs, angles)
    at_zero: float  # s = at_zero + slope · p1, where p1 is the probability to read 1
    slope: float

    def template(self, n_features: int, *, measure: bool = True) -> QuantumCircuit:
        """The circuit with open angles; its parameters, in order, are those of `angles`."""
        return self.build(list(ParameterVector("theta", self.n_angles(shape_of(n_features)))), measure)

    def angles(self, X: npt.ArrayLike, Y: npt.ArrayLike) -> Array:
        """Values of the open angles for row i of X and row i of Y, (pairs, angles), or (angles,) for two vectors."""
        a, b = _rows(X, "x"), _rows(Y, "y")
        if a.shape[1] != b.shape[1]:
            raise DataError(f"x has {a.shape[1]} entries and y has {b.shape[1]}: both need the same number.")
        if len(a) != len(b):
            raise DataError(
                f"There are {len(a)} rows of x and {len(b)} of y: row i of one is compared with that of the other."
            )
        angles = self.angles_of(a, b)
        return angles if np.ndim(X) > 1 else angles[0]

    def circuit(self, x: npt.ArrayLike, y: npt.ArrayLike, measure: bool) -> QuantumCircuit:
        """The circuit that compares x with y."""
        for values, name in ((x, "x"), (y, "y")):
            if np.ndim(values) != 1:
                raise DataError(
                    f"{name} has shape {np.shape(values)}: pass one vector of at least one entry, shape (d,)."
                )
        return self.build(self.angles(x, y).tolist(), measure)

    def overlap(self, ones: npt.ArrayLike) -> Array:
        """Overlap from the share of ones; by shots or noise it may lie outside of 0 to 1, and is left there."""
        return self.at_zero + self.slope * np.asarray(ones, dtype=np.float64)

    def chance(self, overlap: npt.ArrayLike) -> Array:
        """Probability to read 1 for an overlap."""
        return (np.asarray(overlap, dtype=np.float64) - self.at_zero) / self.slope


def compact_swap_circuit(x: npt.ArrayLike, y: npt.ArrayLike, *, measure: bool = True) -> QuantumCircuit:
    """The compact SWAP test of x and y.

    Parameters
    ----------
    x, y : array-like of shape (d,)
        Real vectors, neither of them zero. Only directions and the ratio of the norms enter, so any finite
        magnitude will do.
    measure : bool
        Whether the ancilla is measured into the classical register ``outcome``. Leave it out for statevectors.

    Returns
    -------
    QuantumCircuit
        On the registers ``ancilla``, ``phi`` and ``psi``.

    Examples
    --------
    >>> from qmedoid.quantum import compact_swap_circuit
    >>> compact_swap_circuit([3.0, 1.0], [1.0, 2.0]).num_qubits
    4
    """
    return FORMS["compact_swap"].circuit(x, y, measure)


def interference_circuit(x: npt.ArrayLike, y: npt.ArrayLike, *, measure: bool = True) -> QuantumCircuit:
    """The interference circuit of x and y, with the parameters of :func:`compact_swap_circuit`.

    Examples
    --------
    >>> from qmedoid.quantum import interference_circuit
    >>> interference_circuit([3.0, 1.0], [1.0, 2.0]).count_ops()["cx"]
    1
    """
    return FORMS["interference"].circuit(x, y, measure)


def _compact_swap_angles(a: Array, b: Array) -> Array:
    """One for ``phi[0]``, one for ``psi[n-1]``, two for ``psi[n-2]``, and so on down to ``psi[0]``."""
    largest = np.maximum(np.abs(a).max(axis=1), np.abs(b).max(axis=1))[:, None]
    norms = np.linalg.norm(a / largest, axis=1), np.linalg.norm(b / largest, axis=1)
    amplitudes = np.zeros((len(a), 2 ** (1 + shape_of(a.shape[1]))))
    amplitudes[:, 0 : 2 * a.shape[1] : 2] = directions(a)
    amplitudes[:, 1 : 2 * a.shape[1] : 2] = directions(b)
    return np.column_stack([2.0 * np.arctan2(-norms[1], norms[0]), tree_angles(amplitudes)])


def _compact_swap(angles: Sequence[Angle], measure: bool) -> QuantumCircuit:
    ancilla, phi = QuantumRegister(1, "ancilla"), QuantumRegister(1, "phi")
    psi = QuantumRegister(len(angles).bit_length() - 1, "psi")
    circuit = QuantumCircuit(ancilla, phi, psi, name="compact_swap")
    circuit.ry(angles[0], phi[0])
    for qubit in reversed(range(len(psi))):
        above = list(psi)[qubit + 1 :]
        append_multiplexed_ry(circuit, angles[2 ** len(above) : 2 ** (len(above) + 1)], psi[qubit], above)
    circuit.h(ancilla[0])
    circuit.cswap(ancilla[0], phi[0], psi[0])
    circuit.h(ancilla[0])
    return measured(circuit, ancilla) if measure else circuit


def _interference_angles(a: Array, b: Array) -> Array:
    """Those of the data qubits from the highest down, 2**n − 1 of them, then 2**n for the index qubit."""
    largest = np.maximum(np.abs(a).max(axis=1), np.abs(b).max(axis=1))[:, None]
    lengths, turns = np.zeros((2, len(a), 2 ** shape_of(a.shape[1])))
    lengths[:, : a.shape[1]] = np.hypot(a / largest, b / largest)
    turns[:, : a.shape[1]] = 2.0 * np.arctan2(b, a)
    return np.hstack([tree_angles(lengths, without_last=True), multiplexed(turns)])


def _interference(angles: Sequence[Angle], measure: bool) -> QuantumCircuit:
    n_data = (len(angles) + 1).bit_length() - 2
    index = QuantumRegister(1, "index")
    circuit = QuantumCircuit(index, name="interference")
    data = QuantumRegister(n_data, "data")
    if n_data:
        circuit.add_register(data)
    for qubit in reversed(range(n_data)):
        above = list(data)[qubit + 1 :]
        first = 2 ** len(above) - 1
        append_multiplexed_ry(circuit, angles[first : first + 2 ** len(above)], data[qubit], above, last=False)
    append_multiplexed_ry(circuit, angles[2**n_data - 1 :], index[0], list(data), last=False)
    circuit.h(index[0])
    return measured(circuit, index) if measure else circuit


FORMS: dict[str, CircuitForm] = {
    form.name: form
    for form in (
        CircuitForm("interference", _interference, lambda n: 2 ** (n + 1) - 1, _interference_angles, 0.0, 1.0),
        CircuitForm("compact_swap", _compact_swap, lambda n: 2 ** (n + 1), _compact_swap_angles, 1.0, -2.0),
    )
}


def form_named(name: str) -> CircuitForm:
    """The circuit of a name."""
    if name not in FORMS:
        raise ParameterError(
            f"The 'circuit' parameter must be one of {', '.join(map(repr, FORMS))}. Got {name!r} instead."
        )
    return FORMS[name]
