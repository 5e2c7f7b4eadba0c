"""Importances of the columns of a fit, by contributions to the margins of its training rows."""

from typing import Any

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.model.importance import training_importances
from qmedoid.variational.selection import OutOfFold


def keep_importances(estimator: Any, X: Array, held_out: OutOfFold | None, places: Codes) -> None:
    """Set `feature_importances_` of a fitted estimator.

    Parameters
    ----------
    estimator : classifier with a `table_model`
    X : ndarray of shape (n, M)
        Encoded columns of the rows of the fit.
    held_out : OutOfFold or None
        Their calibrated out-of-fold scores.
    places : ndarray
        Place of every column of the contract among those of the table; 0 is the importance of all others.
    """
    judged = np.zeros(0, dtype=np.intp) if held_out is None else held_out.judged
    scores = np.zeros((0, 0)) if held_out is None else held_out.scores
    found = estimator._importances = training_importances(estimator.table_model(), X, scores, judged)
    importances = np.zeros(estimator.n_features_in_)
    importances[places] = found
    estimator.feature_importances_ = importances
