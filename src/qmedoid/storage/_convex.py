"""The convex fusion of distance and angle."""

from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.methods.nearest.model import NearestModel
from qmedoid.storage._hybrid import read_convex
from qmedoid.storage._json import Fields
from qmedoid.storage._tensors import Shelf, floats, whole

FIELDS = ("type", "signed", "alpha", "use_angular", "angle")


def packed(fusion: NearestModel, number: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """What the manifest says of a fusion model; its arrays are added."""
    arrays[f"{number}.center"] = floats(fusion.input_scaling.center)
    arrays[f"{number}.scale"] = floats(fusion.input_scaling.scale)
    arrays[f"{number}.members"] = whole([column for subset in fusion.configuration for column in subset])
    arrays[f"{number}.offsets"] = whole([0, *accumulate(map(len, fusion.configuration))])
    arrays[f"{number}.weights"] = np.concatenate([floats(weights) for weights in fusion.weights])
    arrays[f"{number}.feature_center"] = floats(fusion.feature_scaling.center)
    arrays[f"{number}.feature_scale"] = floats(fusion.feature_scaling.scale)
    arrays[f"{number}.medoids"] = floats(fusion.medoids)
    arrays[f"{number}.medoid_classes"] = whole(fusion.medoid_classes)
    arrays[f"{number}.medoid_rows"] = whole(fusion.medoid_rows)
    arrays[f"{number}.multipliers"] = floats(fusion.multipliers)
    return {
        "signed": bool(fusion.signed),
        "alpha": float(fusion.alpha),
        "use_angular": bool(fusion.use_angular),
        "angle": fusion.angle,
    }


def read(value: Any, where: str, number: int, width: int, n_classes: int, shelf: Shelf) -> NearestModel:
    """A fusion model of the nearest medoids."""
    return read_convex(Fields(value, where, FIELDS), number, width, n_classes, shelf)
