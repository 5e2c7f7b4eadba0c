"""What both kinds of boosted trees have in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.histogram import HistogramTrees
from qmedoid.kernels.symmetric import Bins, SymmetricTrees
from qmedoid.methods.comparisons.fit import FullTrees

T = TypeVar("T", HistogramTrees, SymmetricTrees)


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


@dataclass(frozen=True, eq=False)
class BinnedTrees(Generic[T]):
    """Trees of a kernel over bins of ranks, and the bounds between the bins of each column; see `Grown`."""

    trees: T
    bounds: Sequence[Array]

    @property
    def best(self) -> int:
        return int(np.argmin(self.trees.losses))

    @property
    def start(self) -> Array:
        return self.trees.start

    def outputs(self, ranks: Array, n_iterations: int | None = None) -> Array:
        return self.trees.outputs(bins_between(ranks, self.bounds), n_iterations)


class Grow(Protocol):
    """Grows trees; with held-out rows they stop growing when these gain nothing."""

    def __call__(
        self, rows: RankedRows, growing: Growing, seed: int, n_iterations: int, held_out: RankedRows | None = None
    ) -> Grown: ...


def bins_between(ranks: Array, bounds: Sequence[Array]) -> Bins:
    """The bin of every cell, column after column, shape (M, n): how many of the bounds of its column are below it."""
    found = [np.searchsorted(own, column) for own, column in zip(bounds, ranks.T, strict=True)]
    return np.array(found, dtype=np.uint8).reshape(len(bounds), len(ranks))
