r"""Rotation angles of features (algorithm 14), and the shape of the circuit they enter (algorithm 15).

Features are standardized, clipped and mapped to angles:

.. math:: A_{ij} = \frac{\text{span}}{z_{\max}}\,\operatorname{clip}(z_{ij}, -z_{\max}, z_{\max})

The paper's span is π. Then both clipped ends are the same state up to a sign, :math:`R_y(\pi) = -R_y(-\pi)`, and no
weights can separate the extremes (fact 15); the default span is π/2.

Repetition r of the circuit turns qubit ``j mod n`` by :math:`R_y(\lambda_j a_j)` for every input j (only in the first
repetition without re-uploading), entangles by the chains CX(q, q+1) and CZ(q, q+1), and turns every qubit by
:math:`R_z(\theta_{2r+1,q})\,R_y(\theta_{2r,q})`. Rotations about one axis add up, so the inputs of a qubit are summed
into one angle.

Qubit q is bit q of a basis index, the least significant first, as in Qiskit.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ParameterError, check_int
from qmedoid.kernels.statevector import MAX_QUBITS
from qmedoid.schema import Values

SPAN = math.pi / 2
"""Angle of the clipped extreme by default."""
PRINTED_SPAN = math.pi
"""Angle of the clipped extreme as printed, where both ends fold onto each other."""


@dataclass(frozen=True)
class AngleMap:
    """A fitted angle map.

    Attributes
    ----------
    center, scale : ndarray of shape (m,)
        Training mean and deviation of every feature.
    clip : float
        Largest standardized value z_max; larger ones are clipped.
    span : float
        The angle it is mapped to.
    """

    center: Annotated[Array, Values("m")]
    scale: Annotated[Array, Values("m", zero=False)]
    clip: float = 3.0
    span: float = SPAN

    def __post_init__(self) -> None:
        if not self.clip > 0 or not math.isfinite(self.clip):
            raise ParameterError(f"The 'clip' of an angle map must be a number above 0. Got {self.clip!r} instead.")
        if not math.isfinite(self.span) or self.span == 0:
            raise ParameterError(
                f"The 'span' of an angle map must be a number other than 0. Got {self.span!r} instead."
            )

    def apply(self, features: Array) -> Array:
        """Angles of every row, shape (n, m), within ±span."""
        standardized = (features - self.center) / self.scale
        return np.clip(standardized, -self.clip, self.clip) * (self.span / self.clip)


Real = npt.NDArray[np.floating]


def weight_shape(n_qubits: int, n_reps: int, *, final_rz: bool = False) -> tuple[int, int]:
    """Shape of the rotation weights: layers of R_y and R_z alternately, one angle per qubit.

    The R_z of the last repetition changes no read-out in the Z basis (fact 16); without it there are 2·L − 1 layers.
    """
    for name, value, high in (("n_qubits", n_qubits, MAX_QUBITS), ("n_reps", n_reps, None)):
        check_int(f"{name!r} of an ansatz", value, 1, high)
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
        check_int("'n_inputs' of an ansatz", self.n_inputs, 1)

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
