"""What the stages above ask of a SWAP test, whichever way it is carried out."""

from typing import Protocol

import numpy.typing as npt

from qmedoid.geometry.overlap import SwapTest


class SwapTestFunction(Protocol):
    """Anything that compares every row of X with every row of Y: the closed form, a simulator or a machine.

    :func:`qmedoid.geometry.overlap.compact_swap_test` is one; the backends of :mod:`qmedoid.circuits` are others.
    """

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        ...
