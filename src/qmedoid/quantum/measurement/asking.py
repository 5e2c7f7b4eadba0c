"""What a model asks of a SWAP test: noted down in closed form first, and answered from measurements later.

A model asks the same of every SWAP test, in the same order, because the closed form chooses what it asks. So its calls
can be planned as a whole before a single circuit runs.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ModelError
from qmedoid.geometry.overlap import SwapTest, SwapTestFunction, compact_swap_test, from_overlap, row_norms


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
