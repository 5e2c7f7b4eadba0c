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

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.methods.contributions import Contributions, GroupContribution, RowContribution, largest_first
from qmedoid.methods.evidence.part import DISTANCE, NEAR, EvidencePart, Neighbors, root_distances, weights

# A mean nearness below this is as good as none; its logarithm stays finite.
_SMALLEST = 1e-300


NEIGHBORS = "neighbors"
"""Name of the term of the neighbors."""


def contributions(model: EvidencePart, row: Array, winner: int, other: int) -> Contributions:
    """Contributions of every column, and of every group of columns and medoid; `row` has the shape (1, M)."""
    terms, columns = model.terms, np.zeros(row.shape[1])
    by_columns: dict[tuple[int, ...], dict[int, float]] = {}
    beyond, sign = 0.0, -1.0 if model.n_classes == 2 and winner == 0 else 1.0
    for places, of, by_column, terms_of, reference in _by_group(model, row, np.array([winner]), np.array([other])):
        each, distance, far = terms_of
        by_term = sign * each * (distance - far) * (distance + far)
        columns[list(of)] += by_column[0]
        beyond += float(_between(terms.weights[places], model.n_classes, winner, other) @ reference)
        of_medoids = by_columns.setdefault(of, {})
        for medoid, amount in zip(terms.medoid[places].tolist(), by_term[0].tolist(), strict=True):
            of_medoids[medoid] = of_medoids.get(medoid, 0.0) + amount
    ranks = model.rank_scaling.apply(row), model.scaled_medoids[0]
    groups = tuple(_group(model, *ranks, of, shares) for of, shares in by_columns.items())
    intercept = _between(model.intercepts[None], model.n_classes, winner, other)
    all_terms = {"intercept": float(intercept[0]) + beyond}
    if model.neighbors is None:
        return Contributions(columns, groups, all_terms)
    neighbors = _neighbors(model, model.neighbors, row, winner, other)
    all_terms[NEIGHBORS] = float(sum(one.contribution for one in neighbors))
    return Contributions(columns, groups, all_terms, neighbors)


def column_contributions(model: EvidencePart, rows: Array, winners: Codes, others: Codes) -> Array:
    """What columns add for many rows, each with its two classes, shape (n, M)."""
    columns = np.zeros(rows.shape)
    for _, of, by_column, *_ in _by_group(model, rows, winners, others):
        columns[:, list(of)] += by_column
    return columns


def _by_group(
    model: EvidencePart, rows: Array, winners: Codes, others: Codes
) -> Iterator[tuple[Codes, tuple[int, ...], Array, tuple[Array, Array, Array], Array]]:
    """For q terms of each group and channel: their places and columns, what these add, the terms, and the rest.

    The sum over medoids m of a_m·u·(x − v_m)² is u·(x²·Σa − 2x·(a·v) + a·v²): no array has rows, medoids and columns.
    What columns (n, g) add counts from a reference; the rest (q,) is how far that is from the center. A term is what a
    squared difference adds, but for the sign, the distance D and that of the reference, whose squares differ.
    """
    terms, is_two = model.terms, model.n_classes == 2
    # Of two classes there is one output, for the second.
    signs = np.where(winners == 1, 1.0, -1.0)[:, None] if is_two else 1.0
    scaled, medoids = model.scaled(rows), model.scaled_medoids
    order = np.lexsort((terms.channel, terms.group))
    starts = np.flatnonzero(np.diff(terms.group[order]) | np.diff(terms.channel[order])) + 1
    for places in np.split(order, starts) if len(order) else ():
        group, channel, weights = model.groups[terms.group[places[0]]], int(terms.channel[places[0]]), terms.weights
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


def _between(outputs: Array, n_classes: int, winner: int, other: int) -> Array:
    """What outputs, or parts of them, of shape (…, K) say for the winner against the other class."""
    if n_classes == 2:
        return outputs[..., 0] if winner == 1 else -outputs[..., 0]
    difference: Array = outputs[..., winner] - outputs[..., other]
    return difference


def _group(
    model: EvidencePart, row: Array, medoids: Array, columns: tuple[int, ...], shares: dict[int, float]
) -> GroupContribution:
    """What a group adds, medoid by medoid, each with its distance by rank; `row` and `medoids` are scaled so."""
    places, of = list(shares), list(columns)
    distances = root_distances(row[:, of], medoids[places][:, of])[0]
    rows, codes = model.medoid_rows[places].tolist(), model.medoid_classes[places].tolist()
    records = largest_first(rows, codes, distances.tolist(), shares.values())
    return GroupContribution(columns, float(sum(shares.values())), records=records)


def _neighbors(
    model: EvidencePart, neighbors: Neighbors, row: Array, winner: int, other: int
) -> tuple[RowContribution, ...]:
    distances, (places,) = model.nearest_neighbors(row)
    each = weights(distances, neighbors.length)[0][:, None] * neighbors.amounts[places]
    added = _between(each, model.n_classes, winner, other)
    rows, codes = neighbors.rows[places].tolist(), neighbors.classes[places].tolist()
    return largest_first(rows, codes, distances[0].tolist(), added.tolist())
