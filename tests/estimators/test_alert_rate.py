"""An alert rate is a budget: that share of the rows is called positive, whatever the classes are like."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from qmedoid import MedoidClassifier
from qmedoid.exceptions import ParameterError

pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(n_samples=900, n_features=5, weights=[0.8], random_state=3)
    return (X[:600], y[:600]), (X[600:], y[600:])


@pytest.mark.parametrize("method", ["evidence", "nearest"])
@pytest.mark.parametrize("rate", [0.02, 0.3, 0.7])
def test_new_rows_are_called_positive_at_this_rate(rows, method, rate):
    (X, y), (new, _) = rows
    called = (
        MedoidClassifier(method=method, operating_point={"alert_rate": rate}, refine="never", random_state=0)
        .fit(X, y)
        .predict(new)
    )
    # Three standard deviations of a share of 300 rows, and of the 600 that it was set by.
    assert abs(called.mean() - rate) < 3 * np.sqrt(rate * (1 - rate) * (1 / 300 + 1 / 600))


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


@pytest.mark.parametrize("rate", [0, 1, -0.1, "0.1", True])
def test_only_shares_are_allowed(rows, rate):
    (X, y), _ = rows
    with pytest.raises(
        ParameterError,
        match=r"'operating_point' parameter of MedoidClassifier .* 'alert_rate' \(a number above 0 and below 1\)",
    ):
        MedoidClassifier(operating_point={"alert_rate": rate}).fit(X, y)


def test_there_is_one_way_to_cut(rows):
    (X, y), _ = rows
    for both in ({"alert_rate": 0.1, "cost": 2.0}, {}, {"f1": 0.1}):
        with pytest.raises(ParameterError, match="or a dict with one of"):
            MedoidClassifier(operating_point=both).fit(X, y)


def test_more_than_two_classes_have_no_alert_rate(rows):
    (X, y), _ = rows
    with pytest.raises(ParameterError, match="'operating_point' of 3 classes"):
        MedoidClassifier(operating_point={"alert_rate": 0.1}).fit(X, np.arange(len(y)) % 3)
