"""The distinct tests that calls need, and how calls are answered from them.

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

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.geometry.overlap import (
    SwapTest,
    SwapTestFunction,
    compact_swap_test,
    from_overlap,
    pair_overlaps,
    row_norms,
)
from qmedoid.quantum.circuits.compact_swap import CircuitForm, shape_of
from qmedoid.quantum.measurement.scatter import Directions, directions_of


class Decided(NamedTuple):
    """What a model decides about n records, with C classes.

    Attributes
    ----------
    codes : ndarray of shape (n,)
    scores : ndarray of shape (n, C)
        Class scores at the prevalence that is expected.
    margins : ndarray of shape (n,)
        For two classes above 0 for the second; for more the best score minus the next.
    probabilities : ndarray of shape (n, C) or None
        None where the model has none.
    """

    codes: Codes
    scores: Array
    margins: Array
    probabilities: Array | None


Decide = Callable[[SwapTestFunction, Codes], Decided]
"""Decides about some of the records, by their numbers, with the distances that a SWAP test measures."""


class Call(NamedTuple):
    """One call of a SWAP test: rows X of shape (n, d) and Y of shape (m, d)."""

    X: Array
    Y: Array


class Recorder:
    """A SWAP test in closed form that notes what it is asked."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        call = Call(*(np.atleast_2d(np.array(rows, dtype=np.float64)) for rows in (X, Y)))
        self.calls.append(call)
        return compact_swap_test(*call)


class Answers:
    """A SWAP test that gives overlaps which are known already, in the order of the calls that asked for them."""

    def __init__(self, calls: Sequence[Call], overlaps: Callable[[int], Array]) -> None:
        self.calls, self.overlaps, self.place = calls, overlaps, 0

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike, /) -> SwapTest:
        """The answer to the next call; a call that was not planned is refused."""
        asked = Call(*(np.atleast_2d(np.asarray(rows, dtype=np.float64)) for rows in (X, Y)))
        if self.place == len(self.calls) or not all(map(np.array_equal, asked, self.calls[self.place])):
            raise ModelError(
                "The model asks for distances that were not planned: the records or the model changed after the plan "
                "was made. Make a new plan."
            )
        overlap = self.overlaps(self.place)
        self.place += 1
        return from_overlap(overlap, row_norms(asked.X), row_norms(asked.Y))


Register = Literal["column", "group", "paper"]
REGISTERS: tuple[Register, ...] = ("column", "group", "paper")
# Pairs of entries that are turned into angles at a time.
_BLOCK_NUMBERS = 2**22


def check_register(register: str) -> None:
    """Raise unless `register` is one of the registers."""
    if register not in REGISTERS:
        allowed = ", ".join(map(repr, REGISTERS))
        raise ParameterError(f"The 'register' parameter must be one of {allowed}. Got {register!r} instead.")


@dataclass(frozen=True, eq=False)
class Tests:
    """Distinct tests of one shape.

    Attributes
    ----------
    n_features : int
        Entries of the vectors that the template of the shape takes, a power of two.
    angles : ndarray of shape (tests, parameters)
    overlaps : ndarray of shape (tests,)
        In closed form.
    known : ndarray of shape (rows, n_features)
        Vectors to make pairs of known overlap from: the second vectors of calls, which are medoids.
    directions : Directions or None
        The vectors of every test; None where they have one column.
    """

    n_features: int
    angles: Array
    overlaps: Array
    known: Array
    directions: Directions | None = None

    def __len__(self) -> int:
        return len(self.angles)


class Recipe(NamedTuple):
    """How a call is answered: its overlap is Σ_c weights[..., c] · value of test[..., c].

    Attributes
    ----------
    test : ndarray of shape (n, m, c)
        Number of a test among those of all shapes; −1 stands for the overlap ½ of a zero with another number, and for
        equal numbers, with the weight 0.
    weights : ndarray of shape (n, m, c)
    """

    test: npt.NDArray[np.int64]
    weights: Array

    def overlap(self, values: Array) -> Array:
        """Overlap of every pair of the call, shape (n, m), from the values of all tests and ½ at the end."""
        answer: Array = np.einsum("nmc,nmc->nm", values[self.test], self.weights)
        return answer


