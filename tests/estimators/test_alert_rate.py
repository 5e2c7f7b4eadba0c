"""An alert rate is a budget: that share of the rows is called positive, whatever the classes are like."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from qmedoid import MedoidClassifier

pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(n_samples=900, n_features=5, weights=[0.8], random_state=3)
    return (X[:600], y[:600]), (X[600:], y[600:])


def test_threshold_changes_and_nothing_else(rows):
    (X, y), (new, _) = rows
    plain = MedoidClassifier(refine="never", random_state=0).fit(X, y)
    budget = clone(plain).set_params(operating_point={"alert_rate": 0.1}).fit(X, y)
    np.testing.assert_array_equal(plain.predict_proba(new), budget.predict_proba(new))
    np.testing.assert_array_equal(budget.predict(new), (budget.decision_function(new) > 0).astype(int))
    np.testing.assert_array_equal(
        budget.predict(new), (budget.predict_proba(new)[:, 1] > budget.threshold_).astype(int)
    )


def test_larger_budget_keeps_the_alerts_of_a_smaller_one(rows):
    (X, y), (new, _) = rows
    few, more = (
        MedoidClassifier(operating_point={"alert_rate": rate}, refine="never", random_state=0).fit(X, y).predict(new)
        for rate in (0.05, 0.2)
    )
    assert (more >= few).all()
    assert more.sum() > few.sum()
