"""The distinct tests that a model asks for, and how its calls are answered from them.

A test is one circuit of one pair of vectors, and what is loaded into the circuit, its angles, says whether two tests
are the same: to the last bit, never nearly. With the register ``"group"`` a pair of vectors is one test. With
``"column"`` each of its columns is one, because the squared distance is a sum over columns:

    Z · s = Σ_k z_k · s_k,    z_k = x_k² + y_k²,    Z = Σ_k z_k.

What is equal to the last bit is at distance 0, and needs no circuit; only the paper's register measures that as well.
Records often equal a medoid in columns of a category: all of these would be one and the same test, and its error would
be in all of their distances.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags, row_slices
from qmedoid.exceptions import ModelError
from qmedoid.geometry.overlap import SwapTest, compact_swap_test, from_overlap, pair_overlaps, row_norms
from qmedoid.quantum.circuits.compact_swap import CircuitForm, shape_of
from qmedoid.quantum.measurement.calibration import directions_of

Register = Literal["column", "group", "paper"]
REGISTERS: tuple[Register, ...] = ("column", "group", "paper")
# Pairs of entries that are turned into angles at a time.
_BLOCK_NUMBERS = 2**22


class Decided(NamedTuple):
    """What a model decides about n records, with C classes."""

    codes: Codes  # (n,)
    scores: Array  # at the prevalence that is expected, (n, C)
    margins: Array  # above 0 for the second of two; of more the best score minus the next, (n,)
    probabilities: Array | None  # (n, C)


Decide = Callable[..., Decided]
"""``decide(swap_test, expectations=None)`` decides about all records with the distances that a SWAP test measures, and
with a trained circuit that a backend runs; without one it is simulated."""
Asked = tuple[Array, Array]
"""One call of a SWAP test: rows X of shape (n, d) and Y of shape (m, d)."""


class Recorder:
    """A SWAP test in closed form that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        x, y = (np.atleast_2d(np.array(rows, dtype=np.float64)) for rows in (X, Y))
        self.asked.append((x, y))
        return compact_swap_test(x, y)


Call = tuple[Array, Array, npt.NDArray[np.int64], Array]
"""A call of a SWAP test, and how it is answered: its overlap is Σ_c weights[..., c] · value of test[..., c].

Vectors X and Y, (n, d) and (m, d); the number of a test among those of all shapes, (n, m, c), where −1 stands for the
overlap ½ of a zero with another number, and for equal numbers, with the weight 0; and weights, (n, m, c)."""


class Answers:
    """A SWAP test that answers calls in the order in which they were planned, from the values of all tests and ½."""

    bounded = False  # calibrated overlaps may lie anywhere

    def __init__(self, calls: Sequence[Call], values: Array) -> None:
        self.calls, self.values, self.place = calls, values, 0

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike, /) -> SwapTest:
        """The answer to the next call; a call that was not planned is refused."""
        x, y = (np.atleast_2d(np.asarray(rows, dtype=np.float64)) for rows in (X, Y))
        call = self.calls[self.place] if self.place < len(self.calls) else None
        if call is None or not (np.array_equal(x, call[0]) and np.array_equal(y, call[1])):
            raise ModelError(
                "The model asks for distances that were not planned: the records or the model changed after the plan "
                "was made. Make a new plan."
            )
        self.place += 1
        _, _, test, weights = call
        overlap = np.einsum("nmc,nmc->nm", self.values[test], weights)
        return from_overlap(overlap, row_norms(x), row_norms(y))


@dataclass(frozen=True, eq=False)
class Tests:
    """Distinct tests of one shape."""

    n_features: int  # entries of the vectors, a power of two
    angles: Array  # (tests, parameters)
    overlaps: Array  # in closed form, (tests,)
    known: Array  # vectors to make known pairs from, medoids, (rows, n_features)
    directions: Array | None = None  # (2, tests, n_features); None for one column

    def __len__(self) -> int:
        return len(self.angles)


