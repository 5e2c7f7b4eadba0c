r"""The evidence model: a weighted sum of distances to medoids over groups of columns.

.. math::

   t_k(x) = b_k + \sum_j w_{jk}\,\bigl(\varphi_j(D_j(x)) - c_j\bigr), \qquad
   D_j^2(x) = \sum_{f\in g_j} u_f\,(v_f(x) - v_f(m_j))^2

Every term j looks at one group of columns g, one medoid m and one channel φ: the squared distance, the distance, or
the nearness :math:`\exp(-D/\ell)`. So a decision is an exact sum over real training rows and groups of columns, and
each number in it is a distance that the compact SWAP test measures on the columns of the group.

Where it helps, the nearest of many more training rows add a neighbor term:

.. math::

   t_k(x) \leftarrow t_k(x) + \sum_{i\in N(x)} \omega_i(x)\,a_{ik}, \qquad
   \omega_i = \frac{u_i}{1 + \sum_{j\in N(x)} u_j}, \qquad
   u_i = \Bigl(\frac{D_i(x)}{\ell} + 0.05\Bigr)^{-3}

N(x) are the k nearest neighbors over all columns, and :math:`a_i` is the class of neighbor i beyond what evidence alone
says of it. A record far from all neighbors is left to the evidence.

A term over several columns is shared in contributions among them exactly, whatever their order. A channel of a distance
is a function F of the sum :math:`D^2 = \sum_f d_f^2`. Against a reference :math:`R = \sum_f r_f` column f is given

.. math:: \bigl(F(D^2) - F(R)\bigr)\,\frac{d_f^2 - r_f}{D^2 - R},

its Aumann-Shapley value: what it adds while all squared differences move in a straight line from those of a typical
record to those of the record. R is where the channel is at its mean over the training rows, and :math:`r_f` is the
share of column f in the mean squared difference, :math:`u_f\,(1 + v_f(m)^2)`: scaled columns have mean 0, deviation 1.
So a column that differs as usual counts 0. What is left is the intercept, the same for all records. What neighbors add
depends on all their distances at once, so it is one term, neighbor by neighbor.

References
----------
R. J. Aumann and L. S. Shapley, *Values of Non-Atomic Games*, Princeton University Press, 1974.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, ClassVar

import numpy as np

from qmedoid.arrays import Array, Codes, Table, row_slices
from qmedoid.geometry.channels import class_channels
from qmedoid.geometry.overlap import SwapTestFunction, compact_swap_test
from qmedoid.geometry.scaling import RankScaling, Scaling
from qmedoid.kernels import evidence
from qmedoid.kernels.backend import row_block
from qmedoid.kernels.evidence import Group as Group
from qmedoid.kernels.nearest import MOST_NEAREST, nearest_squared
from qmedoid.methods.contributions import Contributions, GroupContribution, RowContribution, largest_first
from qmedoid.methods.part import (
    LARGEST,
    KeptRows,
    Part,
    PartFacts,
    Scored,
    measured_distances,
    measured_squares,
    refuse_bad_values,
    rows_kept,
)
from qmedoid.schema import MODERATE, Packed, RefusedError, RowNumbers, Values, part_bounds

Distances = Callable[[Array, Array], Array]
"""Distance of every row to every medoid, (n, g) and (q, g) to (n, q)."""

SQUARE, DISTANCE, NEAR = 0, 1, 2
CHANNELS = ("square", "distance", "near")
"""Names of the channels by their codes."""
CLIP = 8.0
"""Standardized values are held within this many deviations."""

# Numbers of a block of rows, so that a table of any length is judged in bounded memory.
_BLOCK_NUMBERS = 2**21


@dataclass(frozen=True, eq=False)
class Terms:
    """T terms of evidence for K outputs."""

    group: Annotated[Codes, Values("T", below="G")]  # index in the groups
    medoid: Annotated[Codes, Values("T", below="P")]  # index in the medoids
    channel: Annotated[Codes, Values("T", below=len(CHANNELS))]  # index in `CHANNELS`
    # ℓ of the nearness, above 0; unused by the other channels.
    length: Annotated[Array, Values("T", least=1 / MODERATE, most=MODERATE)]
    # c: mean of the channel over the training rows, so that a term is a deviation from the average row.
    center: Annotated[Array, Values("T", largest=MODERATE)]
    # w; positive speaks for the second of two classes (K = 1), else for class k.
    weights: Annotated[Array, Values("T K", largest=MODERATE)]

    def __len__(self) -> int:
        return len(self.group)


# A mean nearness below this is as good as none; its logarithm stays finite.
_SMALLEST = 1e-300
# A neighbor at distance 0 has a finite weight, and one at the length ℓ a weight of about 1.
_NEAREST = 0.05
_POWER = 3


@dataclass(frozen=True, eq=False)
class Neighbors:
    """N training rows, of which the k nearest enter the neighbor term."""

    records: Annotated[Array, Values("N M")]  # raw columns
    classes: Annotated[Codes, Values("N", below="C")]  # class code of each
    rows: Annotated[Codes, RowNumbers("N")]  # training row of each
    # a: what each adds to the outputs where it has all the weight.
    amounts: Annotated[Array, Values("N K", largest=MODERATE)]
    n_nearest: Annotated[int, Values(least=1, most=MOST_NEAREST)]  # k, from 1 to N
    length: Annotated[float, Values(least=1 / MODERATE, most=MODERATE)]  # ℓ, above 0
    by_rank: bool  # whether distances are measured on columns scaled by rank; else on standardized ones

    def validate(self) -> None:
        """Refuse stored neighbors that are fewer than the nearest of them."""
        if self.n_nearest > len(self.rows):
            raise RefusedError(f"n_nearest is {self.n_nearest}, and there are {len(self.rows)} neighbors")


@dataclass(frozen=True, eq=False)
class EvidencePart(Part):
    """A fitted evidence model over M encoded columns, with P medoids, G groups, T terms and C classes.

    Attributes
    ----------
    rank_scaling, linear_scaling : RankScaling, Scaling of shape (M,)
        The two scalings of the raw columns; what is standardized is held within ±`CLIP`.
    medoids : ndarray of shape (P, M)
        Raw columns of the medoids.
    medoid_classes, medoid_rows : ndarray of shape (P,)
        Class code and training row of each.
    column_weights : ndarray of shape (M,)
        Weights of the distance over all columns, scaled by rank, that finds the nearest medoids; 0 ignores a column.
    groups : tuple of Group
    terms : Terms
    intercepts : ndarray of shape (K,)
        b; K is 1 for two classes and C for more.
    n_classes : int
    neighbors : Neighbors or None
        Training rows of the neighbor term.
    """

    rank_scaling: RankScaling
    linear_scaling: Scaling
    medoids: Annotated[Array, Values("P M")]
    medoid_classes: Annotated[Codes, Values("P", below="C", every=True)]
    medoid_rows: Annotated[Codes, RowNumbers("P")]
    column_weights: Annotated[Array, Values("M", least=0, most=MODERATE)]
    groups: Annotated[tuple[Group, ...], Packed(part_bounds("G", "total"))]
    terms: Terms
    intercepts: Annotated[Array, Values("K", largest=MODERATE)]
    n_classes: Annotated[int, Values(least="C", most="C")]
    neighbors: Neighbors | None = None

    name: ClassVar[str] = "evidence"

    @cached_property
    def columns(self) -> Codes:
        """Encoded columns that it reads, rising."""
        read = self.column_weights > 0
        for group in self.groups:
            read[list(group.columns)] = True
        return np.flatnonzero(read)

    @cached_property
    def rows(self) -> KeptRows:
        """The medoids, scaled by rank and weighted; and the rows of the neighbor term."""
        neighbors = np.zeros((0, 0)) if self.neighbors is None else self.neighbors.records
        space = "over all columns that vary, scaled by rank"
        return KeptRows(
            self.medoid_rows, self.medoid_classes, self._points(self.medoids), self._points, space, neighbors
        )

    @property
    def facts(self) -> PartFacts:
        """What it says of itself."""
        length = max((len(group.columns) for group in self.groups), default=self.medoids.shape[1])
        kept: tuple[str, ...] = ()
        if self.neighbors is not None:
            kept, length = (rows_kept(len(self.neighbors.rows), "n_neighbors=0"),), max(length, len(self.compared))
        return {
            "description": "weighted distances, group of columns by group of columns, to the medoids",
            "groups": tuple(dict.fromkeys(group.columns for group in self.groups)),
            "kept": kept,
            "vector_length": length,
            "numbers": {},
        }

    def landmarks(self, column: int) -> Array:
        """The knots of the scaling by rank."""
        offsets = self.rank_scaling.offsets
        return self.rank_scaling.values[offsets[column] : offsets[column + 1]]

    @cached_property
    def plan(self) -> evidence.EvidencePlan:
        """The model as the kernel takes it."""
        ranks, linear, terms = self.rank_scaling, self.linear_scaling, self.terms
        return evidence.make_plan(
            rank_offsets=ranks.offsets, rank_values=ranks.values, rank_scores=ranks.scores,
            center=linear.center, scale=linear.scale, clip=CLIP, largest=LARGEST,
            medoids=self.medoids, medoid_classes=self.medoid_classes, n_classes=self.n_classes,
            column_weights=self.column_weights, groups=self.groups,
            term_group=terms.group, term_medoid=terms.medoid, term_channel=terms.channel, term_length=terms.length,
            term_center=terms.center, weights=terms.weights, intercepts=self.intercepts,
        )  # fmt: skip

    def score(self, X: Table, *, channels: bool = False, threads: int | None = None) -> Scored:
        """Score records by one pass of the kernel, which also finds the nearest medoids."""
        found = evidence.measure(X, self.plan, channels=channels, threads=threads)
        undecided = np.flatnonzero(found.nearest[:, 0] < 0)[:1]
        if len(undecided):  # it holds a bad value
            refuse_bad_values(row_block(X, undecided), self.columns, undecided)
        if self.neighbors is not None and len(found.scores):
            for rows in row_slices(X, max(1, _BLOCK_NUMBERS // self.medoids.shape[1])):
                near = self.nearest_neighbors(row_block(X, rows), threads)
                found.scores[rows] += added(*near, self.neighbors.length, self.neighbors.amounts)
        scores = self.class_scores(found.scores)
        return Scored(scores, found.nearest, *((found.distance, found.angle) if channels else ()))

    def evidence(self, X: Array, squares: Distances | None = None) -> Array:
        """Channel of every term for raw rows, shape (n, T): the definition; squared distances may be measured."""
        by_rank, linear = self.scaled(X)
        medoids_by_rank, medoids_linear = self.scaled_medoids
        values = np.empty((len(X), len(self.terms)))
        for number, group in enumerate(self.groups):
            places = np.flatnonzero(self.terms.group == number)
            columns, roots = list(group.columns), np.sqrt(group.weights)
            rows, of_medoids = (by_rank, medoids_by_rank) if group.by_rank else (linear, medoids_linear)
            # Medoids that are equal on the columns of the group are compared once.
            medoids = of_medoids[self.terms.medoid[places]][:, columns] * roots
            distinct, of_term = np.unique(medoids, axis=0, return_inverse=True)
            weighted, term = rows[:, columns] * roots, of_term.ravel()
            if squares is None:
                distance = root_distances(weighted, distinct)[:, term]
                squared = distance * distance
            else:  # measured ones may lie below 0, and stay unbiased where no root is taken
                squared = squares(weighted, distinct)[:, term]
                distance = np.sqrt(np.maximum(squared, 0.0))
            channel, near = self.terms.channel[places], np.exp(distance / -self.terms.length[places])
            values[:, places] = np.select([channel == NEAR, channel == DISTANCE], [near, distance], squared)
        return values

    def outputs(self, evidence: Array) -> Array:
        """The outputs t from the channels of the terms, shape (n, K), without what neighbors add."""
        outputs: Array = self.intercepts + (evidence - self.terms.center) @ self.terms.weights
        return outputs

    def scaled(self, X: Array) -> tuple[Array, Array]:
        """Raw rows by rank and standardized, each of shape (n, M)."""
        return self.rank_scaling.apply(X), self._standardized(X)

    @cached_property
    def scaled_medoids(self) -> tuple[Array, Array]:
        """The medoids, scaled both ways."""
        return self.scaled(self.medoids)

    def _standardized(self, X: Array) -> Array:
        return np.clip(self.linear_scaling.apply(X), -CLIP, CLIP)

    def class_scores(self, outputs: Array) -> Array:
        """Dissimilarities from t, shape (n, C)."""
        return np.hstack([outputs / 2.0, outputs / -2.0]) if self.n_classes == 2 else -outputs

    def nearest_neighbors(self, rows: Array, threads: int | None = None) -> tuple[Array, Codes]:
        """Distances and places of the neighbors nearest to raw rows, each of shape (n, k)."""
        assert self.neighbors is not None, "the model has neighbors"
        space, k = self._in_space(rows), self.neighbors.n_nearest
        squared, places = nearest_squared(space, self._scaled_neighbors, k=k, threads=threads)
        return np.sqrt(squared), places

    @cached_property
    def compared(self) -> Codes:
        """Columns that distances over all columns look at."""
        return np.flatnonzero(self.column_weights > 0)

    @cached_property
    def _scaled_neighbors(self) -> Array:
        """Scaled neighbors, shape (N, M')."""
        assert self.neighbors is not None
        return self._in_space(self.neighbors.records)

    def _in_space(self, rows: Array) -> Array:
        """Raw rows, scaled as the neighbors are."""
        assert self.neighbors is not None
        scaled = self.rank_scaling.apply(rows) if self.neighbors.by_rank else self._standardized(rows)
        return np.ascontiguousarray(scaled[:, self.compared])

    def score_measured(self, X: Table, backend: SwapTestFunction) -> Scored:
        """Score records by measured distances; the closed form finds the nearest medoids and neighbors."""
        roots, parts, distances = np.sqrt(self.column_weights), [], partial(measured_distances, backend)
        medoids = self.scaled_medoids[0] * roots
        for place in row_slices(X, max(1, _BLOCK_NUMBERS // max(len(self.terms), self.medoids.shape[1]))):
            rows = row_block(X, place)
            refuse_bad_values(rows, self.columns, range(place.start, place.stop))
            outputs = self.outputs(self.evidence(rows, partial(measured_squares, backend)))
            if self.neighbors is not None:
                found, nearest = self.nearest_neighbors(rows)
                for index, row in enumerate(self._in_space(rows)):
                    found[index] = distances(row[None], self._scaled_neighbors[nearest[index]])[0]
                outputs += added(found, nearest, self.neighbors.length, self.neighbors.amounts)
            tested = compact_swap_test(self.rank_scaling.apply(rows) * roots, medoids)
            channels, medoid = class_channels(tested.distance, tested.angle, self.medoid_classes, self.n_classes)
            parts.append((self.class_scores(outputs), medoid, *channels))
        return Scored(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _points(self, rows: Array) -> Array:
        """Raw rows scaled by rank and weighted, between which distances are measured, shape (n, M)."""
        return np.asarray(self.rank_scaling.apply(rows) * np.sqrt(self.column_weights))

    def contributions(self, row: Array, winner: int, other: int) -> Contributions:
        """Contributions of every column, and of every group of columns and medoid, for one row of shape (1, M)."""
        terms, columns = self.terms, np.zeros(row.shape[1])
        by_columns: dict[tuple[int, ...], dict[int, float]] = {}
        beyond, sign = 0.0, -1.0 if self.n_classes == 2 and winner == 0 else 1.0
        for places, of, by_column, terms_of, reference in self._by_group(row, np.array([winner]), np.array([other])):
            each, distance, far = terms_of
            by_term = sign * each * (distance - far) * (distance + far)
            columns[list(of)] += by_column[0]
            beyond += float(self._between(terms.weights[places], winner, other) @ reference)
            of_medoids = by_columns.setdefault(of, {})
            for medoid, amount in zip(terms.medoid[places].tolist(), by_term[0].tolist(), strict=True):
                of_medoids[medoid] = of_medoids.get(medoid, 0.0) + amount
        ranks, medoids = self.rank_scaling.apply(row), self.scaled_medoids[0]
        groups = []
        for of, shares in by_columns.items():  # medoid by medoid, each with its distance by rank
            places = np.array(list(shares))
            distances = root_distances(ranks[:, of], medoids[places][:, of])[0].tolist()
            rows, codes = self.medoid_rows[places].tolist(), self.medoid_classes[places].tolist()
            records = largest_first(rows, codes, distances, shares.values())
            groups.append(GroupContribution(of, float(sum(shares.values())), records=records))
        intercept = self._between(self.intercepts[None], winner, other)
        all_terms, neighbors = {"intercept": float(intercept[0]) + beyond}, tuple[RowContribution, ...]()
        if (known := self.neighbors) is not None:
            found, (nearest,) = self.nearest_neighbors(row)
            votes = weights(found, known.length)[0][:, None] * known.amounts[nearest]
            rows, codes = known.rows[nearest].tolist(), known.classes[nearest].tolist()
            neighbors = largest_first(rows, codes, found[0].tolist(), self._between(votes, winner, other).tolist())
            all_terms["neighbors"] = float(sum(one.contribution for one in neighbors))
        return Contributions(columns, tuple(groups), all_terms, neighbors)

    def column_contributions(self, X: Array, winners: Codes, others: Codes) -> Array:
        """The `columns` of `contributions` for many rows, each with its two classes, shape (n, M)."""
        columns = np.zeros(X.shape)
        for _, of, by_column, *_ in self._by_group(X, winners, others):
            columns[:, list(of)] += by_column
        return columns

    def _by_group(
        self, rows: Array, winners: Codes, others: Codes
    ) -> Iterator[tuple[Codes, tuple[int, ...], Array, tuple[Array, Array, Array], Array]]:
        """For q terms of each group and channel: their places and columns, what these add, the terms, and the rest.

        The sum over medoids m of a_m·u·(x − v_m)² is u·(x²·Σa − 2x·(a·v) + a·v²): no array has rows, medoids and
        columns. What columns (n, g) add counts from a reference; the rest (q,) is how far that is from the center. A
        term is what a squared difference adds, but for the sign, the distance D and that of the reference, whose
        squares differ.
        """
        terms, is_two = self.terms, self.n_classes == 2
        # Of two classes there is one output, for the second.
        signs = np.where(winners == 1, 1.0, -1.0)[:, None] if is_two else 1.0
        scaled, medoids = self.scaled(rows), self.scaled_medoids
        order = np.lexsort((terms.channel, terms.group))
        starts = np.flatnonzero(np.diff(terms.group[order]) | np.diff(terms.channel[order])) + 1
        for places in np.split(order, starts) if len(order) else ():
            group, channel, weights = self.groups[terms.group[places[0]]], int(terms.channel[places[0]]), terms.weights
            of, space = list(group.columns), 0 if group.by_rank else 1
            x, v, root = scaled[space][:, of], medoids[space][terms.medoid[places]][:, of], np.sqrt(group.weights)
            distance, center = root_distances(x * root, v * root), terms.center[places]
            slope, far, reference = _slopes(distance, channel, terms.length[places], center)
            of_terms = weights[places, 0] if is_two else (weights[places][:, winners] - weights[places][:, others]).T
            each = of_terms * slope
            squares = group.weights * (x * x * each.sum(axis=1, keepdims=True) - 2.0 * x * (each @ v) + each @ (v * v))
            usual = group.weights * (1.0 + v**2)
            by_column = squares - each @ ((far * far)[:, None] * usual / usual.sum(axis=1, keepdims=True))
            yield places, group.columns, np.asarray(signs * by_column), (each, distance, far), reference - center

    def _between(self, outputs: Array, winner: int, other: int) -> Array:
        """What outputs, or parts of them, of shape (…, K) say for the winner against the other class."""
        if self.n_classes == 2:
            return outputs[..., 0] if winner == 1 else -outputs[..., 0]
        difference: Array = outputs[..., winner] - outputs[..., other]
        return difference


def root_distances(rows: Array, medoids: Array) -> Array:
    """Distances column by column: differences first, so that equal rows are at distance 0 exactly."""
    squares = np.zeros((len(rows), len(medoids)))
    for column in range(rows.shape[1]):
        squares += (rows[:, column, None] - medoids[None, :, column]) ** 2
    return np.sqrt(squares)


def added(distances: Array, places: Codes, length: float, amounts: Array) -> Array:
    """What neighbors with these amounts (N, K) add to the outputs of rows, shape (n, K); of k nearest each, (n, k)."""
    return np.asarray(np.einsum("ij,ijk->ik", weights(distances, length), amounts[places]))


def weights(distances: Array, length: float) -> Array:
    """ω of neighbors at these distances, shape (n, k); 0 at infinite distance."""
    near = (distances / length + _NEAREST) ** -_POWER
    return np.asarray(near / (1.0 + near.sum(axis=1, keepdims=True)))


def _slopes(distance: Array, channel: int, length: Array, center: Array) -> tuple[Array, Array, Array]:
    """What a squared difference adds to a channel of q distances, shape (…, q), and the reference as D and channel.

    The reference of the channel is its center, where that is a value that the channel can take.
    """
    if channel == NEAR:
        reference = np.clip(center, _SMALLEST, 1.0)
        far = -length * np.log(reference)
        # (e^(-D/l) - e^(-far/l)) / (D^2 - far^2) without a difference of nearly equal numbers.
        exponent = (far - distance) / length
        safe = np.where(exponent == 0, 1.0, exponent)
        growth = np.where(exponent == 0, 1.0, np.expm1(safe) / safe)
        slope = -reference * growth / (length * _positive(distance + far))
    elif channel == DISTANCE:
        reference = far = np.maximum(center, 0.0)
        slope = 1.0 / _positive(distance + far)
    else:
        reference = np.maximum(center, 0.0)
        far, slope = np.sqrt(reference), np.ones(distance.shape)
    return slope, far, reference


def _positive(values: Array) -> Array:
    """The values, with 1 for those that are 0: there record and reference are at the medoid, and nothing is shared."""
    return np.where(values > 0, values, 1.0)
