"""Training rows of a model as rows of a larger table.

The space in which a model measures how far a record lies from its medoids: any rows can be compared in it.
"""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import ModelError
from qmedoid.methods.base import LARGEST, PlainStage
from qmedoid.methods.evidence.model import EvidenceModel
from qmedoid.methods.nearest.model import NearestModel
from qmedoid.methods.rare.model import RareEventModel

Stage = TypeVar("Stage", bound=PlainStage)


def renumbered(stage: Stage, rows: Codes) -> Stage:
    """The same stage, where training row i is row ``rows[i]``."""
    numbered: Stage = replace(stage, medoid_rows=rows[stage.medoid_rows].astype(np.intp))  # type: ignore[type-var]
    if isinstance(numbered, EvidenceModel) and numbered.neighbors is not None:
        return replace(numbered, neighbors=numbered.neighbors.renumbered(rows))
    return numbered


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
        case NearestModel():
            return stage.features(rows)
    raise ModelError(f"A {type(stage).__name__} has no distance to compare rows by.")


def distance_name(stage: PlainStage) -> str:
    """What that distance is, in words."""
    match stage:
        case RareEventModel():
            return f"over all columns, signed logarithms in the {stage.geometry.metric_names[0]} metric"
        case NearestModel():
            return "over the features of all groups of columns"
    return "over all columns that vary, scaled by rank"
