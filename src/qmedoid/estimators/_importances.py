"""Contributions of columns: importances of a fit, and of any rows, and effects of single columns."""

from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.explain.effect import N_BINS, Effect, EffectTally, check_bins
from qmedoid.methods.variational.selection import OutOfFold
from qmedoid.model.importance import ImportanceTally, by_importance, training_importances
from qmedoid.model.model import Model


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


class ContributionsMixin:
    """What the columns of raw tables contribute to the decisions of a fitted classifier."""

    @abstractmethod
    def table_model(self) -> Model:
        """The fitted model."""

    @abstractmethod
    def _matrix(self, X: Any) -> Array:
        """The rows as encoded columns, shape (n, M)."""

    @abstractmethod
    def _table_and_matrix(self, X: Any) -> tuple[pa.Table, Array]:
        """The rows as a table under the names of the fit, and as encoded columns."""

    def importances(self, X: Any) -> dict[str, float]:
        """Mean absolute contribution of every column to the decisions about these rows, the largest first.

        A contribution is what the column adds to the margin between the decided class and the runner-up, in log-odds:
        those of an explanation, and exact for these rows. `feature_importances_` are the same of training rows.
        """
        model = self.table_model()
        tally, columns = ImportanceTally(model), list(self._matrix(X).T)
        tally.add(columns, model.decide(columns))
        return by_importance(model.contract.names, tally.importances)

    def effect(self, X: Any, column: str, *, toward: Any = None, bins: int = N_BINS) -> Effect:
        """What the values of a column contribute to the decisions about these rows; see `SavedModel.effect`."""
        tally = EffectTally(self.table_model(), column, toward)
        check_bins(bins)
        table, matrix = self._table_and_matrix(X)
        tally.add(table, list(matrix.T))
        return tally.report(bins)
