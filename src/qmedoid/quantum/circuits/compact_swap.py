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
from qiskit.circuit import ParameterVector

from qmedoid.arrays import Array
from qmedoid.quantum.circuits.rotations import OUTCOME, Angle, append_multiplexed_ry, tree_angles
from qmedoid.quantum.circuits.vectors import check_n_features, check_one_pair, directions, pairs_of_rows


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
    >>> from qmedoid.quantum.circuits import compact_swap_circuit
    >>> compact_swap_circuit([3.0, 1.0], [1.0, 2.0]).num_qubits
    4
    """
    check_one_pair(x, y)
    return _assemble(compact_swap_angles(x, y).tolist(), measure)


def compact_swap_template(n_features: int, *, measure: bool = True) -> QuantumCircuit:
    """The circuit for vectors of `n_features` entries with its rotation angles left open.

    Its parameters, in order, are what :func:`compact_swap_angles` returns.

    Examples
    --------
    >>> from qmedoid.quantum.circuits import compact_swap_angles, compact_swap_template
    >>> template = compact_swap_template(2)
    >>> len(template.parameters) == len(compact_swap_angles([3.0, 1.0], [1.0, 2.0]))
    True
    """
    return _assemble(list(ParameterVector("theta", 2 ** _n_psi_qubits(check_n_features(n_features)))), measure)


def compact_swap_angles(X: npt.ArrayLike, Y: npt.ArrayLike) -> Array:
    """The angles of the Y rotations that prepare x and y, shape (2**n,) for n psi qubits, or rows for many pairs.

    The first belongs to ``phi[0]``. Then follow one angle for ``psi[n-1]``, two for ``psi[n-2]``, and so on down to
    ``psi[0]``.

    Parameters
    ----------
    X, Y : array-like of shape (d,) or (pairs, d)
        Row i of X is compared with row i of Y; none may be zero.

    Examples
    --------
    >>> from qmedoid.quantum.circuits import compact_swap_angles
    >>> compact_swap_angles([3.0, 1.0], [1.0, 2.0]).round(4)
    array([-1.231 ,  1.4706,  1.6715, -0.7904])
    """
    a, b = pairs_of_rows(X, Y)
    largest = np.maximum(np.abs(a).max(axis=1), np.abs(b).max(axis=1))[:, None]
    norms = np.linalg.norm(a / largest, axis=1), np.linalg.norm(b / largest, axis=1)
    amplitudes = np.zeros((len(a), 2 ** _n_psi_qubits(a.shape[1])))
    amplitudes[:, 0 : 2 * a.shape[1] : 2] = directions(a)
    amplitudes[:, 1 : 2 * a.shape[1] : 2] = directions(b)
    angles = np.column_stack([2.0 * np.arctan2(-norms[1], norms[0]), tree_angles(amplitudes)])
    return angles if np.ndim(X) > 1 else angles[0]


def _assemble(angles: Sequence[Angle], measure: bool) -> QuantumCircuit:
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
    if measure:
        outcome = ClassicalRegister(1, OUTCOME)
        circuit.add_register(outcome)
        circuit.measure(ancilla[0], outcome[0])
    return circuit


def _n_psi_qubits(n_features: int) -> int:
    return 1 + (n_features - 1).bit_length()
