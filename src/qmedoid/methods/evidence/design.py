"""Scaling by rank and design matrix of an evidence model: blocks of terms within a budget, on a common scale."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtri

from qmedoid.arrays import Array, Codes, Flags, column_slices
from qmedoid.geometry.scaling import RankScaling
from qmedoid.methods.evidence.part import DISTANCE, NEAR, SQUARE, Group

Block = Literal["linear", "single", "group", "full"]
"""Kinds of evidence: columns as they are, single columns, chosen pairs and triples, all columns at once."""
Columns = tuple[int, ...]
# Nearness reaches this far: in deviations for one column, else in medians of the distances between rows and medoids.
_SINGLE_LENGTH = 1.0
_RELATIVE_LENGTH = 0.7
# Rows whose distances to the medoids give the median.
_LENGTH_ROWS = 300
# Minimum gap of two medoids in a column, in deviations, for the difference of their squares to represent it.
_MIN_SPAN = 0.05
# Medoids of a single column at least and at most, and their share of the terms.
_FEWEST_SINGLE, _MOST_SINGLE = 3, 8
_SINGLE_SHARE = 0.4
# Medoids of a pair or triple at least.
_FEWEST_GROUP = 8
MAX_KNOTS = 256
"""Knots of a column at most; beyond, those at evenly spaced ranks are kept."""


@dataclass(frozen=True)
class EvidenceSettings:
    """Settings of an evidence model."""

    n_medoids: int = 64  # medoids at most, but at least one per class
    grows: bool = False  # whether there may be twice as many medoids from 2,000 rows on
    n_pairs: int = 16  # groups of two and of three columns in each bag
    n_triples: int = 10
    # Models that are averaged, each with its part of the medoids and its groups. Fewer where a class would have
    # less than four medoids in a bag.
    n_bags: int = 2
    n_terms: int = 1500  # terms aimed at, all bags together: the more columns, the fewer medoids each group is given
    # Whether weights of three or more classes are refitted by multinomial regression where that makes out-of-fold
    # rows likelier; else they remain those of the ridge.
    multinomial: bool = False
    # Maximum number of rows that the evidence is fitted on, a stratified sample of a longer table.
    max_rows: int = 20_000
    # Maximum number of extra training rows kept for the neighbor term; it is used where it helps.
    n_neighbors: int = 5000


class Scaled(NamedTuple):
    """Rows scaled both ways, each of shape (n, M)."""

    ranks: Array
    plain: Array

    def of(self, group: Group) -> Array:
        """Columns of a group, weighted, shape (n, g)."""
        values = self.ranks if group.by_rank else self.plain
        return np.asarray(values[:, list(group.columns)] * np.sqrt(group.weights))


@dataclass(frozen=True, eq=False)
class DesignPart:
    """Terms of one group and channel, and the features that are made of them."""

    block: Block
    group: Group
    medoids: Codes  # places of the medoids, (q,)
    channel: int
    length: float
    mixing: Array | None = None  # r features as sums of the q terms; None where every term is a feature, (q, r)

    def values(self, rows: Scaled, medoids: Scaled) -> Array:
        """Channels of the terms, shape (n, q)."""
        distances: Array = cdist(rows.of(self.group), medoids.of(self.group)[self.medoids])
        if self.channel == NEAR:
            return np.exp(distances / -self.length)
        return distances * distances if self.channel == SQUARE else distances

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return len(self.medoids) if self.mixing is None else self.mixing.shape[1]

    def features(self, values: Array) -> Array:
        """Features from channels, (n, q) to (n, r)."""
        return values if self.mixing is None else values @ self.mixing


def linear_part(column: int, rows: Scaled, medoids: Scaled) -> DesignPart:
    """One column as it is: the difference of the squared distances to the two medoids with the widest gap in it.

    In a column of two values a single distance does. So it does where all medoids agree, mostly at the end of a column
    that is nearly always 0: from there on the distance is the column.
    """
    group = Group((column,), np.ones(1), False)
    of_medoids, values = medoids.plain[:, column], rows.plain[:, column]
    low, high = int(of_medoids.argmin()), int(of_medoids.argmax())
    two_valued = bool(np.all((values == values.min()) | (values == values.max())))
    if two_valued or of_medoids[high] - of_medoids[low] < _MIN_SPAN:
        places, channel, mixing = np.array([low]), DISTANCE, np.ones((1, 1))
    else:
        places, channel, mixing = np.array([low, high]), SQUARE, np.array([[1.0], [-1.0]])
    part = DesignPart("linear", group, places, channel, 1.0, mixing)
    spread = float(part.features(part.values(rows, medoids)).std())
    return replace(part, mixing=mixing / spread) if spread > 0 else part


def single_part(column: int, places: Codes, n_medoids: int, medoids: Scaled) -> DesignPart | None:
    """Nearness in one column to medoids at about evenly spaced values; None if all have the same."""
    values, first = np.unique(medoids.ranks[places, column], return_index=True)
    if len(values) < 2:
        return None
    wanted = np.unique(np.round(np.linspace(0, len(values) - 1, min(n_medoids, len(values)))).astype(np.intp))
    return DesignPart("single", Group((column,), np.ones(1), True), places[first[wanted]], NEAR, _SINGLE_LENGTH)


def near_part(block: Block, columns: Columns, places: Codes, rows: Scaled, medoids: Scaled) -> DesignPart:
    """Nearness to medoids over a group of columns."""
    group = Group(columns, np.ones(len(columns)), True)
    some = np.linspace(0, len(rows.ranks) - 1, min(len(rows.ranks), _LENGTH_ROWS)).astype(np.intp)
    distances = cdist(rows.of(group)[some], medoids.of(group)[places])
    positive = distances[distances > 0]
    length = _RELATIVE_LENGTH * float(np.median(positive)) if len(positive) else 1.0
    return DesignPart(block, group, places, NEAR, length)


@dataclass(frozen=True, eq=False)
class Design:
    """Features of n training rows, each block of total variance 1."""

    parts: tuple[DesignPart, ...]
    centers: tuple[Array, ...]  # means of the channels of each part, (q,)
    scales: tuple[float, ...]  # what the features of each part are multiplied by
    places: tuple[slice, ...]  # columns of the features of each part
    features: Array  # of mean 0, (n, p)


def evidence_design(parts: list[DesignPart], rows: Scaled, medoids: Scaled, row_weights: Array | None = None) -> Design:
    """The features of all parts, of mean 0 over weighted rows."""
    features = np.empty((len(rows.ranks), sum(part.n_features for part in parts)))
    centers, places, first = [], [], 0
    for part in parts:
        values = part.values(rows, medoids)
        centers.append(values.mean(axis=0) if row_weights is None else row_weights @ values / row_weights.sum())
        place = slice(first, first + part.n_features)
        features[:, place] = part.features(values - centers[-1])
        places.append(place)
        first = place.stop
    counted = features if row_weights is None else row_weights[:, None] * features
    variances = np.einsum("ij,ij->j", counted, features) / len(features)
    totals = dict.fromkeys((part.block for part in parts), 0.0)
    for part, place in zip(parts, places, strict=True):
        totals[part.block] += float(variances[place].sum())
    scales = [totals[part.block] ** -0.5 if totals[part.block] > 0 else 1.0 for part in parts]
    for scale, place in zip(scales, places, strict=True):
        features[:, place] *= scale
    return Design(tuple(parts), tuple(centers), tuple(scales), tuple(places), features)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows, medoids and columns that the designs of all bags are made from."""

    settings: EvidenceSettings
    rows: Scaled  # training rows, and the medoids of all bags
    medoids: Scaled
    varying: Columns  # columns of more than one and of more than two values; of a wide table, some of the latter
    many_valued: Columns
    n_bags: int
    row_weights: Array | None = None  # what every row counts in the losses, 1 in the mean, (n,)
    chosen: Columns | None = None  # columns of a wide table that there are terms of; None for all that vary

    @property
    def termed(self) -> Columns:
        """Columns that there are terms of."""
        return self.varying if self.chosen is None else self.chosen

    def design(self, places: Codes, groups: list[Columns] | None = None) -> Design:
        """Design of a bag with medoids at these places; without `groups`, of single columns alone."""
        return evidence_design(self.parts(places, groups), self.rows, self.medoids, self.row_weights)

    def parts(self, places: Codes, groups: list[Columns] | None = None) -> list[DesignPart]:
        """The parts of that design."""
        # All bags share the columns as they are, with the medoids of the widest gap among those of all.
        parts = [linear_part(column, self.rows, self.medoids) for column in self.termed]
        if self.many_valued:
            share = _SINGLE_SHARE * self.settings.n_terms / (self.n_bags * len(self.many_valued))
            wanted = int(np.clip(share, _FEWEST_SINGLE, _MOST_SINGLE))
            found = (single_part(column, places, wanted, self.medoids) for column in self.many_valued)
            parts += [part for part in found if part is not None]
        if groups is None:
            return parts
        together = list[tuple[Block, Columns, Codes]]()
        if groups:
            spent = sum(len(part.medoids) for part in parts) + len(places)
            left = self.settings.n_terms / self.n_bags - spent
            few = places[: int(np.clip(left / len(groups), _FEWEST_GROUP, len(places)))]
            together += [("group", group, few) for group in groups]
        together.append(("full", self.termed or (0,), places))
        return parts + [near_part(*one, self.rows, self.medoids) for one in together]


