"""What is kept of a method's scores: counts, areas and curves against scikit-learn and against counting by hand."""

import json
from itertools import permutations

import numpy as np
import pytest
from benchmarks.studies.cells import BUDGETS, RATES, areas, class_metrics, curves, recall_at
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)


@st.composite
def scored_rows(draw):
    """Some rows of both classes, and scores with many ties."""
    n = draw(st.integers(2, 60))
    positive = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    positive[0], positive[1] = True, False
    levels = draw(st.integers(1, 20))
    scores = np.array(draw(st.lists(st.integers(0, levels), min_size=n, max_size=n))) / 7 - 1
    return positive, scores


def linear(x, xs, ys):
    """Straight lines between points, the upper end of a step where several share an x."""
    below, above = np.flatnonzero(xs <= x)[-1], np.flatnonzero(xs >= x)
    if xs[below] == x:
        return ys[below]
    share = (x - xs[below]) / (xs[above[0]] - xs[below])
    return ys[below] + share * (ys[above[0]] - ys[below])


@settings(deadline=None)
@given(scored_rows())
def test_areas_are_those_of_scikit_learn(rows):
    positive, scores = rows
    found = areas(positive, scores)
    assert found["roc_auc"] == pytest.approx(roc_auc_score(positive, scores))
    assert found["pr_auc"] == pytest.approx(average_precision_score(positive, scores))


@settings(deadline=None)
@given(scored_rows())
def test_roc_curve_is_that_of_scikit_learn(rows):
    positive, scores = rows
    false, recall, _ = roc_curve(positive, scores, drop_intermediate=False)
    expected = [linear(rate, false, recall) for rate in RATES]
    # On a step several recalls have one false positive rate: any of them is on the curve.
    low = [recall[false >= rate - 1e-9].min() for rate in RATES]
    on_step = np.array([np.isclose(false, rate).sum() > 1 for rate in RATES])
    got = np.array(curves(positive, scores)["roc"])
    assert got[~on_step] == pytest.approx(np.array(expected)[~on_step], abs=1e-6)
    assert (got >= np.array(low) - 1e-6)[on_step].all()
    assert (got <= np.array(expected) + 1e-6)[on_step].all()


@settings(deadline=None)
@given(scored_rows())
def test_precision_is_the_best_of_thresholds_with_at_least_this_recall(rows):
    positive, scores = rows
    precision, recall, _ = precision_recall_curve(positive, scores)
    # The last point of scikit-learn's is no threshold but an end put on: recall 0, precision 1.
    precision, recall = precision[:-1], recall[:-1]
    expected = [precision[recall >= rate - 1e-9].max() for rate in RATES]
    assert curves(positive, scores)["pr"] == pytest.approx(expected, abs=1e-6)


@settings(deadline=None)
@given(scored_rows())
def test_recall_by_rate_is_what_a_random_choice_among_equal_scores_gets(rows):
    positive, scores = rows
    expected = []
    for budget in BUDGETS:
        left, hits = budget * len(scores), 0.0
        for level in sorted(set(scores), reverse=True):
            at = scores == level
            taken = min(left, at.sum())
            hits += taken / at.sum() * positive[at].sum()
            left -= taken
        expected.append(hits / positive.sum())
    assert curves(positive, scores)["recall_by_rate"] == pytest.approx(expected, abs=2e-6)


@settings(deadline=None)
@given(scored_rows(), st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_the_scale_of_scores_changes_a_curve(rows, random):
    positive, scores = rows
    order = random.sample(range(len(scores)), len(scores))
    assert curves(positive[order], np.exp(3 * scores[order])) == curves(positive, scores)
    found = class_metrics(positive.astype(int), positive.astype(int), scores)
    assert json.loads(json.dumps(found)) == found
    perfect = curves(positive, positive.astype(float))
    assert perfect["roc"] == perfect["pr"] == [1.0] * len(RATES)


def test_two_classes_are_judged_by_the_score_of_the_second():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 50)
    decisions, scores = rng.integers(0, 2, 50), rng.normal(size=50) + codes
    found = class_metrics(codes, decisions, scores)
    assert found["confusion"] == confusion_matrix(codes, decisions).tolist()
    assert found["roc_auc"] == pytest.approx(roc_auc_score(codes, scores))
    assert found["roc_auc"] > 0.5
    assert found["pr_auc"] == pytest.approx(average_precision_score(codes, scores))
    assert found["curves"] == curves(codes == 1, scores)


def test_areas_of_more_classes_are_means_of_one_against_the_others():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, 90)
    scores = rng.normal(size=(90, 4)) + 2 * np.eye(4)[codes]
    decisions = scores.argmax(axis=1)
    found = class_metrics(codes, decisions, scores)
    assert found["confusion"] == confusion_matrix(codes, decisions).tolist()
    assert found["roc_auc"] == pytest.approx(np.mean([roc_auc_score(codes == c, scores[:, c]) for c in range(4)]))
    pr = [average_precision_score(codes == c, scores[:, c]) for c in range(4)]
    assert found["pr_auc"] == pytest.approx(np.mean(pr))
    assert "curves" not in found


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=2, max_size=5), st.floats(0.01, 1.0))
def test_recall_is_the_mean_over_all_orders_of_the_ties(rows, budget):
    codes, scores = np.array(rows).T
    codes[0] = 1
    alerts = int(budget * len(codes))
    orders = [order for order in permutations(range(len(codes))) if (np.diff(scores[list(order)]) <= 0).all()]
    found = np.mean([codes[list(order[:alerts])].sum() for order in orders]) / codes.sum()
    assert recall_at(codes == 1, scores.astype(float), alerts) == pytest.approx(found)
