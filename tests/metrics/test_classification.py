"""Metrics of class codes: equal to scikit-learn's, also where classes are absent (algorithms 9 and 11)."""

import numpy as np
import pytest
import sklearn.metrics as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.metrics.classification import ClassMetrics, evaluate

AVERAGES = ("macro", "weighted")


@st.composite
def labeled(draw):
    """True and predicted codes; some of the classes may be absent from either or both."""
    n_classes = draw(st.integers(2, 5))
    n = draw(st.integers(1, 40))
    codes = st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n).map(np.array)
    return draw(codes), draw(codes), n_classes


def by_reference(y_true, y_pred, n_classes, *, beta=1.0, average=None, weights=None):
    return reference.precision_recall_fscore_support(
        y_true, y_pred, beta=beta, labels=range(n_classes), average=average, sample_weight=weights, zero_division=0
    )


@given(labeled(), st.sampled_from([0.5, 1.0, 2.0, 3.0]))
@settings(max_examples=30, deadline=None)
def test_every_figure_equals_scikit_learn(case, beta):
    y_true, y_pred, n_classes = case
    ours = evaluate(y_true, y_pred, n_classes)
    precision, recall, f_beta, support = by_reference(*case, beta=beta)
    np.testing.assert_allclose(ours.precision, precision, rtol=1e-13)
    np.testing.assert_allclose(ours.recall, recall, rtol=1e-13)
    np.testing.assert_allclose(ours.f_beta(beta), f_beta, rtol=1e-13)
    np.testing.assert_array_equal(ours.support, support)
    np.testing.assert_array_equal(
        ours.confusion, reference.confusion_matrix(y_true, y_pred, labels=range(n_classes))
    )  # fmt: skip
    assert ours.accuracy == pytest.approx(reference.accuracy_score(y_true, y_pred), rel=1e-14)
    assert ours.macro_f1 == pytest.approx(by_reference(*case, average="macro")[2], rel=1e-13)


@given(labeled(), st.sampled_from([0.5, 2.0]))
@settings(max_examples=40, deadline=None)
def test_averages_equal_scikit_learn(case, beta):
    ours = evaluate(*case)
    for average in AVERAGES:
        averaged = [ours.average(values, average) for values in (ours.precision, ours.recall, ours.f_beta(beta))]
        assert averaged == pytest.approx(by_reference(*case, beta=beta, average=average)[:3], rel=1e-12)


@given(labeled(), st.permutations(range(5)))
@settings(max_examples=30, deadline=None)
def test_renumbering_classes_renumbers_the_figures(case, order):
    y_true, y_pred, n_classes = case
    numbering = np.array([c for c in order if c < n_classes])
    before, after = evaluate(y_true, y_pred, n_classes), evaluate(numbering[y_true], numbering[y_pred], n_classes)
    np.testing.assert_array_equal(after.f1[numbering], before.f1)
    assert after.macro_f1 == pytest.approx(before.macro_f1, rel=1e-14)
    assert after.accuracy == before.accuracy


def test_no_rows_at_all_count_as_zero_and_warn_of_nothing():
    empty = ClassMetrics(np.zeros((2, 2)))
    figures = [
        empty.average(values, average) for values in (empty.precision, empty.f_beta(0.5)) for average in AVERAGES
    ]
    assert [empty.accuracy, *figures] == [0.0] * 5
