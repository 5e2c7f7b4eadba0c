r"""Contributions of columns, groups, medoids and neighbors to the output of an evidence model.

A term over several columns is shared among them exactly, whatever their order. A channel of a distance is a function F
of the sum :math:`D^2 = \sum_f d_f^2`. Against a reference :math:`R = \sum_f r_f` column f is given

.. math:: \bigl(F(D^2) - F(R)\bigr)\,\frac{d_f^2 - r_f}{D^2 - R},

its Aumann-Shapley value: what it adds while all squared differences move in a straight line from those of the
reference to those of the record. The reference is a typical record: R is where the channel is at its mean over the
training rows, and :math:`r_f` is the share of column f in the mean squared difference. So a column counts for what
it makes the distance larger or smaller than usual, a column that differs as usual counts 0, and so does one in which
neither training rows nor the record ever differ from the medoid.

A term counts from its mean over the training rows; what is left is the intercept, the same for all records. The usual
squared difference of column f to a medoid m is :math:`u_f\,(1 + v_f(m)^2)`, because scaled columns have mean 0 and
deviation 1. What neighbors add depends on all their distances at once, so it is one term, neighbor by neighbor.

References
----------
R. J. Aumann and L. S. Shapley, *Values of Non-Atomic Games*, Princeton University Press, 1974.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, row_slices
from qmedoid.kernels.ties import stable_order
from qmedoid.methods.contributions import BLOCK_NUMBERS, Contributions, GroupContribution, RowContribution, pair_signs
from qmedoid.methods.evidence.model import DISTANCE, NEAR, EvidenceModel, root_distances
from qmedoid.methods.evidence.neighbors import Neighbors, weights

# A mean nearness below this is as good as none; its logarithm stays finite.
_SMALLEST = 1e-300


def split_channel(squares: Array, usual: Array, channel: int, length: Array, center: Array) -> tuple[Array, Array]:
    r"""Channels of q distances over g columns, column by column, shape (q, g), and a reference, shape (q,).

    Columns add up to the channel minus the reference: its center, where that is a value that the channel can take.

    Parameters
    ----------
    squares : ndarray of shape (q, g)
        Squared differences :math:`d_f^2` between the record and each of q medoids.
    usual : ndarray of shape (q, g)
        Mean squared differences between training rows and each medoid, up to a factor.
    channel : {0, 1, 2}
        The squared distance, the distance D, or the nearness :math:`e^{-D/\ell}`.
    length, center : ndarray of shape (q,)
        ℓ, and the mean of the channel over the training rows.
    """
    found = _slopes(np.sqrt(squares.sum(axis=1)), channel, length, center)
    return found.slope[:, None] * (squares - (found.far**2)[:, None] * _shares(usual)), found.reference


class _Slopes(NamedTuple):
    """What a squared difference counts (…, q), the distance D of the reference, and the channel there, each (q,)."""

    slope: Array
    far: Array
    reference: Array


def _slopes(distance: Array, channel: int, length: Array, center: Array) -> _Slopes:
    """The channel minus that of the reference, by unit of squared distance."""
    if channel == NEAR:
        reference = np.clip(center, _SMALLEST, 1.0)
        far = -length * np.log(reference)
        # (e^(-D/l) - e^(-far/l)) / (D^2 - far^2) without a difference of nearly equal numbers.
        slope = -reference * _relative_growth((far - distance) / length) / (length * _positive(distance + far))
    elif channel == DISTANCE:
        reference = far = np.maximum(center, 0.0)
        slope = 1.0 / _positive(distance + far)
    else:
        reference = np.maximum(center, 0.0)
        far, slope = np.sqrt(reference), np.ones(distance.shape)
    return _Slopes(slope, far, reference)


def _shares(usual: Array) -> Array:
    """The share of each column in the usual squared difference, shape (q, g)."""
    total = usual.sum(axis=1, keepdims=True)
    shares: Array = np.divide(usual, total, out=np.full(usual.shape, 1.0 / usual.shape[1]), where=total > 0)
    return shares


def _positive(values: Array) -> Array:
    """The values, with 1 for those that are 0: there record and reference are at the medoid, and nothing is shared."""
    return np.where(values > 0, values, 1.0)


def _relative_growth(exponent: Array) -> Array:
    """(e^x − 1)/x, which is 1 at 0."""
    safe = np.where(exponent == 0, 1.0, exponent)
    grown: Array = np.where(exponent == 0, 1.0, np.expm1(safe) / safe)
    return grown


NEIGHBORS = "neighbors"
"""Name of the term of the neighbors."""


def contributions(model: EvidenceModel, row: Array, winner: int, other: int) -> Contributions:
    """Contributions of every column, and of every group of columns and medoid; `row` has the shape (1, M)."""
    of_terms = _between(model.terms.weights, model.n_classes, winner, other)
    added, beyond = np.zeros(len(of_terms)), 0.0
    columns = np.zeros(row.shape[1])
    for part in _parts(model, row):
        squares = part.weights * (part.rows - part.medoids) ** 2
        split, reference = split_channel(squares, part.usual, part.channel, part.length, part.center)
        columns[part.columns] += of_terms[part.terms] @ split
        added[part.terms] = of_terms[part.terms] * split.sum(axis=1)
        beyond += float(of_terms[part.terms] @ (reference - part.center))
    by_columns: dict[tuple[int, ...], dict[int, float]] = {}
    of_group, of_medoid = model.terms.group.tolist(), model.terms.medoid.tolist()
    for group, medoid, amount in zip(of_group, of_medoid, added.tolist(), strict=True):
        of_medoids = by_columns.setdefault(model.groups[group].columns, {})
        of_medoids[medoid] = of_medoids.get(medoid, 0.0) + amount
    ranks = model.rank_scaling.apply(row), model.rank_scaling.apply(model.medoids)
    groups = tuple(_group(model, *ranks, columns_of_group, shares) for columns_of_group, shares in by_columns.items())
    intercept = _between(model.intercepts[None], model.n_classes, winner, other)
    terms = {"intercept": float(intercept[0]) + beyond}
    if model.neighbors is None:
        return Contributions(columns, groups, terms)
    neighbors = _neighbors(model, model.neighbors, row, winner, other)
    terms[NEIGHBORS] = float(sum(one.contribution for one in neighbors))
    return Contributions(columns, groups, terms, neighbors)


def _between(outputs: Array, n_classes: int, winner: int, other: int) -> Array:
    """What outputs, or parts of them, of shape (…, K) say for the winner against the other class."""
    if n_classes == 2:
        return outputs[..., 0] if winner == 1 else -outputs[..., 0]
    difference: Array = outputs[..., winner] - outputs[..., other]
    return difference


def column_contributions(model: EvidenceModel, X: Array, winner: Codes, other: Codes) -> Array:
    r"""What every column says for the winner of a row against the other class, shape (n, M).

    With the weights and slopes A (n, q) of terms, the squares of their differences add up by column as products of
    matrices: :math:`\sum_m A_m (v - v(m))^2 = v^2 \sum_m A_m - 2 v \sum_m A_m v(m) + \sum_m A_m v(m)^2`.
    """
    columns = np.zeros(X.shape)
    for block in row_slices(X, max(1, BLOCK_NUMBERS // max(len(model.terms), X.shape[1]))):
        of_terms = pair_signs(winner[block], other[block], model.n_classes) @ model.terms.weights.T
        for part in _parts(model, X[block]):
            roots = np.sqrt(part.weights)
            distance = root_distances(part.rows * roots, part.medoids * roots)
            slope, far, _ = _slopes(distance, part.channel, part.length, part.center)
            each = of_terms[:, part.terms] * slope
            squares = part.rows**2 * each.sum(axis=1, keepdims=True) + each @ part.medoids**2
            squares -= 2.0 * part.rows * (each @ part.medoids)
            columns[block, part.columns] += part.weights * squares - (each * far**2) @ _shares(part.usual)
    return columns


class _Part(NamedTuple):
    """Terms of one group and channel: their columns, the rows (n, g) and medoids (q, g) there, and what they count."""

    terms: Codes
    columns: list[int]
    rows: Array
    medoids: Array
    weights: Array
    channel: int
    length: Array
    center: Array

    @property
    def usual(self) -> Array:
        """Mean squared differences to the medoids, shape (q, g)."""
        return self.weights * (1.0 + self.medoids**2)


def _parts(model: EvidenceModel, X: Array) -> Iterator[_Part]:
    """All terms, group by group and channel by channel."""
    terms, rows, medoids = model.terms, model.scaled(X), model.scaled(model.medoids)
    order = np.lexsort((terms.channel, terms.group))
    starts = np.flatnonzero(np.diff(terms.group[order]) | np.diff(terms.channel[order])) + 1
    for places in np.split(order, starts):
        group = model.groups[terms.group[places[0]]]
        of, space = list(group.columns), 0 if group.by_rank else 1
        yield _Part(
            places, of, rows[space][:, of], medoids[space][terms.medoid[places]][:, of], group.weights,
            int(terms.channel[places[0]]), terms.length[places], terms.center[places],
        )  # fmt: skip


def _group(
    model: EvidenceModel, row: Array, medoids: Array, columns: tuple[int, ...], shares: dict[int, float]
) -> GroupContribution:
    """What a group adds, medoid by medoid, each with its distance by rank; `row` and `medoids` are scaled so."""
    places, of = list(shares), list(columns)
    distances = root_distances(row[:, of], medoids[places][:, of])[0]
    rows, codes = model.medoid_rows[places].tolist(), model.medoid_classes[places].tolist()
    return GroupContribution(
        columns, float(sum(shares.values())), records=_sorted(rows, codes, distances.tolist(), list(shares.values()))
    )


def _neighbors(
    model: EvidenceModel, neighbors: Neighbors, row: Array, winner: int, other: int
) -> tuple[RowContribution, ...]:
    distances, (places,) = model.nearest_neighbors(row)
    each = weights(distances, neighbors.length)[0][:, None] * neighbors.amounts[places]
    added = _between(each, model.n_classes, winner, other)
    rows, codes = neighbors.rows[places].tolist(), neighbors.classes[places].tolist()
    return _sorted(rows, codes, distances[0].tolist(), added.tolist())


def _sorted(
    rows: list[int], codes: list[int], distances: list[float], contributions: list[float]
) -> tuple[RowContribution, ...]:
    shares = sorted(RowContribution(*one) for one in zip(rows, codes, distances, contributions, strict=True))
    # Equal ones stand in the order of the training rows, whatever rounding says.
    order = stable_order(-np.abs(np.array([one.contribution for one in shares])))
    return tuple(shares[place] for place in order)
