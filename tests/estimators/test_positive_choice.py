"""Alerts go to the class that is meant: chosen by MedoidClassifier, warned of by estimators on arrays."""

import warnings

import numpy as np
import pytest

from qmedoid.estimators.evidence import EvidenceClassifier
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.exceptions import QMedoidWarning

SMALL = EvidenceClassifier(n_medoids=6, n_neighbors=0)


def _rows(n=120, rare=0.2, labels=("ill", "well")):
    rng = np.random.default_rng(0)
    is_rare = np.arange(n) < rare * n
    return rng.normal(size=(n, 3)) + 2.5 * is_rare[:, None], np.where(is_rare, *labels)


def _fit(classifier, X, y):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        classifier.fit(X, y)
    return [str(one.message) for one in told if issubclass(one.category, QMedoidWarning)]


@pytest.mark.parametrize(
    "asked",
    [{"alert_rate": 0.1}, {"min_recall": 0.8}, {"min_precision": 0.8}, {"cost": 5}, "f1", 0.3],
)
def test_operating_point_is_about_the_rarer_class(asked):
    X, y = _rows(labels=("apple", "pear"))
    table = MedoidClassifier(method=SMALL, operating_point=asked, random_state=0)
    said = _fit(table, X, y)
    assert table.positive_ == "apple"
    assert [note for note in said if "about the class 'apple'" in note and "rarer" in note]
    assert [note for note in table.notes_ if "about the class 'apple'" in note]
    assert table.model_.decision.classes == ("pear", "apple")
    assert table.classes_.tolist() == ["apple", "pear"]
    # It is the model of somebody who names the class.
    named = MedoidClassifier(method=SMALL, operating_point=asked, positive="apple", random_state=0)
    assert not [note for note in _fit(named, X, y) if "about the class" in note or "spent on" in note]
    np.testing.assert_array_equal(named.decision_function(X), table.decision_function(X))
    assert named.expected_ == table.expected_


def test_without_an_operating_point_nothing_is_chosen():
    X, y = _rows(labels=("apple", "pear"))
    table = MedoidClassifier(method=SMALL, random_state=0)
    _fit(table, X, y)
    assert table.positive_ == "pear"
    assert not [note for note in table.notes_ if "about the class" in note]


def test_words_come_before_frequencies_and_that_is_said():
    X, y = _rows(labels=("no", "yes"))
    table = MedoidClassifier(method=SMALL, operating_point={"alert_rate": 0.5}, random_state=0)
    (said,) = [note for note in _fit(table, X, y) if "about the class" in note]
    assert table.positive_ == "yes"
    assert "although it is the more frequent" in said
    # Where nobody is surprised a note will do.
    plain = MedoidClassifier(method=SMALL, operating_point={"alert_rate": 0.1}, random_state=0)
    assert not [note for note in _fit(plain, X, np.where(y == "no", 1, 0)) if "about the class" in note]
    assert [note for note in plain.notes_ if "about the class 1" in note]


def test_alerts_of_the_majority_are_warned_of_on_arrays():
    X, y = _rows()
    budget = EvidenceClassifier(n_medoids=6, n_neighbors=0, operating_point={"alert_rate": 0.05}, random_state=0)
    (said,) = [note for note in _fit(budget, X, y) if "spent on" in note]
    assert "'well'" in said
    assert "80 %" in said
    assert budget.classes_.tolist() == ["ill", "well"]
    assert not [note for note in _fit(budget, X, y == "ill") if "spent on" in note]
    metric = EvidenceClassifier(n_medoids=6, n_neighbors=0, operating_point="f1", random_state=0)
    assert not [note for note in _fit(metric, X, y) if "spent on" in note]


def test_alerts_of_the_majority_by_name_are_not_warned_of():
    X, y = _rows()
    for positive in ("ill", "well"):
        table = MedoidClassifier(method=SMALL, operating_point={"alert_rate": 0.05}, positive=positive, random_state=0)
        assert not [note for note in _fit(table, X, y) if "spent on" in note or "about the class" in note]


def test_odd_targets_are_warned_of():
    X, y = _rows(labels=("Yes", "no"))
    y = y.astype(object)
    y[-1] = "yes"
    table = MedoidClassifier(method=SMALL, random_state=0)
    said = _fit(table, X, y)
    assert [note for note in said if "'yes' has one row only" in note]
    assert [note for note in said if "differ by case, blanks or odd letters only" in note]
