"""How an evidence model tells two classes apart: group of columns by group, and in each medoid by medoid."""

import numpy as np
import numpy.typing as npt

from qmedoid.models.evidence import EvidenceModel, root_distances
from qmedoid.models.shares import GroupShare, MedoidShare, Shares

Array = npt.NDArray[np.float64]


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
    groups = tuple(_group(model, row, columns, shares) for columns, shares in by_columns.items())
    intercept = _between(model.intercepts[None], model.n_classes, winner, other)
    return Shares(groups, {"intercept": float(intercept[0])})


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
    medoids = [
        MedoidShare(place, float(distance), shares[place]) for place, distance in zip(places, distances, strict=True)
    ]
    medoids.sort(key=lambda one: -abs(one.contribution))
    return GroupShare(columns, float(sum(shares.values())), medoids=tuple(medoids))
