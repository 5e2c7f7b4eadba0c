"""A fitted method with what it says of its training rows, in sample and out of fold."""

import numpy as np

from qmedoid.arrays import Array, Codes, row_slices
from qmedoid.estimators._folds import TrainingTable
from qmedoid.geometry.channels import Channels, class_channels
from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.methods.base import Measured, Method
from qmedoid.model.refinement import FittedMethod

_BLOCK_ROWS = 4096


def described(
    model: Method, data: TrainingTable, scores: Array, deltas: Array | None, folds: list[Codes]
) -> FittedMethod:
    """Measurements of the training rows by a model, with out-of-fold scores (n, C), NaN where there are none."""
    measured = model.measure(data.X)
    known = np.where(np.isfinite(scores), scores, measured.scores)
    # A circuit on deltas of the method itself is fed nothing else.
    channels = _channels_of_others(model, data, measured) if deltas is None else measured.channels
    return FittedMethod(model, measured, Measured(channels, known, measured.nearest, deltas), folds)


def _channels_of_others(model: Method, data: TrainingTable, measured: Measured) -> Channels:
    """Channels of the training rows, those of a group that has a medoid to the medoids of other groups.

    A medoid is at distance 0 from itself, which would tell a circuit its class. A class without another medoid keeps
    the nearest.
    """
    groups = np.arange(len(data.X)) if data.groups is None else data.groups
    of_medoids = groups[model.medoid_rows]
    rows = np.flatnonzero(np.isin(groups, of_medoids))
    medoids, found = model.coordinates(data.X[model.medoid_rows]), Channels(*(one.copy() for one in measured.channels))
    for block in row_slices(len(rows), _BLOCK_ROWS):
        some = rows[block]
        tested = compact_swap_test(model.coordinates(data.X[some]), medoids)
        distance = np.where(groups[some][:, None] == of_medoids, np.inf, tested.distance)
        others, _ = class_channels(distance, tested.angle, model.medoid_classes, model.n_classes)
        has_other = np.isfinite(others.distance)
        for own, other in zip(found, others, strict=True):
            own[some] = np.where(has_other, other, own[some])
    return found
