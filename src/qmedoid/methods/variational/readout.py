r"""From expectation values to class scores, whose softmax is the class probability (algorithm 17).

A read-out is a set of diagonal observables and a map from their expectation values to one score per class:

``parity``
    Two classes: the probabilities of an even and of an odd number of ones. Scores are their logarithms.
``direct``
    Class c is basis state c; the softmax of the logarithms renormalizes over the C states that are used.
``printed``
    ``parity`` for two classes and ``direct`` for more, as algorithm 17 reads a circuit whose mapping is parity.
``strings``
    Scores are linear in :math:`\langle Z_q\rangle`, :math:`\langle Z_qZ_r\rangle` and, from three qubits on,
    :math:`\langle Z_0\cdots Z_{n-1}\rangle`, with trainable weights and biases. Two classes have one score:
    that of the first is 0.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError
from qmedoid.kernels.statevector import MAX_QUBITS
from qmedoid.schema import Values

Real = npt.NDArray[Any]
ReadoutKind = Literal["strings", "parity", "direct", "printed"]
READOUT_KINDS: tuple[ReadoutKind, ...] = ("strings", "parity", "direct", "printed")

FLOOR = 1e-12
"""Smallest probability whose logarithm is taken; where every class falls below it, all are equally likely."""


class Readout(ABC):
    """Observables and the map from their expectation values to class scores.

    Unless a read-out says otherwise, the observables measure the probabilities of the classes, and scores are their
    logarithms: nothing is trained.
    """

    kind: ClassVar[ReadoutKind]
    n_qubits: Annotated[int, Values(least=1, most=MAX_QUBITS)]
    n_classes: int

    def __init__(self, n_qubits: int, n_classes: int) -> None:
        if n_classes < 2:
            raise ParameterError(f"A read-out needs at least 2 classes. Got n_classes={n_classes!r} instead.")
        self.n_qubits, self.n_classes = n_qubits, n_classes

    @cached_property
    @abstractmethod
    def observables(self) -> Array:
        """Eigenvalues of the K diagonal observables, shape (K, 2**n)."""

    @property
    def n_parameters(self) -> int:
        """Number of trainable numbers in the map to scores."""
        return 0

    def start(self, parameters: Array, shares: Array) -> Array:  # noqa: ARG002
        """Parameters to train from: random ones, with biases that give the classes their shares."""
        return parameters

    def scores(self, expectations: Real, parameters: Array) -> Real:  # noqa: ARG002
        """Class scores, shape (n_rows, C)."""
        scores: Real = np.log(np.maximum(expectations, FLOOR))
        return scores

    def gradient(self, expectations: Real, parameters: Array, upstream: Real) -> tuple[Real, Array]:  # noqa: ARG002
        """Gradient of a loss by the expectation values and by the parameters, from that by the scores.

        Below the floor the logarithm is flat.
        """
        inside = expectations > FLOOR
        return np.where(inside, upstream / np.where(inside, expectations, 1.0), 0.0), np.zeros(0)

    def as_dict(self, parameters: Array) -> dict[str, Any]:  # noqa: ARG002
        """The map from outcomes to scores as plain values: for every class the basis states that make it up."""
        states = [np.flatnonzero(of_class).tolist() for of_class in self.observables]
        return {"kind": self.kind, "states": states, "floor": FLOOR}


class ParityReadout(Readout):
    """Class 1 is an odd number of ones."""

    kind: ClassVar[ReadoutKind] = "parity"

    def __init__(self, n_qubits: int, n_classes: int) -> None:
        super().__init__(n_qubits, n_classes)
        if n_classes != 2:
            raise ParameterError(
                f"The parity read-out is for 2 classes, and there are {n_classes}: use readout='strings' or 'direct'."
            )

    @cached_property
    def observables(self) -> Array:
        """Projectors on even and on odd parity."""
        odd = np.bitwise_count(np.arange(2**self.n_qubits)) % 2
        return np.stack([1.0 - odd, odd.astype(np.float64)])


class DirectReadout(Readout):
    """Class c is basis state c."""

    kind: ClassVar[ReadoutKind] = "direct"

    def __init__(self, n_qubits: int, n_classes: int) -> None:
        super().__init__(n_qubits, n_classes)
        if n_classes > 2**n_qubits:
            raise ParameterError(
                f"The direct read-out needs a basis state for every class: {n_qubits} qubits have "
                f"{2**n_qubits}, and there are {n_classes} classes. Use at least "
                f"{(n_classes - 1).bit_length()} qubits, or readout='strings'."
            )

    @cached_property
    def observables(self) -> Array:
        """Projectors on the first C basis states."""
        return np.eye(self.n_classes, 2**self.n_qubits)


class StringReadout(Readout):
    """Scores linear in the expectation values of Z strings, with trainable weights and biases."""

    kind: ClassVar[ReadoutKind] = "strings"

    @cached_property
    def strings(self) -> tuple[tuple[int, ...], ...]:
        """Qubits of every Z string, in the order of the observables."""
        qubits = range(self.n_qubits)
        singles_and_pairs = [subset for size in (1, 2) for subset in combinations(qubits, size)]
        return tuple(singles_and_pairs + ([tuple(qubits)] if self.n_qubits > 2 else []))

    @cached_property
    def observables(self) -> Array:
        """Products of the signs of each string's bits."""
        index = np.arange(2**self.n_qubits)
        masks = [sum(1 << q for q in string) for string in self.strings]
        return np.stack([1.0 - 2.0 * (np.bitwise_count(index & mask) % 2) for mask in masks])

    @property
    def n_outputs(self) -> int:
        """Scores that are trained: one for two classes, else one per class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def n_parameters(self) -> int:
        """A bias and one weight per string for every trained score."""
        return self.n_outputs * (1 + len(self.strings))

    def start(self, parameters: Array, shares: Array) -> Array:
        """Biases are the logarithms of the shares; a class without rows counts as half a percent of a percent."""
        table = parameters.reshape(self.n_outputs, -1).copy()
        biases = np.log(np.maximum(shares, 5e-5))
        table[:, 0] = biases[1:] - biases[0] if self.n_classes == 2 else biases
        return table.ravel()

    def scores(self, expectations: Real, parameters: Array) -> Real:
        """Bias plus weighted strings; the first of two classes has score 0."""
        table = parameters.reshape(self.n_outputs, -1).astype(expectations.dtype, copy=False)
        # Not a matrix product, whose order of sums depends on how many rows there are.
        trained: Real = np.einsum("nk,ck->nc", expectations, table[:, 1:]) + table[:, 0]
        if self.n_classes > 2:
            return trained
        scores = np.zeros((len(trained), 2), dtype=trained.dtype)
        scores[:, 1] = trained[:, 0]
        return scores

    def gradient(self, expectations: Real, parameters: Array, upstream: Real) -> tuple[Real, Array]:
        """Of the linear map."""
        table = parameters.reshape(self.n_outputs, -1)
        trained = upstream[:, 1:] if self.n_classes == 2 else upstream
        by_parameters = np.empty(table.shape)
        by_parameters[:, 0] = trained.sum(axis=0, dtype=np.float64)
        by_parameters[:, 1:] = trained.T.astype(np.float64, copy=False) @ expectations
        return trained @ table[:, 1:].astype(expectations.dtype, copy=False), by_parameters.ravel()

    def as_dict(self, parameters: Array) -> dict[str, Any]:
        """Strings as Qiskit writes them, qubit 0 last, and for every class a bias and a weight of each string."""
        table = parameters.reshape(self.n_outputs, -1)
        if self.n_classes == 2:
            table = np.vstack([np.zeros_like(table), table])
        qubits = range(self.n_qubits)[::-1]
        labels = ["".join("Z" if qubit in string else "I" for qubit in qubits) for string in self.strings]
        return {
            "kind": self.kind,
            "observables": labels,
            "weights": table[:, 1:].tolist(),
            "biases": table[:, 0].tolist(),
        }


READOUTS: Mapping[str, type[Readout]] = {one.kind: one for one in (StringReadout, ParityReadout, DirectReadout)}
"""Classes of the read-outs by the name they are stored under."""


def make_readout(kind: ReadoutKind, n_qubits: int, n_classes: int) -> Readout:
    """The read-out of that name."""
    if kind not in READOUT_KINDS:
        raise ParameterError(f"The read-out must be one of {list(READOUT_KINDS)}. Got {kind!r} instead.")
    if kind == "printed":
        kind = "parity" if n_classes == 2 else "direct"
    return READOUTS[kind](n_qubits, n_classes)
