"""What both kinds of boosted trees have in common."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.symmetric import Bins
from qmedoid.methods.comparisons.fit import FullTrees


class RankedRows(NamedTuple):
    """Rows as places of their cells among the values of each column, (n, M), their class codes and weights, if any."""

    ranks: Array
    codes: Codes
    weights: Array | None = None


class Growing(NamedTuple):
    """How trees are grown: until `patience` iterations gain no more than `least_gain` over all held-out rows."""

    rate: float
    l2: float
    share_of_columns: float
    least_rows: int
    patience: int
    least_gain: float


class Grown(Protocol):
    """Boosted trees over ranks."""

    @property
    def best(self) -> int:
        """The number of iterations with the smallest loss of the held-out rows."""

    @property
    def start(self) -> Array:
        """Outputs before the first iteration, shape (K,)."""

    def outputs(self, ranks: Array, n_iterations: int | None = None) -> Array:
        """Outputs of rows, shape (n, K), after some or all of the iterations."""

    def full_trees(self, known: Sequence[Array]) -> FullTrees:
        """The trees; thresholds are the `known` values with these ranks."""


class Grow(Protocol):
    """Grows trees; with held-out rows they stop growing when these gain nothing."""

    def __call__(
        self, rows: RankedRows, growing: Growing, seed: int, n_iterations: int, held_out: RankedRows | None = None
    ) -> Grown: ...


def bins_between(ranks: Array, bounds: Sequence[Array]) -> Bins:
    """The bin of every cell, column after column, shape (M, n): how many of the bounds of its column are below it."""
    found = [np.searchsorted(own, column) for own, column in zip(bounds, ranks.T, strict=True)]
    return np.array(found, dtype=np.uint8).reshape(len(bounds), len(ranks))
