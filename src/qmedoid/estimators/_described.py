"""A fitted method with what it says of its training rows, in sample and out of fold."""

import numpy as np

from qmedoid.arrays import Array, Codes, row_slices
from qmedoid.estimators._folds import TrainingTable
from qmedoid.geometry.channels import Channels, class_channels
from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.methods.part import Part, Scored
from qmedoid.model.refinement import FittedMethod

_BLOCK_ROWS = 4096


def described(
    model: Part, data: TrainingTable, scores: Array, deltas: Array | None, folds: list[Codes]
) -> FittedMethod:
    """Measurements of the training rows by a model, with out-of-fold scores (n, C), NaN where there are none."""
    measured = model.score(data.X, channels=True)
    known = np.where(np.isfinite(scores), scores, measured.scores)
    # A circuit on deltas of the method itself is fed nothing else.
    channels = _channels_of_others(model, data, measured) if deltas is None else measured.channels
    return FittedMethod(model, measured, Scored(known, measured.nearest, *channels, deltas), folds)


def _channels_of_others(model: Part, data: TrainingTable, measured: Scored) -> Channels:
    """Channels of the training rows, those of a group that has a medoid to the medoids of other groups.

    A medoid is at distance 0 from itself, which would tell a circuit its class. A class without another medoid keeps
    the nearest.
    """
    groups = np.arange(len(data.X)) if data.groups is None else data.groups
    kept = model.rows
    of_medoids = groups[kept.numbers]
    rows = np.flatnonzero(np.isin(groups, of_medoids))
    assert kept.to_points is not None, "a method has medoids"
    medoids, found = kept.to_points(data.X[kept.numbers]), Channels(*(one.copy() for one in measured.channels))
    for block in row_slices(len(rows), _BLOCK_ROWS):
        some = rows[block]
        tested = compact_swap_test(kept.to_points(data.X[some]), medoids)
        distance = np.where(groups[some][:, None] == of_medoids, np.inf, tested.distance)
        others, _ = class_channels(distance, tested.angle, kept.classes, len(data.classes))
        has_other = np.isfinite(others.distance)
        for own, other in zip(found, others, strict=True):
            own[some] = np.where(has_other, other, own[some])
    return found
