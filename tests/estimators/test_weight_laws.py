"""Class weights count as rows do, and probabilities are made for the rows that made them."""

import numpy as np
import pytest
from gaussian_classes import GaussianClasses, drawn

from qmedoid.estimators._inputs import loss_weights
from qmedoid.estimators._search import multiplier_options
from qmedoid.variational.batches import row_weights
from qmedoid.variational.selection import OutOfFold


def test_weight_of_k_counts_a_row_k_times_in_a_loss():
    """And where the smallest score wins it is a factor that draws its class nearer."""
    codes, classes = np.array([0, 0, 0, 1, 2]), np.array(["a", "b", "c"])
    weighted = row_weights(codes, loss_weights({"b": 3, "c": 0.5}, codes, classes))
    repeated = row_weights(np.array([0, 0, 0, 1, 1, 1, 2]), np.array([1.0, 1.0, 0.5]))
    assert weighted[3] == pytest.approx(repeated[3:6].sum())
    assert weighted[4] == pytest.approx(repeated[6])
    (multipliers,) = multiplier_options({"b": 3, "c": 0.5}, codes, classes)
    np.testing.assert_allclose(multipliers * loss_weights({"b": 3, "c": 0.5}, codes, classes), 1.0)


def test_balanced_classes_have_one_weight_together():
    codes = np.repeat([0, 1, 2], [50, 7, 3])
    weights = row_weights(codes, loss_weights("balanced", codes, np.arange(3)))
    np.testing.assert_allclose(np.bincount(codes, weights), 1 / 3)


class Partly(GaussianClasses):
    """Holds out the rows from a given one on."""

    def fit(self, X, y, first=0):
        table, codes = self._checked(X, y)
        self.log_priors_ = np.log(np.bincount(codes) / len(codes))
        fold = np.where(np.arange(len(codes)) >= first, 0, -1)
        self._set_cut(codes, OutOfFold(self._scores(table), fold))
        return self


def test_priors_are_those_of_the_rows_that_were_held_out():
    X, y = drawn(400, [0.7, 0.3])
    y[:100] = 1
    for first in (0, 100, 300):
        fitted = Partly().fit(X, y, first)
        np.testing.assert_allclose(fitted.class_priors_, np.bincount(y[first:]) / (400 - first))
    # Held-out rows of one class alone say nothing of how frequent both are.
    np.testing.assert_allclose(Partly().fit(X, np.arange(400) // 200, 250).class_priors_, 0.5)
