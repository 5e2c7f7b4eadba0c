"""The circuits that measure an overlap, by name: what they cost, what they read, and what that means."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from qiskit import QuantumCircuit

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError
from qmedoid.quantum.circuits.compact_swap import compact_swap_angles, compact_swap_template
from qmedoid.quantum.circuits.interference import interference_angles, interference_template

FormName = Literal["interference", "compact_swap"]


@dataclass(frozen=True)
class CircuitForm:
    """A circuit that measures the overlap of two vectors by the share of ones of one qubit.

    Attributes
    ----------
    name : str
    template : callable (n_features, *, measure) -> QuantumCircuit
        With open angles; the gates depend on `shape` alone.
    angles : callable (X, Y) -> ndarray of shape (pairs, parameters)
        Values of the open angles for row i of X and row i of Y.
    at_zero, slope : float
        s = at_zero + slope · p1, where p1 is the probability that the qubit reads 1.
    """

    name: FormName
    template: Callable[..., QuantumCircuit]
    angles: Callable[[npt.ArrayLike, npt.ArrayLike], Array]
    at_zero: float
    slope: float

    def overlap(self, ones: npt.ArrayLike) -> Array:
        """Overlap from the share of ones; by shots or noise it may lie outside of 0 to 1, and is left there."""
        return self.at_zero + self.slope * np.asarray(ones, dtype=np.float64)

    def chance(self, overlap: npt.ArrayLike) -> Array:
        """Probability to read 1 for an overlap."""
        return (np.asarray(overlap, dtype=np.float64) - self.at_zero) / self.slope


def shape_of(n_features: int) -> int:
    """Qubits that tell columns apart: vectors with the same number of them share a template."""
    return (n_features - 1).bit_length()


FORMS: dict[str, CircuitForm] = {
    form.name: form
    for form in (
        CircuitForm("interference", interference_template, interference_angles, 0.0, 1.0),
        CircuitForm("compact_swap", compact_swap_template, compact_swap_angles, 1.0, -2.0),
    )
}


def form_named(name: str) -> CircuitForm:
    """The circuit of a name."""
    if name not in FORMS:
        raise ParameterError(
            f"The 'circuit' parameter must be one of {', '.join(map(repr, FORMS))}. Got {name!r} instead."
        )
    return FORMS[name]
