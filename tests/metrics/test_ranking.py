"""Areas under curves and log-loss: against scikit-learn, and laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as theirs

from qmedoid.metrics.classification import log_loss, pr_auc, roc_auc

labeled = st.integers(2, 60).flatmap(
    lambda n: st.tuples(
        st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda labels: 0 < sum(labels) < len(labels)),
        st.lists(st.integers(-4, 4), min_size=n, max_size=n),
    )
)


@settings(max_examples=30, deadline=None)
@given(labeled)
def test_areas_are_those_of_scikit_learn_with_ties(drawn):
    positive, scores = np.array(drawn[0]), np.array(drawn[1], dtype=float)
    assert roc_auc(positive, scores) == pytest.approx(theirs.roc_auc_score(positive, scores), abs=1e-12)
    assert pr_auc(positive, scores) == pytest.approx(theirs.average_precision_score(positive, scores), abs=1e-12)


def test_one_class_alone_has_no_area():
    none = np.zeros(4, dtype=bool)
    assert np.isnan([roc_auc(none, np.arange(4.0)), pr_auc(none, np.arange(4.0))]).all()
    assert np.isnan(roc_auc(~none, np.arange(4.0)))


def test_log_loss_is_that_of_scikit_learn_and_finite():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(3), size=50)
    codes = rng.integers(0, 3, size=50)
    assert log_loss(codes, probabilities) == pytest.approx(theirs.log_loss(codes, probabilities, labels=[0, 1, 2]))
    assert np.isfinite(log_loss(np.array([0]), np.array([[0.0, 1.0]])))
