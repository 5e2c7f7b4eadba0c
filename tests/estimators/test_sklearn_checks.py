"""Every estimator passes every check of scikit-learn with its default parameters; none is expected to fail.

The circuit alone is trained in fewer steps.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from qmedoid import (
    DeltaFeatures,
    EvidenceClassifier,
    MedoidClassifier,
    NearestMedoidClassifier,
    RareEventClassifier,
    SumClassifier,
    VariationalClassifier,
)

# The checks fit hundreds of models, and ask nothing of their trees.
pytestmark = pytest.mark.usefixtures("few_trees")


@parametrize_with_checks(
    [
        DeltaFeatures(),
        NearestMedoidClassifier(),
        MedoidClassifier(),
        EvidenceClassifier(),
        SumClassifier(),
        RareEventClassifier(),
        VariationalClassifier(n_steps=40),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
