r"""The variational circuit in Qiskit, gate by gate (algorithm 15).

It is the circuit that :mod:`qmedoid.kernels.statevector` simulates: the same amplitudes at the same indices, global
phase included. Qubit ``q[k]`` is bit k of a basis index, the least significant first, and is measured into bit k of
the classical register ``outcome``.

Parameters that are left open have names:

``x[j]``
    Input j, an angle already multiplied by its scale, :math:`\lambda_j a_j`. It turns qubit j mod n.
``theta[k]``
    The rotation weights in layer order: R_y of qubits 0 to n − 1 in the first repetition, then R_z of the same, then
    the second repetition, and so on. With rotations of shape (layers, n), these are their entries row by row.
"""

from collections.abc import Sequence

import numpy.typing as npt
from qiskit import QuantumCircuit, QuantumRegister
from qiskit.circuit import ParameterVector

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.geometry.overlap import real_array
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.quantum.circuits.compact_swap import Angle, measured


def variational_circuit(
    ansatz: Ansatz,
    *,
    weights: npt.ArrayLike | None = None,
    inputs: npt.ArrayLike | None = None,
    measure: bool = False,
) -> QuantumCircuit:
    """The circuit of an ansatz; weights and inputs that are not given stay open as parameters.

    Parameters
    ----------
    ansatz : Ansatz
        Its numbers of qubits, inputs and repetitions.
    weights : array-like of shape ``ansatz.weight_shape`` or None
        Rotation angles, rows of R_y and R_z alternately. None leaves them open as ``theta[k]``.
    inputs : array-like of shape (m,) or None
        Scaled angles of one record. None leaves them open as ``x[j]``.
    measure : bool
        Whether all qubits are measured into the classical register ``outcome``. Leave it out for statevectors.

    Returns
    -------
    QuantumCircuit
        Of ry, rz, cx and cz on the register ``q``.

    Examples
    --------
    >>> from qmedoid.quantum import variational_circuit
    >>> from qmedoid.methods.variational.ansatz import Ansatz
    >>> circuit = variational_circuit(Ansatz(n_qubits=2, n_inputs=2, n_reps=1))
    >>> [parameter.name for parameter in circuit.parameters]
    ['theta[0]', 'theta[1]', 'x[0]', 'x[1]']
    """
    layers, n = ansatz.weight_shape
    theta: Sequence[Angle] = list(ParameterVector("theta", layers * n))
    if weights is not None:
        theta = checked_rotations(ansatz, weights).ravel().tolist()
    x: Sequence[Angle] = list(ParameterVector("x", ansatz.n_inputs))
    if inputs is not None:
        record = real_array(inputs, "inputs")
        if record.shape != (ansatz.n_inputs,):
            raise DataError(
                f"inputs has shape {record.shape}: a circuit takes one record of {ansatz.n_inputs} angles, shape "
                f"({ansatz.n_inputs},). For many records use a backend of qmedoid.quantum, or leave the "
                "inputs open."
            )
        x = record.tolist()
    q = QuantumRegister(n, "q")
    circuit = QuantumCircuit(q, name="variational")
    for rep in range(ansatz.n_reps):
        if rep == 0 or ansatz.reupload:
            for j, angle in enumerate(x):
                circuit.ry(angle, q[j % n])
        for low in range(n - 1):
            circuit.cx(q[low], q[low + 1])
        for low in range(n - 1):
            circuit.cz(q[low], q[low + 1])
        y_row, z_row = theta[2 * rep * n :][:n], theta[(2 * rep + 1) * n :][:n]
        for angle, qubit in zip(y_row, q, strict=True):
            circuit.ry(angle, qubit)
        # The last row of R_z may be left out, and is empty then.
        for angle, qubit in zip(z_row, q, strict=False):
            circuit.rz(angle, qubit)
    return measured(circuit, q) if measure else circuit


def checked_rotations(ansatz: Ansatz, weights: npt.ArrayLike) -> Array:
    """Rotation weights as an array of the shape that the ansatz has."""
    rotations = real_array(weights, "weights")
    layers, n = ansatz.weight_shape
    if rotations.shape != (layers, n):
        other = (layers - 1 if ansatz.final_rz else layers + 1, n)
        hint = f" That is the shape for final_rz={not ansatz.final_rz}." if rotations.shape == other else ""
        raise ParameterError(
            f"The weights of this ansatz must be of shape {(layers, n)}: {layers} layers of R_y and R_z alternately on "
            f"{n} qubits. Got shape {rotations.shape} instead.{hint}"
        )
    return rotations


def checked_inputs(ansatz: Ansatz, inputs: npt.ArrayLike) -> Array:
    """Scaled angles as an array of rows with one column per input of the ansatz."""
    rows = real_array(inputs, "inputs")
    if rows.ndim != 2 or rows.shape[1] != ansatz.n_inputs:
        raise DataError(
            f"inputs has shape {rows.shape}: this ansatz takes rows of {ansatz.n_inputs} angles, shape (rows, "
            f"{ansatz.n_inputs})."
        )
    return rows
