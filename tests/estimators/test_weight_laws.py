"""Class weights count as rows do, and probabilities are made for the rows that made them."""

import numpy as np
import pytest
from gaussian_classes import GaussianClasses, drawn

from qmedoid.estimators._search import multiplier_options
from qmedoid.estimators.inputs import loss_weights
from qmedoid.model.decision import Decision


def test_weight_of_k_counts_a_row_k_times_in_a_loss():
    """And where the smallest score wins it is a factor that draws its class nearer."""
    codes, classes = np.array([0, 0, 0, 1, 2]), np.array(["a", "b", "c"])
    weights = loss_weights({"b": 3, "c": 0.5}, codes, classes)
    np.testing.assert_array_equal(weights, [1, 3, 0.5])
    (multipliers,) = multiplier_options({"b": 3, "c": 0.5}, codes, classes)
    np.testing.assert_allclose(multipliers * weights, 1.0)


def test_balanced_classes_have_one_weight_together():
    codes = np.repeat([0, 1, 2], [50, 7, 3])
    weights = loss_weights("balanced", codes, np.arange(3))[codes]
    np.testing.assert_allclose(np.bincount(codes, weights / weights.sum()), 1 / 3)


class Partly(GaussianClasses):
    """Holds out the rows from a given one on."""

    def fit(self, X, y, first=0):
        table, codes, _ = self._checked(X, y)
        return self.hold(table, codes, np.where(np.arange(len(codes)) >= first, 0, -1))


def test_priors_are_those_of_the_rows_that_were_held_out():
    X, y = drawn(400, [0.7, 0.3])
    y[:100] = 1
    for first in (0, 100, 300):
        fitted = Partly().fit(X, y, first)
        np.testing.assert_allclose(fitted.class_priors_, np.bincount(y[first:]) / (400 - first))
    # Held-out rows of one class alone say nothing of how frequent both are.
    np.testing.assert_allclose(Partly().fit(X, np.arange(400) // 200, 250).class_priors_, 0.5)


class Weighed(GaussianClasses):
    """Holds out all rows, which count by their weights."""

    def fit(self, X, y, weights=None):
        table, codes, _ = self._checked(X, y)
        return self.hold(table, codes, np.zeros(len(codes), dtype=np.intp), weights)


@pytest.mark.parametrize("point", [0.3, "f1", {"alert_rate": 0.3}, {"min_precision": 0.8}, {"cost": 4.0}])
def test_operating_point_of_weighted_rows_is_that_of_copies(point):
    X, y = drawn(600, [0.6, 0.4])
    times = np.where(np.arange(600) % 2 == 0, 1, 3)
    copied = Weighed(operating_point=point).fit(X.repeat(times, axis=0), y.repeat(times))
    weighed = Weighed(operating_point=point)
    weighed.fit(X, y, times / times.mean())
    # Scores of the copies are at other priors.
    moved = copied.model_.parts[0].log_priors - weighed.model_.parts[0].log_priors
    expected, found = copied.expected_, weighed.expected_
    if isinstance(point, dict):
        assert found.log_odds == pytest.approx(expected.log_odds - (moved[1] - moved[0]), abs=1e-9)
        assert found.alert_rate.value == pytest.approx(expected.alert_rate.value, abs=2e-3)
        assert found.recall.value == pytest.approx(expected.recall.value, abs=5e-3)
    np.testing.assert_allclose(weighed.class_priors_, copied.class_priors_)
    # 600 rows with weights 0.5 and 1.5 say as much as 480 that count the same.
    assert found.draws_per_row == pytest.approx(0.8)
    assert sum(found.counts) == pytest.approx(600, abs=2)


def test_class_biases_of_weighted_rows_are_those_of_copies():
    X, y = drawn(600, [0.5, 0.3, 0.2])
    times = np.where(np.arange(600) % 2 == 0, 1, 3)
    once, weighed = (Weighed(operating_point="macro_f1") for _ in range(2))
    weighed.fit(X, y, times / times.mean())
    once.fit(X, y)
    copies = np.repeat(np.arange(600), 10 * times)
    expected, _ = Decision.chosen(
        "macro_f1", once.classes_.tolist(), weighed.model_.decide(X).scores[copies], y[copies]
    )
    np.testing.assert_array_equal(weighed.model_.decision.biases, expected.biases)
