"""The space in which a model measures how far a record lies from its medoids: any rows can be compared in it."""

import numpy as np

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import ModelError
from qmedoid.models.bad_values import LARGEST
from qmedoid.models.evidence import EvidenceModel
from qmedoid.models.fusion import FusionModel
from qmedoid.models.rare import RareEventModel
from qmedoid.models.stage import PlainStage


def medoid_space(stage: PlainStage, rows: Array) -> Array:
    """Raw rows (n, M) in the space where Euclidean distances are those to medoids, shape (n, q).

    Rows with a value in a column that the model reads that is no number, or beyond `LARGEST`, are NaN.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        usable: Flags = np.all(np.abs(rows[:, stage.used]) <= LARGEST, axis=1)
        places = _places(stage, np.where(usable[:, None], rows, 0.0))
    places[~usable] = np.nan
    return places


def _places(stage: PlainStage, rows: Array) -> Array:
    match stage:
        case EvidenceModel():
            return np.asarray(stage.rank_scaling.apply(rows) * np.sqrt(stage.column_weights))
        case RareEventModel():
            scaled = np.clip(stage.geometry.scaling.apply(rows), -LARGEST, LARGEST)
            return np.asarray(scaled * np.sqrt(stage.geometry.metrics[0]))
        case FusionModel():
            return stage.features(rows)
    raise ModelError(f"A {type(stage).__name__} has no distance to compare rows by.")


def distance_name(stage: PlainStage) -> str:
    """What that distance is, in words."""
    match stage:
        case RareEventModel():
            return f"over all columns, signed logarithms in the {stage.geometry.metric_names[0]} metric"
        case FusionModel():
            return "over the features of all groups of columns"
    return "over all columns that vary, scaled by rank"
