"""Evidence and its neighbor term as plain values."""

from typing import Any

from qmedoid.export.js.packing import packed, rank_scaling, scaling
from qmedoid.methods.evidence.part import EvidencePart, Neighbors


def write(model: EvidencePart) -> dict[str, Any]:
    """Evidence and its neighbor term."""
    terms = model.terms
    return {
        "rank": rank_scaling(model.rank_scaling),
        "linear": scaling(model.linear_scaling),
        "medoids": packed(model.medoids),
        "medoidClasses": model.medoid_classes.tolist(),
        "columnWeights": packed(model.column_weights),
        "groups": [
            {"columns": list(group.columns), "weights": packed(group.weights), "byRank": bool(group.by_rank)}
            for group in model.groups
        ],
        "terms": {
            name: packed(getattr(terms, name)) for name in ("group", "medoid", "channel", "length", "center", "weights")
        },
        "intercepts": packed(model.intercepts),
        "neighbors": None if model.neighbors is None else _neighbor_term(model.neighbors),
    }


def _neighbor_term(neighbors: Neighbors) -> dict[str, Any]:
    return {
        "records": packed(neighbors.records),
        "amounts": packed(neighbors.amounts),
        "nearest": neighbors.n_nearest,
        "length": neighbors.length,
        "byRank": neighbors.by_rank,
    }
