"""The best threshold is the best of all cuts, and its metrics are scikit-learn's."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, fbeta_score

from qmedoid.metrics.thresholds import THRESHOLD_METRICS, all_cuts, chosen_threshold, metric_at

REFERENCE = {
    "macro_f1": lambda y, p: f1_score(y, p, labels=[0, 1], average="macro", zero_division=0),
    "f1": lambda y, p: f1_score(y, p, zero_division=0),
    "f2": lambda y, p: fbeta_score(y, p, beta=2, zero_division=0),
    "accuracy": accuracy_score,
    # scikit-learn's leaves out a class that has no row; here its recall counts as 0.
    "balanced_accuracy": lambda y, p: balanced_accuracy_score(y, p) / (1 if 0 < sum(y) < len(y) else 2),
}
EVERY = pytest.mark.parametrize("metric", sorted(THRESHOLD_METRICS))

# Few levels make ties; the floats bring neighbors, denormals and huge values.
scores_of_records = st.one_of(st.integers(-3, 3).map(float), st.floats(allow_nan=False, allow_infinity=False))
records = st.lists(st.tuples(st.integers(0, 1), scores_of_records), min_size=1, max_size=30).map(
    lambda pairs: (np.array([code for code, _ in pairs]), np.array([score for _, score in pairs]))
)


def value(codes, called, metric):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn on labels of one class
        return REFERENCE[metric](codes, called)


@EVERY
@given(records=records, threshold=st.integers(-3, 3))
@settings(max_examples=40, deadline=None)
def test_metrics_are_scikit_learns(metric, records, threshold):
    codes, scores = records
    assert metric_at(codes, scores, threshold, metric) == pytest.approx(
        value(codes, (scores > threshold).astype(int), metric), abs=1e-12
    )


@EVERY
@given(records=records)
@settings(max_examples=30, deadline=None)
def test_no_cut_is_better(metric, records):
    codes, scores = records
    found = all_cuts(codes == 1, scores).best(metric)
    decisions = [scores >= cut for cut in np.unique(scores)] + [np.zeros(len(codes), dtype=bool)]
    values = [metric_at(codes, called.astype(float), 0.5, metric) for called in decisions]
    assert metric_at(codes, scores, found, metric) == pytest.approx(max(values), abs=1e-12)
    # Of equally good cuts the lowest, which calls the most records positive.
    best = next(called for called, v in zip(decisions, values, strict=True) if v > max(values) - 1e-12)
    np.testing.assert_array_equal(scores > found, best)


def test_rounding_does_not_decide_between_equal_cuts():
    """Both cuts give recalls that add up to 4/3, as 1 + 1/3 and as 1/2 + 5/6, whose sums differ in the last digit."""
    codes, scores = np.array([0, 0, 0, 0, 0, 0, 1, 1]), np.array([0.0, 0.0, 0.0, -1.0, -1.0, 1.0, 0.0, 1.0])
    assert all_cuts(codes == 1, scores).best("balanced_accuracy") == -0.5


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (np.nextafter(1.0, 0), 1.0),
        (1.0, np.nextafter(1.0, 2)),
        (0.0, 5e-324),
        (-5e-324, 0.0),
        (1.7e308, 1.75e308),
        (-1.75e308, 1.75e308),
    ],
)
def test_neighboring_and_huge_scores_are_parted(low, high):
    found = all_cuts(np.array([0, 1]) == 1, np.array([low, high])).best("accuracy")
    assert low <= found < high


@EVERY
def test_one_class_only_is_called_as_it_is(metric):
    scores = np.linspace(-1, 1, 7)
    ones = np.ones(7, dtype=int)
    assert (scores > all_cuts(ones == 1, scores).best(metric)).all()
    assert metric_at(ones, scores, -2.0, metric) == pytest.approx(value(ones, ones, metric))


def test_certain_probabilities_expect_what_is_there():
    codes = np.array([0, 0, 1, 0, 1, 1])
    log_odds = np.array([-900.0, -800.0, 700.0, -750.0, 800.0, 900.0])
    assert chosen_threshold("f1", 0.0, codes == 1, log_odds) == all_cuts(codes == 1, log_odds).best("f1")


@EVERY
def test_steady_threshold_lies_three_times_as_near_to_the_expected_one(metric):
    """Where labels are as expected both agree; of others, the expected threshold counts threefold."""
    rng = np.random.default_rng(3)
    log_odds = np.sort(rng.normal(size=60)) * 2
    labels = rng.random((2, 60)) < 1 / (1 + np.exp(-log_odds))
    best, other_best = (all_cuts(one, log_odds).best(metric) for one in labels)
    steady, other_steady = (chosen_threshold(metric, 0.0, one, log_odds) for one in labels)
    # What is expected does not depend on the labels: the rest of both is the same.
    assert steady - best / 4 == pytest.approx(other_steady - other_best / 4)
