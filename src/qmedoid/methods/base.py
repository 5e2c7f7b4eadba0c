"""The protocol of methods, what they measure, and the checks of their input and their scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags, Table
from qmedoid.exceptions import DataError, ModelError, check_callable
from qmedoid.geometry.channels import Channels
from qmedoid.geometry.overlap import SwapTestFunction, from_overlap, measured_overlap, row_norms
from qmedoid.methods.contributions import Contributions

LARGEST = 1e150
"""Values beyond this have squares that leave the range of double precision, and are refused."""


def refuse_bad_values(values: Array, used: Codes, rows: Codes | range) -> None:
    """Raise for the first value that is NaN, infinite or beyond `LARGEST` in a column that the model reads.

    Parameters
    ----------
    values : ndarray of shape (n, M)
    used : ndarray
        Columns that the model reads.
    rows : sequence of n int
        Which rows of the table these are.
    """
    # Most blocks are good, which their extremes show: a NaN makes both NaN.
    if values.max(initial=0.0) <= LARGEST and values.min(initial=0.0) >= -LARGEST:
        return
    bad = np.argwhere(~(np.abs(values[:, used]) <= LARGEST))
    if len(bad):
        row, column = int(bad[0][0]), int(used[bad[0][1]])
        raise DataError(
            f"Row {rows[row]} holds {values[row, column]} in column {column} (both counted from 0). The model needs "
            f"finite numbers within ±{LARGEST:g}: fill in or drop such rows first."
        )


def refuse_overflow(*results: npt.ArrayLike) -> None:
    """Raise where a result of a model is NaN or infinite.

    Records are within bounds, so the numbers of the model are to blame: a saved model may hold any finite ones, and
    their products may leave the range of double precision.

    Raises
    ------
    ModelError
        A result is not a finite number.
    """
    for result in results:
        if not np.isfinite(result).all():
            raise ModelError(
                "The model holds numbers so large or so small that its scores leave the range of double precision: it "
                "was changed after it was saved, or fitted on numbers that are far out. Fit it again on columns in "
                "other units."
            )


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
        Features for a circuit, where the method has its own deltas; else they are made from the channels.
    """

    channels: Channels
    scores: Array
    nearest: Codes
    deltas: Array | None = None


class Scorer(Protocol):
    """A method that scores records, in closed form or with distances measured by a backend."""

    @property
    def use_angular(self) -> bool:
        """Whether the angle is one of the channels for a circuit."""
        ...

    @property
    def rare_class(self) -> int | None:
        """The rare class, where the method is one of rare events."""
        ...

    @property
    def plain(self) -> "Method":
        """The method itself, in closed form."""
        ...

    def measure(self, X: Table, *, threads: int | None = None) -> Measured:
        """Channels, scores, nearest medoids and deltas of every record."""
        ...

    def scores_and_medoids(self, X: Table, *, threads: int | None = None) -> tuple[Array, Codes]:
        """Dissimilarities, and the place of the nearest medoid of each class, each of shape (n, C)."""
        ...


class Part(Protocol):
    """Statements about real rows that are added to the scores of a method."""

    name: ClassVar[str]

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts about the part by name, for reports; plain values."""
        ...

    @property
    def n_neighbors(self) -> int:
        """Number of training rows kept with all columns that are read."""
        ...

    @property
    def n_measured(self) -> int:
        """Maximum length of the vectors that the SWAP test compares."""
        ...

    @property
    def kept_rows(self) -> tuple[str, ...]:
        """What is kept of training rows, in sentences for the card."""
        ...

    @property
    def used(self) -> Codes:
        """Columns that the part reads."""
        ...

    def scores(self, X: Table, *, threads: int | None = None) -> Array:
        """Dissimilarity to every class, shape (n, C)."""
        ...

    def scores_with(self, X: Table, swap_test: SwapTestFunction) -> Array:
        """`scores` with distances that a SWAP test measures."""
        ...

    def contributions(self, row: Array, winner: int, other: int) -> "Contributions":
        """Contributions to the difference of two classes' scores, for one row of shape (1, M)."""
        ...

    def column_contributions(self, rows: Array, winners: Codes, others: Codes) -> Array:
        """The `columns` of `contributions` for many rows, each with its two classes, shape (n, M)."""
        ...

    def with_row_numbers(self, rows: Codes) -> Self:
        """A copy where training row i is row ``rows[i]`` of a larger table."""
        ...


