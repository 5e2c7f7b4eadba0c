"""Every estimator passes every check of scikit-learn with its default parameters; none is expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from qmedoid import (
    CorrelationGroups,
    DeltaFeatures,
    GeometricClassifier,
    NearestMedoidClassifier,
    TableClassifier,
    VariationalClassifier,
)


@parametrize_with_checks(
    [
        CorrelationGroups(),
        DeltaFeatures(),
        NearestMedoidClassifier(),
        GeometricClassifier(),
        TableClassifier(),
        VariationalClassifier(),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
