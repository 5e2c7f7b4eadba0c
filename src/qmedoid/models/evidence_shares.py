r"""What the output of an evidence model for one class against another is made of: columns, groups, medoids, neighbors.

A term counts from its mean over the training rows: what is left is the intercept, the same for all records. Over
several columns it is shared as in :mod:`qmedoid.models.columns_split`; the usual squared difference of column f to a
medoid m is :math:`u_f\,(1 + v_f(m)^2)`, because scaled columns have mean 0 and deviation 1. What neighbors add hangs on
all their distances at once and is one term, neighbor by neighbor.
"""

import numpy as np

from qmedoid.arrays import Array
from qmedoid.kernels.ties import stable_order
from qmedoid.models.columns_split import split_channel
from qmedoid.models.evidence import EvidenceModel, root_distances
from qmedoid.models.neighbours import Neighbours
from qmedoid.models.shares import GroupShare, RecordShare, Shares

NEIGHBORS = "neighbors"
"""Name of the term of the neighbors."""


def evidence_shares(model: EvidenceModel, row: Array, winner: int, other: int) -> Shares:
    """Contributions of every column, and of every group of columns and medoid; `row` has the shape (1, M)."""
    weights = _between(model.terms.weights, model.n_classes, winner, other)
    columns, added, beyond = _split(model, row, weights)
    by_columns: dict[tuple[int, ...], dict[int, float]] = {}
    for group, medoid, amount in zip(model.terms.group.tolist(), model.terms.medoid.tolist(), added, strict=True):
        of_medoids = by_columns.setdefault(model.groups[group].columns, {})
        of_medoids[medoid] = of_medoids.get(medoid, 0.0) + amount
    ranks = model.rank_scaling.apply(row), model.rank_scaling.apply(model.medoids)
    groups = tuple(_group(model, *ranks, own, shares) for own, shares in by_columns.items())
    intercept = _between(model.intercepts[None], model.n_classes, winner, other)
    terms = {"intercept": float(intercept[0]) + beyond}
    if model.neighbours is None:
        return Shares(columns, groups, terms)
    neighbors = _neighbors(model, model.neighbours, row, winner, other)
    terms[NEIGHBORS] = float(sum(one.contribution for one in neighbors))
    return Shares(columns, groups, terms, neighbors)


def _between(outputs: Array, n_classes: int, winner: int, other: int) -> Array:
    """What outputs, or parts of them, of shape (…, K) say for the winner against the other class."""
    if n_classes == 2:
        return outputs[..., 0] if winner == 1 else -outputs[..., 0]
    difference: Array = outputs[..., winner] - outputs[..., other]
    return difference


def _split(model: EvidenceModel, row: Array, weights: Array) -> tuple[Array, list[float], float]:
    """What every column adds, shape (M,), and every term; and what centers add that no distance can have.

    Parameters
    ----------
    weights : ndarray of shape (T,)
        Of the terms, for the winner against the other class.
    """
    terms, columns, added, beyond = model.terms, np.zeros(row.shape[1]), np.zeros(len(weights)), 0.0
    rows, medoids = model.scaled(row), model.scaled(model.medoids)
    order = np.lexsort((terms.channel, terms.group))
    starts = np.flatnonzero(np.diff(terms.group[order]) | np.diff(terms.channel[order])) + 1
    for places in np.split(order, starts):
        group, channel = model.groups[terms.group[places[0]]], int(terms.channel[places[0]])
        of, space = list(group.columns), 0 if group.by_rank else 1
        own = medoids[space][terms.medoid[places]][:, of]
        squares = group.weights * (rows[space][:, of] - own) ** 2
        usual = group.weights * (1.0 + own**2)
        split = split_channel(squares, usual, channel, terms.length[places], terms.center[places])
        columns[of] += weights[places] @ split.columns
        added[places] = weights[places] * split.columns.sum(axis=1)
        beyond += float(weights[places] @ (split.reference - terms.center[places]))
    return columns, added.tolist(), beyond


def _group(
    model: EvidenceModel, row: Array, medoids: Array, columns: tuple[int, ...], shares: dict[int, float]
) -> GroupShare:
    """What a group adds, medoid by medoid, each with its distance by rank; `row` and `medoids` are scaled so."""
    places, of = list(shares), list(columns)
    distances = root_distances(row[:, of], medoids[places][:, of])[0]
    rows, codes = model.medoid_rows[places].tolist(), model.medoid_classes[places].tolist()
    return GroupShare(
        columns, float(sum(shares.values())), records=_sorted(rows, codes, distances.tolist(), list(shares.values()))
    )


def _neighbors(model: EvidenceModel, known: Neighbours, row: Array, winner: int, other: int) -> tuple[RecordShare, ...]:
    found = model.nearest_known(row)
    places = found.places[0]
    added = _between(known.shares(found)[0], model.n_classes, winner, other)
    rows, codes = known.rows[places].tolist(), known.classes[places].tolist()
    return _sorted(rows, codes, found.distances[0].tolist(), added.tolist())


def _sorted(
    rows: list[int], codes: list[int], distances: list[float], contributions: list[float]
) -> tuple[RecordShare, ...]:
    shares = sorted(RecordShare(*one) for one in zip(rows, codes, distances, contributions, strict=True))
    # Equal ones stand in the order of the training rows, whatever rounding says.
    order = stable_order(-np.abs(np.array([one.contribution for one in shares])))
    return tuple(shares[place] for place in order)
