r"""The circuit's shape: which input goes to which qubit, and how many weights there are (algorithm 15).

Repetition r turns qubit ``j mod n`` by :math:`R_y(\lambda_j a_j)` for every input j (only in the first repetition
without re-uploading), entangles by the chains CX(q, q+1) and CZ(q, q+1), and turns every qubit by
:math:`R_z(\theta_{2r+1,q})\,R_y(\theta_{2r,q})`. Rotations about one axis add up, so the inputs of a qubit are summed
into one angle.

Qubit q is bit q of a basis index, the least significant first, as in Qiskit.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Codes
from qmedoid.exceptions import ParameterError
from qmedoid.kernels.statevector import MAX_QUBITS

Real = npt.NDArray[np.floating]


def weight_shape(n_qubits: int, n_reps: int, *, final_rz: bool = False) -> tuple[int, int]:
    """Shape of the rotation weights: layers of R_y and R_z alternately, one angle per qubit.

    The R_z of the last repetition changes no read-out in the Z basis (fact 16); without it there are 2·L − 1 layers.
    """
    for name, value, high in (("n_qubits", n_qubits, MAX_QUBITS), ("n_reps", n_reps, None)):
        _check_count(name, value, high)
    return (2 * n_reps if final_rz else 2 * n_reps - 1, n_qubits)


@dataclass(frozen=True)
class Ansatz:
    """The circuit family, without its weights.

    Attributes
    ----------
    n_qubits : int
        1 to 12.
    n_inputs : int
        Inputs m; input j turns qubit j mod n.
    n_reps : int
        Repetitions L.
    reupload : bool
        Whether the inputs enter in every repetition.
    final_rz : bool
        Whether the last R_z layer, which changes nothing, is kept as printed.
    """

    n_qubits: int
    n_inputs: int
    n_reps: int
    reupload: bool = True
    final_rz: bool = False

    def __post_init__(self) -> None:
        weight_shape(self.n_qubits, self.n_reps)
        _check_count("n_inputs", self.n_inputs, None)

    @cached_property
    def weight_shape(self) -> tuple[int, int]:
        """Shape of the rotation weights."""
        return weight_shape(self.n_qubits, self.n_reps, final_rz=self.final_rz)

    @cached_property
    def input_qubits(self) -> Codes:
        """The qubit that every input turns, shape (m,)."""
        return np.arange(self.n_inputs) % self.n_qubits

    def qubit_angles(self, inputs: Real) -> Real:
        """Angle of every qubit, the sum of its inputs, shape (n_rows, n); qubits without an input stay at 0."""
        n, m = self.n_qubits, self.n_inputs
        if m == n:
            return inputs
        angles = np.zeros((len(inputs), n), dtype=inputs.dtype)
        for start in range(0, m, n):
            part = inputs[:, start : start + n]
            angles[:, : part.shape[1]] += part
        return angles


def _check_count(name: str, value: int, high: int | None) -> None:
    is_int = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_int or value < 1 or (high is not None and value > high):
        limit = ">= 1" if high is None else f"from 1 to {high}"
        raise ParameterError(f"The {name!r} of an ansatz must be an int {limit}. Got {value!r} instead.")