def tests_of(asked: Sequence[Asked], form: CircuitForm, register: Register) -> tuple[tuple[Tests, ...], list[Call]]:
    """The distinct tests of calls by shape, the smallest first, and how each call is answered from them.

    A shape of which no pair is tested, because one vector of every pair is zero or both are equal, is left out.
    """
    shapes = [0 if register == "column" else shape_of(X.shape[1]) for X, _ in asked]
    found: list[Tests] = []
    calls: dict[int, Call] = {}
    start = 0
    for shape in sorted(set(shapes)):
        own = [place for place, one in enumerate(shapes) if one == shape]
        pairs = [_pairs_of(*asked[place], register, 2**shape) for place in own]
        left, right, medoids = (np.concatenate([pair[side] for pair in pairs]) for side in (2, 3, 4))
        tests, numbers = _distinct(left, right, medoids, form, 2**shape)
        ends = np.cumsum([len(pair[2]) for pair in pairs])[:-1]
        for place, (used, weights, *_), number in zip(own, pairs, np.split(numbers, ends), strict=True):
            test = np.full(used.shape, -1, dtype=np.int64)
            test[used] = number + start
            calls[place] = *asked[place], test, weights
        if len(tests):
            found.append(tests)
        start += len(tests)
    return tuple(found), [calls[place] for place in range(len(asked))]


def _pairs_of(X: Array, Y: Array, register: Register, width: int) -> tuple[Flags, Array, Array, Array, Array]:
    """Which pairs of a call are tested, (n, m, c), the weight of each, their vectors, and those of the medoids."""
    if register == "column":
        # Each pair on a scale of its own: rows of a call may differ by more than squares can.
        largest = [np.abs(rows).max(axis=1, initial=0.0) for rows in (X, Y)]
        scale = np.maximum(largest[0][:, None], largest[1])[..., None]
        scale[scale == 0] = 1.0
        z = (X[:, None] / scale) ** 2 + (Y[None] / scale) ** 2
        total = z.sum(axis=-1, keepdims=True)
        weights = np.divide(z, total, out=np.zeros_like(z), where=total > 0)
        differ = X[:, None] != Y[None]
        weights *= differ
        used = (X[:, None] != 0) & (Y[None] != 0) & differ
        n, m, k = np.nonzero(used)
        return used, weights, X[n, k][:, None], Y[m, k][:, None], Y[Y != 0][:, None]
    x_any, y_any = np.any(X != 0, axis=1), np.any(Y != 0, axis=1)
    differ = (register == "paper") | np.any(X[:, None] != Y[None], axis=-1)
    used = (x_any[:, None] & y_any[None] & differ)[..., None]
    weights = ((x_any[:, None] | y_any[None]) & differ)[..., None].astype(np.float64)
    n, m, _ = np.nonzero(used)
    padded = [np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for rows in (X, Y)]
    return used, weights, padded[0][n], padded[1][m], padded[1][y_any]


def _distinct(left: Array, right: Array, medoids: Array, form: CircuitForm, width: int) -> tuple[Tests, Codes]:
    """Distinct tests among pairs of vectors, and for each pair the number of its test."""
    known = np.unique(medoids, axis=0)
    if not len(left):
        empty = np.zeros((0, form.template(width).num_parameters))
        return Tests(width, empty, np.zeros(0), known), np.zeros(0, dtype=np.intp)
    blocks = [form.angles(left[rows], right[rows]) for rows in row_slices(left, max(1, _BLOCK_NUMBERS // width))]
    angles = np.ascontiguousarray(np.concatenate(blocks) + 0.0)  # one zero, not two
    # Bits as they are: as a number where there is one angle, which sorts faster.
    bits = np.dtype(np.int64) if angles.shape[1] == 1 else np.dtype((np.void, angles.dtype.itemsize * angles.shape[1]))
    _, first, inverse = np.unique(angles.view(bits).ravel(), return_index=True, return_inverse=True)
    # Tests keep the order in which they were first asked for: neighbors in a circuit are of one record.
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    chosen = first[order]
    left, right = left[chosen], right[chosen]
    tests = Tests(width, angles[chosen], pair_overlaps(left, right), known, directions_of(left, right))
    return tests, rank[inverse.ravel()]
