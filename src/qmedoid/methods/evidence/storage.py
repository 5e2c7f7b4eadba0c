"""Storage of the evidence method."""

from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.fields import MODERATE, Fields, RefusedError, Shelf, floats, whole
from qmedoid.geometry.scaling import RankScaling, Scaling
from qmedoid.methods.evidence.model import CHANNELS, EvidenceModel, Group, Terms
from qmedoid.methods.evidence.neighbors import MOST_NEAREST, Neighbors


def packed(model: EvidenceModel, number: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Manifest entry of an evidence model, which has its neighbors, if any; its arrays are added to `arrays`."""
    terms = model.terms
    arrays[f"{number}.rank_offsets"] = whole(model.rank_scaling.offsets)
    arrays[f"{number}.rank_values"] = floats(model.rank_scaling.values)
    arrays[f"{number}.rank_scores"] = floats(model.rank_scaling.scores)
    arrays[f"{number}.center"] = floats(model.linear_scaling.center)
    arrays[f"{number}.scale"] = floats(model.linear_scaling.scale)
    arrays[f"{number}.medoids"] = floats(model.medoids)
    arrays[f"{number}.medoid_classes"] = whole(model.medoid_classes)
    arrays[f"{number}.medoid_rows"] = whole(model.medoid_rows)
    arrays[f"{number}.column_weights"] = floats(model.column_weights)
    arrays[f"{number}.members"] = whole([column for group in model.groups for column in group.columns])
    arrays[f"{number}.offsets"] = whole([0, *accumulate(len(group.columns) for group in model.groups)])
    arrays[f"{number}.weights"] = np.concatenate([np.zeros(0), *(floats(group.weights) for group in model.groups)])
    arrays[f"{number}.by_rank"] = whole([group.by_rank for group in model.groups])
    arrays[f"{number}.term_group"] = whole(terms.group)
    arrays[f"{number}.term_medoid"] = whole(terms.medoid)
    arrays[f"{number}.term_channel"] = whole(terms.channel)
    arrays[f"{number}.term_length"] = floats(terms.length)
    arrays[f"{number}.term_center"] = floats(terms.center)
    arrays[f"{number}.term_weights"] = floats(terms.weights)
    arrays[f"{number}.intercepts"] = floats(model.intercepts)
    if model.neighbors is None:
        return {}
    neighbors = model.neighbors
    arrays[f"{number}.neighbor_records"] = floats(neighbors.records)
    arrays[f"{number}.neighbor_classes"] = whole(neighbors.classes)
    arrays[f"{number}.neighbor_rows"] = whole(neighbors.rows)
    arrays[f"{number}.neighbor_amounts"] = floats(neighbors.amounts)
    arrays[f"{number}.neighbor_length"] = floats(np.array([neighbors.length]))
    return {"neighbors": {"n_nearest": neighbors.n_nearest, "by_rank": neighbors.by_rank}}


def read(value: Any, where: str, number: int, width: int, n_classes: int, shelf: Shelf) -> EvidenceModel:
    """An evidence model over `width` encoded columns."""
    with_neighbors = isinstance(value, dict) and "neighbors" in value
    fields = Fields(value, where, ("name", "neighbors") if with_neighbors else ("name",))
    n_outputs = 1 if n_classes == 2 else n_classes
    medoids = shelf.floats(f"{number}.medoids", None, width)
    medoid_classes = shelf.whole(f"{number}.medoid_classes", len(medoids), below=n_classes)
    if len(np.unique(medoid_classes)) != n_classes:
        raise RefusedError(f"array '{number}.medoid_classes' lacks a class")
    column_weights = shelf.moderate(f"{number}.column_weights", width)
    if (column_weights < 0).any():
        raise RefusedError(f"array '{number}.column_weights' holds numbers below 0")
    groups = _groups(number, width, shelf)
    return EvidenceModel(
        rank_scaling=_rank_scaling(number, width, shelf),
        linear_scaling=Scaling(shelf.floats(f"{number}.center", width), shelf.scales(f"{number}.scale", width)),
        medoids=medoids,
        medoid_classes=medoid_classes,
        medoid_rows=shelf.whole(f"{number}.medoid_rows", len(medoids), below=2**62),
        column_weights=column_weights,
        groups=groups,
        terms=_terms(number, len(groups), len(medoids), n_outputs, shelf),
        intercepts=shelf.moderate(f"{number}.intercepts", n_outputs),
        n_classes=n_classes,
        neighbors=_neighbors(fields.raw("neighbors"), f"{where}.neighbors", number, width, n_classes, shelf)
        if with_neighbors
        else None,
    )


def _neighbors(value: Any, where: str, number: int, width: int, n_classes: int, shelf: Shelf) -> Neighbors:
    fields = Fields(value, where, ("n_nearest", "by_rank"))
    records = shelf.floats(f"{number}.neighbor_records", None, width)
    return Neighbors(
        records=records,
        classes=shelf.whole(f"{number}.neighbor_classes", len(records), below=n_classes),
        rows=shelf.whole(f"{number}.neighbor_rows", len(records), below=2**62),
        amounts=shelf.moderate(f"{number}.neighbor_amounts", len(records), 1 if n_classes == 2 else n_classes),
        n_nearest=fields.whole("n_nearest", 1, min(MOST_NEAREST, len(records))),
        length=float(_above_zero(f"{number}.neighbor_length", 1, shelf)[0]),
        by_rank=fields.flag("by_rank"),
    )


def _rank_scaling(number: int, width: int, shelf: Shelf) -> RankScaling:
    values = shelf.floats(f"{number}.rank_values", None)
    scores = shelf.moderate(f"{number}.rank_scores", len(values))
    offsets = shelf.offsets(f"{number}.rank_offsets", width, len(values), step=1)
    within = np.ones(max(len(values) - 1, 0), dtype=np.bool_)
    within[offsets[1:-1] - 1] = False
    for name, knots in (("rank_values", values), ("rank_scores", scores)):
        if not (knots[1:] >= knots[:-1])[within].all():
            raise RefusedError(f"array '{number}.{name}' must ascend within each column, and does not")
    return RankScaling(offsets, values, scores)


def _groups(number: int, width: int, shelf: Shelf) -> tuple[Group, ...]:
    members = shelf.whole(f"{number}.members", None, below=width)
    offsets = shelf.offsets(f"{number}.offsets", None, len(members), step=1).tolist()
    weights = _above_zero(f"{number}.weights", len(members), shelf)
    by_rank = shelf.whole(f"{number}.by_rank", len(offsets) - 1, below=2)
    return tuple(
        Group(tuple(members[first:last].tolist()), weights[first:last].copy(), bool(rank))
        for first, last, rank in zip(offsets, offsets[1:], by_rank, strict=False)
    )


def _terms(number: int, n_groups: int, n_medoids: int, n_outputs: int, shelf: Shelf) -> Terms:
    group = shelf.whole(f"{number}.term_group", None, below=n_groups)
    count = len(group)
    return Terms(
        group=group,
        medoid=shelf.whole(f"{number}.term_medoid", count, below=n_medoids),
        channel=shelf.whole(f"{number}.term_channel", count, below=len(CHANNELS)),
        length=_above_zero(f"{number}.term_length", count, shelf),
        center=shelf.moderate(f"{number}.term_center", count),
        weights=shelf.moderate(f"{number}.term_weights", count, n_outputs),
    )


def _above_zero(name: str, count: int, shelf: Shelf) -> Array:
    array = shelf.moderate(name, count)
    if not (array >= 1.0 / MODERATE).all():
        raise RefusedError(f"array {name!r} must hold numbers above 0, and holds others")
    return array
