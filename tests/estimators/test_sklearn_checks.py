"""Every estimator passes every check of scikit-learn with its default parameters; none is expected to fail."""

from functools import partial

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from qmedoid import (
    CorrelationGroups,
    DeltaFeatures,
    EvidenceClassifier,
    MedoidClassifier,
    NearestMedoidClassifier,
    RareEventClassifier,
    SumClassifier,
    VariationalClassifier,
)
from qmedoid.estimators import rare, sum
from qmedoid.estimators._boosting import BoostingSettings


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """The checks fit hundreds of models, and ask nothing of their trees."""
    for module in (rare, sum):
        monkeypatch.setattr(module, "BoostingSettings", partial(BoostingSettings, n_iterations=10))


@parametrize_with_checks(
    [
        CorrelationGroups(),
        DeltaFeatures(),
        NearestMedoidClassifier(),
        MedoidClassifier(),
        EvidenceClassifier(),
        SumClassifier(),
        RareEventClassifier(),
        VariationalClassifier(),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
