"""What a part of a model is: statements about real training rows, with dissimilarities that add to those of others."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags, Table
from qmedoid.exceptions import DataError, ModelError, check_callable
from qmedoid.geometry.channels import Channels
from qmedoid.geometry.overlap import SwapTestFunction, measured_overlap, overlap_distance, row_norms
from qmedoid.methods.contributions import Contributions
from qmedoid.schema import MODERATE, Values

if TYPE_CHECKING:
    from qmedoid.methods.variational.model import ExpectationFunction

LARGEST = 1e150
"""Values beyond this have squares that leave the range of double precision, and are refused."""


class Scored(NamedTuple):
    """Scores of n records by a part or by a model, with C classes."""

    scores: Array  # dissimilarities; the smallest decides, (n, C)
    # Index of the nearest medoid of each class in `KeptRows`; None without medoids, (n, C).
    nearest: Codes | None = None
    distance: Array | None = None  # to that medoid, if channels were wanted, (n, C); so the angle
    angle: Array | None = None
    features: Array | None = None  # inputs for a circuit, if channels were wanted and the part has its own, (n, F)

    @property
    def channels(self) -> Channels:
        """Distance and angle to the nearest medoid of each class, of medoids whose channels were wanted."""
        assert self.distance is not None, "channels are wanted"
        assert self.angle is not None, "channels are wanted"
        return Channels(self.distance, self.angle)

    def take(self, rows: Codes) -> "Scored":
        """The scores of some records."""
        taken: list[Any] = [None if one is None else one[rows] for one in self]
        return Scored(*taken)


class KeptRows(NamedTuple):
    """The training rows that a part compares with."""

    numbers: Codes  # row of the training table, (R,)
    classes: Codes
    points: Array | None = None  # of medoids: where Euclidean distances are those of `Scored`, (R, q)
    to_points: Callable[[Array], Array] | None = None  # encoded rows (n, M) to that space, (n, q)
    space: str = ""  # what the distance is, in words
    # Encoded rows that are kept to find the nearest of them, in addition to medoids, (N, M).
    neighbors: Array = np.zeros((0, 0))

    def usable_points(self, rows: Array, columns: Codes) -> Array:
        """Points of encoded rows; those with a value that is no number or beyond `LARGEST` in a column are NaN."""
        assert self.to_points is not None, "medoids are points"
        with np.errstate(invalid="ignore", over="ignore"):
            usable: Flags = np.all(np.abs(rows[:, columns]) <= LARGEST, axis=1)
            points = self.to_points(np.where(usable[:, None], rows, 0.0))
        points[~usable] = np.nan
        return points


class PartFacts(TypedDict):
    """What a part says of itself, in plain values for cards and reports."""

    description: str  # how records are decided, in words that go on with "which are real training rows"
    groups: tuple[tuple[int, ...], ...]  # the groups of columns that distances are made of
    kept: tuple[str, ...]  # what is kept of training rows in addition to medoids, in sentences
    vector_length: int  # maximum length of the vectors that the SWAP test compares
    numbers: Mapping[str, Any]  # numbers by name


class Part(ABC):
    """Statements about real training rows that score classes, over M encoded columns; a model is a sum of parts.

    A new part is a folder with such a class, and a line in :mod:`qmedoid.methods.registry`. It is a frozen dataclass
    whose fields say how they are stored (:mod:`qmedoid.schema`).
    """

    name: ClassVar[str]
    """Key of the registry."""
    backend: ClassVar[Literal["swap_test", "expectations"]] = "swap_test"
    """The field of `Backends` that measures what it compares."""

    @property
    @abstractmethod
    def columns(self) -> Codes:
        """Encoded columns that it reads, rising."""

    @property
    @abstractmethod
    def rows(self) -> KeptRows:
        """Its training rows. With medoids, scoring raises for a bad value in any of `columns`."""

    @property
    @abstractmethod
    def facts(self) -> PartFacts:
        """What it says of itself."""

    @property
    def n_features(self) -> int:
        """Number of features of its own that a circuit may read."""
        return 0

    @abstractmethod
    def score(self, X: Table, *, channels: bool = False, threads: int | None = None) -> Scored:
        """Score records in closed form; `channels` also gives what a circuit may read."""

    @abstractmethod
    def score_measured(self, X: Table, backend: Any) -> Scored:
        """Score records by the definition, with what a backend measures; channels are given."""

    @abstractmethod
    def contributions(self, row: Array, winner: int, other: int) -> Contributions:
        """Contributions that add up to ``scores[other] - scores[winner]``, for one row of shape (1, M)."""

    @abstractmethod
    def column_contributions(self, X: Array, winners: Codes, others: Codes) -> Array:
        """The `columns` of `contributions` for many rows, each with its two classes, shape (n, M)."""

    def landmarks(self, column: int) -> Array:
        """Values of an encoded column where scores bend or jump."""
        del column
        return np.zeros(0)


@dataclass(frozen=True)
class Backends:
    """What measures distances and circuits; None is the closed form, or the exact simulation."""

    swap_test: SwapTestFunction | None = None
    expectations: "ExpectationFunction | None" = None

    def __post_init__(self) -> None:
        if self.swap_test is not None:
            check_callable(
                "'swap_test' parameter of measured_by",
                self.swap_test,
                ("X", "Y"),
                "qmedoid.quantum.SamplerSwapTest(seed=0)",
                "measurement_plan(X, backend)",
            )
        if self.expectations is not None:
            check_callable(
                "'expectations' parameter of measured_by",
                self.expectations,
                ("ansatz", "rotations", "inputs", "observables"),
                "qmedoid.quantum.SamplerExpectations(seed=0)",
                "qmedoid.quantum.SamplerExpectations(sampler=...)",
            )


CLOSED_FORM = Backends()
"""Nothing is measured."""


def medoid_part(parts: Sequence[Part]) -> Part | None:
    """The first part that has medoids."""
    return next((part for part in parts if part.rows.points is not None), None)


def score_sum(
    parts: Sequence[Part],
    weights: Array,
    biases: Array,
    X: Table,
    *,
    backends: Backends = CLOSED_FORM,
    reads_features: bool = False,
    channels: bool = False,
    threads: int | None = None,
) -> Scored:
    """The weighted sum of parts minus biases (C,), with what the part with medoids found.

    Nothing is measured for a part that weighs nothing, unless a circuit reads its features.
    """
    base, found, total = medoid_part(parts), Scored(np.zeros((0, 0))), -biases
    for part, weight in zip(parts, weights.tolist(), strict=True):
        if weight > 0 or part is base:
            how = backends if weight > 0 or reads_features else CLOSED_FORM
            if (backend := getattr(how, part.backend)) is None:
                scored = part.score(X, channels=channels and part is base, threads=threads)
            else:
                scored = part.score_measured(X, backend)
            total = total + weight * scored.scores
            found = scored if part is base else found
    return found._replace(scores=total)


@dataclass(frozen=True)
class Calibration:
    """Class scores b_c − β·s_c of dissimilarities s, with or without a curve; the largest decides.

    Attributes
    ----------
    slope : float
        β, above 0.
    biases : ndarray of shape (C,)
        b; all zero keeps the decision of the dissimilarities.
    knots, heights : ndarray of shape (K,)
        A piecewise-linear curve that is added to the log-odds of the second of two classes, or to the score of every
        one of more: its knots, ascending, and its values there, constant beyond. Log-odds and scores keep their
        order. The outer two knots at either end bound it beyond all out-of-fold rows. Empty without a curve.
    """

    slope: Annotated[float, Values(above=0)]
    biases: Annotated[Array, Values("C", largest=MODERATE)]
    knots: Annotated[Array, Values("J", largest=MODERATE, order="rises")] = field(default_factory=lambda: np.zeros(0))
    heights: Annotated[Array, Values("J", largest=MODERATE)] = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def plain(cls, n_classes: int) -> "Calibration":
        """The calibration that only turns the sign: the smallest dissimilarity is the largest score."""
        return cls(1.0, np.zeros(n_classes))

    def apply(self, fused: Array) -> Array:
        """Class scores, shape (n, C)."""
        scores: Array = self.biases - self.slope * fused
        return scores + self._curve(scores) if len(self.knots) else scores

    def curve_part(self, fused: Array) -> Array:
        """What the curve adds to the class scores, shape (n, C); 0 without a curve."""
        return self._curve(self.biases - self.slope * fused) if len(self.knots) else np.zeros_like(fused)

    def _curve(self, straight: Array) -> Array:
        if straight.shape[1] != 2:
            return np.interp(straight, self.knots, self.heights)
        half = np.interp(straight[:, 1] - straight[:, 0], self.knots, self.heights) / 2.0
        return np.column_stack([-half, half])


@dataclass(frozen=True)
class OutOfFold:
    """Out-of-fold predictions."""

    scores: Array  # NaN for rows that are in no test fold, (n, C)
    fold: Codes  # test fold of every row, −1 where there is none, (n,)


class FittedParts(NamedTuple):
    """A weighted sum of J parts that were fitted together, with its out-of-fold scores."""

    parts: tuple[Part, ...]
    weights: Array  # (J,)
    biases: Array  # (C,)
    # Of the training rows: `scores`, NaN for rows that no fold held out; `features` of a part that has its own; and
    # channels, where a fit has them out of fold.
    out_of_fold: Scored
    folds: Sequence[Codes]  # the rows that each fold held out
    rare_class: int | None = None  # the class that is rare, where the fit is about one
    notes: tuple[str, ...] = ()  # what the fit limited
    details: Any = None  # what its estimator shows of the fit

    def score(self, X: Table, *, channels: bool = False) -> Scored:
        """Scores of records by the sum."""
        return score_sum(self.parts, self.weights, self.biases, X, channels=channels)


def refuse_bad_values(values: Array, used: Codes, rows: Codes | range) -> None:
    """Raise for the first value that is NaN, infinite or beyond `LARGEST` in a used column, by the row numbers."""
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
    """Raise a `ModelError` where a result of a model is NaN or infinite.

    Records are within bounds, so the numbers of the model are to blame: a saved model may hold any finite ones, and
    their products may leave the range of double precision.
    """
    for result in results:
        if not np.isfinite(result).all():
            raise ModelError(
                "The model holds numbers so large or so small that its scores leave the range of double precision: it "
                "was changed after it was saved, or fitted on numbers that are far out. Fit it again on columns in "
                "other units."
            )


def rows_kept(count: int, without: str) -> str:
    """That so many training rows are kept to find the nearest of them, and how to fit without."""
    return (
        f"In addition to the medoids the model keeps {count} training rows, the columns that it reads as numbers, to "
        f"compare with the nearest of them. To leave them out, fit with {without}."
    )


def measured_distances(swap_test: SwapTestFunction, rows: Array, medoids: Array) -> Array:
    """Distance of every row to every medoid, (n, g) and (q, g) to (n, q), from measured overlaps and known norms."""
    overlap = measured_overlap(swap_test, rows, medoids)
    return overlap_distance(overlap, row_norms(rows)[:, None], row_norms(medoids))


def measured_squares(swap_test: SwapTestFunction, rows: Array, medoids: Array) -> Array:
    """Their squares 2Zs as they are measured, below 0 by shots now and then: cut off, they would be too large."""
    overlap = measured_overlap(swap_test, rows, medoids)
    lengths = np.hypot(row_norms(rows)[:, None], row_norms(medoids))
    squares: Array = 2.0 * overlap * lengths * lengths
    return squares


def measured_nearest(swap_test: SwapTestFunction, rows: Array, medoids: Array, places: Codes) -> Array:
    """Distance of every row to the medoids at its places, (n, g) and (n, k) to (n, k); inf where a place is −1."""
    found = np.empty(places.shape)
    for row, own in enumerate(places):
        found[row] = measured_distances(swap_test, rows[[row]], medoids[own])[0]
    return np.where(places >= 0, found, np.inf)