class Method(Scorer, Protocol):
    """A fitted method in closed form: what is saved, shown, explained and run as circuits.

    A new method is a folder with such a class and its estimator, and a line in :mod:`qmedoid.methods.registry`. Its
    fields say how they are stored (:mod:`qmedoid.schema`), for M encoded columns and C classes.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    """How records are decided, in words that go on with "which are real training rows"."""

    @property
    def decider(self) -> str:
        """What decides, in one word: the name of the method that was asked for."""
        ...

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
    def medoid_coordinates(self) -> Array:
        """The medoids in the space of `coordinates`, shape (P, q)."""
        ...

    @property
    def n_neighbors(self) -> int:
        """Number of training rows kept in addition to the medoids."""
        ...

    @property
    def column_groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups of columns that distances are made of."""
        ...

    @property
    def n_deltas(self) -> int | None:
        """Number of deltas for a circuit; None where they are made from the channels."""
        ...

    @property
    def n_measured(self) -> int:
        """Maximum length of the vectors that the SWAP test compares."""
        ...

    @property
    def used(self) -> Codes:
        """Columns that the method reads."""
        ...

    @property
    def notices_bad_values(self) -> Flags:
        """For every column of the table, whether scoring a row with a bad value there is sure to raise."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts about the method by name, for cards and reports; plain values."""
        ...

    @property
    def kept_rows(self) -> tuple[str, ...]:
        """What is kept of training rows in addition to the medoids, in sentences for the card."""
        ...

    @property
    def distance_name(self) -> str:
        """What the distance to medoids is, in words."""
        ...

    def coordinates(self, rows: Array) -> Array:
        """Raw rows (n, M) in the space where Euclidean distances are those to the medoids, shape (n, q)."""
        ...

    def contributions(self, row: Array, measured: Measured, winner: int, other: int) -> "Contributions":
        """Contributions to the difference of two classes' scores, for one row of shape (1, M)."""
        ...

    def column_contributions(self, rows: Array, winners: Codes, others: Codes) -> Array:
        """The `columns` of `contributions` for many rows, each with its two classes, shape (n, M)."""
        ...

    def with_swap_test(self, swap_test: SwapTestFunction) -> Scorer:
        """A copy whose distances a SWAP test measures, such as `MeasuredMethod`."""
        ...

    def measure_with(self, X: Table, swap_test: SwapTestFunction) -> Measured:
        """`measure` by its definition, with distances that a SWAP test measures."""
        ...

    def with_row_numbers(self, rows: Codes) -> Self:
        """A copy where training row i is row ``rows[i]`` of a larger table."""
        ...


@dataclass(frozen=True, eq=False)
class MeasuredMethod:
    """A method whose distances a SWAP test measures, such as by circuits."""

    model: Any
    swap_test: SwapTestFunction

    def __post_init__(self) -> None:
        check_callable(
            "'swap_test' parameter of measured_by", self.swap_test, "qmedoid.quantum.circuits.SamplerSwapTest(seed=0)",
            "measurement_plan(X, backend)",
        )  # fmt: skip

    @property
    def plain(self) -> Any:
        """The method in closed form."""
        return self.model

    @property
    def use_angular(self) -> bool:
        """Whether the angle is one of the channels for a circuit."""
        return bool(self.model.use_angular)

    @property
    def rare_class(self) -> int | None:
        """The rare class, where the method is one of rare events."""
        rare: int | None = self.model.rare_class
        return rare

    def measure(self, X: Table, *, threads: int | None = None) -> Measured:
        """Channels, scores, nearest medoids and deltas by measured distances; the backend has its own threads."""
        del threads
        measured: Measured = self.model.measure_with(X, self.swap_test)
        return measured

    def scores_and_medoids(self, X: Table, *, threads: int | None = None) -> tuple[Array, Codes]:
        """Dissimilarities, and the place of the nearest medoid of each class, each of shape (n, C)."""
        measured = self.measure(X, threads=threads)
        return measured.scores, measured.nearest


def rows_kept(count: int, without: str) -> str:
    """That so many training rows are kept to find the nearest of them, and how to fit without."""
    return (
        f"In addition to the medoids the model keeps {count} training rows, the columns that it reads as numbers, to "
        f"compare with the nearest of them. To leave them out, fit with {without}."
    )


def usable_coordinates(method: Method, rows: Array) -> Array:
    """Coordinates of raw rows; those with a value that is no number or beyond `LARGEST` in a used column are NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        usable: Flags = np.all(np.abs(rows[:, method.used]) <= LARGEST, axis=1)
        coordinates = method.coordinates(np.where(usable[:, None], rows, 0.0))
    coordinates[~usable] = np.nan
    return coordinates


def measured_distances(swap_test: SwapTestFunction, rows: Array, medoids: Array) -> Array:
    """Distance of every row to every medoid, (n, g) and (q, g) to (n, q), from measured overlaps and known norms."""
    overlap = measured_overlap(swap_test, rows, medoids)
    return from_overlap(overlap, row_norms(rows), row_norms(medoids)).distance


def measured_nearest(swap_test: SwapTestFunction, rows: Array, medoids: Array, places: Codes) -> Array:
    """Distance of every row to the medoids at its places, (n, g) and (n, k) to (n, k); inf where a place is −1."""
    found = np.empty(places.shape)
    for row, own in enumerate(places):
        found[row] = measured_distances(swap_test, rows[[row]], medoids[own])[0]
    return np.where(places >= 0, found, np.inf)
