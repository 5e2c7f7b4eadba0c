"""Storage of the nearest-medoid method."""

from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.fields import Fields, RefusedError, Shelf, floats, whole
from qmedoid.geometry.overlap import ANGLE_KINDS
from qmedoid.geometry.scaling import Scaling
from qmedoid.methods.base import LARGEST
from qmedoid.methods.nearest.model import NearestModel

# Scores times such a factor are still far from infinite.
_LARGEST_FACTOR = 1e100
FIELDS = ("name", "signed", "alpha", "use_angular", "angle")


def packed(model: NearestModel, number: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """What the manifest says of a model; its arrays are added."""
    arrays[f"{number}.center"] = floats(model.input_scaling.center)
    arrays[f"{number}.scale"] = floats(model.input_scaling.scale)
    arrays[f"{number}.members"] = whole([column for subset in model.configuration for column in subset])
    arrays[f"{number}.offsets"] = whole([0, *accumulate(map(len, model.configuration))])
    arrays[f"{number}.weights"] = np.concatenate([floats(weights) for weights in model.weights])
    arrays[f"{number}.feature_center"] = floats(model.feature_scaling.center)
    arrays[f"{number}.feature_scale"] = floats(model.feature_scaling.scale)
    arrays[f"{number}.medoids"] = floats(model.medoids)
    arrays[f"{number}.medoid_classes"] = whole(model.medoid_classes)
    arrays[f"{number}.medoid_rows"] = whole(model.medoid_rows)
    arrays[f"{number}.multipliers"] = floats(model.multipliers)
    return {
        "signed": bool(model.signed),
        "alpha": float(model.alpha),
        "use_angular": bool(model.use_angular),
        "angle": model.angle,
    }


def read(value: Any, where: str, number: int, width: int, n_classes: int, shelf: Shelf) -> NearestModel:
    """A model over `width` encoded columns."""
    fields = Fields(value, where, FIELDS)
    alpha = fields.real("alpha")
    if not 0 <= alpha <= 1:
        raise RefusedError(f"{fields.where}.alpha must be from 0 to 1, and is {alpha}")
    members = shelf.whole(f"{number}.members", None, below=width)
    offsets = shelf.offsets(f"{number}.offsets", None, len(members), step=1)
    weights = shelf.moderate(f"{number}.weights", len(members))
    n_anchors = len(offsets) - 1
    if n_anchors < 1:
        raise RefusedError(f"array '{number}.offsets' must have at least 2 entries")
    parts = [slice(a, b) for a, b in zip(offsets.tolist(), offsets.tolist()[1:], strict=False)]
    medoids = shelf.moderate(f"{number}.medoids", None, n_anchors)
    medoid_classes = shelf.whole(f"{number}.medoid_classes", len(medoids), below=n_classes)
    if len(np.unique(medoid_classes)) != n_classes:
        raise RefusedError(f"array '{number}.medoid_classes' lacks a class")
    multipliers = shelf.floats(f"{number}.multipliers", n_classes)
    if not ((multipliers > 0) & (multipliers < _LARGEST_FACTOR)).all():
        raise RefusedError(f"array '{number}.multipliers' must be above 0 and below {_LARGEST_FACTOR:g}")
    return NearestModel(
        input_scaling=Scaling(
            shelf.moderate(f"{number}.center", width, largest=LARGEST), shelf.scales(f"{number}.scale", width)
        ),
        configuration=tuple(tuple(members[part].tolist()) for part in parts),
        weights=tuple(weights[part].copy() for part in parts),
        signed=fields.flag("signed"),
        feature_scaling=Scaling(
            shelf.moderate(f"{number}.feature_center", n_anchors), shelf.scales(f"{number}.feature_scale", n_anchors)
        ),
        medoids=medoids,
        medoid_classes=medoid_classes,
        medoid_rows=shelf.whole(f"{number}.medoid_rows", len(medoids), below=2**62),
        multipliers=multipliers,
        alpha=alpha,
        use_angular=fields.flag("use_angular"),
        angle=fields.choice("angle", ANGLE_KINDS),
    )
