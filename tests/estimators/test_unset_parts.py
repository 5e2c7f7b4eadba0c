"""A part that is None has the parameters of its default: grids over them need not set it first."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from qmedoid.estimators.deltas import DeltaFeatures
from qmedoid.estimators.evidence import EvidenceClassifier
from qmedoid.estimators.fusion import NearestMedoidClassifier
from qmedoid.estimators.geometric import GeometricClassifier
from qmedoid.estimators.table import TableClassifier
from qmedoid.exceptions import ParameterError


def _rows(n=60):
    rng = np.random.default_rng(0)
    codes = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + 2 * codes[:, None], np.array(["no", "yes"])[codes]


def test_a_grid_over_a_classifier_that_is_not_set():
    X, y = _rows()
    grid = {
        "classifier__fusion": [EvidenceClassifier(medoids="tiny", neighbors=0)],
        "classifier__alert_rate": [0.1, 0.5],
    }
    search = GridSearchCV(TableClassifier(random_state=0), grid, cv=2).fit(X, y)
    assert search.best_params_["classifier__alert_rate"] == 0.5
    assert search.best_estimator_.classifier.alert_rate == 0.5


@pytest.mark.parametrize(
    ("estimator", "part", "default", "name", "value"),
    [
        (TableClassifier(), "classifier", GeometricClassifier, "alert_rate", 0.25),
        (DeltaFeatures(), "fusion", NearestMedoidClassifier, "random_state", 3),
    ],
)
def test_the_part_is_its_default_otherwise(estimator, part, default, name, value):
    assert estimator.set_params() is estimator
    assert getattr(estimator, part) is None
    estimator.set_params(**{f"{part}__{name}": value})
    made = getattr(estimator, part)
    assert made.get_params(deep=False) == {**default().get_params(deep=False), name: value}
    estimator.set_params(**{f"{part}__{name}": None})
    assert getattr(estimator, part) is made
    assert estimator.set_params(**{part: None, f"{part}__{name}": value}) is estimator
    assert getattr(estimator, part) is not made


def test_names_that_are_no_parameters_are_refused_in_words():
    with pytest.raises(ValueError, match="Invalid parameter 'none'"):
        TableClassifier().set_params(classifier__none=1)
    with pytest.raises(ParameterError, match="method__medoids"):
        TableClassifier().set_params(classifier__fusion__medoids=8)
