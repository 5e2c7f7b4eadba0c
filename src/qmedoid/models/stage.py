"""What the first stage of a hybrid model, whatever it is made of, says of records."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.fusion import Channels
from qmedoid.geometry.overlap import from_overlap, row_norms
from qmedoid.geometry.protocols import SwapTestFunction

Table = npt.NDArray[Any] | Sequence[npt.NDArray[Any]]
"""Rows of shape (n, M), or M columns."""


class Measured(NamedTuple):
    """Measurements of n records, with C classes.

    Attributes
    ----------
    channels : Channels of shape (n, C)
        Distance and angle to the nearest medoid of each class.
    scores : ndarray of shape (n, C)
        Dissimilarities; the smallest decides.
    nearest : ndarray of shape (n, C)
        Place of the nearest medoid of each class.
    deltas : ndarray of shape (n, m) or None
        What a circuit is fed, where the stage has deltas of its own; else they are made from the channels.
    """

    channels: Channels
    scores: Array
    nearest: Codes
    deltas: Array | None = None


class FirstStage(Protocol):
    """A model of distances to real records that decides before any circuit, whatever it is made of."""

    @property
    def use_angular(self) -> bool:
        """Whether the angle is one of the channels that a circuit is fed."""
        ...

    @property
    def rare_class(self) -> int | None:
        """The class that is looked for, where the model is one of rare events."""
        ...

    @property
    def plain(self) -> "PlainStage":
        """The model itself, without the backend that measures for it."""
        ...

    def measure(self, X: Table, *, threads: int | None = None) -> Measured:
        """Everything about every record."""
        ...

    def scores_and_medoids(self, X: Table, *, threads: int | None = None) -> tuple[Array, Codes]:
        """Dissimilarities, and the place of the nearest medoid of each class, each of shape (n, C)."""
        ...


class PlainStage(FirstStage, Protocol):
    """A first stage in closed form, with its real records: what can be saved, shown and explained."""

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        ...

    @property
    def medoid_rows(self) -> Codes:
        """Training row of each of the P medoids."""
        ...

    @property
    def medoid_classes(self) -> Codes:
        """Class code of each medoid."""
        ...

    @property
    def column_groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups of columns that distances are made of."""
        ...

    @property
    def n_deltas(self) -> int | None:
        """How many deltas of its own it feeds a circuit; None where they are made from the channels."""
        ...

    @property
    def n_measured(self) -> int:
        """Length of the vectors that its SWAP test compares, at most."""
        ...

    @property
    def used(self) -> Codes:
        """Columns that the model reads."""
        ...

    @property
    def notices_bad_values(self) -> Flags:
        """For every column of the table, whether scoring a row with a bad value there is sure to raise."""
        ...


def measured_distances(swap_test: SwapTestFunction, rows: Array, medoids: Array) -> Array:
    """Distance of every row to every medoid, (n, g) and (q, g) to (n, q), from measured overlaps and known norms."""
    overlap = swap_test(rows, medoids).overlap
    return from_overlap(overlap, row_norms(rows), row_norms(medoids)).distance


def row_block(X: Table, rows: slice | Codes) -> Array:
    """Some rows of a table as numbers, shape (n, M), in one layout whatever the table's: so sums round alike."""
    part = X[rows] if isinstance(X, np.ndarray) else np.column_stack([column[rows] for column in X])
    return np.ascontiguousarray(part, dtype=np.float64)


def row_slices(X: Table, step: int) -> Iterator[slice]:
    """Blocks of at most `step` rows that a table is judged by, in bounded memory; at least one, if it is empty."""
    n = len(X) if isinstance(X, np.ndarray) else len(X[0])
    return (slice(start, min(start + step, n)) for start in range(0, max(n, 1), step))