def fit_rank_scaling(X: Array) -> RankScaling:
    """Fit a Gaussian mid-rank scaling: every value of a column goes to the normal quantile of its mean rank.

    Scores are then brought to mean 0 and deviation 1 over the rows; a constant column is mapped to 0.
    """
    parts = [_block_knots(X[:, block]) for block in column_slices(*X.shape)]
    sizes, values, scores = (np.concatenate(own) for own in zip(*parts, strict=True))
    return RankScaling(np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp), values, scores)


def _block_knots(X: Array) -> tuple[Codes, Array, Array]:
    """Knots of every column, how many, and where they lie and what they are mapped to, column after column.

    Columns whose values are repeated alike have the same scores, which are made once: in wide tables of measurements
    most columns have no value twice.
    """
    rising = np.array(X.T, order="C")
    rising.sort(axis=1)
    is_first = np.ones(rising.shape, dtype=np.bool_)
    is_first[:, 1:] = rising[:, 1:] != rising[:, :-1]
    columns_of: dict[bytes, list[int]] = {}
    for column, firsts in enumerate(is_first):
        columns_of.setdefault(firsts.tobytes(), []).append(column)
    found = [(columns, *_knots(is_first[columns[0]])) for columns in columns_of.values()]
    sizes = np.empty(len(rising), dtype=np.intp)
    for columns, kept, _ in found:
        sizes[columns] = len(kept)
    starts = np.cumsum(sizes) - sizes
    values, scores = np.empty((2, int(sizes.sum())))
    for columns, kept, marks in found:
        places = starts[columns][:, None] + np.arange(len(kept))
        values[places], scores[places] = rising[columns][:, kept], marks
    return sizes, values, scores


def _knots(is_first: Flags) -> tuple[Codes, Array]:
    """Knots of a column in rising order, by where it has another value than before: their places, and their scores."""
    first = np.flatnonzero(is_first)
    if len(first) == 1:
        return first, np.zeros(1)
    counts, n_rows = np.diff(np.append(first, len(is_first))), len(is_first)
    # Half of a value's own rows count as below it, so that no rank is 0 or 1.
    ranks = (np.cumsum(counts) - counts / 2) / n_rows
    scores: Array = ndtri(ranks)
    mean = counts @ scores / n_rows
    scores = (scores - mean) / np.sqrt(counts @ (scores - mean) ** 2 / n_rows)
    if len(first) > MAX_KNOTS:
        wanted = np.linspace(ranks[0], ranks[-1], MAX_KNOTS)
        kept = np.unique(np.concatenate([[0], np.searchsorted(ranks, wanted[1:-1]), [len(first) - 1]]))
        first, scores = first[kept], scores[kept]
    return first, scores
