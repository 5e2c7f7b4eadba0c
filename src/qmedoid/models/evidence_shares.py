"""How an evidence model tells two classes apart: group of columns by group, and in each medoid by medoid.

What the nearest known records add is a group of its own, of all columns, record by record.
"""

import numpy as np
import numpy.typing as npt

from qmedoid.models.evidence import EvidenceModel, root_distances
from qmedoid.models.neighbours import Neighbours
from qmedoid.models.shares import GroupShare, RecordShare, Shares

Array = npt.NDArray[np.float64]

NEAREST = "nearest known records"
"""Name of the share of the neighbours."""


def evidence_shares(model: EvidenceModel, row: Array, winner: int, other: int) -> Shares:
    """Shares of every group of columns and of every medoid in it; `row` has the shape (1, M).

    A term counts from its mean over the training rows on: what is left is the intercept, the same for all records.
    """
    added = _between(model.contributions(row[0]), model.n_classes, winner, other)
    by_columns: dict[tuple[int, ...], dict[int, float]] = {}
    for term, amount in enumerate(added):
        group = model.groups[model.terms.group[term]]
        of_medoids = by_columns.setdefault(group.columns, {})
        medoid = int(model.terms.medoid[term])
        of_medoids[medoid] = of_medoids.get(medoid, 0.0) + float(amount)
    groups = [_group(model, row, columns, shares) for columns, shares in by_columns.items()]
    if model.neighbours is not None:
        groups.append(_neighbours(model, model.neighbours, row, winner, other))
    intercept = _between(model.intercepts[None], model.n_classes, winner, other)
    return Shares(tuple(groups), {"intercept": float(intercept[0])})


def _between(outputs: Array, n_classes: int, winner: int, other: int) -> Array:
    """What outputs, or parts of them, of shape (…, K) say for the winner against the other class."""
    if n_classes == 2:
        return outputs[..., 0] if winner == 1 else -outputs[..., 0]
    difference: Array = outputs[..., winner] - outputs[..., other]
    return difference


def _group(model: EvidenceModel, row: Array, columns: tuple[int, ...], shares: dict[int, float]) -> GroupShare:
    places = list(shares)
    scaled, own = model.rank_scaling.apply(row), model.rank_scaling.apply(model.medoids[places])
    distances = root_distances(scaled[:, list(columns)], own[:, list(columns)])[0]
    rows, codes = model.medoid_rows[places].tolist(), model.medoid_classes[places].tolist()
    return GroupShare(
        columns, float(sum(shares.values())), records=_sorted(rows, codes, distances.tolist(), list(shares.values()))
    )


def _neighbours(model: EvidenceModel, known: Neighbours, row: Array, winner: int, other: int) -> GroupShare:
    found = model.nearest_known(row)
    places = found.places[0]
    added = _between(known.shares(found)[0], model.n_classes, winner, other)
    rows, codes = known.rows[places].tolist(), known.classes[places].tolist()
    records = _sorted(rows, codes, found.distances[0].tolist(), added.tolist())
    return GroupShare(tuple(model.compared.tolist()), float(added.sum()), name=NEAREST, records=records)


def _sorted(
    rows: list[int], codes: list[int], distances: list[float], contributions: list[float]
) -> tuple[RecordShare, ...]:
    shares = [RecordShare(*one) for one in zip(rows, codes, distances, contributions, strict=True)]
    return tuple(sorted(shares, key=lambda one: -abs(one.contribution)))