def tests_of(calls: Sequence[Call], form: CircuitForm, register: Register) -> tuple[tuple[Tests, ...], list[Recipe]]:
    """The distinct tests of calls by shape, the smallest first, and how each call is answered from them.

    A shape of which no pair is tested, because one vector of every pair is zero or both are equal, is left out.
    """
    by_column, all_pairs = register == "column", register == "paper"
    shapes = sorted({0 if by_column else shape_of(call.X.shape[1]) for call in calls})
    found: list[Tests] = []
    asked: dict[int, Recipe] = {}
    start = 0
    for shape in shapes:
        own = [place for place, call in enumerate(calls) if by_column or shape_of(call.X.shape[1]) == shape]
        pairs = [_pairs_of(calls[place], by_column, all_pairs, 2**shape) for place in own]
        tests, numbers = _distinct(pairs, form, 2**shape)
        if len(tests):
            found.append(tests)
        for place, pair, number in zip(own, pairs, numbers, strict=True):
            test = np.full(pair.used.shape, -1, dtype=np.int64)
            test[pair.used] = number + start
            asked[place] = Recipe(test, pair.weights)
        start += len(tests)
    return tuple(found), [asked[place] for place in range(len(calls))]


class _Pairs(NamedTuple):
    """Pairs of vectors of a call: which are tested, of shape (n, m, c), the weight of each, and the vectors."""

    used: npt.NDArray[np.bool_]
    weights: Array
    left: Array
    right: Array
    medoids: Array


def _pairs_of(call: Call, by_column: bool, all_pairs: bool, width: int) -> _Pairs:
    X, Y = call
    if by_column:
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
        return _Pairs(used, weights, X[n, k][:, None], Y[m, k][:, None], Y[Y != 0][:, None])
    x_any, y_any = np.any(X != 0, axis=1), np.any(Y != 0, axis=1)
    differ = all_pairs | np.any(X[:, None] != Y[None], axis=-1)
    used = (x_any[:, None] & y_any[None] & differ)[..., None]
    weights = ((x_any[:, None] | y_any[None]) & differ)[..., None].astype(np.float64)
    n, m, _ = np.nonzero(used)
    padded = [np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for rows in (X, Y)]
    return _Pairs(used, weights, padded[0][n], padded[1][m], padded[1][y_any])


def _distinct(pairs: Sequence[_Pairs], form: CircuitForm, width: int) -> tuple[Tests, list[Codes]]:
    """Distinct tests among pairs of vectors, and for each pair the number of its test."""
    left, right = (np.concatenate([getattr(pair, side) for pair in pairs]) for side in ("left", "right"))
    known = np.unique(np.concatenate([pair.medoids for pair in pairs]), axis=0)
    step = max(1, _BLOCK_NUMBERS // width)
    blocks = [form.angles(left[i : i + step], right[i : i + step]) for i in range(0, len(left), step)]
    if not blocks:
        empty = np.zeros((0, form.template(width).num_parameters))
        return Tests(width, empty, np.zeros(0), known), [np.zeros(0, dtype=np.intp) for _ in pairs]
    angles = np.ascontiguousarray(np.concatenate(blocks) + 0.0)  # one zero, not two
    # Bits as they are: as a number where there is one angle, which sorts faster.
    bits = np.dtype(np.int64) if angles.shape[1] == 1 else np.dtype((np.void, angles.dtype.itemsize * angles.shape[1]))
    contents = angles.view(bits).ravel()
    # Tests keep the order in which they were first asked for: neighbors in a circuit are of one record.
    _, first, inverse = np.unique(contents, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    chosen = first[order]
    left, right = left[chosen], right[chosen]
    tests = Tests(width, angles[chosen], pair_overlaps(left, right), known, directions_of(left, right))
    ends = np.cumsum([len(pair.left) for pair in pairs])[:-1]
    return tests, np.split(rank[inverse.ravel()], ends)
