"""The evidence of training rows as a matrix: parts of terms, brought to a common scale before they are weighted."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from qmedoid.arrays import Array, Codes
from qmedoid.methods.evidence.model import DISTANCE, NEAR, SQUARE, Group
from qmedoid.methods.evidence.settings import Block

Columns = tuple[int, ...]

# Nearness reaches this far: in deviations for one column, else in medians of the distances between rows and medoids.
_SINGLE_LENGTH = 1.0
_RELATIVE_LENGTH = 0.7
# Rows whose distances to the medoids give the median.
_LENGTH_ROWS = 300
# Two medoids must lie this far apart in a column, in deviations, for the difference of their squares to stand for it.
_MIN_SPAN = 0.05


class Scaled(NamedTuple):
    """Rows scaled both ways, each of shape (n, M)."""

    ranks: Array
    plain: Array

    def of(self, group: Group) -> Array:
        """Columns of a group, weighted, shape (n, g)."""
        values = self.ranks if group.by_rank else self.plain
        return np.asarray(values[:, list(group.columns)] * np.sqrt(group.weights))

    def take(self, rows: Codes) -> "Scaled":
        """Some of the rows."""
        return Scaled(self.ranks[rows], self.plain[rows])


@dataclass(frozen=True, eq=False)
class Part:
    """Terms of one group and channel, and the features that are made of them.

    Attributes
    ----------
    block : str
    group : Group
    medoids : ndarray of shape (q,)
        Places of the medoids.
    channel, length : int, float
    mixing : ndarray of shape (q, r) or None
        r features as sums of the q terms; None where every term is a feature.
    """

    block: Block
    group: Group
    medoids: Codes
    channel: int
    length: float
    mixing: Array | None = None

    def values(self, rows: Scaled, medoids: Scaled) -> Array:
        """Channels of the terms, shape (n, q)."""
        return _channel(self.group, self.channel, self.length, rows, medoids.take(self.medoids))

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return len(self.medoids) if self.mixing is None else self.mixing.shape[1]

    def features(self, values: Array) -> Array:
        """Features from channels, (n, q) to (n, r)."""
        return values if self.mixing is None else values @ self.mixing

    def term_weights(self, weights: Array, scale: float) -> Array:
        """Weights of the terms from those of the scaled features, (r, K) to (q, K)."""
        return scale * weights if self.mixing is None else scale * self.mixing @ weights


def linear_part(column: int, rows: Scaled, medoids: Scaled) -> Part:
    """One column as it is: the difference of the squared distances to the two medoids that lie farthest apart in it.

    In a column of two values a single distance does. So it does where all medoids agree, mostly at the end of a column
    that is nearly always 0: from there on the distance is the column.
    """
    group = Group((column,), np.ones(1), False)
    own, values = medoids.plain[:, column], rows.plain[:, column]
    low, high = int(own.argmin()), int(own.argmax())
    two_valued = bool(np.all((values == values.min()) | (values == values.max())))
    if two_valued or own[high] - own[low] < _MIN_SPAN:
        places, channel, mixing = np.array([low]), DISTANCE, np.ones((1, 1))
    else:
        places, channel, mixing = np.array([low, high]), SQUARE, np.array([[1.0], [-1.0]])
    part = Part("linear", group, places, channel, 1.0, mixing)
    spread = float(part.features(part.values(rows, medoids)).std())
    return replace(part, mixing=mixing / spread) if spread > 0 else part


def single_part(column: int, by_rank: bool, places: Codes, n_medoids: int, medoids: Scaled) -> Part | None:
    """Nearness in one column to medoids at about evenly spaced places among theirs; None if they all agree."""
    own = (medoids.ranks if by_rank else medoids.plain)[places, column]
    values, first = np.unique(own, return_index=True)
    if len(values) < 2:
        return None
    wanted = np.unique(np.round(np.linspace(0, len(values) - 1, min(n_medoids, len(values)))).astype(np.intp))
    group = Group((column,), np.ones(1), by_rank)
    return Part("single", group, places[first[wanted]], NEAR, _SINGLE_LENGTH)


def near_part(block: Block, columns: Columns, by_rank: bool, places: Codes, rows: Scaled, medoids: Scaled) -> Part:
    """Nearness to medoids over a group of columns."""
    group = Group(columns, np.ones(len(columns)), by_rank)
    sample = rows.take(np.linspace(0, len(rows.ranks) - 1, min(len(rows.ranks), _LENGTH_ROWS)).astype(np.intp))
    distances = cdist(sample.of(group), medoids.take(places).of(group))
    apart = distances[distances > 0]
    length = _RELATIVE_LENGTH * float(np.median(apart)) if len(apart) else 1.0
    return Part(block, group, places, NEAR, length)


def _channel(group: Group, channel: int, length: float, rows: Scaled, medoids: Scaled) -> Array:
    distances: Array = cdist(rows.of(group), medoids.of(group))
    if channel == NEAR:
        return np.exp(distances / -length)
    return distances * distances if channel == SQUARE else distances


@dataclass(frozen=True, eq=False)
class Design:
    """Features of n training rows, each block of total variance 1.

    Attributes
    ----------
    parts : tuple of Part
    centers : tuple of ndarray of shape (q,)
        Means of the channels of each part.
    scales : tuple of float
        What the features of each part are multiplied by.
    features : ndarray of shape (n, p)
        Of mean 0.
    """

    parts: tuple[Part, ...]
    centers: tuple[Array, ...]
    scales: tuple[float, ...]
    features: Array

    def term_weights(self, weights: Array) -> list[Array]:
        """Weights of the terms of every part, each of shape (q, K), from those of the features, of shape (p, K)."""
        found, first = [], 0
        for part, scale in zip(self.parts, self.scales, strict=True):
            last = first + part.n_features
            found.append(part.term_weights(weights[first:last], scale))
            first = last
        return found


def evidence_design(parts: list[Part], rows: Scaled, medoids: Scaled) -> Design:
    """The features of all parts."""
    features = np.empty((len(rows.ranks), sum(part.n_features for part in parts)))
    centers, places, first = [], [], 0
    for part in parts:
        values = part.values(rows, medoids)
        centers.append(values.mean(axis=0))
        place = slice(first, first + part.n_features)
        features[:, place] = part.features(values - centers[-1])
        places.append(place)
        first = place.stop
    variances = np.einsum("ij,ij->j", features, features) / len(features)
    totals = dict.fromkeys((part.block for part in parts), 0.0)
    for part, place in zip(parts, places, strict=True):
        totals[part.block] += float(variances[place].sum())
    scales = [totals[part.block] ** -0.5 if totals[part.block] > 0 else 1.0 for part in parts]
    for scale, place in zip(scales, places, strict=True):
        features[:, place] *= scale
    return Design(tuple(parts), tuple(centers), tuple(scales), features)
