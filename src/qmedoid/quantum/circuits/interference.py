r"""Interference: a cheaper circuit for the overlap that the compact SWAP test measures.

One register holds both vectors, :math:`(\lVert x\rVert\,|0\rangle|\hat x\rangle + \lVert y\rVert\,|1\rangle|\hat
y\rangle)/\sqrt{Z}`. A Hadamard gate on the qubit that tells *x* from *y* makes them interfere, and that qubit then
reads 1 with probability :math:`\lVert x - y\rVert^2/(2Z) = s`: the overlap itself, without an ancilla and without a
controlled swap.

Qubits, in Qiskit's order:

``index[0]``
    The qubit that is measured: 0 stands for *x* and 1 for *y* before the Hadamard gate.
``data[0]`` to ``data[n-1]``
    Which column; vectors of d entries take :math:`\lceil\log_2 d\rceil` of them, none for one column.

The data qubits are rotated first, by the lengths of the columns :math:`\sqrt{x_k^2 + y_k^2}`, then the index qubit by
:math:`2\operatorname{atan2}(y_k, x_k)` for each column k. Two kinds of gates are saved. The last flip of every
multiplexed rotation of the data qubits only renames columns, and the angles are those of the renamed ones. The last
flip of the index qubit turns behind the Hadamard gate into a sign, which nobody reads.

Nothing but the index qubit is read, so the data qubits only choose a column: the circuit is a mixture over columns of
one-qubit circuits, as the compact SWAP test is one of three-qubit circuits.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister
from qiskit.circuit import ParameterVector

from qmedoid.arrays import Array
from qmedoid.quantum.circuits.rotations import OUTCOME, Angle, append_multiplexed_ry, multiplexed, tree_angles
from qmedoid.quantum.circuits.vectors import check_n_features, check_one_pair, pairs_of_rows


def interference_circuit(x: npt.ArrayLike, y: npt.ArrayLike, *, measure: bool = True) -> QuantumCircuit:
    """The interference circuit that compares x with y.

    Parameters
    ----------
    x, y : array-like of shape (d,)
        Real vectors, neither of them zero, of any finite magnitude.
    measure : bool
        Whether the index qubit is measured into the classical register ``outcome``. Leave it out for statevectors.

    Examples
    --------
    >>> from qmedoid.quantum.circuits import interference_circuit
    >>> interference_circuit([3.0, 1.0], [1.0, 2.0]).count_ops()["cx"]
    1
    """
    check_one_pair(x, y)
    return _assemble(interference_angles(x, y).tolist(), measure)


def interference_template(n_features: int, *, measure: bool = True) -> QuantumCircuit:
    """The circuit for vectors of `n_features` entries with its rotation angles left open.

    Its parameters, in order, are the what :func:`interference_angles` returns.

    Examples
    --------
    >>> from qmedoid.quantum.circuits import interference_template
    >>> interference_template(1).num_qubits
    1
    """
    return _assemble(list(ParameterVector("theta", 2 ** (_n_data(check_n_features(n_features)) + 1) - 1)), measure)


def interference_angles(X: npt.ArrayLike, Y: npt.ArrayLike) -> Array:
    """Angles of the Y rotations for a pair of vectors, shape (2**(n+1) - 1,), or a row of them for each of many pairs.

    First those of the data qubits from the highest down, 2**n - 1 of them, then 2**n for the index qubit.

    Parameters
    ----------
    X, Y : array-like of shape (d,) or (pairs, d)
        Row i of X is compared with row i of Y; none may be zero.

    Examples
    --------
    >>> from qmedoid.quantum.circuits import interference_angles
    >>> interference_angles([3.0, 1.0], [1.0, 2.0]).round(4)
    array([ 1.231 ,  1.4289, -0.7854])
    """
    a, b = pairs_of_rows(X, Y)
    largest = np.maximum(np.abs(a).max(axis=1), np.abs(b).max(axis=1))[:, None]
    size = 2 ** _n_data(a.shape[1])
    lengths, turns = np.zeros((2, len(a), size))
    lengths[:, : a.shape[1]] = np.hypot(a / largest, b / largest)
    turns[:, : a.shape[1]] = 2.0 * np.arctan2(b, a)
    angles = np.hstack([tree_angles(lengths, without_last=True), multiplexed(turns)])
    return angles if np.ndim(X) > 1 else angles[0]


def _assemble(angles: Sequence[Angle], measure: bool) -> QuantumCircuit:
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
    if measure:
        outcome = ClassicalRegister(1, OUTCOME)
        circuit.add_register(outcome)
        circuit.measure(index[0], outcome[0])
    return circuit


def _n_data(n_features: int) -> int:
    return (n_features - 1).bit_length()
