"""Storage of the rare-event method."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.fields import Fields, RefusedError, Shelf, floats, plain, shown, whole
from qmedoid.geometry.scaling import Scaling, SignedLog
from qmedoid.kernels.nearest import MOST_NEAREST
from qmedoid.methods.base import LARGEST
from qmedoid.methods.rare.geometry import RareGeometry
from qmedoid.methods.rare.model import RareEventModel

FIELDS = ("name", "rare_class", "metric_names", "counts", "length", "floor", "intercept", "compressed")


# What a squared difference counts at most: squares of the largest values then stay within the range of a double.
_MOST_WEIGHT = 1000.0


def packed(model: RareEventModel, number: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Manifest entry of a rare-event model; its arrays are added to `arrays`."""
    geometry, inner = model.geometry, model.geometry.scaling.inner
    arrays[f"{number}.center"] = floats(geometry.scaling.outer.center)
    arrays[f"{number}.scale"] = floats(geometry.scaling.outer.scale)
    if inner is not None:
        arrays[f"{number}.inner_center"] = floats(inner.center)
        arrays[f"{number}.inner_scale"] = floats(inner.scale)
    arrays[f"{number}.rare"] = floats(geometry.rare)
    arrays[f"{number}.common"] = floats(geometry.common)
    arrays[f"{number}.hard"] = whole(geometry.hard)
    arrays[f"{number}.metrics"] = floats(geometry.metrics)
    arrays[f"{number}.medoid_rows"] = whole(model.medoid_rows)
    arrays[f"{number}.feature_center"] = floats(model.center)
    arrays[f"{number}.feature_scale"] = floats(model.scale)
    arrays[f"{number}.feature_weights"] = floats(model.weights)
    arrays[f"{number}.circuit_features"] = whole(model.circuit_features)
    return {
        "rare_class": int(model.rare_class),
        "metric_names": plain(list(geometry.metric_names), "names of metrics"),
        "counts": [int(count) for count in geometry.counts],
        "length": plain(float(geometry.length), "length"),
        "floor": plain(float(geometry.floor), "floor"),
        "intercept": plain(float(model.intercept), "intercept"),
        "compressed": inner is not None,
    }


def read(value: Any, where: str, number: int, width: int, n_classes: int, shelf: Shelf) -> RareEventModel:
    """A rare-event model over `width` encoded columns."""
    fields = Fields(value, where, FIELDS)
    if n_classes != 2:
        raise RefusedError(f"{where} is for two classes, and there are {n_classes}")
    geometry = _geometry(fields, number, width, shelf)
    n_features = sum(geometry.n_features)
    center = shelf.floats(f"{number}.feature_center", None)
    n_stored = len(center)
    # Files from before there were distances to the middle of a class have none; weights of 0 say the same.
    if n_stored not in (n_features, n_features - geometry.n_features[-1]):
        raise RefusedError(f"array '{number}.feature_center' must have {n_features} numbers, and has {n_stored}")
    n_missing = n_features - n_stored
    return RareEventModel(
        geometry=geometry,
        medoid_rows=shelf.whole(f"{number}.medoid_rows", len(geometry.rare) + len(geometry.common), below=2**62),
        center=_padded(center, n_missing, 0.0),
        scale=_padded(shelf.scales(f"{number}.feature_scale", n_stored), n_missing, 1.0),
        weights=_padded(shelf.moderate(f"{number}.feature_weights", n_stored), n_missing, 0.0),
        intercept=fields.real("intercept"),
        circuit_features=shelf.whole(f"{number}.circuit_features", None, below=n_features),
        rare_class=fields.whole("rare_class", 0, 1),
    )


def _padded(stored: Array, count: int, value: float) -> Array:
    return np.concatenate([stored, np.full(count, value)])


def _geometry(fields: Fields, number: int, width: int, shelf: Shelf) -> RareGeometry:
    rare, common = (shelf.moderate(f"{number}.{name}", None, width, largest=LARGEST) for name in ("rare", "common"))
    hard = shelf.whole(f"{number}.hard", len(common), below=2).astype(np.bool_)
    if min(len(rare), len(common)) < 2 or hard.all():
        raise RefusedError(f"arrays '{number}.rare' and '{number}.common' must have two rows or more, not all hard")
    names = fields.texts("metric_names")
    metrics = shelf.moderate(f"{number}.metrics", len(names), width, largest=_MOST_WEIGHT)
    if not names or (metrics < 0).any() or not metrics.any(axis=1).all():
        raise RefusedError(f"array '{number}.metrics' must hold numbers from 0 up, not all of them 0, for each metric")
    return RareGeometry(
        scaling=_scaling(fields, number, width, shelf),
        rare=rare,
        common=common,
        hard=hard,
        metrics=metrics,
        metric_names=names,
        counts=_counts(fields),
        length=_above_zero(fields, "length"),
        floor=_above_zero(fields, "floor"),
    )


def _scaling(fields: Fields, number: int, width: int, shelf: Shelf) -> SignedLog:
    outer = Scaling(shelf.floats(f"{number}.center", width), shelf.scales(f"{number}.scale", width))
    if not fields.flag("compressed"):
        return SignedLog(outer, None)
    center, scale = shelf.floats(f"{number}.inner_center", width), shelf.scales(f"{number}.inner_scale", width)
    return SignedLog(outer, Scaling(center, scale))


def _counts(fields: Fields) -> tuple[int, ...]:
    counts = fields.list("counts")
    allowed = all(isinstance(k, int) and not isinstance(k, bool) and 1 <= k <= MOST_NEAREST for k in counts)
    if not counts or not allowed or any(a >= b for a, b in pairwise(counts)):
        raise RefusedError(
            f"{fields.where}.counts must hold whole numbers from 1 to {MOST_NEAREST} that ascend, not {shown(counts)}"
        )
    return tuple(counts)


def _above_zero(fields: Fields, name: str) -> float:
    value = fields.real(name)
    if value <= 0:
        raise RefusedError(f"{fields.where}.{name} must be above 0, and is {value}")
    return value
