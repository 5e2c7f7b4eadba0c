"""A canonical order of columns, so that a fit does not depend on the order of the columns in a file.

Sums round differently in another order, and of choices that are equally good the first is taken: either can make
another model. So a model is fitted to columns ordered by their values, and its columns are put back afterwards.
"""

from dataclasses import replace

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.scaling import RankScaling, Scaling, SignedLog
from qmedoid.methods.evidence.model import EvidenceModel, Group
from qmedoid.methods.rare.model import RareEventModel

# Rows that nearly always differ between two columns that differ at all.
_FIRST = 4096


def order_by_content(X: Array) -> Codes:
    """Places of the columns of X (n, M) in an order that depends on their values alone.

    Values are compared in single precision, so that the last digits of a double do not matter.
    """
    n = min(len(X), _FIRST)
    keys = [_key(X[:n, column]) for column in range(X.shape[1])]
    if len(set(keys)) < len(keys) and n < len(X):
        keys = [_key(X[:, column]) for column in range(X.shape[1])]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def _key(column: Array) -> bytes:
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(column, dtype=np.float32).tobytes()


def evidence_in_order(model: EvidenceModel, order: Codes) -> EvidenceModel:
    """The evidence model for X, from one that was fitted to ``X[:, order]``."""
    back = np.argsort(order)
    neighbors = model.neighbors
    return replace(
        model,
        rank_scaling=_ranks(model.rank_scaling, back),
        linear_scaling=_scaling(model.linear_scaling, back),
        medoids=_columns(model.medoids, back),
        column_weights=model.column_weights[back],
        groups=tuple(_group(group, order) for group in model.groups),
        neighbors=None if neighbors is None else replace(neighbors, records=_columns(neighbors.records, back)),
    )


def rare_in_order(model: RareEventModel, order: Codes) -> RareEventModel:
    """The rare-event model for X, from one that was fitted to ``X[:, order]``."""
    back, geometry = np.argsort(order), model.geometry
    n_deltas, n_columns = geometry.n_features[0], len(order)
    # Deltas come first, then the features of single columns, kind by kind.
    starts = n_deltas + n_columns * np.arange(4)[:, None]
    features, to = (np.append(np.arange(n_deltas), (starts + places).ravel()) for places in (back, order))
    inner = geometry.scaling.inner
    return replace(
        model,
        geometry=replace(
            geometry,
            scaling=SignedLog(_scaling(geometry.scaling.outer, back), None if inner is None else _scaling(inner, back)),
            rare=_columns(geometry.rare, back),
            common=_columns(geometry.common, back),
            metrics=_columns(geometry.metrics, back),
        ),
        center=model.center[features],
        scale=model.scale[features],
        weights=model.weights[features],
        circuit_features=to[model.circuit_features].astype(np.intp),
    )


def _columns(rows: Array, back: Codes) -> Array:
    return np.ascontiguousarray(rows[:, back])


def _scaling(scaling: Scaling, back: Codes) -> Scaling:
    return Scaling(scaling.center[back], scaling.scale[back])


def _ranks(scaling: RankScaling, back: Codes) -> RankScaling:
    knots = [np.arange(scaling.offsets[column], scaling.offsets[column + 1]) for column in back]
    places = np.concatenate(knots)
    offsets = np.cumsum([0, *(len(places) for places in knots)]).astype(np.intp)
    return RankScaling(offsets, scaling.values[places], scaling.scores[places])


def _group(group: Group, order: Codes) -> Group:
    columns = order[list(group.columns)]
    ascending = np.argsort(columns)
    return Group(tuple(columns[ascending].tolist()), group.weights[ascending], group.by_rank)
