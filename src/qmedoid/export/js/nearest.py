"""The nearest medoid as plain values."""

from typing import Any

from qmedoid.export.js.packing import packed, scaling
from qmedoid.methods.nearest.part import NearestPart


def write(model: NearestPart) -> dict[str, Any]:
    """The nearest medoid."""
    return {
        "input": scaling(model.input_scaling),
        "subsets": [list(subset) for subset in model.configuration],
        "weights": [packed(weights) for weights in model.weights],
        "signed": model.signed,
        "feature": scaling(model.feature_scaling),
        "medoids": packed(model.medoids),
        "medoidClasses": model.medoid_classes.tolist(),
        "multipliers": packed(model.multipliers),
        "alpha": model.alpha,
        "angular": model.use_angular,
        "angle": model.angle,
    }
