r"""The compact SWAP test as a circuit (algorithm 6).

Qubits, in Qiskit's order (the first qubit of a register is the least significant bit of its index):

``ancilla[0]``
    The qubit that is measured: it reads 0 with probability :math:`(1 + s)/2`.
``phi[0]``
    The norms: :math:`(\lVert x\rVert\,|0\rangle - \lVert y\rVert\,|1\rangle)/\sqrt{Z}`.
``psi[0]`` to ``psi[n-1]``
    The directions, interleaved: amplitude :math:`2k` is :math:`x_k/(\sqrt2\lVert x\rVert)` and amplitude
    :math:`2k+1` is :math:`y_k/(\sqrt2\lVert y\rVert)`, padded with zeros to :math:`2^n`.

The controlled swap exchanges ``phi[0]`` with ``psi[0]``, the qubit that tells *x* (index even) from *y* (odd).

All amplitudes are real, so a state is prepared by Y rotations alone, from the most significant qubit down. The gates
are the same for every pair of vectors with the same number of entries; only the angles differ. So one template can be
transpiled once and run with a row of angles per pair.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister
from qiskit.circuit import ParameterExpression, ParameterVector, Qubit

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ParameterError

OUTCOME = "outcome"
Angle = float | ParameterExpression


def compact_swap_circuit(x: npt.ArrayLike, y: npt.ArrayLike, *, measure: bool = True) -> QuantumCircuit:
    """The circuit that compares x with y.

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
    >>> from qmedoid.circuits import compact_swap_circuit
    >>> compact_swap_circuit([3.0, 1.0], [1.0, 2.0]).num_qubits
    4
    """
    return _assemble(compact_swap_angles(x, y).tolist(), measure)


def compact_swap_template(n_features: int, *, measure: bool = True) -> QuantumCircuit:
    """The circuit for vectors of `n_features` entries with its rotation angles left open.

    Its parameters, in order, are what :func:`compact_swap_angles` returns.

    Examples
    --------
    >>> from qmedoid.circuits import compact_swap_angles, compact_swap_template
    >>> template = compact_swap_template(2)
    >>> len(template.parameters) == len(compact_swap_angles([3.0, 1.0], [1.0, 2.0]))
    True
    """
    if isinstance(n_features, bool) or not isinstance(n_features, int | np.integer) or n_features < 1:
        raise ParameterError(f"The 'n_features' parameter must be an int >= 1. Got {n_features!r} instead.")
    return _assemble(list(ParameterVector("theta", 2 ** _n_psi_qubits(int(n_features)))), measure)


def compact_swap_angles(x: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    """The angles of the Y rotations that prepare x and y, shape (2**n,) for a psi register of n qubits.

    The first belongs to ``phi[0]``. Then follow one angle for ``psi[n-1]``, two for ``psi[n-2]``, and so on down to
    ``psi[0]``.

    Examples
    --------
    >>> from qmedoid.circuits import compact_swap_angles
    >>> compact_swap_angles([3.0, 1.0], [1.0, 2.0]).round(4)
    array([-1.231 ,  1.4706,  1.6715, -0.7904])
    """
    a, b = _vector(x, "x"), _vector(y, "y")
    if len(a) != len(b):
        raise DataError(f"x has {len(a)} entries and y has {len(b)}: both need the same number.")
    largest = max(np.abs(a).max(), np.abs(b).max())
    phi_angle = 2.0 * np.arctan2(-np.linalg.norm(b / largest), np.linalg.norm(a / largest))

    amplitudes = np.zeros(2 ** _n_psi_qubits(len(a)))
    amplitudes[0 : 2 * len(a) : 2] = _direction(a)
    amplitudes[1 : 2 * len(b) : 2] = _direction(b)
    layers = []
    while len(amplitudes) > 1:
        low, high = amplitudes[0::2], amplitudes[1::2]
        layers.append(_multiplexed(2.0 * np.arctan2(high, low)))
        amplitudes = np.hypot(low, high)
    return np.concatenate([[phi_angle], *reversed(layers)])


def _assemble(angles: Sequence[Angle], measure: bool) -> QuantumCircuit:
    ancilla, phi = QuantumRegister(1, "ancilla"), QuantumRegister(1, "phi")
    psi = QuantumRegister(len(angles).bit_length() - 1, "psi")
    circuit = QuantumCircuit(ancilla, phi, psi, name="compact_swap")
    circuit.ry(angles[0], phi[0])
    for qubit in reversed(range(len(psi))):
        above = list(psi)[qubit + 1 :]
        _append_multiplexed_ry(circuit, angles[2 ** len(above) : 2 ** (len(above) + 1)], psi[qubit], above)
    circuit.h(ancilla[0])
    circuit.cswap(ancilla[0], phi[0], psi[0])
    circuit.h(ancilla[0])
    if measure:
        outcome = ClassicalRegister(1, OUTCOME)
        circuit.add_register(outcome)
        circuit.measure(ancilla[0], outcome[0])
    return circuit


def _append_multiplexed_ry(
    circuit: QuantumCircuit,
    angles: Sequence[Angle],
    target: Qubit,
    controls: Sequence[Qubit],
) -> None:
    """Rotate the target by an angle for each state of the controls, in the order of a Gray code.

    Between two rotations one control flips the sense of those to come, so 2**k of each do for k controls.
    """
    for step, angle in enumerate(angles, start=1):
        circuit.ry(angle, target)
        if controls:
            lowest_set_bit = (step & -step).bit_length() - 1
            circuit.cx(controls[min(lowest_set_bit, len(controls) - 1)], target)


def _multiplexed(angles: Array) -> Array:
    r"""Angles :math:`\theta` of the Gray code sequence that rotates by ``angles[j]`` when the controls read j.

    .. math:: \text{angles}_j = \sum_i (-1)^{|j \wedge g(i)|}\,\theta_i, \qquad g(i) = i \oplus \lfloor i/2\rfloor .
    """
    index = np.arange(len(angles))
    gray = index ^ (index >> 1)
    signs = 1.0 - 2.0 * (np.bitwise_count(gray[:, None] & index[None, :]) % 2)
    theta: Array = signs @ angles / len(angles)
    return theta


def _n_psi_qubits(n_features: int) -> int:
    return 1 + (n_features - 1).bit_length()


def _direction(vector: Array) -> Array:
    """The vector divided by its norm, by way of its largest entry so that no square leaves the range."""
    scaled: Array = vector / np.abs(vector).max()
    return np.divide(scaled, np.linalg.norm(scaled))


def _vector(values: npt.ArrayLike, name: str) -> Array:
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or len(vector) == 0:
        raise DataError(f"{name} has shape {vector.shape}: pass one vector of at least one entry, shape (d,).")
    if not np.isfinite(vector).all():
        position = int(np.argmin(np.isfinite(vector)))
        raise DataError(f"{name} holds {vector[position]} at position {position}: pass finite numbers only.")
    if not vector.any():
        raise DataError(
            f"{name} is a zero vector, which cannot be prepared as a state: use compact_swap_test, which handles zero "
            "vectors, or a backend of qmedoid.circuits, which sends them there."
        )
    return vector
